// nonlocal bench: what it reports, on frames so small that it takes no time. How fast anything is is not
// tested.
#include <nonlocal/cpu.h>

#include <fstream>
#include <regex>

#include "support.h"

namespace {

using nlohmann::json;

class BenchTest : public ToolTest {
 protected:
  static json bench(const std::string& arguments, const std::string& environment = "") {
    return json::parse(
        must(environment + " $TOOL bench denoise --json " +
             (arguments.find("--size") == std::string::npos ? "--size 64x48 " : "") + arguments),
        nullptr, false);
  }

  static void expect_refusal(const std::string& arguments, const std::string& message, int status) {
    const Outcome outcome = run("$TOOL bench " + arguments);
    EXPECT_EQ(outcome.status, status) << arguments << "\n" << outcome.err;
    EXPECT_TRUE(std::regex_search(outcome.err, std::regex(message)))
        << arguments << "\nexpected: " << message << "\ncame: " << outcome.err;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(files().empty()) << arguments;
  }

  // A command of this name that does nothing but what `script` says, found before any other.
  static void fake_command(const std::string& name, const std::string& script) {
    must("mkdir -p bin; printf '%s\\n' '#!/bin/bash' '" + script + "' >bin/" + name + "; chmod +x bin/" +
         name);
  }
};

constexpr const char* kFakesFirst = "PATH=$PWD/bin:$PATH";

// Width and height, from the file's header.
std::pair<int, int> png_size(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  unsigned char head[24] = {};
  in.read(reinterpret_cast<char*>(head), sizeof head);
  const auto number = [&](int at) {
    return head[at] << 24 | head[at + 1] << 16 | head[at + 2] << 8 | head[at + 3];
  };
  const bool is_png = in.gcount() == sizeof head && std::string(head + 1, head + 4) == "PNG";
  return is_png ? std::pair(number(16), number(20)) : std::pair(0, 0);
}

TEST_F(BenchTest, ReportsWhatItWasAskedFor) {
  const json result = bench("--frames 2 --patch 5 --search 11 --sigma 12 --threads 2 --format I420");
  EXPECT_EQ(result["size"], "64x48");
  EXPECT_EQ(result["format"], "I420");
  EXPECT_EQ(result["patch"], 5);
  EXPECT_EQ(result["search"], 11);
  EXPECT_EQ(result["sigma"], 12);
  EXPECT_EQ(result["threads"], 2);
  EXPECT_EQ(result["frames"], 2);
  EXPECT_TRUE(result["peers"].is_null());
  EXPECT_TRUE(result["plot"].is_null());
}

TEST_F(BenchTest, FiguresAgree) {
  const json result = bench("--frames 3 --format I420_10LE");
  const double ms = result["ms_median"];
  const double pairs = 64 * 48 * (21 * 21 - 1);
  const double bytes_in_and_out = 2 * 2 * (64 * 48 + 2 * 32 * 24);
  ASSERT_GT(ms, 0);
  EXPECT_GT(result["ms_min"], 0);
  EXPECT_LE(result["ms_min"], ms);
  EXPECT_NEAR(result["fps"], 1e3 / ms, 1e-6 * 1e3 / ms);
  EXPECT_NEAR(result["gb_per_s"], bytes_in_and_out / ms * 1e-6, 1e-6 * bytes_in_and_out / ms);
  EXPECT_NEAR(result["ns_per_pixel_and_offset"], ms * 1e6 / pairs, 1e-6 * ms * 1e6 / pairs);
  EXPECT_NEAR(result["pairs_per_second"], pairs * 1e3 / ms, 1e-6 * pairs * 1e3 / ms);
  EXPECT_TRUE(result["peak_memory_mib"].is_number());
}

TEST_F(BenchTest, EveryInstructionSetIsExact) {
  for (const std::string& isa : nonlocal::instruction_sets()) {
    for (const std::string format :
         {"GRAY8", "GRAY10", "I420", "I420_10LE", "I420 --chroma joint", "I420_10LE --chroma joint"}) {
      const json result = bench("--frames 1 --isa " + isa + " --format " + format);
      EXPECT_EQ(result["isa"], isa);
      EXPECT_GT(result["psnr_vs_exact"], 50) << isa << " " << format;
      EXPECT_GT(result["largest_error"], 0) << isa << " " << format;
      EXPECT_LT(result["largest_error"], 8) << isa << " " << format;
      EXPECT_GT(result["samples_compared"], 1000) << isa << " " << format;
    }
  }
}

TEST_F(BenchTest, JointChromaIsAnotherFilter) {
  const json separate = bench("--frames 1 --format I420");
  const json joint = bench("--frames 1 --format I420 --chroma joint");
  EXPECT_EQ(separate["chroma"], "separate");
  EXPECT_EQ(joint["chroma"], "joint");
  EXPECT_NE(separate["psnr_vs_exact"], joint["psnr_vs_exact"]);
}

TEST_F(BenchTest, AttentionIsExact) {
  for (const std::string format : {"GRAY8", "I420", "I420_10LE"}) {
    const json direct = bench("--frames 1 --format " + format);
    const json attention = bench("--frames 1 --method attention --format " + format);
    EXPECT_EQ(direct["method"], "direct");
    EXPECT_EQ(attention["method"], "attention");
    EXPECT_GE(attention["psnr_vs_exact"], direct["psnr_vs_exact"]) << format;
    EXPECT_LT(attention["largest_error"], 0.51) << format;
  }
}

TEST_F(BenchTest, SameSeedGivesTheSameFrames) {
  const json once = bench("--frames 1");
  const json again = bench("--frames 2 --threads 1");
  EXPECT_EQ(once["psnr_vs_exact"], again["psnr_vs_exact"]);
  EXPECT_EQ(once["largest_error"], again["largest_error"]);
  EXPECT_NE(once["psnr_vs_exact"], bench("--frames 1 --sigma 20")["psnr_vs_exact"]);
}

TEST_F(BenchTest, OddSizesAndSecondsServe) {
  const json result = bench("--size 33x17 --seconds 0 --format I420");
  EXPECT_EQ(result["size"], "33x17");
  EXPECT_EQ(result["frames"], 3);
  EXPECT_GT(result["psnr_vs_exact"], 50);
}

TEST_F(BenchTest, PrintsTheSameAsText) {
  const Outcome outcome = run("$TOOL bench denoise --size 64x48 --frames 2 --quiet");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.err, "");
  for (const char* expected : {"64x48 GRAY8, noise sigma 25; patch 7, search 21", "ms a frame \\(median of 2",
                               "ns a pixel and offset", "GB/s", "dB PSNR to the formula"})
    EXPECT_TRUE(std::regex_search(outcome.out, std::regex(expected))) << expected << "\n" << outcome.out;
}

TEST_F(BenchTest, MeasuresPeersInTurn) {
  must("mkdir only; ln -s \"$(command -v ffmpeg)\" only/ffmpeg");
  const json result = bench("--size 128x96 --peers --frames 1", "PATH=$PWD/only");
  const double ms = result["ms_median"];
  for (const char* name : {"opencv", "ffmpeg"}) {
    const json peer = result["peers"][name];
    ASSERT_TRUE(peer["ms_median"].is_number()) << peer;
    EXPECT_GT(peer["ms_median"], 0);
    EXPECT_NEAR(peer["ratio"], peer["ms_median"].get<double>() / ms, 1e-6 * peer["ratio"].get<double>());
    EXPECT_EQ(peer["measurements"], 3) << "the fewest rounds";
  }
  EXPECT_TRUE(result["peers"].contains("handbrake"));
  EXPECT_GE(result["frames"], 3);
}

TEST_F(BenchTest, PeersThatAreNotThereAreNull) {
  const json peers = bench("--peers --frames 3", "PATH=/nowhere")["peers"];
  EXPECT_TRUE(peers["opencv"]["ratio"].is_number());
  EXPECT_TRUE(peers["ffmpeg"].is_null()) << peers;
  EXPECT_TRUE(peers["handbrake"].is_null()) << peers;
  EXPECT_NE(must("PATH=/nowhere $TOOL bench denoise --size 64x48 --peers --frames 3").find("not installed"),
            std::string::npos);
}

TEST_F(BenchTest, PeersGetTheSameTask) {
  fake_command("ffmpeg", "echo \"$@\" >>ffmpeg.log");
  fake_command("HandBrakeCLI", "echo \"$@\" >>handbrake.log; echo x >\"$4\"");
  bench("--peers --frames 3 --patch 5 --search 11 --sigma 20 --threads 2 --format I420_10LE", kFakesFirst);
  const std::string ffmpeg = must("cat ffmpeg.log");
  // s = 5 * 0.9 * 20 / 10
  EXPECT_NE(ffmpeg.find("-vf nlmeans=s=9.000:p=5:r=11 "), std::string::npos) << ffmpeg;
  EXPECT_NE(ffmpeg.find("-pix_fmt gray -s 64x48 "), std::string::npos) << ffmpeg;
  EXPECT_NE(ffmpeg.find("-filter_threads 2 "), std::string::npos) << ffmpeg;
  EXPECT_EQ(std::ranges::count(ffmpeg, '\n'), 1 + 3 * 2) << "a warm-up, and two runs a round\n" << ffmpeg;
  const std::string handbrake = must("cat handbrake.log");
  EXPECT_NE(handbrake.find("--nlmeans=y-strength=18.000:"), std::string::npos) << handbrake;
  EXPECT_NE(handbrake.find(":y-patch-size=5:y-range=11:"), std::string::npos) << handbrake;
  EXPECT_NE(handbrake.find(":threads=2"), std::string::npos) << handbrake;
  EXPECT_EQ(std::ranges::count(handbrake, '\n'), 1 + 3 * 2) << handbrake;
}

TEST_F(BenchTest, PeersThatFailAreSaidTo) {
  fake_command("ffmpeg", "echo one >&2; echo no such filter >&2; exit 3");
  fake_command("HandBrakeCLI", "exit 0");
  const json peers = bench("--peers --frames 3", kFakesFirst)["peers"];
  EXPECT_TRUE(peers["opencv"]["ratio"].is_number());
  EXPECT_TRUE(peers["ffmpeg"]["ratio"].is_null());
  EXPECT_EQ(peers["ffmpeg"]["problem"], "ffmpeg failed: no such filter");
  EXPECT_TRUE(peers["handbrake"]["ratio"].is_null());
  EXPECT_EQ(peers["handbrake"]["problem"], "HandBrakeCLI wrote nothing");
}

TEST_F(BenchTest, PeersWithoutRoomForTheirFilesAreSaidTo) {
  fake_command("ffmpeg", "exit 0");
  const json peers = bench("--peers --frames 3", std::string("TMPDIR=$PWD/none ") + kFakesFirst)["peers"];
  EXPECT_TRUE(peers["opencv"]["ratio"].is_number()) << peers;
  EXPECT_TRUE(peers["ffmpeg"]["problem"].is_string()) << peers;
}

TEST_F(BenchTest, PlotIsDrawn) {
  const json result = bench("--frames 1 --plot plot.png");
  EXPECT_EQ(png_size("plot.png"), std::pair(1800, 640));
  EXPECT_EQ(files(), std::set<std::string>{"./plot.png"});
  const json plot = result["plot"];
  EXPECT_EQ(plot["file"], "plot.png");
  ASSERT_EQ(plot["by_size"].size(), 5U);
  EXPECT_EQ(plot["by_size"][0]["size"], "28x21");
  EXPECT_EQ(plot["by_size"][4]["size"], "256x192");
  EXPECT_EQ(plot["by_size"][4]["pixels"], 256 * 192);
  ASSERT_EQ(plot["by_search"].size(), 7U);
  EXPECT_EQ(plot["by_search"][0]["search"], 3);
  EXPECT_EQ(plot["by_search"][6]["search"], 31);
  for (const json& points : {plot["by_size"], plot["by_search"]})
    for (const json& point : points) EXPECT_GT(point["ms_median"], 0) << point;
}

TEST_F(BenchTest, RefusesWhatCannotBe) {
  expect_refusal("denoise --size big", "^nonlocal: --size takes WIDTHxHEIGHT, both from 16 to 8192, not big",
                 1);
  expect_refusal("denoise --size 8x64", "^nonlocal: --size takes", 1);
  expect_refusal("denoise --size 64x99999", "^nonlocal: --size takes", 1);
  expect_refusal("denoise --size 4096x64 --plot p.png", "^nonlocal: --size .* to 2048 with --plot", 1);
  expect_refusal("denoise --method attention --chroma joint",
                 "^nonlocal: --method attention takes chroma by weights of its own", 1);
  expect_refusal("denoise --method both", "--method: both not in .*direct,attention", 2);
  expect_refusal("denoise --patch 8", "^nonlocal: --patch takes an odd number from 1 to 15, not 8", 1);
  expect_refusal("denoise --patch -3", "^nonlocal: --patch takes", 1);
  expect_refusal("denoise --search 65", "^nonlocal: --search takes an odd number from 3 to 63, not 65", 1);
  expect_refusal("denoise --isa MMX", "^nonlocal: instruction set 'MMX': expected one of .*[A-Z]", 1);
  expect_refusal("denoise --plot p.jpg", "^nonlocal: p.jpg: the picture's name must end in .png", 1);
  expect_refusal("denoise --plot none/p.png", "^nonlocal: none/p.png: no such folder: none", 1);
  expect_refusal("denoise --format RGB", "--format: RGB not in .*GRAY8.*I420_10LE", 2);
  expect_refusal("denoise --chroma luma", "--chroma: luma not in .*separate,joint", 2);
  expect_refusal("denoise --sigma 0", "--sigma", 2);
  expect_refusal("denoise --sigma nan", "--sigma: nan is not from 1 to 100", 2);
  for (const std::string seconds : {"nan", "-nan", "inf", "-1", "3601", "long"})
    expect_refusal("denoise --seconds " + seconds, "--seconds: " + seconds + " is not from 0 to 3600", 2);
  expect_refusal("denoise --threads -1", "--threads", 2);
  expect_refusal("denoise --frames 0", "--frames", 2);
  expect_refusal("denoise --frames 2 --seconds 2", "--frames excludes --seconds|--seconds excludes --frames",
                 2);
  expect_refusal("", "nonlocal --help", 2);
  expect_refusal("sharpen", "nonlocal --help", 2);
}

}  // namespace
