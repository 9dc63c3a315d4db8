// nonlocal filter, stopped: nothing half done has the output's name, and nothing done is lost.
#include <unistd.h>

#include <random>

#include "support.h"

namespace {

class FilterResumeTest : public ToolTest {
 protected:
  // Four seconds in eight segments, and slow enough to be stopped in.
  static constexpr int kFrames = 100;
  static constexpr const char* kSlow = " --codec ffv1 --segment-seconds 0.4 --quiet --search-size 45";

  void SetUp() override {
    ToolTest::SetUp();
    make_video("in.mkv", kFrames, "-c:v libx264 -g 5 -bf 2");
  }

  // Runs the filter and sends it a signal after a time.
  static Outcome stopped(const std::string& signal, double seconds, const std::string& arguments) {
    return run("$TOOL filter " + arguments + " & tool=$!; sleep " + std::to_string(seconds) + "; kill -" +
               signal + " $tool 2>/dev/null; wait $tool");
  }

  static std::string slowly(const std::string& arguments) { return arguments + kSlow; }

  // in.mkv to out.mkv, until this segment, of one digit, is finished.
  static Outcome interrupted_behind(int segment) {
    return run("$TOOL filter " + slowly("in.mkv out.mkv") +
               " & tool=$!; until [ -e .out.mkv.nonlocal/segment-0000" + std::to_string(segment) +
               ".json ]; do sleep 0.02; done; kill -INT $tool; wait $tool");
  }
};

double seconds_of(const Outcome& outcome) {
  const size_t real = outcome.err.find("real");
  return real == std::string::npos ? 1 : std::stod(outcome.err.substr(real + 5));
}

TEST_F(FilterResumeTest, AfterKillsTheFramesAreThoseOfAnUndisturbedRun) {
  const double whole = seconds_of(
      run("TIMEFORMAT='real %R'; time $TOOL filter " + slowly("in.mkv whole.mkv --picture whole.png")));
  std::mt19937 random(testing::UnitTest::GetInstance()->random_seed() + getpid());
  std::uniform_real_distribution<double> moment(0.05, whole / 2);
  for (int kill = 0; kill < 5; ++kill) {
    stopped("KILL", moment(random), slowly("in.mkv out.mkv --picture out.png --resume"));
    if (std::filesystem::exists("out.mkv")) break;  // done before it was killed
  }
  must("$TOOL filter " + slowly("in.mkv out.mkv --picture out.png --resume"));
  EXPECT_EQ(count_frames("out.mkv"), kFrames);
  EXPECT_EQ(frames_md5("out.mkv"), frames_md5("whole.mkv"));
  EXPECT_EQ(timestamps("out.mkv"), timestamps("in.mkv"));
  must("cmp whole.png out.png");
  EXPECT_EQ(files(),
            (std::set<std::string>{"./in.mkv", "./out.mkv", "./out.png", "./whole.mkv", "./whole.png"}));
}

TEST_F(FilterResumeTest, InterruptLeavesAFileToPlayAndTheWorkToResume) {
  const Outcome outcome = interrupted_behind(0);
  EXPECT_EQ(outcome.status, 130);
  EXPECT_NE(outcome.err.find("of 100 frames are in out.partial.mkv, --resume goes on"), std::string::npos)
      << outcome.err;
  EXPECT_FALSE(std::filesystem::exists("out.mkv"));
  const int played = count_frames("out.partial.mkv");
  EXPECT_GE(played, 10);
  EXPECT_LT(played, kFrames);

  const Outcome anew = run("$TOOL filter " + slowly("in.mkv out.mkv"));
  EXPECT_EQ(anew.status, 1);
  EXPECT_NE(anew.err.find("--resume"), std::string::npos) << anew.err;
  const Outcome other = run("$TOOL filter " + slowly("in.mkv out.mkv") + " --resume --sigma 3");
  EXPECT_EQ(other.status, 1);
  EXPECT_NE(other.err.find("other settings"), std::string::npos) << other.err;

  const auto result = events(must("$TOOL filter " + slowly("in.mkv out.mkv") + " --resume --json"));
  EXPECT_EQ(result.front()["event"], "begin");
  EXPECT_GE(result.front()["frames_done"], 10);
  EXPECT_EQ(result.back()["frames_out"], kFrames);
  EXPECT_EQ(count_frames("out.mkv"), kFrames);
  EXPECT_FALSE(std::filesystem::exists("out.partial.mkv")) << "what it held is in the whole file";
}

// The picture may be asked for when its frame has been filtered already.
TEST_F(FilterResumeTest, APictureIsMadeOfWhatWasFilteredBefore) {
  const Outcome outcome = interrupted_behind(6);
  EXPECT_EQ(outcome.status, 130);
  must("echo an older one > out.png; $TOOL filter " + slowly("in.mkv out.mkv --picture out.png --resume"));
  must("$TOOL filter " + slowly("in.mkv whole.mkv --picture whole.png"));
  must("cmp out.png whole.png");
  EXPECT_EQ(frames_md5("out.mkv"), frames_md5("whole.mkv"));
}

TEST_F(FilterResumeTest, InterruptInTheFirstSegmentLeavesTheFileOnly) {
  make_video("long.mkv", 400);
  const Outcome outcome = run(R"($TOOL filter long.mkv out.mkv --search-size 63 --picture out.png & tool=$!
    until [ -s .out.mkv.nonlocal/segment-00000.gdp.*.part ]; do sleep 0.02; done
    kill -TERM $tool
    wait $tool)");
  EXPECT_EQ(outcome.status, 130) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists("out.mkv"));
  EXPECT_FALSE(std::filesystem::exists(".out.mkv.nonlocal"));
}

// Nothing but the seams differs from a run in one piece, and there by little: behind its lead-in fusion over
// time has settled.
TEST_F(FilterResumeTest, SegmentsGiveTheFramesOfOnePiece) {
  filter("in.mkv fast.mkv --sigma 10 --quality 0");
  filter("in.mkv fast-segments.mkv --sigma 10 --segment-seconds 0.4 --quality 0");
  EXPECT_EQ(frames_md5("fast-segments.mkv"), frames_md5("fast.mkv"));
}

TEST_F(FilterResumeTest, DiskIsFull) {
  if (geteuid() != 0 || run("mkdir disk && mount -t tmpfs -o size=300k none disk").status != 0)
    GTEST_SKIP() << "no right to mount a small disk";
  const Outcome full =
      run("$TOOL filter in.mkv disk/out.mkv --codec ffv1 --preset fast --segment-seconds 0.4");
  const bool left_something = std::filesystem::exists("disk/out.mkv");
  const bool left_work = std::filesystem::exists("disk/.out.mkv.nonlocal/segment-00000.json");
  const Outcome resumed =
      run("mount -o remount,size=30M disk && $TOOL filter in.mkv disk/out.mkv --codec ffv1 --preset fast "
          "--segment-seconds 0.4 --resume && ffprobe -v error -count_frames -show_entries "
          "stream=nb_read_frames -of "
          "csv=p=0 disk/out.mkv");
  run("umount disk");
  EXPECT_EQ(full.status, 1);
  EXPECT_NE(full.err.find("disk/out.mkv was not written"), std::string::npos) << full.err;
  EXPECT_NE(full.err.find("kept for --resume"), std::string::npos) << full.err;
  EXPECT_FALSE(left_something);
  EXPECT_TRUE(left_work);
  EXPECT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_NE(resumed.out.find("\n100\n"), std::string::npos) << resumed.out;
}

// A frame that cannot be decoded: all others are kept, under a name that says so.
TEST_F(FilterResumeTest, ABrokenFrameIsSaid) {
  make_video("frames.avi", 30, "-c:v mjpeg");
  must(R"(python3 - <<'END'
data = bytearray(open("frames.avi", "rb").read())
at = data.index(b"\xff\xd8", len(data) // 2)
data[at:at + 200] = bytes(200)
open("broken.avi", "wb").write(data)
END)");
  const Outcome outcome = run("$TOOL filter broken.avi out.mkv --preset fast --quiet");
  EXPECT_EQ(outcome.status, 1) << outcome.out;
  EXPECT_NE(outcome.err.find("1 of 30 frames could not be decoded; the others are in out.partial.mkv"),
            std::string::npos)
      << outcome.err;
  EXPECT_EQ(count_frames("out.partial.mkv"), 29);
  EXPECT_EQ(files(),
            (std::set<std::string>{"./in.mkv", "./frames.avi", "./broken.avi", "./out.partial.mkv"}));
}

}  // namespace
