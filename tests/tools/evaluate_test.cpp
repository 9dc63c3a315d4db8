// nonlocal evaluate: its figures are those of the frames that the filters got and gave, and its page shows
// them.
#include <fstream>
#include <numeric>
#include <regex>

#include "nonlocal/refinement.h"
#include "reference/video_metrics.h"
#include "support.h"

namespace {

using nlohmann::json;
using nonlocal::reference::SamplePlane;

// Stands in for FFmpeg: keeps what it gets as noisy.raw, and gives what $GIVE makes of it, or the same.
constexpr const char* kFakeFfmpeg = R"(#!/bin/bash
echo "$@" >>ffmpeg.log
while [ "$1" != -i ]; do shift; done
in=$2
graph=$4
cp "$in" noisy.raw
for out; do :; done
if [ -n "$GIVE" ]; then . "$GIVE"; else cp "$in" "$out"; fi
)";

class EvaluateTest : public ToolTest {
 protected:
  static json evaluate(const std::string& arguments, const std::string& environment = "") {
    return json::parse(must(environment + " $TOOL evaluate --json " + arguments), nullptr, false);
  }

  static void expect_refusal(const std::string& arguments, const std::string& message, int status = 1) {
    const auto before = files();
    const Outcome outcome = run("$TOOL evaluate " + arguments);
    EXPECT_EQ(outcome.status, status) << arguments << "\n" << outcome.err;
    EXPECT_TRUE(std::regex_search(outcome.err, std::regex(message)))
        << arguments << "\nexpected: " << message << "\ncame: " << outcome.err;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(files(), before) << arguments;
  }

  static void make_clip(int frames, const std::string& size = "64x48") {
    must("$TOOL clip noisy.mkv --clean clean.mkv --quiet --size " + size + " --frames " +
         std::to_string(frames));
    std::filesystem::remove("noisy.mkv");
  }

  static void fake_ffmpeg(const std::string& give = "") {
    must("mkdir -p bin");
    std::ofstream("bin/ffmpeg") << kFakeFfmpeg;
    std::ofstream("give") << give << '\n';
    must("chmod +x bin/ffmpeg");
  }

  static std::vector<uint8_t> contents(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  static std::string text(const std::string& path) {
    const std::vector<uint8_t> bytes = contents(path);
    return {bytes.begin(), bytes.end()};
  }
};

constexpr const char* kFakeFirst = "PATH=$PWD/bin:$PATH";
constexpr const char* kGiving = "GIVE=$PWD/give PATH=$PWD/bin:$PATH";

// Plane `plane` of frame `frame` of raw I420 of even size.
SamplePlane plane_of(const std::vector<uint8_t>& raw, int width, int height, int frame, int plane) {
  const int luma = width * height;
  const int begin = frame * luma * 3 / 2 + (plane == 0 ? 0 : luma + (plane - 1) * luma / 4);
  const int w = plane == 0 ? width : width / 2;
  const int h = plane == 0 ? height : height / 2;
  return {w, h, {raw.begin() + begin, raw.begin() + begin + w * h}};
}

// Width and height, from a PNG's header.
std::pair<int, int> png_size(const std::vector<uint8_t>& png) {
  const auto number = [&](int at) {
    return png[at] << 24 | png[at + 1] << 16 | png[at + 2] << 8 | png[at + 3];
  };
  const bool is_png = png.size() > 24 && std::string(png.begin() + 1, png.begin() + 4) == "PNG";
  return is_png ? std::pair(number(16), number(20)) : std::pair(0, 0);
}

TEST_F(EvaluateTest, FiguresAreThoseOfTheFrames) {
  make_clip(4);
  const std::vector<uint8_t> clean = decoded("clean.mkv");
  fake_ffmpeg();
  const json noisy = evaluate("clean.mkv --sigma 15 --measure-from 1 --preset fast --peers",
                              kFakeFirst)["rows"]["15"]["noisy"];
  const std::vector<uint8_t> raw = contents("noisy.raw");
  ASSERT_EQ(raw.size(), clean.size());
  const char* const names[] = {"Y", "U", "V"};
  for (int p = 0; p < 3; ++p) {
    double psnr = 0;
    double ssim = 0;
    for (int t = 1; t < 4; ++t) {
      const SamplePlane a = plane_of(clean, 64, 48, t, p);
      const SamplePlane b = plane_of(raw, 64, 48, t, p);
      psnr += nonlocal::reference::psnr(a, b) / 3;
      ssim += nonlocal::reference::ssim(a, b) / 3;
    }
    EXPECT_NEAR(noisy["psnr"][names[p]], psnr, 1e-9) << names[p];
    EXPECT_NEAR(noisy["ssim"][names[p]], ssim, 1e-9) << names[p];
  }
  double flicker = 0;
  for (int t = 2; t < 4; ++t)
    flicker +=
        nonlocal::reference::flicker(plane_of(raw, 64, 48, t, 0), plane_of(raw, 64, 48, t - 1, 0),
                                     plane_of(clean, 64, 48, t, 0), plane_of(clean, 64, 48, t - 1, 0)) /
        2;
  EXPECT_NEAR(noisy["flicker"], flicker, 1e-9);
  ASSERT_EQ(noisy["psnr_by_frame"].size(), 4U);
  EXPECT_NEAR(noisy["psnr_by_frame"][0],
              nonlocal::reference::psnr(plane_of(clean, 64, 48, 0, 0), plane_of(raw, 64, 48, 0, 0)), 1e-9);
}

// Sigma is that of every plane, and clipping is all that makes it less.
TEST_F(EvaluateTest, NoiseIsAsAsked) {
  must("ffmpeg -v error -f lavfi -i color=gray:size=128x96 -frames:v 6 -pix_fmt yuv420p -c:v ffv1 still.mkv");
  const json noisy = evaluate("still.mkv --sigma 10,20 --preset fast")["rows"];
  for (const double sigma : {10.0, 20.0}) {
    const json row = noisy[sigma == 10 ? "10" : "20"]["noisy"];
    for (const char* plane : {"Y", "U", "V"})
      EXPECT_NEAR(row["psnr"][plane], 20 * std::log10(255 / sigma), 0.1) << plane << " " << sigma;
    EXPECT_NEAR(row["flicker"], sigma * std::sqrt(2), 0.03 * sigma) << "each frame has noise of its own";
  }
}

// A camera's noise is less in the dark and more in bright places; smooth noise has the same sigma.
TEST_F(EvaluateTest, NoiseIsOfTheKindAsked) {
  const std::pair<const char*, double> grays[] = {{"0x202020", 16 + 32 * 219.0 / 255},
                                                  {"0xd0d0d0", 16 + 208 * 219.0 / 255}};
  for (const auto& [colour, luma] : grays) {
    must(std::string("ffmpeg -v error -y -f lavfi -i color=") + colour +
         ":size=128x96 -frames:v 6 -pix_fmt yuv420p -c:v ffv1 still.mkv");
    for (const char* kind : {"camera", "smooth"}) {
      const json row =
          evaluate(std::string("still.mkv --sigma 10 --preset fast --noise ") + kind)["rows"]["10"]["noisy"];
      const double sigma = std::string(kind) == "smooth" ? 10 : 10 * std::sqrt((luma + 16) / 144);
      for (const char* plane : {"Y", "U", "V"})
        EXPECT_NEAR(row["psnr"][plane], 20 * std::log10(255 / sigma), 0.35) << kind << " " << plane;
    }
  }
}

// What x264 leaves is measured and filtered: here it is coded and decoded by hand.
TEST_F(EvaluateTest, X264CodesWhatIsFiltered) {
  make_clip(4);
  const std::vector<uint8_t> clean = decoded("clean.mkv");
  must("ffmpeg -v error -i clean.mkv -c:v libx264 -preset medium -crf 35 -g 250 coded.mkv");
  const std::vector<uint8_t> coded = decoded("coded.mkv");
  ASSERT_EQ(coded.size(), clean.size());
  double psnr = 0;
  for (int t = 0; t < 4; ++t)
    psnr += nonlocal::reference::psnr(plane_of(clean, 64, 48, t, 0), plane_of(coded, 64, 48, t, 0)) / 4;

  const json rows = evaluate("clean.mkv --crf 35 --model gaussian")["rows"]["0"];
  EXPECT_NEAR(rows["noisy"]["psnr"]["Y"], psnr, 1e-9);
  EXPECT_GT(std::abs(rows["gaussian"]["psnr"]["Y"].get<double>() - psnr), 0.01);
  EXPECT_FALSE(rows.contains("fast")) << "a model alone was asked for";
  const json same = evaluate("clean.mkv --crf 35 --model gaussian --set strength=0")["rows"]["0"];
  EXPECT_EQ(same["gaussian"]["psnr"], same["noisy"]["psnr"]);
  expect_refusal("clean.mkv --crf 52", "--crf", 2);
  expect_refusal("clean.mkv --model none", "none.safetensors");
}

TEST_F(EvaluateTest, WithoutNoiseAndStrengthNothingIsLost) {
  make_clip(3);
  const json rows =
      evaluate("clean.mkv --sigma 0 --preset fast --set 'strength=0 chroma-strength=0'")["rows"]["0"];
  for (const char* name : {"noisy", "fast"}) {
    for (const char* plane : {"Y", "U", "V"}) {
      EXPECT_EQ(rows[name]["psnr"][plane], 100) << name;
      EXPECT_NEAR(rows[name]["ssim"][plane], 1, 1e-12) << name;
    }
    EXPECT_EQ(rows[name]["flicker"], 0) << name;
  }
}

TEST_F(EvaluateTest, WithoutStrengthTheNoiseStays) {
  make_clip(3);
  const json rows =
      evaluate("clean.mkv --preset fast --set strength=0 --set chroma-strength=0")["rows"]["20"];
  for (const char* figure : {"psnr", "ssim", "flicker", "psnr_by_frame"})
    EXPECT_EQ(rows["fast"][figure], rows["noisy"][figure]) << figure;
}

TEST_F(EvaluateTest, EveryPresetGains) {
  make_clip(3, "160x90");
  const json result = evaluate("clean.mkv");
  const json rows = result["rows"]["20"];
  for (const char* preset : {"fast", "balanced", "quality"}) {
    const json row = rows[preset];
    EXPECT_GT(row["psnr"]["Y"], rows["noisy"]["psnr"]["Y"].get<double>() + 3) << preset;
    EXPECT_GT(row["ssim"]["Y"], rows["noisy"]["ssim"]["Y"]) << preset;
    EXPECT_LT(row["flicker"], rows["noisy"]["flicker"]) << preset;
    EXPECT_GT(row["ms_median"], 0) << preset;
    EXPECT_NEAR(row["noise"], 20, 4) << preset;
    EXPECT_EQ(row["setting"], std::string("nonlocaldenoise preset=") + preset);
  }
  EXPECT_NE(rows["fast"]["psnr"], rows["quality"]["psnr"]);
}

// Noise that goes by brightness, and noise that only time can tell.
TEST_F(EvaluateTest, EveryKindOfNoiseIsFound) {
  must(
      "ffmpeg -v error -f lavfi -i gradients=size=320x180:nb_colors=4:seed=3:speed=0.00001 -frames:v 10 "
      "-pix_fmt yuv420p -c:v ffv1 shades.mkv");
  for (const char* kind : {"camera", "smooth"}) {
    const json rows =
        evaluate(std::string("shades.mkv --sigma 10 --preset balanced --measure-from 5 --noise ") +
                 kind)["rows"]["10"];
    EXPECT_NEAR(rows["balanced"]["noise"], 10, 3) << kind;
    for (const char* plane : {"Y", "U", "V"}) {
      const double gain =
          rows["balanced"]["psnr"][plane].get<double>() - rows["noisy"]["psnr"][plane].get<double>();
      EXPECT_GT(gain, 6) << kind << " " << plane;
    }
  }
}

TEST_F(EvaluateTest, ElementIsToldWhatWasAsked) {
  make_clip(2);
  const json row = evaluate(
      "clean.mkv --sigma 12.5 --sigma-known --preset fast --set 'search-size=5 n-threads=1'")["rows"]["12.5"]
                                                                                             ["fast"];
  EXPECT_EQ(row["setting"], "nonlocaldenoise preset=fast sigma=12.5 search-size=5 n-threads=1");
  EXPECT_EQ(row["noise"], 12.5);
}

TEST_F(EvaluateTest, SameSeedSameFigures) {
  make_clip(2);
  const auto psnr = [](const std::string& more) {
    return evaluate("clean.mkv --preset fast " + more)["rows"]["20"]["fast"]["psnr_by_frame"];
  };
  EXPECT_EQ(psnr(""), psnr("--seed 1"));
  EXPECT_NE(psnr(""), psnr("--seed 2"));
  EXPECT_EQ(psnr("--frames 1")[0], psnr("")[0]) << "a frame's noise does not depend on those after it";
}

TEST_F(EvaluateTest, MeansLeaveOutTheStart) {
  make_clip(5);
  const json result = evaluate("clean.mkv --preset fast --measure-from 3");
  EXPECT_EQ(result["measure_from"], 3);
  const json row = result["rows"]["20"]["fast"];
  ASSERT_EQ(row["psnr_by_frame"].size(), 5U);
  EXPECT_NEAR(row["psnr"]["Y"],
              (row["psnr_by_frame"][3].get<double>() + row["psnr_by_frame"][4].get<double>()) / 2, 1e-9);
}

// Without noise, what a peer gets is the clean material.
TEST_F(EvaluateTest, TakesTheFramesAskedFor) {
  make_clip(6);
  const std::vector<uint8_t> all = decoded("clean.mkv");
  constexpr int kFrame = 64 * 48 * 3 / 2;
  fake_ffmpeg();
  const json result =
      evaluate("clean.mkv --start 2 --frames 3 --sigma 0.001 --preset fast --peers", kFakeFirst);
  EXPECT_EQ(result["frames"], 3);
  EXPECT_EQ(result["start"], 2);
  EXPECT_EQ(contents("noisy.raw"), std::vector<uint8_t>(all.begin() + 2 * kFrame, all.begin() + 5 * kFrame));
}

TEST_F(EvaluateTest, LumaAloneIsTheClipsOwn) {
  make_clip(2);
  const std::vector<uint8_t> all = decoded("clean.mkv");
  // What is wanted for chroma too (hqdn3d) is the last but one: bm3d gets gray frames.
  fake_ffmpeg();
  const json result = evaluate("clean.mkv --format GRAY8 --sigma 0.001 --preset fast --peers", kFakeFirst);
  const json rows = result["rows"]["0.001"];
  EXPECT_FALSE(rows["noisy"]["psnr"].contains("U"));
  const std::vector<uint8_t> raw = contents("noisy.raw");
  ASSERT_EQ(raw.size(), 2U * 64 * 48);
  EXPECT_EQ((SamplePlane{64, 48, {raw.begin(), raw.begin() + 64 * 48}}.sample),
            plane_of(all, 64, 48, 0, 0).sample);
  EXPECT_EQ(rows["ffmpeg-hqdn3d"]["psnr"]["Y"], 100) << "chroma is added, and taken off again";
}

TEST_F(EvaluateTest, ScalesByTheMeanOfAnArea) {
  make_clip(1, "128x96");
  const std::vector<uint8_t> all = decoded("clean.mkv");
  fake_ffmpeg();
  const json result = evaluate("clean.mkv --scale 0.5 --sigma 0.001 --preset fast --peers", kFakeFirst);
  EXPECT_EQ(result["width"], 64);
  EXPECT_EQ(result["height"], 48);
  const std::vector<uint8_t> raw = contents("noisy.raw");
  ASSERT_EQ(raw.size(), 64U * 48 * 3 / 2);
  for (int p = 0; p < 3; ++p) {
    const SamplePlane large = plane_of(all, 128, 96, 0, p);
    const SamplePlane small = plane_of(raw, 64, 48, 0, p);
    for (int y = 0; y < small.height; ++y)
      for (int x = 0; x < small.width; ++x)
        ASSERT_NEAR(small.at(x, y),
                    (large.at(2 * x, 2 * y) + large.at(2 * x + 1, 2 * y) + large.at(2 * x, 2 * y + 1) +
                     large.at(2 * x + 1, 2 * y + 1)) /
                        4,
                    0.5)
            << p << " " << x << " " << y;
  }
}

class EvaluatePicturesTest : public EvaluateTest {
 protected:
  static void make_pictures() {
    must(
        "mkdir pictures; ffmpeg -v error -f lavfi -i testsrc2=size=96x64 -frames:v 1 pictures/a.png;"
        "ffmpeg -v error -f lavfi -i mandelbrot=size=65x50 -frames:v 1 pictures/b.JPG; echo no "
        ">pictures/c.txt");
  }
};

TEST_F(EvaluatePicturesTest, EachIsFilteredByItself) {
  make_pictures();
  const json result = evaluate("pictures");
  EXPECT_EQ(result["names"], (json{"a.png", "b.JPG"}));
  EXPECT_EQ(result["is_clip"], false);
  EXPECT_EQ(result["format"], "GRAY8");
  ASSERT_EQ(result["rows"].size(), 3U) << "10, 25 and 50 by default";
  for (const auto& [sigma, rows] : result["rows"].items()) {
    EXPECT_EQ(rows["fast"]["psnr_by_frame"].size(), 2U);
    EXPECT_TRUE(rows["fast"]["flicker"].is_null());
    EXPECT_GT(rows["balanced"]["psnr"]["Y"], rows["noisy"]["psnr"]["Y"]) << sigma;
  }
  const json alone = evaluate("pictures --frames 1 --sigma 25 --preset fast");
  EXPECT_EQ(alone["rows"]["25"]["fast"]["psnr_by_frame"][0],
            result["rows"]["25"]["fast"]["psnr_by_frame"][0]);
}

// x264 takes even sizes alone.
TEST_F(EvaluatePicturesTest, OddSizesAreCodedToo) {
  must(
      "mkdir odd; ffmpeg -v error -f lavfi -i mandelbrot=size=65x51 -frames:v 1 odd/a.png; "
      "ffmpeg -v error -f lavfi -i testsrc2=size=65x51:rate=25 -pix_fmt yuv420p -frames:v 2 -c:v ffv1 "
      "odd.mkv");
  for (const char* in : {"odd", "odd --format GRAY8", "odd.mkv", "odd.mkv --format GRAY8"}) {
    const json rows = evaluate(std::string(in) + " --crf 20 --model gaussian --set strength=0")["rows"]["0"];
    EXPECT_GT(rows["noisy"]["psnr"]["Y"], 25) << in;
    EXPECT_LT(rows["noisy"]["psnr"]["Y"], 60) << in;
    EXPECT_EQ(rows["gaussian"]["psnr"], rows["noisy"]["psnr"]) << in;
  }
}

// Whatever they are called, each has its row and its pictures.
TEST_F(EvaluateTest, ModelsOfOneNameAreToldApart) {
  make_clip(2);
  must("mkdir other; cp " + nonlocal::find_model("restore") +
       " other/; cp other/restore.safetensors clean.safetensors");
  const json rows = evaluate(
      "clean.mkv --crf 35 --model gaussian,./other/restore.safetensors,restore,./clean.safetensors --report "
      "page")["rows"]["0"];
  EXPECT_EQ(rows.size(), 5U);
  for (const char* name : {"noisy", "gaussian", "restore", "restore-2", "clean-2"})
    EXPECT_TRUE(rows.contains(name)) << name;
  EXPECT_EQ(rows["restore"]["psnr"], rows["restore-2"]["psnr"]);
  for (const char* name : {"clean", "restore", "restore-2", "clean-2"})
    EXPECT_TRUE(std::filesystem::exists(std::string("page/sigma0-1-") + name + ".png")) << name;
}

TEST_F(EvaluatePicturesTest, PeersThatNeedNoTime) {
  make_pictures();
  const json rows = evaluate("pictures --preset fast --sigma 25 --peers")["rows"]["25"];
  EXPECT_FALSE(rows.contains("opencv-multi"));
  for (const char* name : {"opencv", "ffmpeg-nlmeans", "ffmpeg-hqdn3d", "ffmpeg-bm3d"})
    EXPECT_GT(rows[name]["psnr"]["Y"], rows["noisy"]["psnr"]["Y"]) << name;
}

TEST_F(EvaluatePicturesTest, ColourAndReport) {
  make_pictures();
  const json result = evaluate("pictures --format I420 --sigma 25 --preset fast --report page");
  EXPECT_GT(result["rows"]["25"]["fast"]["psnr"]["V"], result["rows"]["25"]["noisy"]["psnr"]["V"]);
  const std::string page = text("page/index.html");
  EXPECT_NE(page.find("largest error of fast"), std::string::npos);
  EXPECT_NE(page.find("a.png"), std::string::npos);
}

TEST_F(EvaluateTest, JsonHoldsTheWholeResult) {
  make_clip(2);
  const json result = evaluate("clean.mkv --preset fast");
  for (const char* key :
       {"input", "is_clip", "names", "format", "width", "height", "frames", "is_cut", "start", "scale",
        "measure_from", "sigmas", "sigma_known", "seed", "rows", "report"})
    EXPECT_TRUE(result.contains(key)) << key;
  for (const char* key :
       {"title", "setting", "psnr", "ssim", "flicker", "ms_median", "ms_min", "noise", "psnr_by_frame"})
    EXPECT_TRUE(result["rows"]["20"]["fast"].contains(key)) << key;
  EXPECT_EQ(result["rows"]["20"].size(), 2U) << "no peers unless asked for";
  EXPECT_TRUE(result["report"].is_null());
}

TEST_F(EvaluateTest, PrintsTheSameAsText) {
  make_clip(2);
  const Outcome outcome = run("PATH=/nowhere $TOOL evaluate clean.mkv --preset fast --peers --quiet");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.err, "");
  for (const char* expected :
       {"clean.mkv: frames 0 to 1, 64x48, I420; figures from frame 0 on", "sigma 20, seed 1",
        "PSNR Y .*SSIM V", "noisy +[0-9]+\\.[0-9]", "nonlocaldenoise fast +[0-9]+\\.[0-9].*preset=fast",
        "fastNlMeansDenoisingMulti .*h=.*chroma h=", "FFmpeg bm3d +not installed"})
    EXPECT_TRUE(std::regex_search(outcome.out, std::regex(expected))) << expected << "\n" << outcome.out;
}

TEST_F(EvaluateTest, PeersThatAreNotThereAreNull) {
  make_clip(2);
  const json rows = evaluate("clean.mkv --preset fast --peers", "PATH=/nowhere")["rows"]["20"];
  EXPECT_GT(rows["opencv"]["psnr"]["Y"], rows["noisy"]["psnr"]["Y"]);
  EXPECT_GT(rows["opencv-multi"]["psnr"]["Y"], rows["noisy"]["psnr"]["Y"]);
  for (const char* name : {"ffmpeg-nlmeans", "ffmpeg-hqdn3d", "ffmpeg-bm3d"})
    EXPECT_TRUE(rows.contains(name) && rows[name].is_null()) << name;
}

TEST_F(EvaluateTest, PeersThatFailAreSaidTo) {
  make_clip(2);
  fake_ffmpeg(
      "case $graph in nlmeans*) echo no such filter >&2; exit 1;; hqdn3d*) head -c 100 $in >$out;; "
      "*) cp $in $out;; esac");
  const json rows = evaluate("clean.mkv --preset fast --peers", kGiving)["rows"]["20"];
  EXPECT_EQ(rows["ffmpeg-nlmeans"]["problem"], "ffmpeg failed: no such filter");
  EXPECT_EQ(rows["ffmpeg-hqdn3d"]["problem"], "ffmpeg gave not as many frames as it got");
  EXPECT_EQ(rows["ffmpeg-bm3d"]["psnr"], rows["noisy"]["psnr"]);
}

// The stand-in brightens what it gets, the more the further its strengths are from those looked for.
TEST_F(EvaluateTest, PeersRunAtTheirBest) {
  make_clip(2);
  fake_ffmpeg(R"(perl -e '
    local $/; $_ = <STDIN>; my $graph = shift;
    sub apart { my $sum = 0; while (@_) { $sum += abs(log(shift() / shift())) } return int(20 * $sum) }
    my ($luma, $chroma) = (0, 0);
    if ($graph =~ /nlmeans=s=([\d.]+)/) { $luma = $chroma = apart($1, 9.8) }
    if ($graph =~ /hqdn3d=([\d.]+):([\d.]+):([\d.]+):([\d.]+)/)
      { ($luma, $chroma) = (apart($1, 40, $3, 10), apart($2, 14, $4, 56)) }
    if ($graph =~ /bm3d=sigma=([\d.]+)/) { $luma = $chroma = apart($1, 60) }
    sub brighter { my ($bytes, $by) = @_; return pack("C*", map { $_ + $by > 255 ? 255 : $_ + $by } unpack("C*", $bytes)) }
    for (my $at = 0; $at < length; $at += 64 * 48 * 3 / 2)
      { print brighter(substr($_, $at, 64 * 48), $luma), brighter(substr($_, $at + 64 * 48, 64 * 24), $chroma) }
  ' "$graph" <$in >$out)");
  const json rows = evaluate("clean.mkv --preset fast --peers", kGiving)["rows"]["20"];
  EXPECT_EQ(rows["ffmpeg-nlmeans"]["setting"], "nlmeans=s=9.8:p=7:r=21");
  EXPECT_EQ(rows["ffmpeg-hqdn3d"]["setting"], "hqdn3d=40:14:10:56");
  EXPECT_NE(rows["ffmpeg-bm3d"]["setting"].get<std::string>().find("sigma=60:"), std::string::npos);
  for (const char* name : {"ffmpeg-nlmeans", "ffmpeg-hqdn3d", "ffmpeg-bm3d"})
    EXPECT_EQ(rows[name]["psnr"], rows["noisy"]["psnr"]) << name;
}

TEST_F(EvaluateTest, FfmpegsOwnFiltersGain) {
  make_clip(3);
  const json rows = evaluate("clean.mkv --preset fast --peers --format GRAY8")["rows"]["20"];
  for (const char* name : {"ffmpeg-nlmeans", "ffmpeg-hqdn3d", "ffmpeg-bm3d"})
    EXPECT_GT(rows[name]["psnr"]["Y"], rows["noisy"]["psnr"]["Y"].get<double>() + 2) << rows[name];
}

TEST_F(EvaluateTest, ReportShowsAll) {
  make_clip(3);
  std::filesystem::rename("clean.mkv", "<b>&'.mkv");
  evaluate("\"<b>&'.mkv\" --sigma 10,20 --preset fast,quality --peers --report page", "PATH=/nowhere");
  const std::string page = text("page/index.html");
  EXPECT_EQ(page.find("<b>"), std::string::npos) << "a name is text";
  EXPECT_NE(page.find("&lt;b&gt;&amp;&#39;.mkv"), std::string::npos);
  for (const char* row : {"noisy", "nonlocaldenoise fast", "nonlocaldenoise quality", "fastNlMeansDenoising",
                          "fastNlMeansDenoisingMulti", "FFmpeg nlmeans", "FFmpeg hqdn3d", "FFmpeg bm3d"})
    EXPECT_TRUE(std::regex_search(page, std::regex("<tr><td>[^<]*" + std::string(row) + "</td>"))) << row;
  for (const char* words : {"sigma 10</h2>", "sigma 20</h2>", "most detail", "most motion", "not installed",
                            "<svg ", "class=\"best\""})
    EXPECT_NE(page.find(words), std::string::npos) << words;
  EXPECT_EQ(page.find("http"), std::string::npos) << "it needs nothing from elsewhere";

  const std::regex image("<img src=\"([^\"]+)\"");
  std::set<std::string> shown{"index.html"};
  for (auto it = std::sregex_iterator(page.begin(), page.end(), image); it != std::sregex_iterator(); ++it) {
    shown.insert((*it)[1]);
    EXPECT_EQ(png_size(contents("page/" + std::string((*it)[1]))), std::pair(128, 96)) << (*it)[1];
  }
  // For both sigmas and both regions: the clean one; the noisy one and four filters with their differences.
  EXPECT_EQ(shown.size(), 1U + 2 * 2 * (1 + 2 * 5));
  std::set<std::string> there;
  for (const auto& entry : std::filesystem::directory_iterator("page")) there.insert(entry.path().filename());
  EXPECT_EQ(there, shown);
}

TEST_F(EvaluateTest, ReportCountsFramesAsTheClipDoes) {
  make_clip(6);
  evaluate("clean.mkv --start 2 --frames 3 --measure-from 1 --preset fast --report page");
  const std::string page = text("page/index.html");
  EXPECT_NE(page.find("3 frames of 64x48, I420; frames 3 to 4 count in the means"), std::string::npos);
  EXPECT_NE(page.find("clean.mkv frame 4"), std::string::npos);
}

TEST_F(EvaluateTest, RefusesWhatCannotBe) {
  make_clip(2);
  must(
      "mkdir empty small; echo text >small/a.png; touch file; "
      "ffmpeg -v error -f lavfi -i testsrc2=size=16x16 -frames:v 1 -c:v ffv1 tiny.mkv");
  expect_refusal("none.mkv", "^nonlocal: none.mkv: no such file");
  expect_refusal("file", "^nonlocal: file: is empty");
  expect_refusal("empty", "^nonlocal: empty: no pictures \\(.png, .jpg, .jpeg\\) in it");
  expect_refusal("small", "^nonlocal: small/a.png: is no picture that can be read");
  expect_refusal("tiny.mkv", "^nonlocal: tiny.mkv: frames of at least 32x32 are expected, not 16x16");
  expect_refusal("clean.mkv --scale 0.25", "^nonlocal: clean.mkv: frames of at least 32x32.*not 16x12");
  expect_refusal("clean.mkv --start 9", "^nonlocal: clean.mkv: has no frame 9");
  expect_refusal("clean.mkv --measure-from 2", "^nonlocal: --measure-from 2: there are only 2 frames");
  expect_refusal("clean.mkv --preset best", "takes for preset one of fast, balanced, quality.*, not best");
  expect_refusal("clean.mkv --set sharpness=3", "^nonlocal: nonlocaldenoise has no property sharpness");
  expect_refusal("clean.mkv --set sigma=500", "takes for sigma from -1 to 100, not 500");
  expect_refusal("clean.mkv --set strength", "^nonlocal: --set takes property=value, not strength");
  expect_refusal("clean.mkv --peers --crf 35", "^nonlocal: --peers: .*sigma.*0");
  expect_refusal("clean.mkv --peers --sigma 20,0", "^nonlocal: --peers: .*sigma.*0");
  expect_refusal("clean.mkv --report file", "^nonlocal: file: is no folder");
  expect_refusal("small --report ./small", "^nonlocal: ./small: the report's pictures would be among");
  expect_refusal("clean.mkv --report none/page", "^nonlocal: none/page: no such folder: none");
  expect_refusal("clean.mkv --report /proc/page", "^nonlocal: /proc/page: cannot be (written|made)");
  expect_refusal("clean.mkv --format RGB", "--format: RGB not in .*GRAY8", 2);
  expect_refusal("clean.mkv --sigma -3", "--sigma", 2);
  expect_refusal("clean.mkv --sigma ten", "--sigma", 2);
  expect_refusal("clean.mkv --noise pink", "--noise: pink not in .*camera", 2);
  expect_refusal("clean.mkv --scale 2", "--scale", 2);
  expect_refusal("clean.mkv --frames 0", "--frames", 2);
  expect_refusal("", "IN", 2);
}

TEST_F(EvaluateTest, PicturesHaveNoStart) {
  must("mkdir pictures; ffmpeg -v error -f lavfi -i testsrc2=size=64x64 -frames:v 1 pictures/a.png");
  expect_refusal("pictures --measure-from 1", "^nonlocal: --measure-from is for a clip");
  expect_refusal("pictures --start 1", "^nonlocal: pictures: has 1 pictures, none after --start 1");
}

TEST_F(EvaluateTest, InterruptLeavesNothingBehind) {
  make_clip(60, "160x90");
  const auto before = files();
  const Outcome outcome = run(R"(
    export TMPDIR=$PWD/../tmp; mkdir -p $TMPDIR
    $TOOL evaluate clean.mkv --peers --report page --set search-size=63 & tool=$!
    sleep 1
    kill -INT $tool
    wait $tool; status=$?
    ls -A $TMPDIR
    exit $status)");
  EXPECT_EQ(outcome.status, 130);
  EXPECT_NE(outcome.err.find("nonlocal: interrupted: nothing was written"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(files(), before);
}

TEST_F(EvaluateTest, HelpIsComplete) {
  EXPECT_NE(must("$TOOL --help").find("evaluate"), std::string::npos);
  const std::string help = must("$TOOL evaluate --help");
  for (const char* words : {"IN",
                            "--sigma",
                            "--seed",
                            "--preset",
                            "--set",
                            "--sigma-known",
                            "--peers",
                            "--format",
                            "--start",
                            "--frames",
                            "--scale",
                            "--measure-from",
                            "--report",
                            "--json",
                            "--quiet",
                            "PSNR",
                            "SSIM",
                            "flicker",
                            "fastNlMeansDenoisingMulti",
                            "hqdn3d",
                            "bm3d"})
    EXPECT_NE(help.find(words), std::string::npos) << words;
}

}  // namespace
