// Buffers, events, time: what a stream sees of the element besides the pixels.
#include <gst/app/gstappsink.h>
#include <gst/app/gstappsrc.h>
#include <gst/controller/gstdirectcontrolbinding.h>
#include <gst/controller/gstinterpolationcontrolsource.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "nonlocal/video_denoiser.h"
#include "support.h"

namespace nonlocal::test {
namespace {

const GstVideoInfo kInfo = video_info(GST_VIDEO_FORMAT_I420, 48, 32);

// ------------------------------------------------------------------------------------------- passthrough

TEST(Passthrough, NeutralSettingsGiveTheSameBuffer) {
  for (const std::vector<std::string>& neutral :
       {std::vector<std::string>{"sigma", "0"}, {"strength", "0", "chroma-strength", "0"}}) {
    Harness harness(kInfo);
    for (std::size_t i = 0; i < neutral.size(); i += 2) {
      harness.set(neutral[i].c_str(), neutral[i + 1]);
    }
    Buffer in = noisy_frame(kInfo);
    const Bytes before = bytes_of(in.get());
    const GstBuffer* address = in.get();
    const Buffer shared(gst_buffer_ref(in.get()));  // a buffer that may not be written, too
    const Buffer out = harness.filter(std::move(in));
    EXPECT_EQ(out.get(), address);
    EXPECT_EQ(bytes_of(out.get()), before);
  }
}

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

TEST(Passthrough, CanBeTurnedOnAndOffBetweenFrames) {
  Harness harness(kInfo);
  for (int i = 0; i < 6; ++i) {
    const bool neutral = i % 2 == 1;
    harness.set("sigma", neutral ? "0" : "20");
    Buffer in = noisy_frame(kInfo, i);
    const Bytes before = bytes_of(in.get());
    const Buffer out = harness.filter(std::move(in));
    ASSERT_TRUE(out);
    EXPECT_EQ(bytes_of(out.get()) == before, neutral) << "frame " << i;
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

// ------------------------------------------------------------------------------------------------ buffers

TEST(Buffers, AWritableOneIsFilteredInPlace) {
  Harness harness(kInfo);
  harness.set("sigma", "20");
  Buffer in = noisy_frame(kInfo);
  const GstBuffer* address = in.get();
  const GstMemory* memory = gst_buffer_peek_memory(in.get(), 0);
  const Buffer out = harness.filter(std::move(in));
  EXPECT_EQ(out.get(), address);
  EXPECT_EQ(gst_buffer_peek_memory(out.get(), 0), memory);
}

TEST(Buffers, ASharedOneIsNotWritten) {
  Harness harness(kInfo);
  harness.set("sigma", "20");
  Buffer in = noisy_frame(kInfo);
  const Bytes before = bytes_of(in.get());
  const Buffer shared(gst_buffer_ref(in.get()));
  const Buffer out = harness.filter(std::move(in));
  ASSERT_TRUE(out);
  EXPECT_NE(out.get(), shared.get());
  EXPECT_EQ(bytes_of(shared.get()), before);
  EXPECT_NE(bytes_of(out.get()), before);
}

// A buffer of one's own over memory that another buffer holds, too.
TEST(Buffers, SharedMemoryIsNotWritten) {
  Harness harness(kInfo);
  harness.set("sigma", "20");
  const Buffer original = noisy_frame(kInfo);
  const Bytes before = bytes_of(original.get());
  const Buffer out = harness.filter(Buffer(gst_buffer_copy(original.get())));
  ASSERT_TRUE(out);
  EXPECT_EQ(bytes_of(original.get()), before);
  EXPECT_NE(bytes_of(out.get()), before);
}

TEST(Buffers, TheOtherBranchOfATeeIsUntouched) {
  constexpr int kFrames = 5;
  const Element pipeline = parse(
      "appsrc name=in format=time ! tee name=t "
      "t. ! queue ! appsink name=plain sync=false "
      "t. ! queue ! nonlocaldenoise sigma=20 ! appsink name=filtered sync=false");
  const auto in = [&](const char* name) {
    return Element(gst_bin_get_by_name(GST_BIN(pipeline.get()), name));
  };
  const Element source = in("in");
  const Element plain = in("plain");
  const Element filtered = in("filtered");
  gst_app_src_set_caps(GST_APP_SRC(source.get()), caps_of(kInfo).get());
  gst_element_set_state(pipeline.get(), GST_STATE_PLAYING);
  for (int i = 0; i < kFrames; ++i) {
    ASSERT_EQ(gst_app_src_push_buffer(GST_APP_SRC(source.get()), noisy_frame(kInfo, i).release()),
              GST_FLOW_OK);
  }
  gst_app_src_end_of_stream(GST_APP_SRC(source.get()));
  const auto pull = [](const Element& sink) {
    GstSample* sample = gst_app_sink_pull_sample(GST_APP_SINK(sink.get()));
    const Bytes bytes = sample != nullptr ? bytes_of(gst_sample_get_buffer(sample)) : Bytes();
    if (sample != nullptr) {
      gst_sample_unref(sample);
    }
    return bytes;
  };
  const std::vector<Bytes> wanted = filter_all(kInfo, {"sigma=20"}, kFrames);
  for (int i = 0; i < kFrames; ++i) {
    EXPECT_EQ(pull(plain), bytes_of(noisy_frame(kInfo, i).get()));
    EXPECT_EQ(pull(filtered), wanted[i]);
  }
  gst_element_set_state(pipeline.get(), GST_STATE_NULL);
}

TEST(Buffers, TimesFlagsAndMetasSurvive) {
  static const char* kNoTags[] = {nullptr};
  if (gst_meta_get_info("NonlocalTestMeta") == nullptr) {
    gst_meta_register_custom("NonlocalTestMeta", kNoTags, nullptr, nullptr, nullptr);
  }
  for (const bool shared : {false, true}) {
    for (const char* sigma : {"20", "0"}) {
      SCOPED_TRACE(std::string(shared ? "shared" : "writable") + ", sigma " + sigma);
      Harness harness(kInfo);
      harness.set("sigma", sigma);
      EXPECT_TRUE(harness.filter(noisy_frame(kInfo, 0)));
      Buffer in = noisy_frame(kInfo, 1);
      GST_BUFFER_DTS(in.get()) = 7 * GST_MSECOND;
      GST_BUFFER_OFFSET(in.get()) = 11;
      GST_BUFFER_OFFSET_END(in.get()) = 12;
      GST_BUFFER_FLAG_SET(in.get(),
                          GST_BUFFER_FLAG_MARKER | GST_BUFFER_FLAG_DISCONT | GST_VIDEO_BUFFER_FLAG_TFF);
      gst_buffer_add_video_region_of_interest_meta(in.get(), "face", 1, 2, 3, 4);
      GstCustomMeta* custom = gst_buffer_add_custom_meta(in.get(), "NonlocalTestMeta");
      gst_structure_set(gst_custom_meta_get_structure(custom), "answer", G_TYPE_INT, 42, nullptr);
      const Caps reference(gst_caps_new_empty_simple("timestamp/x-test"));
      gst_buffer_add_reference_timestamp_meta(in.get(), reference.get(), 99, GST_CLOCK_TIME_NONE);
      const Buffer other(shared ? gst_buffer_ref(in.get()) : nullptr);

      const Buffer out = harness.filter(std::move(in));
      ASSERT_TRUE(out);
      EXPECT_EQ(GST_BUFFER_PTS(out.get()), kFrameDuration);
      EXPECT_EQ(GST_BUFFER_DTS(out.get()), 7 * GST_MSECOND);
      EXPECT_EQ(GST_BUFFER_DURATION(out.get()), kFrameDuration);
      EXPECT_EQ(GST_BUFFER_OFFSET(out.get()), 11u);
      EXPECT_EQ(GST_BUFFER_OFFSET_END(out.get()), 12u);
      EXPECT_TRUE(GST_BUFFER_FLAG_IS_SET(out.get(), GST_BUFFER_FLAG_MARKER));
      EXPECT_TRUE(GST_BUFFER_FLAG_IS_SET(out.get(), GST_BUFFER_FLAG_DISCONT));
      EXPECT_TRUE(GST_BUFFER_FLAG_IS_SET(out.get(), GST_VIDEO_BUFFER_FLAG_TFF));
      const auto* region = gst_buffer_get_video_region_of_interest_meta(out.get());
      ASSERT_NE(region, nullptr);
      EXPECT_EQ(g_quark_from_string("face"), region->roi_type);
      EXPECT_EQ(region->w, 3u);
      GstCustomMeta* kept = gst_buffer_get_custom_meta(out.get(), "NonlocalTestMeta");
      ASSERT_NE(kept, nullptr);
      int answer = 0;
      EXPECT_TRUE(gst_structure_get_int(gst_custom_meta_get_structure(kept), "answer", &answer));
      EXPECT_EQ(answer, 42);
      EXPECT_NE(gst_buffer_get_reference_timestamp_meta(out.get(), reference.get()), nullptr);
    }
  }
}

// A buffer that stands for nothing has no pixels to filter and stays marked.
TEST(Buffers, GapsGoThroughAsTheyAre) {
  Harness harness(kInfo);
  Buffer in = noisy_frame(kInfo);
  const Bytes before = bytes_of(in.get());
  GST_BUFFER_FLAG_SET(in.get(), GST_BUFFER_FLAG_GAP);
  const Buffer out = harness.filter(std::move(in));
  ASSERT_TRUE(out);
  EXPECT_TRUE(GST_BUFFER_FLAG_IS_SET(out.get(), GST_BUFFER_FLAG_GAP));
  EXPECT_EQ(bytes_of(out.get()), before);
}

// Upstream may use the layouts that downstream understands, and no others: its buffers end there.
TEST(Buffers, UpstreamIsOfferedWhatDownstreamTakes) {
  for (const bool takes_video_meta : {false, true}) {
    Harness harness(kInfo);
    if (takes_video_meta) {
      gst_harness_add_propose_allocation_meta(harness.get(), GST_VIDEO_META_API_TYPE, nullptr);
    }
    EXPECT_TRUE(harness.filter(noisy_frame(kInfo)));
    GstQuery* query = gst_query_new_allocation(caps_of(kInfo).get(), FALSE);
    gst_pad_peer_query(harness->srcpad, query);
    EXPECT_EQ(gst_query_find_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr), takes_video_meta);
    gst_query_unref(query);
  }
}

TEST(Buffers, OneOfTheWrongSizeIsReportedAndDoesNoHarm) {
  Harness harness(kInfo);
  Buffer small(gst_buffer_new_allocate(nullptr, 10, nullptr));
  harness.push(std::move(small));
  EXPECT_FALSE(harness.messages(GstMessageType(GST_MESSAGE_WARNING | GST_MESSAGE_ERROR)).empty());
}

// ---------------------------------------------------------------------------------------- counts and time

TEST(Stream, AsManyFramesOutAsIn) {
  for (int frames = 1; frames <= 6; ++frames) {
    Harness harness(kInfo);
    for (int i = 0; i < frames; ++i) {
      EXPECT_EQ(harness.push(noisy_frame(kInfo, i)), GST_FLOW_OK);
    }
    EXPECT_TRUE(gst_harness_push_event(harness.get(), gst_event_new_eos()));
    EXPECT_EQ(harness.count_ready(), frames);
    for (int i = 0; i < frames; ++i) {
      EXPECT_EQ(GST_BUFFER_PTS(harness.pull().get()), i * kFrameDuration);
    }
  }
}

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

// What the library gives with the frames that there are ahead; formats and fields included.
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

// Frames 5 to 8 after frames 0 to 4 of something else, with `between` called in between.
template <typename Between>
std::vector<Bytes> later_frames(const GstVideoInfo& first, const Between& between) {
  Harness harness(first);
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(harness.filter(noisy_frame(first, i, 7, 40)));
  }
  between(harness);
  std::vector<Bytes> out;
  for (int i = 5; i < 9; ++i) {
    const Buffer frame = harness.filter(noisy_frame(kInfo, i));
    out.push_back(frame ? bytes_of(frame.get()) : Bytes());
  }
  return out;
}

TEST(Stream, NothingRemainsOfEarlierFramesAfterAFlushASeekOrNewCaps) {
  const std::vector<Bytes> fresh = filter_all(kInfo, {}, 4, 5);
  EXPECT_EQ(later_frames(kInfo, [](Harness& harness) { harness.flush(); }), fresh);
  EXPECT_EQ(later_frames(kInfo,
                         [](Harness& harness) {
                           GstSegment segment;
                           gst_segment_init(&segment, GST_FORMAT_TIME);
                           gst_harness_push_event(harness.get(), gst_event_new_segment(&segment));
                         }),
            fresh);
  const GstVideoInfo other = video_info(GST_VIDEO_FORMAT_NV12, 31, 17);
  EXPECT_EQ(later_frames(other, [](Harness& harness) { harness.set_format(kInfo); }), fresh);
  EXPECT_EQ(later_frames(kInfo,
                         [](Harness& harness) {
                           gst_element_set_state(harness.element(), GST_STATE_READY);
                           EXPECT_EQ(harness.number("noise-level"), 0);
                           gst_element_set_state(harness.element(), GST_STATE_PLAYING);
                           gst_harness_push_event(harness.get(), gst_event_new_stream_start("again"));
                           harness.set_format(kInfo);
                           GstSegment segment;
                           gst_segment_init(&segment, GST_FORMAT_TIME);
                           gst_harness_push_event(harness.get(), gst_event_new_segment(&segment));
                         }),
            fresh);
}

TEST(Stream, FormatsMayChangeFrameByFrame) {
  Harness harness(kInfo);
  harness.set("sigma", "20").set("search-size", "5");
  for (const GstVideoFormat format : formats()) {
    const GstVideoInfo info = video_info(format, 19, 9);
    harness.set_format(info);
    const Buffer out = harness.filter(noisy_frame(info));
    ASSERT_TRUE(out);
    EXPECT_EQ(bytes_of(out.get()), filter_all(info, {"sigma=20", "search-size=5"}, 1)[0]);
  }
}

// ---------------------------------------------------------------------------------------------- settings

TEST(Settings, AControlSourceChangesTheOutputAtItsFrame) {
  constexpr int kFrames = 8;
  constexpr int kChange = 5;
  Harness harness(kInfo);
  GstControlSource* source = gst_interpolation_control_source_new();
  g_object_set(source, "mode", GST_INTERPOLATION_MODE_NONE, nullptr);
  auto* values = GST_TIMED_VALUE_CONTROL_SOURCE(source);
  gst_timed_value_control_source_set(values, 0, 0);
  gst_timed_value_control_source_set(values, kChange * kFrameDuration, 20);
  gst_object_add_control_binding(
      GST_OBJECT(harness.element()),
      gst_direct_control_binding_new_absolute(GST_OBJECT(harness.element()), "sigma", source));
  gst_object_unref(source);
  // Stream time is what counts: this segment shows time 0 at a running time of its own.
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  segment.start = 10 * GST_SECOND;
  segment.time = 0;
  gst_harness_push_event(harness.get(), gst_event_new_segment(&segment));
  for (int i = 0; i < kFrames; ++i) {
    Buffer in = noisy_frame(kInfo, i);
    GST_BUFFER_PTS(in.get()) += segment.start;
    const Bytes before = bytes_of(in.get());
    const Buffer out = harness.filter(std::move(in));
    ASSERT_TRUE(out);
    EXPECT_EQ(bytes_of(out.get()) != before, i >= kChange) << "frame " << i;
  }
}

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
      const std::vector<Bytes> out = filter_all(info, {setting, "patch-size=3"}, 1);
      EXPECT_EQ(out[0].size(), GST_VIDEO_INFO_SIZE(&info)) << setting;
    }
  }
}

TEST(Settings, NoiseLevelIsTheSigmaGiven) {
  Harness harness(kInfo);
  harness.set("sigma", "12.5");
  EXPECT_TRUE(harness.filter(noisy_frame(kInfo)));
  EXPECT_EQ(harness.number("noise-level"), 12.5);
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

// ------------------------------------------------------------------------------------------------- runs

TEST(Runs, FiftyCyclesAndTheLastIsLikeTheFirst) {
  const Element pipeline = parse(
      "videotestsrc num-buffers=3 pattern=zone-plate kx2=80 ky2=40 kt=2 ! "
      "video/x-raw,format=I420,width=32,height=16 ! "
      "nonlocaldenoise search-size=5 ! appsink name=sink sync=false");
  const Element sink(gst_bin_get_by_name(GST_BIN(pipeline.get()), "sink"));
  std::vector<Bytes> first;
  for (int cycle = 0; cycle < 50; ++cycle) {
    ASSERT_NE(gst_element_set_state(pipeline.get(), GST_STATE_PLAYING), GST_STATE_CHANGE_FAILURE);
    std::vector<Bytes> frames;
    while (GstSample* sample = gst_app_sink_pull_sample(GST_APP_SINK(sink.get()))) {
      frames.push_back(bytes_of(gst_sample_get_buffer(sample)));
      gst_sample_unref(sample);
    }
    ASSERT_EQ(gst_element_set_state(pipeline.get(), GST_STATE_NULL), GST_STATE_CHANGE_SUCCESS);
    ASSERT_EQ(frames.size(), 3u);
    if (cycle == 0) {
      first = frames;
    }
    ASSERT_EQ(frames, first) << "cycle " << cycle;
  }
}

}  // namespace
}  // namespace nonlocal::test
