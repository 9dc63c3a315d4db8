// A prompt that is set while playing: neither who sets it nor the stream waits for its look. This program has
// a GradeLook::bake of its own, which the dynamic linker prefers to the library's, and which takes as long as
// a test wants.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "nonlocal/frame_grader.h"
#include "support.h"

namespace {

// What bakes have to pass.
class Gate {
 public:
  void close() { set(false); }
  void open() { set(true); }

  void pass() {
    std::unique_lock lock(mutex_);
    ++arrived_;
    opened_.wait(lock, [this] { return is_open_; });
  }
  int arrived() {
    const std::lock_guard lock(mutex_);
    return arrived_;
  }

 private:
  void set(bool is_open) {
    {
      const std::lock_guard lock(mutex_);
      is_open_ = is_open;
    }
    opened_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable opened_;
  bool is_open_ = true;
  int arrived_ = 0;
};

Gate gate;

}  // namespace

namespace nonlocal {

__attribute__((visibility("default"))) std::shared_ptr<const GradeLook> GradeLook::bake(
    const CrossAttentionFilter& filter, const ColourFormat& format, const GradeLookParameters& parameters) {
  static auto* const real = reinterpret_cast<decltype(&GradeLook::bake)>(
      dlsym(RTLD_NEXT,
            "_ZN8nonlocal9GradeLook4bakeERKNS_20CrossAttentionFilterERKNS_12ColourFormatERKNS_"
            "19GradeLookParametersE"));
  gate.pass();
  return real(filter, format, parameters);
}

}  // namespace nonlocal

namespace nonlocal::test {
namespace {

const GstVideoInfo kInfo = video_info(GST_VIDEO_FORMAT_I420, 48, 32);

class Prompting : public Harness {
 public:
  explicit Prompting(const std::string& prompt)
      : Harness(kInfo, "textcross transition=0 prompt=\"" + prompt + "\"", "textcross") {}

  // The same frame at the next frame's time.
  Bytes send() {
    Buffer frame = noisy_frame(kInfo);
    GST_BUFFER_PTS(frame.get()) = time_++ * kFrameDuration;
    const Buffer out = filter(std::move(frame));
    return out ? bytes_of(out.get()) : Bytes();
  }

 private:
  int time_ = 0;
};

Bytes look_of(const std::string& prompt) { return Prompting(prompt).send(); }

TEST(PromptWait, NobodyWaitsForALook) {
  const Bytes bright = look_of("much brighter");
  const Bytes dark = look_of("much darker");
  const Bytes red = look_of("much redder");
  ASSERT_TRUE(bright != dark && dark != red);
  Prompting harness("much brighter");
  ASSERT_EQ(harness.send(), bright);
  gate.close();
  const int baked = gate.arrived();
  harness.set("prompt", "much darker");
  while (gate.arrived() == baked) {  // its look is on the way
    ASSERT_EQ(harness.send(), bright);
    g_usleep(1000);
  }
  for (int i = 0; i < 50; ++i) {
    harness.set("prompt", i % 2 == 0 ? "warmer" : "much redder");
    ASSERT_EQ(harness.send(), bright) << "each frame comes out, as it was";
  }
  EXPECT_EQ(gate.arrived(), baked + 1) << "one at a time";
  gate.open();
  Bytes last = bright;
  for (int i = 0; i < 5000 && last != red; ++i) {
    last = harness.send();
    g_usleep(1000);
  }
  EXPECT_TRUE(last == red) << "the last one that was asked for";
  EXPECT_EQ(gate.arrived(), baked + 2) << "those between were never made";
  EXPECT_TRUE(harness.messages(GST_MESSAGE_QOS).empty());
}

// A look that is no longer wanted is not shown, not even for a frame.
TEST(PromptWait, WhatWasOvertakenIsNeverShown) {
  const Bytes bright = look_of("much brighter");
  const Bytes dark = look_of("much darker");
  const Bytes red = look_of("much redder");
  Prompting harness("much brighter");
  ASSERT_EQ(harness.send(), bright);
  gate.close();
  const int baked = gate.arrived();
  harness.set("prompt", "much darker");
  while (gate.arrived() == baked) {
    harness.send();
    g_usleep(1000);
  }
  harness.set("prompt", "much redder");
  harness.send();  // asks for it
  gate.open();
  Bytes last = bright;
  for (int i = 0; i < 5000 && last != red; ++i) {
    last = harness.send();
    ASSERT_TRUE(last != dark);
    g_usleep(1000);
  }
  EXPECT_TRUE(last == red);
}

}  // namespace
}  // namespace nonlocal::test
