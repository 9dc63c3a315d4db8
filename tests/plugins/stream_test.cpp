// What a stream sees of nonlocaldenoise in particular: time, settings, messages. What all elements have in
// common: elements_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "lib/allocations.h"
#include "nonlocal/video_denoiser.h"
#include "support.h"

namespace nonlocal::test {
namespace {

const GstVideoInfo kInfo = video_info(GST_VIDEO_FORMAT_I420, 48, 32);

// ------------------------------------------------------------------------------------------- passthrough

TEST(Passthrough, WithoutChromaItsStrengthDoesNotMatter) {
  for (const GstVideoFormat format : {GST_VIDEO_FORMAT_GRAY8, GST_VIDEO_FORMAT_RGB}) {
    const GstVideoInfo info = video_info(format, 16, 16);
    Harness harness(info);
    harness.set("strength", "0");
    Buffer in = noisy_frame(info);
    const GstBuffer* address = in.get();
    EXPECT_EQ(harness.filter(std::move(in)).get(), address);
  }
}

// The noise is measured even where nothing is filtered.
TEST(Passthrough, NoiseLevelIsStillEstimated) {
  Harness harness(kInfo);
  harness.set("strength", "0").set("chroma-strength", "0");
  EXPECT_EQ(harness.number("noise-level"), 0);
  EXPECT_TRUE(harness.filter(noisy_frame(kInfo)));
  EXPECT_GT(harness.number("noise-level"), 0);
  EXPECT_FALSE(harness.reports().empty());
}

// What comes behind is not averaged with what was before.
TEST(Passthrough, WhatWasBeforeItIsForgotten) {
  const auto last_of = [](bool has_past) {
    Harness harness(kInfo);
    harness.set("preset", "balanced").set("sigma", "20");
    for (int i = 0; i < (has_past ? 4 : 0); ++i) {
      EXPECT_TRUE(harness.filter(noisy_frame(kInfo, i)));
    }
    harness.set("strength", "0").set("chroma-strength", "0");
    EXPECT_TRUE(harness.filter(noisy_frame(kInfo, 4)));
    harness.set("strength", "1").set("chroma-strength", "1");
    return bytes_of(harness.filter(noisy_frame(kInfo, 5)).get());
  };
  EXPECT_EQ(last_of(true), last_of(false));
}

// ---------------------------------------------------------------------------------------- counts and time

TEST(Stream, AddsNoLatency) {
  for (const char* preset : {"fast", "balanced"}) {
    Harness harness(kInfo);
    harness.set("preset", preset);
    gst_harness_set_upstream_latency(harness.get(), 123 * GST_MSECOND);
    EXPECT_TRUE(harness.filter(noisy_frame(kInfo)));
    EXPECT_EQ(gst_harness_query_latency(harness.get()), 123 * GST_MSECOND) << preset;
  }
}

// --------------------------------------------------------------------------------------------- look-ahead

constexpr GstClockTime kUpstream = 123 * GST_MSECOND;

TEST(LookAhead, EachFrameAheadIsAFrameOfLatency) {
  Harness harness(kInfo);
  gst_harness_set_upstream_latency(harness.get(), kUpstream);
  for (const int ahead : {3, 1, 0}) {
    harness.messages(GST_MESSAGE_LATENCY);
    harness.set("look-ahead", std::to_string(ahead));
    EXPECT_EQ(harness.push(noisy_frame(kInfo)), GST_FLOW_OK);
    EXPECT_EQ(gst_harness_query_latency(harness.get()), kUpstream + ahead * kFrameDuration);
    EXPECT_EQ(harness.messages(GST_MESSAGE_LATENCY).size(), 1u) << ahead;
  }
  harness.set("preset", "quality").set("look-ahead", "-1");
  harness.push(noisy_frame(kInfo));
  EXPECT_EQ(gst_harness_query_latency(harness.get()), kUpstream + 2 * kFrameDuration);
  harness.set("temporal", "off");
  harness.push(noisy_frame(kInfo));
  EXPECT_EQ(gst_harness_query_latency(harness.get()), kUpstream);
}

TEST(LookAhead, AsManyFramesOutAsInInTheirOrder) {
  for (const int ahead : {1, 3, 8}) {
    for (int frames = 1; frames <= 2 * ahead + 1; ++frames) {
      Harness harness(kInfo);
      harness.set("look-ahead", std::to_string(ahead)).set("sigma", "20").set("refinement", "off");
      for (int i = 0; i < frames; ++i) {
        EXPECT_EQ(harness.push(noisy_frame(kInfo, i)), GST_FLOW_OK);
        EXPECT_EQ(harness.count_ready(), std::max(0, i + 1 - ahead));
      }
      EXPECT_TRUE(gst_harness_push_event(harness.get(), gst_event_new_eos()));
      ASSERT_EQ(harness.count_ready(), frames);
      for (int i = 0; i < frames; ++i) {
        EXPECT_EQ(GST_BUFFER_PTS(harness.pull().get()), i * kFrameDuration);
      }
    }
  }
}

// What the library gives with the frames that there are ahead.
TEST(LookAhead, FramesAreWhatTheLibraryGives) {
  constexpr int kFrames = 5;
  constexpr int kAhead = 2;
  const GstVideoInfo info = video_info(GST_VIDEO_FORMAT_GRAY8, 48, 32);
  Harness harness(info);
  harness.set("look-ahead", std::to_string(kAhead)).set("sigma", "20").set("refinement", "off");
  std::vector<Bytes> in;
  for (int i = 0; i < kFrames; ++i) {
    in.push_back(bytes_of(noisy_frame(info, i).get()));
    EXPECT_EQ(harness.push(noisy_frame(info, i)), GST_FLOW_OK);
  }
  EXPECT_TRUE(gst_harness_push_event(harness.get(), gst_event_new_eos()));
  VideoDenoiserParameters parameters;
  parameters.sigma = 20;
  VideoDenoiser denoiser;
  for (int i = 0; i < kFrames; ++i) {
    const auto view = [&](const Bytes& bytes) {
      return ConstPlane{reinterpret_cast<const std::byte*>(bytes.data()), 48, 32, 48};
    };
    std::vector<ConstPlane> planes;
    for (int k = i + 1; k <= std::min(i + kAhead, kFrames - 1); ++k) {
      planes.push_back(view(in[k]));
    }
    std::vector<VideoFrame> ahead;
    for (const ConstPlane& plane : planes) {
      ahead.push_back({{&plane, 1}, {}});
    }
    Bytes wanted = in[i];
    const Plane out{reinterpret_cast<std::byte*>(wanted.data()), 48, 32, 48};
    denoiser.filter({&out, 1}, {}, parameters, ahead);
    EXPECT_EQ(bytes_of(harness.pull().get()), wanted) << "frame " << i;
  }
}

// Every second row of each plane, as a frame of its own.
Buffer field_of(GstBuffer* frame, const GstVideoInfo& info, const GstVideoInfo& half, int field) {
  const Bytes from = bytes_of(frame);
  Bytes to(GST_VIDEO_INFO_SIZE(&half));
  for (unsigned plane = 0; plane < GST_VIDEO_INFO_N_PLANES(&info); ++plane) {
    const int stride = GST_VIDEO_INFO_PLANE_STRIDE(&half, plane);
    for (int y = 0; y < GST_VIDEO_INFO_COMP_HEIGHT(&half, plane); ++y) {
      const auto row = from.begin() + static_cast<std::ptrdiff_t>(GST_VIDEO_INFO_PLANE_OFFSET(&info, plane)) +
                       (2 * y + field) * GST_VIDEO_INFO_PLANE_STRIDE(&info, plane);
      std::copy_n(
          row, stride,
          to.begin() + static_cast<std::ptrdiff_t>(GST_VIDEO_INFO_PLANE_OFFSET(&half, plane)) + y * stride);
    }
  }
  Buffer buffer(gst_buffer_new_memdup(to.data(), to.size()));
  gst_buffer_copy_into(buffer.get(), frame, GST_BUFFER_COPY_TIMESTAMPS, 0, -1);
  return buffer;
}

// Each is a stream of its own: before, and ahead.
TEST(LookAhead, FieldsAreWhatTheyAreByThemselves) {
  for (const GstVideoFormat format : {GST_VIDEO_FORMAT_GRAY8, GST_VIDEO_FORMAT_I420}) {
    const GstVideoInfo info = video_info(format, 48, 32, GST_VIDEO_INTERLACE_MODE_INTERLEAVED);
    const GstVideoInfo half = video_info(format, 48, 16);
    for (const char* ahead : {"0", "2"}) {
      Harness both(info);
      Harness top(half);
      Harness bottom(half);
      for (Harness* harness : {&both, &top, &bottom}) {
        harness->set("look-ahead", ahead)
            .set("sigma", "20")
            .set("temporal", "recursive")
            .set("refinement", "off");
      }
      for (int i = 0; i < 5; ++i) {
        const Buffer frame = noisy_frame(info, i);
        EXPECT_EQ(top.push(field_of(frame.get(), info, half, 0)), GST_FLOW_OK);
        EXPECT_EQ(bottom.push(field_of(frame.get(), info, half, 1)), GST_FLOW_OK);
        EXPECT_EQ(both.push(noisy_frame(info, i)), GST_FLOW_OK);
      }
      for (Harness* harness : {&both, &top, &bottom}) {
        EXPECT_TRUE(gst_harness_push_event(harness->get(), gst_event_new_eos()));
      }
      for (int i = 0; i < 5; ++i) {
        const Buffer frame = both.pull();
        EXPECT_EQ(bytes_of(field_of(frame.get(), info, half, 0).get()), bytes_of(top.pull().get())) << i;
        EXPECT_EQ(bytes_of(field_of(frame.get(), info, half, 1).get()), bytes_of(bottom.pull().get())) << i;
      }
    }
  }
}

// Those that wait have strides of their own.
TEST(LookAhead, BuffersMayDifferInTheirLayout) {
  for (const GstVideoFormat format : {GST_VIDEO_FORMAT_GRAY8, GST_VIDEO_FORMAT_I420, GST_VIDEO_FORMAT_NV12}) {
    const GstVideoInfo info = video_info(format, 48, 32);
    const auto filtered = [&](int padded_every) {
      Harness harness(info);
      harness.set("look-ahead", "2").set("sigma", "20").set("refinement", "off");
      for (int i = 0; i < 6; ++i) {
        Buffer packed = noisy_frame(info, i);
        const bool is_padded = padded_every > 0 && i % padded_every == 0;
        EXPECT_EQ(harness.push(is_padded ? padded_frame(packed.get(), info) : std::move(packed)),
                  GST_FLOW_OK);
      }
      EXPECT_TRUE(gst_harness_push_event(harness.get(), gst_event_new_eos()));
      std::vector<std::vector<std::vector<int>>> samples;
      while (harness.count_ready() > 0) {
        samples.push_back(all_samples_of(harness.pull().get(), info));
      }
      return samples;
    };
    const auto wanted = filtered(0);
    EXPECT_EQ(wanted.size(), 6u);
    EXPECT_EQ(filtered(2), wanted) << gst_video_format_to_string(format);
    EXPECT_EQ(filtered(3), wanted) << gst_video_format_to_string(format);
  }
}

// Caps need not tell a rate: frames do.
TEST(LookAhead, LatencyWithoutARateIsWhatFramesTake) {
  GstVideoInfo info = kInfo;
  info.fps_n = 0;
  info.fps_d = 1;
  Harness harness(info);
  gst_harness_set_upstream_latency(harness.get(), kUpstream);
  harness.set("look-ahead", "2");
  EXPECT_EQ(harness.push(noisy_frame(info, 0)), GST_FLOW_OK);
  EXPECT_EQ(gst_harness_query_latency(harness.get()), kUpstream + 2 * kFrameDuration);
  for (const int i : {1, 2, 6, 7, 8}) {  // four frames late once
    EXPECT_EQ(harness.push(noisy_frame(info, i)), GST_FLOW_OK);
  }
  EXPECT_EQ(gst_harness_query_latency(harness.get()), kUpstream + 2 * 4 * kFrameDuration);
}

// What was before a gap comes out before what is behind it, and knows nothing of it.
TEST(LookAhead, AGapLetsWaitingFramesOut) {
  Harness harness(kInfo);
  harness.set("look-ahead", "2").set("sigma", "20").set("refinement", "off");
  for (int i = 0; i < 7; ++i) {
    Buffer frame = noisy_frame(kInfo, i);
    if (i == 5) {
      GST_BUFFER_FLAG_SET(frame.get(), GST_BUFFER_FLAG_DISCONT);
    }
    EXPECT_EQ(harness.push(std::move(frame)), GST_FLOW_OK);
    EXPECT_EQ(harness.count_ready(), i < 5 ? std::max(0, i - 1) : 5) << i;
  }
  EXPECT_TRUE(gst_harness_push_event(harness.get(), gst_event_new_eos()));
  ASSERT_EQ(harness.count_ready(), 7);
  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ(GST_BUFFER_IS_DISCONT(harness.pull().get()), i == 5) << i;
  }
}

TEST(LookAhead, WhoAsksForFramesGetsThem) {
  Harness harness(kInfo);
  harness.set("look-ahead", "3").set("sigma", "20");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(harness.push(noisy_frame(kInfo, i)), GST_FLOW_OK);
  }
  const std::unique_ptr<GstQuery, decltype(&gst_query_unref)> drain(gst_query_new_drain(), gst_query_unref);
  EXPECT_TRUE(gst_pad_peer_query(harness.get()->srcpad, drain.get()));
  EXPECT_EQ(harness.count_ready(), 2);
  // And a pool is to have as many more as wait.
  const Caps caps = caps_of(kInfo);
  const std::unique_ptr<GstQuery, decltype(&gst_query_unref)> allocation(
      gst_query_new_allocation(caps.get(), TRUE), gst_query_unref);
  EXPECT_TRUE(gst_pad_peer_query(harness.get()->srcpad, allocation.get()));
  ASSERT_GT(gst_query_get_n_allocation_pools(allocation.get()), 0u);
  guint least = 0;
  gst_query_parse_nth_allocation_pool(allocation.get(), 0, nullptr, nullptr, &least, nullptr);
  EXPECT_GE(least, 4u);
}

// A pool for fewer would run out.
TEST(LookAhead, MoreOfItAsksForBuffersAnew) {
  Harness harness(kInfo);
  harness.set("look-ahead", "1").set("sigma", "20");
  const auto asked = [&harness] {
    int count = 0;
    while (GstEvent* event = gst_harness_try_pull_upstream_event(harness.get())) {
      count += GST_EVENT_TYPE(event) == GST_EVENT_RECONFIGURE;
      gst_event_unref(event);
    }
    return count;
  };
  const Caps caps = caps_of(kInfo);
  const std::unique_ptr<GstQuery, decltype(&gst_query_unref)> allocation(
      gst_query_new_allocation(caps.get(), TRUE), gst_query_unref);
  EXPECT_TRUE(gst_pad_peer_query(harness.get()->srcpad, allocation.get()));
  asked();
  const std::pair<const char*, int> steps[] = {{"1", 0}, {"0", 0}, {"4", 1}, {"4", 0}, {"2", 0}, {"5", 1}};
  int frame = 0;
  for (const auto& [ahead, times] : steps) {
    harness.set("look-ahead", ahead);
    EXPECT_EQ(harness.push(noisy_frame(kInfo, frame++)), GST_FLOW_OK);
    EXPECT_EQ(asked(), times) << ahead;
  }
}

TEST(LookAhead, EveryFormatAndFieldsServe) {
  for (const GstVideoFormat format : formats()) {
    for (const auto mode : {GST_VIDEO_INTERLACE_MODE_PROGRESSIVE, GST_VIDEO_INTERLACE_MODE_INTERLEAVED}) {
      const GstVideoInfo info = video_info(format, 17, 7, mode);
      Harness harness(info);
      harness.set("preset", "quality").set("sigma", "20");
      for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(harness.push(noisy_frame(info, i)), GST_FLOW_OK);
      }
      EXPECT_TRUE(gst_harness_push_event(harness.get(), gst_event_new_eos()));
      EXPECT_EQ(harness.count_ready(), 4) << gst_video_format_to_string(format);
    }
  }
}

// New caps: frames of the old ones come out before, though they are not all ahead that was to be.
TEST(LookAhead, NewCapsLetWaitingFramesOut) {
  Harness harness(kInfo);
  harness.set("look-ahead", "3").set("sigma", "20");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(harness.push(noisy_frame(kInfo, i)), GST_FLOW_OK);
  }
  EXPECT_EQ(harness.count_ready(), 0);
  const GstVideoInfo other = video_info(GST_VIDEO_FORMAT_GRAY8, 24, 24);
  gst_harness_set_src_caps(harness.get(), caps_of(other).release());
  EXPECT_EQ(harness.push(noisy_frame(other, 2)), GST_FLOW_OK);
  EXPECT_EQ(harness.count_ready(), 2);
  EXPECT_TRUE(gst_harness_push_event(harness.get(), gst_event_new_eos()));
  EXPECT_EQ(harness.count_ready(), 3);
}

TEST(LookAhead, AFlushForgetsWaitingFrames) {
  Harness harness(kInfo);
  harness.set("look-ahead", "3").set("sigma", "20");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(harness.push(noisy_frame(kInfo, i)), GST_FLOW_OK);
  }
  harness.flush();
  EXPECT_EQ(harness.push(noisy_frame(kInfo, 7)), GST_FLOW_OK);
  EXPECT_TRUE(gst_harness_push_event(harness.get(), gst_event_new_eos()));
  ASSERT_EQ(harness.count_ready(), 1);
  EXPECT_EQ(GST_BUFFER_PTS(harness.pull().get()), 7 * kFrameDuration);
}

TEST(LookAhead, LessOfItLetsFramesOut) {
  Harness harness(kInfo);
  harness.set("look-ahead", "4").set("sigma", "20");
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(harness.push(noisy_frame(kInfo, i)), GST_FLOW_OK);
  }
  EXPECT_EQ(harness.count_ready(), 0);
  harness.set("look-ahead", "0");
  EXPECT_EQ(harness.push(noisy_frame(kInfo, 4)), GST_FLOW_OK);
  ASSERT_EQ(harness.count_ready(), 5);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(GST_BUFFER_PTS(harness.pull().get()), i * kFrameDuration);
  }
}

// A setting that leaves frames as they are ends the waiting, too.
TEST(LookAhead, NeutralSettingsLetFramesOut) {
  Harness harness(kInfo);
  harness.set("look-ahead", "2").set("sigma", "20");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(harness.push(noisy_frame(kInfo, i)), GST_FLOW_OK);
  }
  harness.set("sigma", "0");
  EXPECT_EQ(harness.push(noisy_frame(kInfo, 2)), GST_FLOW_OK);
  EXPECT_EQ(harness.count_ready(), 3);
}

// ---------------------------------------------------------------------------------------- what it costs

#ifndef NONLOCAL_SANITIZED
// Once the first ones have come.
TEST(Runs, FramesAllocateNothing) {
  constexpr int kFirst = 5;
  constexpr int kCounted = 5;
  for (const char* settings :
       {"preset=fast", "preset=fast sigma=20 chroma=joint", "preset=fast adaptive=true", "refinement=off",
        "preset=quality refinement=off", "method=attention", "method=attention sigma=20"}) {
    Harness harness(kInfo, std::string("nonlocaldenoise n-threads=1 ") + settings, "nonlocaldenoise");
    std::vector<Buffer> frames;
    for (int i = 0; i < kFirst + kCounted; ++i) {
      frames.push_back(noisy_frame(kInfo, i));
    }
    int before = 0;
    for (int i = 0; i < kFirst + kCounted; ++i) {
      before = i == kFirst ? testing::allocations() : before;
      ASSERT_EQ(harness.push(std::move(frames[static_cast<std::size_t>(i)])), GST_FLOW_OK);
    }
    EXPECT_EQ(testing::allocations() - before, 0) << settings;
  }
}
#endif

// ---------------------------------------------------------------------------------------------- settings

TEST(Settings, PresetsStandForSizesThatTheirOwnPropertiesOverrule) {
  const auto sizes = [](std::vector<std::string> settings) {
    settings.emplace_back("sigma=20");
    settings.emplace_back("temporal=off");
    settings.emplace_back("refinement=off");
    return filter_all(kInfo, settings, 1)[0];
  };
  EXPECT_EQ(sizes({}), sizes({"preset=balanced"}));
  EXPECT_NE(sizes({"preset=fast"}), sizes({"preset=balanced"}));
  EXPECT_NE(sizes({"preset=quality"}), sizes({"preset=balanced"}));
  EXPECT_EQ(sizes({"preset=fast", "patch-size=7", "search-size=9"}),
            sizes({"patch-size=7", "search-size=9"}));
  EXPECT_NE(sizes({"patch-size=7"}), sizes({}));
}

TEST(Settings, PresetsStandForNetworksThatTheirPropertyOverrules) {
  const auto refined = [](std::vector<std::string> settings) {
    for (const char* setting : {"sigma=20", "temporal=off", "patch-size=5", "search-size=11"}) {
      settings.emplace_back(setting);
    }
    return filter_all(kInfo, settings, 1)[0];
  };
  EXPECT_EQ(refined({"preset=fast"}), refined({"refinement=off"}));
  const bool is_fast = is_supported(NetworkPrecision::kInt8);  // else balanced does without
  EXPECT_EQ(refined({}), refined({is_fast ? "refinement=refine_balanced" : "refinement=off"}));
  EXPECT_EQ(refined({"preset=quality"}), refined({"preset=quality", "refinement=refine_quality"}));
  EXPECT_NE(refined({"refinement=refine_balanced"}), refined({"refinement=off"}));
  EXPECT_NE(refined({"preset=quality"}), refined({}));
  EXPECT_NE(refined({"refinement=off"}), filter_all(kInfo, {"sigma=0"}, 1)[0]);
}

// In the midst of a stream: the next frame has them.
TEST(Settings, AnotherPresetServesFromTheNextFrameOn) {
  Harness harness(kInfo);
  harness.set("sigma", "20").set("temporal", "off").set("preset", "fast");
  EXPECT_TRUE(harness.filter(noisy_frame(kInfo, 0)));
  for (const char* preset : {"balanced", "quality", "fast"}) {
    harness.set("preset", preset);
    const Buffer out = harness.filter(noisy_frame(kInfo, 1));
    ASSERT_TRUE(out);
    EXPECT_EQ(bytes_of(out.get()),
              filter_all(kInfo, {"sigma=20", "temporal=off", "preset=" + std::string(preset)}, 1, 1)[0])
        << preset;
  }
}

TEST(Settings, EvenSizesAreRaisedByOne) {
  Harness harness(kInfo);
  harness.set("patch-size", "4").set("search-size", "10");
  EXPECT_EQ(harness.number("patch-size"), 5);
  EXPECT_EQ(harness.number("search-size"), 11);
  harness.set("search-size", "1").set("patch-size", "14");
  EXPECT_EQ(harness.number("search-size"), 3);
  EXPECT_EQ(harness.number("patch-size"), 15);
  harness.set("patch-size", "0").set("search-size", "0");
  EXPECT_EQ(harness.number("patch-size"), 0);
  EXPECT_EQ(harness.number("search-size"), 0);
}

TEST(Settings, WhatIsOutOfRangeOrNoNumberIsRefusedInWords) {
  Harness harness(kInfo);
  for (const char* property : {"sigma", "strength", "chroma-strength"}) {
    harness.set(property, "3");
    for (const double absurd : {static_cast<double>(NAN), 1e300, -1e300, static_cast<double>(INFINITY)}) {
      const std::string complaint = std::string("*out of range*") + property + "*";
      g_test_expect_message("GLib-GObject", G_LOG_LEVEL_WARNING, complaint.c_str());
      g_object_set(harness.element(), property, absurd, nullptr);
      g_test_assert_expected_messages();
      EXPECT_EQ(harness.number(property), 3);
    }
  }
  EXPECT_TRUE(harness.filter(noisy_frame(kInfo)));
}

TEST(Settings, TheirExtremesWork) {
  for (const char* setting : {"sigma=100", "sigma=-1", "sigma=-0.5", "sigma=0.001", "strength=10",
                              "strength=0.001", "chroma-strength=10", "patch-size=15", "patch-size=1",
                              "search-size=63", "search-size=3", "n-threads=256"}) {
    for (const GstVideoInfo& info :
         {video_info(GST_VIDEO_FORMAT_I420, 5, 3), video_info(GST_VIDEO_FORMAT_RGB, 1, 1)}) {
      const std::vector<Bytes> out = filter_all(info, {"patch-size=3", setting}, 1);
      EXPECT_EQ(out[0].size(), GST_VIDEO_INFO_SIZE(&info)) << setting;
    }
  }
}

TEST(Settings, NoiseLevelIsTheSigmaGiven) {
  Harness harness(kInfo);
  harness.set("sigma", "12.5");
  EXPECT_TRUE(harness.filter(noisy_frame(kInfo)));
  EXPECT_EQ(harness.number("noise-level"), 12.5);
  gst_element_set_state(harness.element(), GST_STATE_READY);
  EXPECT_EQ(harness.number("noise-level"), 0);
}

// ---------------------------------------------------------------------------------------------- messages

TEST(Messages, ComeOnceASecondAndWhenTheLevelChanges) {
  Harness harness(kInfo);
  harness.set("sigma", "10").set("search-size", "3");
  std::vector<int> posted_at;
  for (int i = 0; i < 3 * kFrameRate; ++i) {
    if (i == 35) {
      harness.set("sigma", "20");
    }
    EXPECT_TRUE(harness.filter(noisy_frame(kInfo, i)));
    for (std::size_t count = harness.reports().size(); count > 0; --count) {
      posted_at.push_back(i);
    }
  }
  EXPECT_EQ(posted_at, (std::vector<int>{0, 25, 35, 60}));
}

TEST(Messages, SayWhenAndWhat) {
  Harness harness(kInfo);
  harness.set("sigma", "10").set("search-size", "7");
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  segment.start = 10 * GST_SECOND;
  segment.time = 3 * GST_SECOND;
  segment.base = 1 * GST_SECOND;
  gst_harness_push_event(harness.get(), gst_event_new_segment(&segment));
  Buffer in = noisy_frame(kInfo);
  GST_BUFFER_PTS(in.get()) = 12 * GST_SECOND;
  EXPECT_TRUE(harness.filter(std::move(in)));
  const std::vector<Message> reports = harness.reports();
  ASSERT_EQ(reports.size(), 1u);
  const GstStructure* report = gst_message_get_structure(reports[0].get());
  guint64 timestamp = 0;
  guint64 stream_time = 0;
  guint64 running_time = 0;
  guint64 duration = 0;
  double noise_level = 0;
  int search_size = 0;
  EXPECT_TRUE(gst_structure_get(report, "timestamp", G_TYPE_UINT64, &timestamp, "stream-time", G_TYPE_UINT64,
                                &stream_time, "running-time", G_TYPE_UINT64, &running_time, "duration",
                                G_TYPE_UINT64, &duration, "noise-level", G_TYPE_DOUBLE, &noise_level,
                                "search-size", G_TYPE_INT, &search_size, nullptr));
  EXPECT_EQ(timestamp, 12 * GST_SECOND);
  EXPECT_EQ(stream_time, 5 * GST_SECOND);
  EXPECT_EQ(running_time, 3 * GST_SECOND);
  EXPECT_EQ(duration, kFrameDuration);
  EXPECT_EQ(noise_level, 10);
  EXPECT_EQ(search_size, 7);
}

TEST(Messages, CanBeTurnedOff) {
  Harness harness(kInfo);
  harness.set("message", "false");
  for (int i = 0; i < 2 * kFrameRate; ++i) {
    EXPECT_TRUE(harness.filter(noisy_frame(kInfo, i)));
  }
  EXPECT_TRUE(harness.reports().empty());
}

}  // namespace
}  // namespace nonlocal::test
