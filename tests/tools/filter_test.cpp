// nonlocal filter: nothing is lost on the way, and the picture is better at the end.
#include <algorithm>
#include <fstream>
#include <sstream>

#include "support.h"

namespace {

using FilterTest = ToolTest;

void expect_times_near(const std::vector<double>& times, const std::vector<double>& expected) {
  ASSERT_EQ(times.size(), expected.size());
  for (size_t i = 0; i < times.size(); ++i) EXPECT_NEAR(times[i], expected[i], 0.00101) << "frame " << i;
}

TEST_F(FilterTest, AsManyFramesOutAsIn) {
  for (const int frames : {1, 2, 7}) {
    make_video("in.mkv", frames, "-y -c:v ffv1");
    for (const char* out : {"out.mkv", "out.mp4", "out.mov"}) {
      const auto result = filter(std::string("in.mkv ") + out);
      EXPECT_EQ(result.value("frames_in", 0), frames) << out;
      EXPECT_EQ(result.value("frames_out", 0), frames) << out;
      EXPECT_EQ(count_frames(out), frames) << out;
    }
  }
}

TEST_F(FilterTest, TakesWhatGStreamerDemuxes) {
  make_video("a.mp4", 5, "-c:v libx264");
  make_video("b.avi", 5, "-c:v mjpeg");
  make_video("c.ts", 5, "-c:v mpeg2video");
  make_video("d.mkv", 5, "-c:v libx264 -bf 3");
  make_video("e.mov", 5, "-c:v prores");
  make_video("f.ogv", 5, "-c:v libtheora");
  for (const char* name : {"a.mp4", "b.avi", "c.ts", "d.mkv", "e.mov", "f.ogv"}) {
    const auto result = filter(std::string(name) + " out.mkv");
    EXPECT_EQ(result.value("frames_out", 0), 5) << name;
    EXPECT_EQ(count_frames("out.mkv"), 5) << name;
  }
}

TEST_F(FilterTest, AudioPacketsAreTheSame) {
  make_video_with_sound("pcm.avi", "-c:a pcm_s16le -c:v mjpeg");
  make_video_with_sound("mp3.mkv", "-c:a libmp3lame");
  make_video_with_sound("aac.mkv", "-c:a aac");
  make_video_with_sound("opus.mkv", "-c:a libopus");
  make_video_with_sound("flac.mkv", "-c:a flac");
  for (const char* name : {"pcm.avi", "mp3.mkv", "aac.mkv", "opus.mkv", "flac.mkv"}) {
    EXPECT_EQ(filter(std::string(name) + " out.mkv").value("audio_streams", 0), 1) << name;
    const auto before = audio_packets(name);
    EXPECT_GT(before.size(), 8u) << name;
    EXPECT_EQ(audio_packets("out.mkv"), before) << name;
  }
  filter("mp3.mkv out.mp4");
  EXPECT_EQ(audio_packets("out.mp4"), audio_packets("mp3.mkv"));
}

// As DVDs, Blu-ray discs and television have it.
TEST_F(FilterTest, SoundOfDiscsIsKept) {
  make_video_with_sound("film.vob", "-c:v mpeg2video -c:a ac3");
  make_video_with_sound("film.ts", "-c:v mpeg2video -map 0:v -map 1:a -map 1:a -c:a:0 ac3 -c:a:1 eac3");
  make_video_with_sound("film.m2ts", "-c:v libx264 -c:a ac3");
  const auto codecs = [](const std::string& path) {
    return must("ffprobe -v error -select_streams a -show_entries stream=codec_name -of csv=p=0 " + path);
  };
  for (const auto& [name, expected] :
       {std::pair("film.vob", "ac3\n"), {"film.ts", "ac3\neac3\n"}, {"film.m2ts", "ac3\n"}}) {
    filter(std::string(name) + " out.mkv");
    EXPECT_EQ(codecs("out.mkv"), expected) << name;
  }
}

// PCM in forms that no file which is written here holds.
TEST_F(FilterTest, SamplesOfPcmAreTheSame) {
  make_video_with_sound("dvd.vob", "-c:v mpeg2video -ar 48000 -ac 2 -sample_fmt s16 -c:a pcm_dvd");
  make_video_with_sound("disc.m2ts", "-c:v libx264 -ar 48000 -ac 2 -sample_fmt s16 -c:a pcm_bluray");
  make_video_with_sound("signed.mov", "-c:v libx264 -c:a pcm_s8");
  make_video_with_sound("double.mov", "-c:v libx264 -c:a pcm_f64be");
  const auto samples = [](const std::string& path) {
    return must("ffmpeg -v error -i " + path + " -map 0:a:0 -c:a pcm_f64le -f md5 -");
  };
  for (const char* name : {"dvd.vob", "disc.m2ts", "signed.mov", "double.mov"}) {
    EXPECT_EQ(filter(std::string(name) + " out.mkv").value("audio_streams", 0), 1) << name;
    EXPECT_EQ(samples("out.mkv"), samples(name)) << name;
  }
}

// GStreamer leaves out what lies before the beginning of an edit list (the run-in of the encoder), and a last
// packet that the list cuts; all between is the same.
TEST_F(FilterTest, AudioOfAnEditListIsTheSameWithinIt) {
  make_video_with_sound("in.mp4", "-c:a aac -c:v libx264");
  const auto before = audio_packets("in.mp4");
  ASSERT_GT(before.size(), 40u);
  for (const char* out : {"out.mkv", "out.mp4"}) {
    filter(std::string("in.mp4 ") + out);
    const auto after = audio_packets(out);
    EXPECT_GE(after.size() + 2, before.size()) << out;
    EXPECT_NE(std::search(before.begin(), before.end(), after.begin(), after.end()), before.end()) << out;
  }
}

TEST_F(FilterTest, EveryAudioStreamIsKept) {
  make_video_with_sound("in.mkv",
                        "-map 0:v -map 1:a -map 1:a -c:a:0 libmp3lame -c:a:1 libmp3lame -b:a:1 64k");
  EXPECT_EQ(filter("in.mkv out.mkv").value("audio_streams", 0), 2);
  const auto before = audio_packets("in.mkv");
  auto after = audio_packets("out.mkv");
  EXPECT_EQ(std::multiset(after.begin(), after.end()), std::multiset(before.begin(), before.end()));
}

// GStreamer starts a transport stream where its video starts; from there on the AAC is the same, but for the
// headers of seven bytes that only a transport stream needs.
TEST_F(FilterTest, TransportStreamAudioLosesOnlyItsHeaders) {
  make_video_with_sound("in.ts", "-c:v mpeg2video -c:a aac");
  filter("in.ts out.mkv");
  const auto sizes = [](const std::string& path, int header) {
    std::istringstream lines(
        must("ffprobe -v error -select_streams a -show_entries packet=size -of csv=p=0:nk=1 " + path));
    std::vector<int> result;
    for (std::string line; std::getline(lines, line);)
      if (!line.empty()) result.push_back(std::stoi(line) - header);
    return result;
  };
  const auto before = sizes("in.ts", 7);
  const auto after = sizes("out.mkv", 0);
  ASSERT_LE(after.size(), before.size());
  EXPECT_GE(after.size() + 3, before.size());
  EXPECT_TRUE(std::equal(after.rbegin(), after.rend(), before.rbegin()));
}

// Demuxers let the sound of files that do not begin at 0 run by another time than the video's.
TEST_F(FilterTest, SoundStaysWithItsPicture) {
  make_video_with_sound("in.ts", "-c:v mpeg2video -bf 0 -c:a aac");
  make_video_with_sound("late.mkv", "-c:v libx264 -c:a aac -output_ts_offset 5");
  make_video_with_sound("dvd.vob", "-c:v mpeg2video -bf 0 -c:a mp2");
  make_video_with_sound("plain.mp4", "-c:v libx264 -c:a aac");
  const auto sound_behind_picture = [](const std::string& path) {
    return timestamps(path, "a:0").front() - timestamps(path).front();
  };
  for (const char* name : {"in.ts", "late.mkv", "dvd.vob", "plain.mp4"}) {
    filter(std::string(name) + " out.mkv");
    EXPECT_NEAR(sound_behind_picture("out.mkv"), sound_behind_picture(name), 0.06) << name;
  }
}

class FilterTagsTest : public FilterTest {
 protected:
  // The film, with what it says of itself.
  static void tell(const std::string& film, const std::string& told) {
    std::ofstream("about.txt") << ";FFMETADATA1\ntitle=Zoë's \"walk\", twice\nartist=Somebody\n"
                                  "[CHAPTER]\nTIMEBASE=1/1000\nSTART=0\nEND=400\ntitle=Out\n"
                                  "[CHAPTER]\nTIMEBASE=1/1000\nSTART=400\nEND=1000\ntitle=And back\n";
    must("ffmpeg -v error -y -i " + film + " -i about.txt -map 0 -map_metadata 1 -map_chapters 1 -c copy " +
         told);
  }

  static nlohmann::json said_of(const std::string& film) {
    return nlohmann::json::parse(must("ffprobe -v error -of json -show_chapters -show_format " + film));
  }
};

// With sound, which would bring them along, and without.
TEST_F(FilterTagsTest, TitlesAreKept) {
  make_video("silent.mkv", 5, "-c:v libx264");
  make_video_with_sound("sound.mkv", "-c:v libx264 -c:a aac");
  for (const std::string film : {"silent.mkv", "sound.mkv"}) {
    for (const std::string in : {"told.mkv", "told.mp4"}) {
      tell(film, in);
      for (const std::string out : {"out.mkv", "out.mp4"}) {
        filter(in + " " + out);
        // Matroska's are in capitals, where GStreamer writes them.
        const auto tags = said_of(out)["format"]["tags"];
        EXPECT_EQ(tags.value("title", tags.value("TITLE", "")), "Zoë's \"walk\", twice")
            << film << " as " << in << " to " << out;
        EXPECT_EQ(tags.value("artist", tags.value("ARTIST", "")), "Somebody")
            << film << " as " << in << " to " << out;
      }
    }
  }
}

TEST_F(FilterTagsTest, ChaptersAreKeptWhereThereIsAPlace) {
  make_video("silent.mkv", 10, "-c:v libx264");
  make_video_with_sound("sound.mkv", "-c:v libx264 -c:a libopus");
  for (const std::string film : {"silent.mkv", "sound.mkv"}) {
    tell(film, "told.mkv");
    for (const std::string out : {"out.mkv", "out.webm"}) {
      filter("told.mkv " + out + (out == "out.webm" ? " --codec vp9" : ""));
      const auto chapters = said_of(out)["chapters"];
      ASSERT_EQ(chapters.size(), 2u) << film << " to " << out;
      EXPECT_EQ(chapters[0]["tags"]["title"], "Out");
      EXPECT_EQ(chapters[1]["tags"]["title"], "And back");
      EXPECT_EQ(chapters[1]["start_time"], "0.400000");
    }
    const Outcome warned = run("$TOOL filter --preset fast --quiet told.mkv out.mp4");
    EXPECT_NE(warned.err.find("out.mp4: chapters are left out"), std::string::npos) << warned.err;
  }
  EXPECT_EQ(run("$TOOL filter --preset fast --quiet silent.mkv out.mp4").err, "");
}

// FLV's demuxer may meet sound before it knows of a picture.
TEST_F(FilterTest, FlashVideoWithSound) {
  make_video_with_sound("in.flv", "-c:v libx264 -c:a aac");
  for (int run = 0; run < 3; ++run) {
    filter("in.flv out.mkv");
    EXPECT_EQ(count_frames("out.mkv"), count_frames("in.flv"));
    // The demuxer drops the packet before 0, with which AAC begins.
    const auto before = audio_packets("in.flv");
    const auto after = audio_packets("out.mkv");
    ASSERT_LE(after.size(), before.size());
    EXPECT_GE(after.size() + 1, before.size());
    EXPECT_TRUE(std::equal(after.rbegin(), after.rend(), before.rbegin()));
  }
  EXPECT_EQ(run("$TOOL filter in.flv - --preset fast > out.y4m").status, 0);
}

// Before all is filtered for nothing.
TEST_F(FilterTest, FramesOfAnotherSizeAreToldOf) {
  make_video("large.ts", 10, "-c:v mpeg2video");
  make_video("small.ts", 10, "-vf scale=48:32 -c:v mpeg2video -output_ts_offset 1");
  must("cat large.ts small.ts > both.ts");
  const Outcome outcome = run("$TOOL filter both.ts out.mkv");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find(" is 48x32, those before are 96x64"), std::string::npos) << outcome.err;
  EXPECT_EQ(files(), (std::set<std::string>{"./large.ts", "./small.ts", "./both.ts"}));
}

TEST_F(FilterTest, TimestampsAreKept) {
  make_video("ntsc.mkv", 20, "-r 30000/1001 -c:v ffv1");
  make_video("variable.mkv", 24, "-vf 'select=not(mod(n\\,3))+not(mod(n\\,4))' -fps_mode vfr -c:v ffv1");
  make_video("b-frames.mp4", 20, "-c:v libx264 -bf 3");
  for (const char* name : {"ntsc.mkv", "variable.mkv", "b-frames.mp4"}) {
    filter(std::string(name) + " out.mkv");
    const auto before = timestamps(name);
    EXPECT_GT(before.size(), 10u) << name;
    expect_times_near(timestamps("out.mkv"), before);
    filter(std::string(name) + " out.mp4");
    expect_times_near(timestamps("out.mp4"), before);
  }
}

TEST_F(FilterTest, ColourInformationIsKept) {
  const std::string entries = "color_space,color_transfer,color_primaries";
  make_video("sd.mp4", 3,
             "-c:v libx264 -colorspace smpte170m -color_trc smpte170m -color_primaries smpte170m");
  make_video("hd.mp4", 3, "-c:v libx264 -colorspace bt709 -color_trc bt709 -color_primaries bt709");
  make_video("none.mp4", 3, "-c:v libx264");
  // Not in MP4: GStreamer 1.22 does not read the range there.
  make_video("full.mkv", 3,
             "-vf scale=out_range=full -c:v libx264 -color_range pc -colorspace bt709 -color_trc bt709 "
             "-color_primaries bt709");
  for (const char* name : {"sd.mp4", "hd.mp4", "none.mp4", "full.mkv"}) {
    filter(std::string(name) + " out.mkv");
    EXPECT_EQ(probe("out.mkv", entries), probe(name, entries)) << name;
    const std::string range = probe(name, "color_range");
    EXPECT_EQ(probe("out.mkv", "color_range"), range) << name;
  }
}

TEST_F(FilterTest, TenBitsStayTenBits) {
  make_video("in.mkv", 3,
             "-pix_fmt yuv420p10le -c:v libx265 -x265-params log-level=error -colorspace bt2020nc -color_trc "
             "smpte2084 "
             "-color_primaries bt2020");
  EXPECT_EQ(filter("in.mkv out.mkv").value("format", ""), "I420_10LE");
  EXPECT_EQ(probe("out.mkv", "pix_fmt"), "yuv420p10le");
  EXPECT_EQ(probe("out.mkv", "color_space,color_transfer,color_primaries"), "bt2020nc,smpte2084,bt2020");
}

TEST_F(FilterTest, PictureShapeIsKept) {
  make_video("in.mkv", 2, "-vf setsar=3/2 -c:v ffv1");
  filter("in.mkv out.mkv");
  EXPECT_EQ(probe("out.mkv", "sample_aspect_ratio"), "3:2");
}

TEST_F(FilterTest, OddSizesAreKept) {
  make_video("in.mkv", 3, "-vf scale=35:27 -pix_fmt yuv444p -c:v ffv1");
  filter("in.mkv out.mkv --picture small.png");
  EXPECT_EQ(probe("out.mkv", "width,height"), "35,27");
  EXPECT_EQ(probe("small.png", "width,height"), "35,27");
  make_video("half.mkv", 2, "-vf scale=75:57 -c:v ffv1");
  filter("half.mkv half.ffv1.mkv --codec ffv1 --strength 0 --chroma-strength 0");
  EXPECT_EQ(decoded("half.ffv1.mkv"), decoded("half.mkv"));
}

TEST_F(FilterTest, BringsTheCleanPictureNearer) {
  must("$TOOL clip noisy.mkv --clean clean.mkv --size 160x90 --frames 4 --sigma 15");
  const auto result = filter("noisy.mkv out.mkv --reference clean.mkv");
  const auto psnr = result.value("psnr", nlohmann::json::object());
  ASSERT_TRUE(psnr.contains("before") && psnr.contains("after")) << result.dump();
  const double before = psnr["before"].value("luma", 0.0);
  // 20 log10(255 / 15), a little more where noise is clipped at black.
  EXPECT_NEAR(before, 24.6, 0.4);
  EXPECT_GT(psnr["after"].value("luma", 0.0), before + 3);
  EXPECT_GT(psnr["after"].value("chroma", 0.0), psnr["before"].value("chroma", 100.0) + 3);
  EXPECT_NEAR(result.value("noise", 0.0), 15, 3);
}

// What is measured is what the file holds, but for the encoder's loss.
TEST_F(FilterTest, MeasuresWhatAnotherProgramMeasures) {
  must("$TOOL clip noisy.mkv --clean clean.mkv --size 160x90 --frames 3");
  const auto result = filter("noisy.mkv out.mkv --reference clean.mkv --quality 0");
  const std::string log =
      must("ffmpeg -v info -i out.mkv -i clean.mkv -lavfi psnr=stats_file=log -f null - 2>&1; cat log");
  double sum = 0;
  int frames = 0;
  for (size_t at = log.find("psnr_y:"); at != std::string::npos; at = log.find("psnr_y:", at + 1), ++frames)
    sum += std::stod(log.substr(at + 7));
  ASSERT_EQ(frames, 3) << log;
  EXPECT_NEAR(result["psnr"]["after"]["luma"].get<double>(), sum / frames, 0.02);
}

TEST_F(FilterTest, WithoutStrengthNothingChanges) {
  must("$TOOL clip noisy.mkv --clean clean.mkv --size 160x90 --frames 3");
  const auto result =
      filter("noisy.mkv out.mkv --reference noisy.mkv --strength 0 --chroma-strength 0 --quality 0");
  EXPECT_EQ(result["psnr"]["after"]["luma"], 100);
  EXPECT_EQ(frames_md5("out.mkv"), frames_md5("noisy.mkv"));
}

TEST_F(FilterTest, PictureShowsBothHalvesAndADetail) {
  make_video("in.mkv", 5);
  const std::string report = must("$TOOL filter in.mkv out.mkv --preset fast --picture both.png");
  EXPECT_EQ(probe("both.png", "width,height"), "96,96");
  EXPECT_NE(report.find("both.png"), std::string::npos);
}

TEST_F(FilterTest, JsonHoldsTheWholeResult) {
  make_video("in.mkv", 3);
  const auto result = filter("in.mkv out.mkv --sigma 8");
  for (const char* key :
       {"input", "output", "picture", "width", "height", "format", "frames_in", "frames_out", "audio_streams",
        "streams_left_out", "seconds", "fps", "noise", "noise_is_estimated", "psnr", "pipeline", "command"})
    EXPECT_TRUE(result.contains(key)) << key;
  EXPECT_EQ(result["width"], 96);
  EXPECT_EQ(result["noise"], 8);
  EXPECT_EQ(result["noise_is_estimated"], false);
  EXPECT_TRUE(result["picture"].is_null());
  EXPECT_TRUE(result["psnr"]["before"].is_null());
  EXPECT_GT(result["fps"], 0);
}

TEST_F(FilterTest, ReportNamesFramesSpeedNoiseAndPipeline) {
  make_video("in.mkv", 3);
  const std::string report = must("$TOOL filter in.mkv out.mkv --preset fast");
  for (const char* words :
       {"3 frames in, 3 out", "no audio", " fps", "noise     sigma", "estimated", "gst-launch-1.0 -e "})
    EXPECT_NE(report.find(words), std::string::npos) << words << " in\n" << report;
}

#ifndef NONLOCAL_SANITIZED  // gst-launch-1.0 has no sanitizer built in
TEST_F(FilterTest, PrintedCommandDoesTheSame) {
  std::filesystem::create_directory("it's a \"$HOME\" of !");
  const std::string in = "it's a \"$HOME\" of !/in.mkv";
  std::filesystem::current_path("it's a \"$HOME\" of !");
  must("true");
  std::filesystem::current_path("..");
  must("ffmpeg -v error -f lavfi -i testsrc2=size=96x64:rate=25 -frames:v 4 -c:v ffv1 plain.mkv");
  std::filesystem::rename("plain.mkv", in);
  const auto result = filter("it\\'s\\ a\\ \\\"\\$HOME\\\"\\ of\\ \\!/in.mkv 'out put.mkv'");
  const std::string ours = frames_md5("out put.mkv");
  std::filesystem::remove("out put.mkv");
  must(result.value("command", "false"));
  EXPECT_EQ(frames_md5("out put.mkv"), ours);
}
#endif

TEST_F(FilterTest, FindsThePluginByItself) {
  make_video("in.mkv", 2);
  must("env -u GST_PLUGIN_PATH $TOOL filter in.mkv out.mkv --preset fast");
  EXPECT_EQ(count_frames("out.mkv"), 2);
}

TEST_F(FilterTest, ReplacesAnOlderOutput) {
  make_video("in.mkv", 2);
  must("echo old > out.mkv; $TOOL filter in.mkv out.mkv --preset fast");
  EXPECT_EQ(count_frames("out.mkv"), 2);
  EXPECT_EQ(files(), (std::set<std::string>{"./in.mkv", "./out.mkv"}));
}

TEST_F(FilterTest, HelpIsComplete) {
  const std::string all = must("$TOOL --help");
  EXPECT_NE(all.find("filter"), std::string::npos);
  EXPECT_NE(all.find("clip"), std::string::npos);
  EXPECT_NE(must("$TOOL --version").find("nonlocal "), std::string::npos);
  const std::string filter = must("$TOOL filter --help");
  for (const char* option :
       {"IN",          "OUT",          "--sigma",       "--strength", "--chroma-strength",
        "--preset",    "--patch-size", "--search-size", "--threads",  "--quality",
        "--picture",   "--reference",  "--json",        "--quiet",    "--denoise",
        "--attention", "--prompt",     "--codec",       "--resume",   "--segment-seconds"})
    EXPECT_NE(filter.find(option), std::string::npos) << option;
  const std::string clip = must("$TOOL clip --help");
  for (const char* option :
       {"OUT", "--clean", "--size", "--frames", "--fps", "--sigma", "--chroma-sigma", "--seed"})
    EXPECT_NE(clip.find(option), std::string::npos) << option;
}

}  // namespace
