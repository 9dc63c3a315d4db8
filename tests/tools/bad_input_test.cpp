// What cannot work is said in one line that names the cause, with a status that is not 0, and leaves nothing
// behind.
#include <algorithm>
#include <regex>

#include "support.h"

namespace {

class BadInputTest : public ToolTest {
 protected:
  static void expect_refusal(const std::string& command, const std::string& message, int status = 1) {
    const auto before = files();
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.status, status) << command << "\n" << outcome.err;
    EXPECT_TRUE(std::regex_search(outcome.err, std::regex(message)))
        << command << "\nexpected: " << message << "\ncame: " << outcome.err;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(files(), before) << command;
  }
};

TEST_F(BadInputTest, InputIsNotThere) {
  expect_refusal("$TOOL filter none.mkv out.mkv", "^nonlocal: none.mkv: no such file");
}

TEST_F(BadInputTest, InputIsAFolder) {
  expect_refusal("$TOOL filter . out.mkv", "^nonlocal: .: is a folder");
}

TEST_F(BadInputTest, InputIsEmpty) {
  must("touch empty.mp4");
  expect_refusal("$TOOL filter empty.mp4 out.mkv", "^nonlocal: empty.mp4: is empty");
}

TEST_F(BadInputTest, InputIsText) {
  must("for i in $(seq 200); do echo 'this is no video at all'; done > text.mp4");
  expect_refusal("$TOOL filter text.mp4 out.mkv", "^nonlocal: text.mp4: no video");
}

TEST_F(BadInputTest, InputIsNoise) {
  must("head -c 20000 <(yes '\x01\xfe\x03garbage' | tr g '\\0') > garbage.mkv");
  expect_refusal("$TOOL filter garbage.mkv out.mkv", "^nonlocal: garbage.mkv: no video");
}

TEST_F(BadInputTest, InputHasOnlySound) {
  must("ffmpeg -v error -f lavfi -i sine=duration=1 -c:a aac sound.mp4");
  must("ffmpeg -v error -f lavfi -i sine=duration=1 sound.wav");
  expect_refusal("$TOOL filter sound.mp4 out.mkv", "^nonlocal: sound.mp4: no video in it");
  expect_refusal("$TOOL filter sound.wav out.mkv", "^nonlocal: sound.wav: no video in it");
}

TEST_F(BadInputTest, InputIsAPicture) {
  must("ffmpeg -v error -f lavfi -i testsrc2=size=64x64 -frames:v 1 picture.png");
  expect_refusal("$TOOL filter picture.png out.mkv", "^nonlocal: out.mkv: pictures go to pictures");
}

// Its index is at the end, which is not there.
TEST_F(BadInputTest, InputIsACutMp4) {
  make_video("whole.mp4", 50, "-c:v libx264");
  must("head -c $(($(stat -c %s whole.mp4) * 2 / 3)) whole.mp4 > cut.mp4");
  expect_refusal("$TOOL filter cut.mp4 out.mkv", "^nonlocal: cut.mp4: no video");
}

// Its index is at the beginning, and promises more than comes. What comes is kept; it is not a whole film.
TEST_F(BadInputTest, InputIsACutMatroska) {
  make_video("whole.mkv", 80, "-c:v libx264 -g 10");
  must("head -c $(($(stat -c %s whole.mkv) * 2 / 3)) whole.mkv > cut.mkv");
  const Outcome outcome = run("$TOOL filter cut.mkv out.mkv --preset fast --json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto said = events(outcome.out);
  const auto& result = said.back();
  EXPECT_GT(result["frames_in"], 10);
  EXPECT_LT(result["frames_in"], 80);
  EXPECT_EQ(result["frames_out"], result["frames_in"]);
  EXPECT_EQ(count_frames("out.mkv"), result["frames_in"]);
  ASSERT_GT(said.size(), 2u);
  const auto& warning = said[said.size() - 2];
  EXPECT_EQ(warning["event"], "warning");
  EXPECT_TRUE(warning.value("text", "").starts_with("cut.mkv: its last frame is at ")) << warning;
}

TEST_F(BadInputTest, OutputCannotBe) {
  make_video("in.mkv", 2);
  must("mkdir folder.mkv; touch file");
  expect_refusal("$TOOL filter in.mkv out.xyz",
                 "^nonlocal: out.xyz: the output's name must end in .mkv, .mp4, .mov or .webm");
  expect_refusal("$TOOL filter in.mkv out", "^nonlocal: out: the output's name must end in");
  expect_refusal("$TOOL filter in.mkv none/out.mkv", "^nonlocal: none/out.mkv: no such folder: none");
  expect_refusal("$TOOL filter in.mkv file/out.mkv", "^nonlocal: file/out.mkv: ");
  expect_refusal("$TOOL filter in.mkv /proc/out.mkv", "^nonlocal: /proc/out.mkv: cannot be written: ");
  expect_refusal("$TOOL plan in.mkv -o none/a/b", "^nonlocal: none/a/b: cannot be written: ");
  expect_refusal("$TOOL filter in.mkv ./in.mkv", "^nonlocal: ./in.mkv: the output is the input itself");
}

// What Ctrl-C leaves has a name of its own, and so has the picture: neither may be what is read.
TEST_F(BadInputTest, NothingThatIsReadIsWrittenOver) {
  make_video("film.partial.mkv", 2);
  make_video("clean.mkv", 2);
  must("cp film.partial.mkv kept; mkdir -p pages; cp clean.mkv pages/clean.png");
  expect_refusal("$TOOL filter film.partial.mkv film.mkv",
                 "^nonlocal: film.partial.mkv: the output is the input itself");
  expect_refusal("$TOOL filter film.partial.mkv clean.mkv --reference ./clean.mkv",
                 "^nonlocal: clean.mkv: the output is the reference itself");
  expect_refusal(
      "$TOOL filter film.partial.mkv out.mkv --picture pages/clean.png --reference pages/clean.png",
      "^nonlocal: pages/clean.png: the output is the reference itself");
  must("$TOOL plan film.partial.mkv -o plan --denoise fast && $TOOL filter --plan plan --segment 0");
  expect_refusal("$TOOL join plan ./film.partial.mkv",
                 "^nonlocal: ./film.partial.mkv: the output is the input itself");
  must("cmp film.partial.mkv kept");
}

// A folder may hold other people's files, and others may be at work in it.
TEST_F(BadInputTest, APlanLeavesAloneWhatIsNotItsOwn) {
  make_video("in.mkv", 2);
  const std::string segment = "plan/segment-00000.gdp." + must("hostname | tr -d '\\n'");
  must(
      "mkdir plan; sleep 0 & wait $!; echo $! > dead; touch plan/linux.iso.part "
      "plan/segment-00000.gdp.elsewhere.1.part " +
      segment + ".1.part " + segment + ".$(cat dead).part");
  must("$TOOL plan in.mkv -o plan --denoise fast");
  for (const std::string& kept :
       {std::string("plan/linux.iso.part"), std::string("plan/segment-00000.gdp.elsewhere.1.part"),
        segment + ".1.part"})
    EXPECT_TRUE(std::filesystem::exists(kept)) << kept;
  must("! ls " + segment + ".$(cat dead).part 2>/dev/null");
}

TEST_F(BadInputTest, APlanIsOfOneVersionOneModelAndWhole) {
  make_video("in.mkv", 2);
  const std::string models = MODELS_FOLDER;
  must("cp " + models +
       "/gaussian.safetensors net.safetensors; mkdir elsewhere; "
       "$TOOL plan in.mkv -o plan --attention ./net.safetensors; cp -r plan old; cp -r plan cut");
  must("sed -i 's/\"version\":\"/&0./' old/plan.json; echo {} > cut/plan.json");
  const std::string segment = " --segment 0 --quiet";
  expect_refusal("$TOOL filter --plan old" + segment, "^nonlocal: planned by nonlocal 0\\.[0-9.]*, this is ");
  expect_refusal("$TOOL filter --plan cut" + segment,
                 "^nonlocal: cut/plan.json: cannot be read: remove its folder to begin anew");
  expect_refusal("$TOOL filter --plan plan --segment 0 --sigma 3", "--plan excludes --sigma", 2);
  must("cp " + models + "/restore.safetensors net.safetensors");
  expect_refusal("$TOOL filter --plan plan" + segment,
                 "model of the plan is not any more what was planned for");
  expect_refusal("$TOOL plan in.mkv -o plan --attention ./net.safetensors", "other settings");
  must("cp " + models + "/gaussian.safetensors net.safetensors; cd elsewhere; $TOOL filter --plan ../plan" +
       segment);
  must("echo {} > plan/segment-00000.json");
  expect_refusal(
      "$TOOL join plan out.mkv",
      "^nonlocal: plan/segment-00000.json: cannot be read: remove it, and this segment is filtered again");
}

TEST_F(BadInputTest, ANameIsNotUtf8) {
  make_video("in.mkv", 2);
  must("cp in.mkv $'a\\xff.mkv'");
  expect_refusal("$TOOL filter $'a\\xff.mkv' out.mkv", "name is not UTF-8");
}

TEST_F(BadInputTest, APlanThatCannotBeWrittenIsNone) {
  make_video("in.mkv", 200);
  const std::string plan = "$TOOL plan in.mkv -o plan --denoise fast --seconds 0.2 --quiet";
  const Outcome full = run("ulimit -f 1; trap '' XFSZ; " + plan);
  EXPECT_EQ(full.status, 1);
  EXPECT_NE(full.err.find("plan.json: cannot be written: File too large"), std::string::npos) << full.err;
  EXPECT_FALSE(std::filesystem::exists("plan/plan.json"));
  must(plan);
  EXPECT_GT(std::filesystem::file_size("plan/plan.json"), 1024U) << "else it would not have been cut";
}

TEST_F(BadInputTest, DiskIsFull) {
  make_video("in.mkv", 2);
  expect_refusal("ulimit -f 1; trap '' XFSZ; $TOOL filter in.mkv out.mkv --preset fast --quality 0",
                 "^nonlocal: in.mkv: .*(write|writing).*; out.mkv was not written");
}

TEST_F(BadInputTest, AudioDoesNotFitTheContainer) {
  make_video_with_sound("in.mkv", "-c:a flac");
  expect_refusal("$TOOL filter in.mkv out.mp4", "^nonlocal: out.mp4: .*audio/x-flac.*write a .mkv file");
  make_video_with_sound("apple.mov", "-c:v libx264 -c:a alac");
  expect_refusal("$TOOL filter apple.mov out.mkv", "^nonlocal: out.mkv: .*audio/x-alac.*write a .mp4 file");
  make_video_with_sound("deep.vob", "-c:v mpeg2video -ar 48000 -ac 2 -sample_fmt s32 -c:a pcm_dvd");
  expect_refusal("$TOOL filter deep.vob out.mkv", "^nonlocal: out.mkv: .*lpcm.*nor can another");
  make_video_with_sound("packed.mkv", "-c:a wavpack");
  expect_refusal("$TOOL filter packed.mkv out.mkv", "^nonlocal: out.mkv: .*audio/x-wavpack.*nor can another");
}

TEST_F(BadInputTest, InputCannotBeSoughtIn) {
  make_video_with_sound("list.m3u8", "-c:v libx264 -c:a aac -f hls");
  expect_refusal("$TOOL filter list.m3u8 out.mkv", "^nonlocal: list.m3u8: is a playlist, a video file was");
  must("mkfifo pipe");
  expect_refusal("$TOOL filter pipe out.mkv", "^nonlocal: pipe: is no regular file; .*read from stdin");
}

TEST_F(BadInputTest, SettingsOutOfRange) {
  make_video("in.mkv", 2);
  expect_refusal("$TOOL filter in.mkv out.mkv --sigma 500", "takes for sigma from -1 to 100, not 500");
  expect_refusal("$TOOL filter in.mkv out.mkv --strength ten", "takes for strength from 0 to 10, not ten");
  expect_refusal("$TOOL filter in.mkv out.mkv --search-size 99",
                 "takes for search-size from 0 to 63, not 99");
  expect_refusal("$TOOL filter in.mkv out.mkv --preset best",
                 "takes for preset one of fast, balanced, quality, not best");
  expect_refusal("$TOOL filter in.mkv out.mkv --quality 60", "--quality: h264 takes from 0 to 50, not 60");
  expect_refusal("$TOOL filter in.mkv out.mkv --codec ffv1 --quality 6",
                 "--quality: ffv1 has none to choose");
  expect_refusal("$TOOL filter in.mkv out.mkv --codec mpeg2", "--codec takes one of h264, .*, not mpeg2");
  expect_refusal("$TOOL filter in.mkv out.mp4 --codec ffv1",
                 "out.mp4: a .mp4 file cannot hold ffv1, only .mkv");
  expect_refusal("$TOOL filter in.mkv out.mkv --denoise best", "one of fast, balanced, quality, not best");
  expect_refusal("$TOOL filter in.mkv out.mkv --attention --sigma 3", "selfattention has no property sigma");
  expect_refusal("$TOOL filter in.mkv out.mkv --attention none", "none");
}

TEST_F(BadInputTest, PictureCannotBe) {
  make_video("in.mkv", 2);
  expect_refusal("$TOOL filter in.mkv out.mkv --picture out.jpg",
                 "^nonlocal: out.jpg: the picture's name must end in .png");
  expect_refusal("$TOOL filter in.mkv out.mkv --picture none/out.png",
                 "^nonlocal: none/out.png: no such folder");
}

TEST_F(BadInputTest, ReferenceDoesNotFit) {
  make_video("in.mkv", 3);
  make_video("short.mkv", 2);
  make_video("small.mkv", 3, "-vf scale=64:64 -c:v ffv1");
  expect_refusal("$TOOL filter in.mkv out.mkv --preset fast --reference none.mkv",
                 "^nonlocal: none.mkv: no such file");
  expect_refusal("$TOOL filter in.mkv out.mkv --preset fast --reference small.mkv",
                 "^nonlocal: small.mkv: the reference is 64x64, the input 96x64");
  expect_refusal("$TOOL filter in.mkv out.mkv --preset fast --reference short.mkv",
                 "^nonlocal: in.mkv: short.mkv: .*fewer frames than the input");
}

TEST_F(BadInputTest, ClipCannotBe) {
  expect_refusal("$TOOL clip out.mp4", "^nonlocal: out.mp4: a clip is written without loss, as .mkv");
  expect_refusal("$TOOL clip out.mkv --size 33x32", "^nonlocal: --size takes WIDTHxHEIGHT, both even");
  expect_refusal("$TOOL clip out.mkv --size big", "^nonlocal: --size takes");
  expect_refusal("$TOOL clip out.mkv --clean out.mkv", "^nonlocal: --clean");
  expect_refusal("$TOOL clip none/out.mkv --size 64x64", "^nonlocal: none/out.mkv: no such folder");
  expect_refusal("$TOOL clip out.mkv --sigma -3", "--sigma", 2);
}

TEST_F(BadInputTest, UsageIsWrong) {
  expect_refusal("$TOOL", "nonlocal --help", 2);
  expect_refusal("$TOOL sharpen a b", "^nonlocal: sharpen is no subcommand .see nonlocal --help.", 2);
  for (const char* seconds : {"nan", "inf", "-1", "0", "2e10", "x"})
    expect_refusal("$TOOL plan in.mkv -o plan --seconds " + std::string(seconds),
                   "--seconds: " + std::string(seconds) + " is not from 0.1 to 1000000", 2);
  expect_refusal("$TOOL filter only-one.mkv", "OUT", 2);
  expect_refusal("$TOOL filter a.mkv b.mkv --sharpness 3", "--sharpness", 2);
}

}  // namespace
