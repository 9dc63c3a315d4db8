// Measures what a new prompt costs a live stream: frames of 1920x1080, I420, 30 a second through textcross,
// whose prompt another thread sets twice a second; and, for what the machine itself does to frames, as many
// of them under one prompt. Frames are noise, of all colours everywhere: the worst for what looks are read
// from. Not a test of ctest: times are no tests. Usage: look_latency [PROMPTS]
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "support.h"

namespace {

using namespace nonlocal::test;
using Clock = std::chrono::steady_clock;

constexpr auto kFrame = std::chrono::microseconds(33'333);
constexpr auto kBetweenPrompts = std::chrono::milliseconds(500);
constexpr const char* kPrompts[] = {"warm sunset, darker edges", "deeper greens, cooler sky",
                                    "noir, slightly brighter", "teal and orange at the left", "moonlight"};

double milliseconds(Clock::duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

void print(const char* what, std::vector<double> times, const char* unit) {
  std::ranges::sort(times);
  std::printf("%-46s least %.3f, median %.3f, most %.3f %s (%zu)\n", what, times.front(),
              times[times.size() / 2], times.back(), unit, times.size());
}

// What both threads know.
struct Shared {
  std::atomic<int> looks = 0;  // that have come
  std::atomic<bool> is_done = false;
};

struct Setting {
  Clock::time_point begin, end;  // of the call
};

// Sets prompts, each once the one before has come.
std::vector<Setting> set_prompts(GstElement* element, int count, Shared& shared) {
  std::vector<Setting> settings;
  for (int i = 0; i < count; ++i) {
    std::this_thread::sleep_for(kBetweenPrompts);
    const auto begin = Clock::now();
    g_object_set(element, "prompt", kPrompts[i % std::size(kPrompts)], nullptr);
    settings.push_back({begin, Clock::now()});
    while (shared.looks <= i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  shared.is_done = true;
  return settings;
}

struct Stream {
  std::vector<Clock::time_point> looks;  // when the first frame of each came out
  std::vector<double> frame_times;       // in milliseconds
  int late = 0;                          // frames that took longer than until the next one is due
};

// Frames at their rate, until all prompts are set.
Stream play(Harness& harness, const GstVideoInfo& info, Shared& shared) {
  const Buffer frame = noisy_frame(info);
  Stream stream;
  auto due = Clock::now();
  for (int i = 0; !shared.is_done; ++i, due = std::max(due + kFrame, Clock::now())) {
    Buffer copy(gst_buffer_copy_deep(frame.get()));
    GST_BUFFER_PTS(copy.get()) = i * std::chrono::nanoseconds(kFrame).count();
    std::this_thread::sleep_until(due);
    const auto begin = Clock::now();
    harness.push(std::move(copy));
    const auto end = Clock::now();
    stream.frame_times.push_back(milliseconds(end - begin));
    stream.late += end - begin > kFrame;
    if (!harness.reports().empty()) {
      stream.looks.push_back(end);
      ++shared.looks;
    }
  }
  return stream;
}

void print_frames(const char* what, const Stream& stream) {
  print(what, stream.frame_times, "ms");
  std::printf("%d of %zu took longer than a frame lasts\n", stream.late, stream.frame_times.size());
}

void measure(int prompts) {
  const GstVideoInfo info = video_info(GST_VIDEO_FORMAT_I420, 1920, 1080);
  Harness harness(info, "textcross prompt=brighter ! fakesink sync=false", "textcross");
  harness.push(noisy_frame(info));
  harness.reports();
  Shared shared;
  std::vector<Setting> settings;
  std::thread setter([&] { settings = set_prompts(harness.element(), prompts, shared); });
  const Stream stream = play(harness, info, shared);
  setter.join();
  std::vector<double> calls;
  std::vector<double> waits;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    calls.push_back(1000 * milliseconds(settings[i].end - settings[i].begin));
    waits.push_back(milliseconds(stream.looks[i] - settings[i].end));
  }
  print("the setter", calls, "us");
  print("to the first frame of the look, which fades in", waits, "ms");
  print_frames("a frame, prompts changing", stream);
  shared.is_done = false;
  std::thread timer([&shared, frames = stream.frame_times.size()] {
    std::this_thread::sleep_for(frames * kFrame);
    shared.is_done = true;
  });
  print_frames("a frame, the prompt staying", play(harness, info, shared));
  timer.join();
}

}  // namespace

int main(int argc, char** argv) {
  const int prompts = argc > 1 ? std::atoi(argv[1]) : 40;
  if (prompts < 1) {
    std::fprintf(stderr, "usage: look_latency [PROMPTS]\n");
    return 2;
  }
  g_setenv("GST_PLUGIN_PATH_1_0", PLUGIN_DIR, TRUE);
  gst_init(&argc, &argv);
  measure(prompts);
}
