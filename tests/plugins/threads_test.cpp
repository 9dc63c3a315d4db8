// Threads: the same bytes from any number of them, no more than asked for, and no races with the
// application's.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <random>
#include <thread>

#include "support.h"

namespace nonlocal::test {
namespace {

int threads_of_this_process() {
  const auto tasks = std::filesystem::directory_iterator("/proc/self/task");
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

TEST(Threads, AnyNumberGivesTheSameBytes) {
  for (const GstVideoFormat format :
       {GST_VIDEO_FORMAT_I420, GST_VIDEO_FORMAT_RGB, GST_VIDEO_FORMAT_P010_10LE}) {
    const GstVideoInfo info = video_info(format, 130, 70);
    const auto with_threads = [&](const char* threads) {
      return filter_all(info, {std::string("n-threads=") + threads, "search-size=7"}, 3);
    };
    const std::vector<Bytes> one = with_threads("1");
    for (const char* threads : {"2", "4", "0"}) {
      EXPECT_EQ(with_threads(threads), one) << "n-threads=" << threads;
    }
  }
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

using Choices = std::vector<std::string>;
struct Knob {
  const char* property;
  Choices values;
};

const std::array<Knob, 11> kKnobs = {{
    {"sigma", {"-1", "0", "7.5", "30"}},
    {"strength", {"0", "0.5", "1", "3"}},
    {"chroma-strength", {"0", "1", "2"}},
    {"chroma", {"separate", "joint"}},
    {"patch-size", {"0", "1", "3", "4", "5"}},
    {"search-size", {"0", "3", "5", "6", "9"}},
    {"preset", {"fast", "balanced", "quality"}},
    {"n-threads", {"0", "1", "2", "3"}},
    {"message", {"true", "false"}},
    {"adaptive", {"true", "false"}},
    {"method", {"direct", "attention"}},
}};

void turn_knobs(GstElement* element, unsigned seed, const std::atomic<bool>& done) {
  std::mt19937 random(seed);
  while (!done) {
    const Knob& knob = kKnobs[random() % kKnobs.size()];
    gst_util_set_object_arg(G_OBJECT(element), knob.property,
                            knob.values[random() % knob.values.size()].c_str());
    double level = -1;
    g_object_get(element, "noise-level", &level, nullptr);
    EXPECT_GE(level, 0);
    EXPECT_LE(level, 100);
    const Pad source(gst_element_get_static_pad(element, "src"));
    const auto lateness = static_cast<GstClockTimeDiff>(random() % 3) * GST_MSECOND - GST_MSECOND;
    gst_pad_send_event(source.get(), gst_event_new_qos(GST_QOS_TYPE_UNDERFLOW, 1.5, lateness, GST_SECOND));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 500));
  }
}

// Made for ThreadSanitizer: properties, QoS events and queries from two threads while buffers flow through
// two elements, each with a streaming thread of its own.
TEST(Threads, PropertiesMayChangeAtAnyTime) {
  constexpr int kFrames = 300;
  const Element pipeline = parse(
      "videotestsrc num-buffers=300 ! video/x-raw,format=NV12,width=24,height=16 ! queue ! "
      "nonlocaldenoise name=first qos=false ! queue ! nonlocaldenoise name=second qos=false ! queue ! "
      "fakesink name=sink sync=false signal-handoffs=true");
  const auto find = [&](const char* name) {
    return Element(gst_bin_get_by_name(GST_BIN(pipeline.get()), name));
  };
  const Element first = find("first");
  const Element second = find("second");
  const Element sink = find("sink");
  std::atomic<int> frames = 0;
  g_signal_connect(sink.get(), "handoff", G_CALLBACK(+[](GstElement*, GstBuffer*, GstPad*, gpointer count) {
                     ++*static_cast<std::atomic<int>*>(count);
                   }),
                   &frames);
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (const unsigned seed : {1u, 2u}) {
    threads.emplace_back([&, seed] { turn_knobs(seed == 1 ? first.get() : second.get(), seed, done); });
    threads.emplace_back([&, seed] { turn_knobs(seed == 1 ? first.get() : second.get(), seed + 10, done); });
  }
  const std::string error = play(pipeline.get());
  done = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(error, "");
  EXPECT_EQ(frames, kFrames);
}

}  // namespace
}  // namespace nonlocal::test
