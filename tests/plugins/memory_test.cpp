// Resident memory stays where it is while frames go through.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "support.h"

namespace nonlocal::test {
namespace {

long resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  long pages = 0;
  long resident = 0;
  statm >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// What a frame leaves behind, if anything, must be less than a small fraction of it.
TEST(Memory, IsFlatOverFiveThousandFrames) {
  constexpr int kWarmUp = 1000;
  constexpr int kFrames = 5000;
  const GstVideoInfo info = video_info(GST_VIDEO_FORMAT_I420, 32, 32);
  Harness harness(info);
  harness.set("search-size", "3").set("patch-size", "1").set("n-threads", "1");
  const Buffer frame = noisy_frame(info);
  GST_BUFFER_PTS(frame.get()) = GST_CLOCK_TIME_NONE;
  const auto run = [&](int frames) {
    for (int i = 0; i < frames; ++i) {
      Buffer in(gst_buffer_copy_deep(frame.get()));
      const Buffer shared(i % 2 == 0 ? gst_buffer_ref(in.get()) : nullptr);
      ASSERT_TRUE(harness.filter(std::move(in)));
      harness.messages();
    }
  };
  run(kWarmUp);
  const long before = resident_bytes();
  run(kFrames);
  const long grown = resident_bytes() - before;
  EXPECT_LT(grown / kFrames, static_cast<long>(GST_VIDEO_INFO_SIZE(&info)) / 10);
}

}  // namespace
}  // namespace nonlocal::test
