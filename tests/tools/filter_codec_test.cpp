// nonlocal filter: filters in the order given, every codec, and what a file says besides its frames.
#include <algorithm>
#include <filesystem>
#include <map>

#include "support.h"

namespace {

using FilterCodecTest = ToolTest;

bool warns(const std::vector<nlohmann::json>& events) {
  return std::ranges::any_of(events, [](const auto& event) { return event["event"] == "warning"; });
}

TEST_F(FilterCodecTest, EveryCodecInEveryContainerKeepsFramesTimesAndColours) {
  make_video("in.mkv", 12, "-c:v libx264 -g 4 -colorspace bt709 -color_trc bt709 -color_primaries bt709");
  const std::pair<const char*, const char*> outputs[] = {
      {"h264", "o.mkv"}, {"h264", "o.mp4"}, {"h264", "o.mov"}, {"h265", "o.mkv"},   {"h265", "o.mp4"},
      {"h265", "o.mov"}, {"vp9", "o.mkv"},  {"vp9", "o.webm"}, {"vp9", "o.mp4"},    {"av1", "o.mkv"},
      {"av1", "o.webm"}, {"av1", "o.mp4"},  {"ffv1", "o.mkv"}, {"prores", "o.mov"}, {"prores", "o.mkv"}};
  const auto times = timestamps("in.mkv");
  for (const auto& [codec, output] : outputs) {
    SCOPED_TRACE(std::string(codec) + " " + output);
    const auto said = events(must(std::string("$TOOL filter in.mkv ") + output +
                                  " --denoise fast --json --segment-seconds 0.2 --codec " + codec));
    EXPECT_EQ(said.back().value("frames_out", 0), 12);
    const std::string name = probe(output, "codec_name");
    EXPECT_EQ(name, codec == std::string("h265") ? "hevc" : codec);
    const auto written = timestamps(output);
    ASSERT_EQ(written.size(), times.size());
    for (size_t i = 0; i < times.size(); ++i) EXPECT_NEAR(written[i], times[i], 0.00101);
    EXPECT_EQ(count_frames(output), 12);
    const bool lost = name == "av1";  // GStreamer 1.22's encoder leaves the colours out of its stream
    EXPECT_EQ(probe(output, "color_space"), lost ? "unknown" : "bt709");
    EXPECT_EQ(warns(said), lost);
    std::filesystem::remove(output);
  }
}

TEST_F(FilterCodecTest, QualityTradesSize) {
  make_video("in.mkv", 10);
  for (const char* codec : {"h264", "h265", "vp9", "av1"}) {
    filter(std::string("in.mkv good.mkv --quality 10 --codec ") + codec);
    filter(std::string("in.mkv small.mkv --quality 45 --codec ") + codec);
    EXPECT_GT(std::filesystem::file_size("good.mkv"), 2 * std::filesystem::file_size("small.mkv")) << codec;
  }
}

// Noise that takes fifty times the bit rate that encoders have by default.
TEST_F(FilterCodecTest, QualityIsKeptWhateverBitsItTakes) {
  must(
      "ffmpeg -v error -f lavfi -i color=gray:size=480x270:rate=25,noise=alls=80:allf=t:all_seed=5 -frames:v "
      "15 "
      "-pix_fmt yuv420p -c:v ffv1 in.mkv");
  for (const char* codec : {"h264", "h265", "vp9", "av1"}) {
    filter(std::string("in.mkv out.mkv --strength 0 --chroma-strength 0 --quality 12 --codec ") + codec);
    const std::string log =
        must("ffmpeg -i out.mkv -i in.mkv -lavfi psnr=stats_file=log -f null - 2>&1; tail -n 1 log");
    const size_t last = log.rfind("psnr_y:");
    ASSERT_NE(last, std::string::npos) << log;
    EXPECT_GT(std::stod(log.substr(last + 7)), 38) << codec;
  }
}

// Several threads, other work beside them: what depends on who comes first shows.
TEST_F(FilterCodecTest, EachRunWritesTheSameBytes) {
  make_video("in.mkv", 24, "-vf scale=320:180 -c:v libx264 -crf 10");
  for (const char* codec : {"h264", "h265", "vp9", "av1", "ffv1", "prores"}) {
    const std::string both =
        must(std::string(
                 "for n in 1 2 3; do $TOOL filter in.mkv $n.mkv --denoise fast --sigma 10 --quiet --codec ") +
             codec +
             " >/dev/null & done; wait; for n in 1 2 3; do ffmpeg -v error -i $n.mkv -map 0:v -c copy -f md5 "
             "-; done | uniq -c");
    EXPECT_NE(both.find("3 MD5="), std::string::npos) << codec << ": " << both;
  }
}

TEST_F(FilterCodecTest, HighDynamicRangeIsKept) {
  make_video(
      "hdr.mkv", 6,
      "-pix_fmt yuv420p10le -c:v libx265 -x265-params log-level=error:colorprim=bt2020:transfer=smpte2084:"
      "'colormatrix=bt2020nc:max-cll=1000,400:master-display=G(13250,34500)B(7500,3000)R(34000,16000)WP("
      "15635,"
      "16450)L(10000000,1)' -color_range tv -colorspace bt2020nc -color_trc smpte2084 -color_primaries "
      "bt2020");
  const std::string entries = "color_range,color_space,color_transfer,color_primaries";
  for (const char* codec : {"h264", "h265", "ffv1"}) {
    filter(std::string("hdr.mkv out.mkv --codec ") + codec);
    EXPECT_TRUE(probe("out.mkv", "pix_fmt").starts_with("yuv420p10le")) << codec;
    EXPECT_TRUE(probe("out.mkv", entries).starts_with(probe("hdr.mkv", entries))) << codec;
    const std::string light = must("ffprobe -v error -show_entries stream_side_data -of compact out.mkv");
    EXPECT_NE(light.find("max_content=1000|max_average=400"), std::string::npos) << codec << ": " << light;
    EXPECT_NE(light.find("Mastering display metadata"), std::string::npos) << codec << ": " << light;
  }
  // As a stream says it: H.264's is not read by ffprobe 5.1, but by a filter.
  for (const char* codec : {"h264", "h265"}) {
    filter(std::string("hdr.mkv out.mp4 --codec ") + codec);
    const std::string log = must("ffmpeg -i out.mp4 -frames:v 1 -c copy -bsf:v trace_headers -f null - 2>&1");
    EXPECT_NE(log.find("= 10000000"), std::string::npos) << codec;
    EXPECT_NE(log.find("= 13250"), std::string::npos) << codec;
  }
  const Outcome warned = run("$TOOL filter hdr.mkv out.mov --denoise fast --codec prores");
  EXPECT_NE(warned.err.find("no place for HDR10"), std::string::npos) << warned.err;
  const Outcome refused = run("$TOOL filter hdr.mkv out.mkv --codec av1");
  EXPECT_NE(refused.err.find("10 bits"), std::string::npos) << refused.err;
}

TEST_F(FilterCodecTest, TurnedAsBefore) {
  make_video("plain.mp4", 4, "-c:v libx264");
  must("ffmpeg -v error -i plain.mp4 -c copy -metadata:s:v rotate=90 in.mp4");
  const auto rotation = [](const std::string& path) {
    return must("ffprobe -v error -show_entries stream_side_data=rotation -of csv=p=0:nk=1 " + path);
  };
  for (const char* out : {"out.mp4", "out.mov"}) {
    filter(std::string("in.mp4 ") + out + " --strength 0 --chroma-strength 0 --quality 0");
    EXPECT_EQ(rotation(out), rotation("in.mp4")) << out;
    EXPECT_EQ(frames_md5(out), frames_md5("in.mp4")) << out;
  }
  filter("in.mp4 out.mkv --strength 0 --chroma-strength 0 --quality 0");
  EXPECT_EQ(probe("out.mkv", "width,height"), "64,96");
  EXPECT_EQ(frames_md5("out.mkv"), frames_md5("in.mp4"));  // ffmpeg turns those of in.mp4
}

TEST_F(FilterCodecTest, SubtitlesAreKept) {
  must(
      "printf '1\n00:00:00,100 --> 00:00:00,500\nfirst words\n\n2\n00:00:00,600 --> 00:00:00,900\nlast "
      "words\n' "
      "> words.srt");
  make_video("plain.mkv", 25, "-c:v libx264");
  must("ffmpeg -v error -i plain.mkv -i words.srt -map 0 -map 1 -c copy -c:s srt in.mkv");
  const auto words = [](const std::string& path) {
    return must("ffmpeg -v error -i " + path + " -map 0:s -f srt -");
  };
  for (const char* out : {"out.mkv", "out.mp4"}) {
    EXPECT_EQ(filter(std::string("in.mkv ") + out).value("subtitle_streams", 0), 1);
  }
  EXPECT_EQ(words("out.mkv"), words("in.mkv"));
  for (const char* line : {"first words", "last words"})  // GStreamer adds a font
    EXPECT_NE(words("out.mp4").find(line), std::string::npos) << words("out.mp4");
}

// WebVTT in Matroska, which GStreamer 1.22 does not know.
TEST_F(FilterCodecTest, SubtitlesOfAnUnknownKindAreLeftOut) {
  must("printf '1\n00:00:00,100 --> 00:00:00,500\nHello\n' > lines.srt");
  make_video_with_sound("film.mkv", "-c:v libx264 -c:a aac");
  must("ffmpeg -v error -i film.mkv -i lines.srt -map 0 -map 1 -c copy -c:s webvtt in.mkv");
  const auto result = filter("in.mkv out.mkv");
  EXPECT_EQ(result.value("streams_left_out", 0), 1);
  EXPECT_EQ(result.value("audio_streams", 0), 1);
  EXPECT_EQ(audio_packets("out.mkv"), audio_packets("film.mkv"));
}

// GStreamer's parser of these would keep the pipeline from starting.
TEST_F(FilterCodecTest, SubtitlesWithStylesAreKept) {
  must("printf '1\n00:00:00,300 --> 00:00:00,500\nfirst words\n' > words.srt");
  make_video("plain.mkv", 25, "-c:v libx264");
  must("ffmpeg -v error -i plain.mkv -i words.srt -map 0 -map 1 -c:v copy -c:s ass in.mkv");
  EXPECT_EQ(filter("in.mkv out.mkv").value("subtitle_streams", 0), 1);
  EXPECT_EQ(count_frames("out.mkv"), 25);
  const auto words = [](const std::string& path) {
    return must("ffmpeg -v error -i " + path + " -map 0:s -f srt -");
  };
  EXPECT_NE(words("out.mkv").find("first words"), std::string::npos);
  EXPECT_EQ(words("out.mkv"), words("in.mkv"));
}

TEST_F(FilterCodecTest, FiltersWorkInTheOrderGiven) {
  make_video("in.mkv", 3, "-pix_fmt yuv420p -c:v ffv1");
  const auto chain = [](const std::string& arguments) {
    const auto result = events(must("$TOOL filter in.mkv out.mkv --codec ffv1 --json " + arguments)).back();
    return result.value("pipeline", "");
  };
  const std::string graded = chain(
      "--prompt 'much darker' --strength 0.5 --denoise fast --sigma 7 --attention gaussian --threads 1");
  EXPECT_NE(
      graded.find("textcross name=filter0 prompt=\"much darker\" strength=0.5 n-threads=1 ! nonlocaldenoise "
                  "name=filter1 preset=fast sigma=7 n-threads=1 ! selfattention name=filter2 model=gaussian"),
      std::string::npos)
      << graded;
  const std::string prompt_first = frames_md5("out.mkv");
  chain("--denoise fast --sigma 7 --attention gaussian --prompt 'much darker' --strength 0.5");
  EXPECT_NE(frames_md5("out.mkv"), prompt_first);
  EXPECT_EQ(chain("--sigma 7").find("selfattention"), std::string::npos);
  EXPECT_NE(chain("--preset fast --sigma 7").find("nonlocaldenoise name=filter0 preset=fast sigma=7"),
            std::string::npos);
}

// Between two programs, as YUV4MPEG2.
TEST_F(FilterCodecTest, StreamsPassThrough) {
  make_video("in.mkv", 9);
  const std::string nothing = " --strength 0 --chroma-strength 0 --quiet";
  EXPECT_EQ(must("ffmpeg -v error -i in.mkv -f yuv4mpegpipe - | $TOOL filter - -" + nothing +
                 " | ffmpeg -v error -i - -f md5 -"),
            frames_md5("in.mkv"));
  EXPECT_EQ(must("$TOOL filter in.mkv -" + nothing + " | ffmpeg -v error -i - -f md5 -"),
            frames_md5("in.mkv"));
  must("ffmpeg -v error -i in.mkv -f yuv4mpegpipe - | $TOOL filter - out.mkv --codec ffv1" + nothing);
  EXPECT_EQ(frames_md5("out.mkv"), frames_md5("in.mkv"));
  const Outcome nothing_came = run("$TOOL filter - out2.mkv </dev/null");
  EXPECT_EQ(nothing_came.status, 1);
  EXPECT_EQ(nothing_came.err, "nonlocal: stdin: is empty, YUV4MPEG2 was expected\n");
  EXPECT_FALSE(std::filesystem::exists("out2.mkv"));
}

// Headers of any length, sizes that are multiples of nothing, deep and gray samples.
TEST_F(FilterCodecTest, StreamsOfAnyKindAreRead) {
  int number = 0;
  for (const std::string how :
       {"yuv420p -vf scale=64:48,setsar=3/2", "yuv420p -vf scale=75:57", "yuv422p -vf scale=73:56",
        "yuv444p -vf scale=81:51", "gray -vf scale=91:59 -color_range pc", "yuv420p10le -vf scale=76:57",
        "yuv444p10le -vf scale=89:58"}) {
    const std::string in = "in" + std::to_string(number++) + ".mkv";
    make_video(in, 4, "-colorspace bt709 -color_range tv -pix_fmt " + how + " -c:v ffv1");
    must("ffmpeg -v error -i " + in +
         " -strict -1 -f yuv4mpegpipe - | tee stream | $TOOL filter - out.mkv --quiet " +
         "--codec ffv1 --strength 0 --chroma-strength 0");
    EXPECT_EQ(decoded("out.mkv"), decoded(in)) << how;
    const std::string entries = "width,height,avg_frame_rate,pix_fmt";
    EXPECT_EQ(probe("out.mkv", entries), probe(in, entries)) << how;
    if (number == 1) {
      EXPECT_EQ(probe("out.mkv", "sample_aspect_ratio"), "3:2");
    }
    std::filesystem::remove("out.mkv");
  }
  EXPECT_NE(must("head -1 stream").find("XCOLORRANGE=LIMITED"), std::string::npos);
}

TEST_F(FilterCodecTest, ADeepStreamIsNotMadeShallow) {
  make_video("in.mkv", 2, "-pix_fmt yuv420p10le -c:v ffv1");
  const Outcome shallow = run(
      "ffmpeg -v error -i in.mkv -strict -1 -f yuv4mpegpipe - | $TOOL filter - out.mkv --quiet --codec av1");
  EXPECT_EQ(shallow.status, 1);
  EXPECT_EQ(shallow.err, "nonlocal: -: has 10 bits a sample, av1 would keep 8: choose another --codec\n");
}

TEST_F(FilterCodecTest, AStreamThatBreaksOffIsNoWholeOne) {
  make_video("in.mkv", 9);
  // Cut from a file: FFmpeg itself would complain, now and then, of a reader that goes before it is done.
  ASSERT_EQ(run("ffmpeg -v error -i in.mkv whole.y4m").status, 0);
  const Outcome outcome =
      run("head -c 60000 whole.y4m | $TOOL filter - out.mkv --denoise fast --quiet");  // of 9,222 a frame
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err,
            "nonlocal: stdin: breaks off in frame 6; the frames before are in out.partial.mkv\n");
  EXPECT_EQ(count_frames("out.partial.mkv"), 6);
  EXPECT_FALSE(std::filesystem::exists("out.mkv"));
  for (const auto& [text, message] : std::map<std::string, std::string>{
           {"no video", "is not YUV4MPEG2"},
           {"YUV4MPEG2 W64 H48 F25:1 C411\\n", "YUV4MPEG2 of C411: expected 420"},
           {"YUV4MPEG2 W64 H0 F25:1\\n", "a side of 0"},
           {"YUV4MPEG2 W64 F25:1\\n", "without width or height"},
           {"YUV4MPEG2 W64 H48 F25\\n", "YUV4MPEG2 with F25: expected two numbers"},
           {"YUV4MPEG2 W64 H48 F25:1\\nFRAN", "breaks off at frame 0"},
           {"YUV4MPEG2 W64 H48 F25:1\\nPICTURE\\n", "frame 0 does not begin with FRAME"}}) {
    const Outcome refused = run("printf '" + text + "' | $TOOL filter - out.mkv --denoise fast --quiet");
    EXPECT_EQ(refused.status, 1) << text;
    EXPECT_NE(refused.err.find(message), std::string::npos) << text << ": " << refused.err;
    EXPECT_FALSE(std::filesystem::exists("out.mkv"));
  }
}

// A stream has one rate for all of its frames.
TEST_F(FilterCodecTest, UnevenFramesInAStreamAreSaid) {
  make_video("even.mkv", 12, "-c:v libx264 -bf 0");
  make_video("uneven.mkv", 12, "-vf \"select='not(mod(n,3))+eq(n,4)'\" -vsync vfr -c:v libx264 -bf 0");
  const auto said = [](const std::string& name) {
    return run("$TOOL filter " + name + " - --denoise fast --quiet >stream").err;
  };
  EXPECT_EQ(said("even.mkv"), "");
  EXPECT_NE(said("uneven.mkv").find("do not come at an even rate"), std::string::npos);
}

// What the output does not hold of the samples.
TEST_F(FilterCodecTest, LostBitsAndAlphaAreSaid) {
  make_video("deep.mkv", 3, "-pix_fmt yuv420p12le -c:v libx265 -x265-params log-level=error");
  make_video("alpha.webm", 3, "-pix_fmt yuva420p -c:v libvpx-vp9");
  make_video("odd.mkv", 2, "-vf scale=35:26 -c:v ffv1");
  for (const char* codec : {"h264", "h265", "vp9", "ffv1"}) {
    const Outcome outcome = run("$TOOL filter deep.mkv out.mkv --denoise fast --codec " + std::string(codec));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.err.find("out.mkv: holds 10 bits a sample, deep.mkv has 12"), std::string::npos)
        << codec << ": " << outcome.err;
    EXPECT_EQ(probe("out.mkv", "pix_fmt"), "yuv420p10le") << codec;
  }
  const Outcome opaque = run("$TOOL filter alpha.webm out.webm --denoise fast --codec vp9");
  EXPECT_NE(opaque.err.find("out.webm: holds no alpha, alpha.webm has it"), std::string::npos) << opaque.err;
  const Outcome odd = run("$TOOL filter odd.mkv out.mov --codec prores");
  EXPECT_EQ(odd.status, 1);
  EXPECT_NE(odd.err.find("is 35 samples wide"), std::string::npos) << odd.err;
}

TEST_F(FilterCodecTest, EventsAreOneALine) {
  make_video("in.mkv", 40, "-c:v libx264");
  const auto said = events(must("$TOOL filter in.mkv out.mkv --search-size 63 --json"));
  EXPECT_EQ(said.front()["event"], "begin");
  EXPECT_EQ(said.front()["frames"], 40);
  EXPECT_EQ(said.back()["event"], "end");
  for (size_t i = 1; i + 1 < said.size(); ++i) EXPECT_EQ(said[i]["event"], "progress");
}

}  // namespace
