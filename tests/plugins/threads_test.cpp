// Threads: no more than asked for.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "support.h"

namespace nonlocal::test {
namespace {

int threads_of_this_process() {
  const auto tasks = std::filesystem::directory_iterator("/proc/self/task");
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

// In a process of its own (as ctest runs it) no helping thread is there before.
TEST(Threads, TheirNumberIsBounded) {
  const GstVideoInfo info = video_info(GST_VIDEO_FORMAT_I420, 64, 64);
  const int before = threads_of_this_process();
  filter_all(info, {"n-threads=1", "search-size=5"}, 2);
  EXPECT_LE(threads_of_this_process(), before);
  filter_all(info, {"n-threads=4", "search-size=5"}, 2);
  const int with_four = threads_of_this_process();
  EXPECT_LE(with_four, before + 4);  // three helpers, and one that a runtime keeps for itself
  for (int run = 0; run < 20; ++run) {
    filter_all(info, {"n-threads=4", "search-size=5"}, 2);
  }
  EXPECT_LE(threads_of_this_process(), with_four);
}

// Streaming threads come and go with the pipelines; helpers are shared and stay few.
TEST(Threads, PipelinesLeaveNoneBehind) {
  const auto run = [] {
    const Element pipeline = parse(
        "videotestsrc num-buffers=3 ! video/x-raw,format=I420,width=32,height=32 ! queue ! "
        "nonlocaldenoise n-threads=3 search-size=5 ! queue ! nonlocaldenoise n-threads=2 search-size=5 ! "
        "fakesink");
    EXPECT_EQ(play(pipeline.get()), "");
  };
  int most_early = 0;
  for (int i = 0; i < 5; ++i) {
    run();
    most_early = std::max(most_early, threads_of_this_process());
  }
  for (int i = 0; i < 25; ++i) {
    run();
  }
  EXPECT_LE(threads_of_this_process(), most_early + 4);
}

}  // namespace
}  // namespace nonlocal::test
