// Frames that wait for their regions. This program has a RegionFinder::find of its own, which the dynamic
// linker prefers to the library's, and which takes until it is told to stop.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "nonlocal/region_finder.h"
#include "region_model.h"
#include "support.h"

namespace {

constexpr std::chrono::seconds kMost{30};

std::atomic<int> begun = 0;
std::atomic<int> not_stopped = 0;

}  // namespace

namespace nonlocal {

__attribute__((visibility("default"))) bool RegionFinder::find(std::span<const ConstPlane>,
                                                               const ColourFormat&,
                                                               const std::stop_token& stop) {
  ++begun;
  const auto end = std::chrono::steady_clock::now() + kMost;
  while (!stop.stop_requested()) {
    if (std::chrono::steady_clock::now() > end) {
      ++not_stopped;
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace nonlocal

namespace nonlocal::test {
namespace {

class RegionWait : public testing::Test {
 protected:
  RegionWait() {
    gst_element_set_state(pipeline_.get(), GST_STATE_PLAYING);
    wait_for_frame(1);
  }
  ~RegionWait() override { gst_element_set_state(pipeline_.get(), GST_STATE_NULL); }

  // Until so many frames have been given to the model.
  void wait_for_frame(int count) const {
    while (begun - before_ < count && not_stopped == 0) {
      g_usleep(1000);
    }
    ASSERT_EQ(not_stopped, 0);
  }

  GstElement* pipeline() { return pipeline_.get(); }

 private:
  int before_ = begun;
  Element pipeline_ = parse(
      "videotestsrc ! video/x-raw,format=RGBA,width=64,height=48 ! textcross name=cross output=mask "
      "prompt=red region-interval=1 model=" +
      folder_of("planted_clip") + " ! fakesink");
};

TEST_F(RegionWait, IsOverAtTheEnd) {
  ASSERT_NE(gst_element_set_state(pipeline(), GST_STATE_NULL), GST_STATE_CHANGE_FAILURE);
  EXPECT_EQ(not_stopped, 0);
}

TEST_F(RegionWait, IsOverAtASeekAndFramesBehindItWaitAgain) {
  ASSERT_TRUE(gst_element_seek_simple(pipeline(), GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH, GST_SECOND));
  wait_for_frame(2);
}

TEST_F(RegionWait, IsOverAtTheEndThoughFramesWaitedNotAtFirst) {
  GstElement* element = gst_bin_get_by_name(GST_BIN(pipeline()), "cross");
  ASSERT_NE(element, nullptr);
  gst_element_set_state(pipeline(), GST_STATE_READY);
  g_object_set(element, "region-interval", 0, nullptr);
  gst_element_set_state(pipeline(), GST_STATE_PLAYING);
  wait_for_frame(2);
  g_object_set(element, "region-interval", 1, nullptr);
  g_usleep(20'000);  // a frame waits for what another was given for, or will
  ASSERT_NE(gst_element_set_state(pipeline(), GST_STATE_NULL), GST_STATE_CHANGE_FAILURE);
  EXPECT_EQ(not_stopped, 0);
  gst_object_unref(element);
}

}  // namespace
}  // namespace nonlocal::test
