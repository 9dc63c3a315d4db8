// Late frames of nonlocaldenoise: searched in a smaller window instead of being dropped.
#include <gtest/gtest.h>

#include "support.h"

namespace nonlocal::test {
namespace {

const GstVideoInfo kInfo = video_info(GST_VIDEO_FORMAT_GRAY8, 16, 16);

int search_size_of(const Message& report) {
  int size = 0;
  gst_structure_get_int(gst_message_get_structure(report.get()), "search-size", &size);
  return size;
}

TEST(Adaptive, QosEventsStillReachUpstream) {
  Harness harness(kInfo);
  harness.set("adaptive", "true");
  EXPECT_TRUE(harness.filter(noisy_frame(kInfo, 0)));
  harness.send_qos(kFrameDuration, 0);
  bool seen = false;
  while (GstEvent* event = gst_harness_try_pull_upstream_event(harness.get())) {
    seen = seen || GST_EVENT_TYPE(event) == GST_EVENT_QOS;
    gst_event_unref(event);
  }
  EXPECT_TRUE(seen);
}

// As many frames out as in, a smaller window, and a message at each step.
TEST(Adaptive, LateEventsMakeTheWindowSmallerInsteadOfDroppingFrames) {
  Harness harness(kInfo);
  harness.set("adaptive", "true")
      .set("search-size", "21")
      .set("sigma", "20")
      .set("preset", "fast")
      .set("patch-size", "5");
  std::vector<int> sizes;
  Bytes last;
  int index = 0;
  const auto late_frame = [&] {
    if (index > 0) {
      harness.send_qos(10 * kFrameDuration, (index - 1) * kFrameDuration);
    }
    const Buffer out = harness.filter(noisy_frame(kInfo, index));
    ++index;
    for (const Message& report : harness.reports()) {
      if (sizes.empty() || sizes.back() != search_size_of(report)) {
        sizes.push_back(search_size_of(report));
      }
    }
    last = out ? bytes_of(out.get()) : Bytes();
    return out != nullptr;
  };
  while (index < 200 && (sizes.empty() || sizes.back() > 5)) {
    ASSERT_TRUE(late_frame()) << "frame " << index;
  }
  EXPECT_TRUE(harness.messages(GST_MESSAGE_QOS).empty());
  EXPECT_EQ(sizes.front(), 21);
  EXPECT_EQ(sizes.back(), 5);
  EXPECT_GT(sizes.size(), 3u);
  EXPECT_EQ(last,
            filter_all(kInfo, {"sigma=20", "search-size=5", "preset=fast", "patch-size=5"}, 1, index - 1)[0]);

  // With nothing left to give, falling behind for good would be worse than a gap.
  bool dropped = false;
  for (int i = 0; i < 40 && !dropped; ++i) {
    dropped = !late_frame();
  }
  EXPECT_TRUE(dropped);
  EXPECT_EQ(sizes.back(), 3);
  EXPECT_FALSE(harness.messages(GST_MESSAGE_QOS).empty());

  // In time again, it grows back.
  harness.send_qos(-kFrameDuration, index * kFrameDuration, 0.5);
  for (int i = 0; i < 1000 && sizes.back() != 21; ++i, ++index) {
    EXPECT_TRUE(harness.filter(noisy_frame(kInfo, index)));
    for (const Message& report : harness.reports()) {
      sizes.push_back(search_size_of(report));
    }
  }
  EXPECT_EQ(sizes.back(), 21);
}

TEST(Adaptive, TurningItOffRestoresTheWindow) {
  Harness harness(kInfo);
  harness.set("adaptive", "true")
      .set("search-size", "21")
      .set("sigma", "20")
      .set("preset", "fast")
      .set("patch-size", "5");
  for (int i = 0; i < 30; ++i) {
    EXPECT_TRUE(harness.filter(noisy_frame(kInfo, i)));
    harness.send_qos(kFrameDuration / 2, i * kFrameDuration);
  }
  EXPECT_LT(search_size_of(harness.reports().back()), 21);
  harness.set("adaptive", "false");
  const Buffer out = harness.filter(noisy_frame(kInfo, 100));
  ASSERT_TRUE(out);
  EXPECT_EQ(bytes_of(out.get()),
            filter_all(kInfo, {"sigma=20", "search-size=21", "preset=fast", "patch-size=5"}, 1, 100)[0]);
}

TEST(Adaptive, AFlushRestoresTheWindow) {
  Harness harness(kInfo);
  harness.set("adaptive", "true")
      .set("search-size", "21")
      .set("sigma", "20")
      .set("preset", "fast")
      .set("patch-size", "5");
  for (int i = 0; i < 30; ++i) {
    EXPECT_TRUE(harness.filter(noisy_frame(kInfo, i)));
    harness.send_qos(kFrameDuration / 2, i * kFrameDuration);
  }
  harness.flush();
  const Buffer out = harness.filter(noisy_frame(kInfo, 0));
  ASSERT_TRUE(out);
  EXPECT_EQ(bytes_of(out.get()),
            filter_all(kInfo, {"sigma=20", "search-size=21", "preset=fast", "patch-size=5"}, 1)[0]);
}

// A live source gives a frame only its own duration; frames that claim to last a nanosecond always take too
// long.
TEST(Adaptive, ALiveFrameThatTakesLongerThanItLastsMakesTheWindowSmaller) {
  const auto last_size = [](const std::string& source) {
    const Element pipeline =
        parse(source +
              " num-buffers=12 ! video/x-raw,format=GRAY8,width=16,height=16,framerate=100/1 ! "
              "identity name=shorten ! nonlocaldenoise adaptive=true search-size=21 sigma=20 ! fakesink "
              "sync=false");
    const Element shorten(gst_bin_get_by_name(GST_BIN(pipeline.get()), "shorten"));
    const Pad pad(gst_element_get_static_pad(shorten.get(), "src"));
    gst_pad_add_probe(
        pad.get(), GST_PAD_PROBE_TYPE_BUFFER,
        [](GstPad*, GstPadProbeInfo* info, gpointer) {
          GST_BUFFER_DURATION(GST_PAD_PROBE_INFO_BUFFER(info)) = 1;
          return GST_PAD_PROBE_OK;
        },
        nullptr, nullptr);
    int size = 0;
    const Bus bus(gst_element_get_bus(pipeline.get()));
    gst_element_set_state(pipeline.get(), GST_STATE_PLAYING);
    while (true) {
      const Message message(gst_bus_timed_pop_filtered(
          bus.get(), GST_CLOCK_TIME_NONE,
          static_cast<GstMessageType>(GST_MESSAGE_EOS | GST_MESSAGE_ERROR | GST_MESSAGE_ELEMENT)));
      if (GST_MESSAGE_TYPE(message.get()) != GST_MESSAGE_ELEMENT) {
        EXPECT_EQ(GST_MESSAGE_TYPE(message.get()), GST_MESSAGE_EOS);
        break;
      }
      if (gst_message_has_name(message.get(), "nonlocaldenoise")) {
        size = search_size_of(message);
      }
    }
    gst_element_set_state(pipeline.get(), GST_STATE_NULL);
    return size;
  };
  EXPECT_LT(last_size("videotestsrc is-live=true"), 21);
  EXPECT_EQ(last_size("videotestsrc"), 21) << "a recording has all the time";
}

}  // namespace
}  // namespace nonlocal::test
