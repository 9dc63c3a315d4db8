// What a stream sees of an element besides the pixels, the same for each of ours: buffers, events, time,
// settings, threads, memory.
#include <gst/app/gstappsink.h>
#include <gst/app/gstappsrc.h>
#include <gst/controller/gstdirectcontrolbinding.h>
#include <gst/controller/gstinterpolationcontrolsource.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "support.h"

namespace nonlocal::test {
namespace {

const GstVideoInfo kInfo = video_info(GST_VIDEO_FORMAT_I420, 48, 32);

struct Knob {
  const char* property;
  std::vector<const char*> values;
};

// An element, set so that it changes every frame of noise.
struct Filter {
  const char* name;
  const char* settings;
  std::vector<const char*> neutral;  // properties that are to be 0 for frames to stay as they are
  const char* controlled;            // one that control sources may drive, from 0 (neutral by itself) to
  double value;
  const char* quick;  // settings for many runs
  std::vector<Knob> knobs;

  [[nodiscard]] std::string line(const std::string& more = "") const {
    return std::string(name) + " " + settings + " " + more + " ";
  }
};

const Filter kFilters[] = {
    {"nonlocaldenoise",
     "",
     {"strength", "chroma-strength"},
     "sigma",
     20,
     "search-size=5",
     {{"sigma", {"-1", "0", "7.5", "30"}},
      {"strength", {"0", "0.5", "1", "3"}},
      {"chroma-strength", {"0", "1", "2"}},
      {"chroma", {"separate", "joint"}},
      {"patch-size", {"0", "1", "3", "4", "5"}},
      {"search-size", {"0", "3", "5", "6", "9"}},
      {"preset", {"fast", "balanced", "quality"}},
      {"n-threads", {"0", "1", "2", "3"}},
      {"message", {"true", "false"}},
      {"adaptive", {"true", "false"}},
      {"method", {"direct", "attention"}}}},
    {"selfattention",
     "model=" PARITY_FOLDER "/network_refiner.safetensors",
     {"strength"},
     "strength",
     1,
     "",
     {{"strength", {"0", "0.5", "1"}},
      {"condition", {"-1", "5", "60"}},
      {"h", {"-1", "10"}},
      {"n-threads", {"0", "1", "3"}},
      {"model", {"other"}},
      {"precision", {"f32"}}}},
    {"textcross",
     "prompt=\"much darker, redder edges\" transition=0",
     {"strength"},
     "strength",
     1,
     "",
     {{"prompt", {"", "darker", "much warmer, redder edges", "qzxv", "noir, less noise at the top"}},
      {"strength", {"0", "0.5", "1", "4"}},
      {"output", {"blend", "heatmap", "mask", "none"}},
      {"mode", {"auto", "exact", "baked"}},
      {"transition", {"0", "40", "300"}},
      {"n-threads", {"0", "1", "3"}},
      {"message", {"true", "false"}},
      {"model", {"other"}},
      {"embeddings", {"/no/such.safetensors"}}}},
};

void PrintTo(const Filter& filter, std::ostream* out) { *out << filter.name; }

class Filtering : public Harness {
 public:
  explicit Filtering(const Filter& filter, const GstVideoInfo& info = kInfo, const std::string& more = "")
      : Harness(info, filter.line(more), filter.name) {}

  Filtering& make_neutral(const Filter& filter) {
    for (const char* property : filter.neutral) {
      set(property, "0");
    }
    return *this;
  }
};

std::vector<Bytes> filtered(const Filter& filter, const GstVideoInfo& info, int count, int first = 0,
                            const std::string& more = "") {
  Filtering harness(filter, info, more);
  std::vector<Bytes> out;
  for (int i = first; i < first + count; ++i) {
    const Buffer frame = harness.filter(noisy_frame(info, i));
    out.push_back(frame ? bytes_of(frame.get()) : Bytes());
  }
  return out;
}

Element child(const Element& pipeline, const char* name) {
  return Element(gst_bin_get_by_name(GST_BIN(pipeline.get()), name));
}

// A frame's bytes; none at the end of the stream.
Bytes pull_from(const Element& sink) {
  GstSample* sample = gst_app_sink_pull_sample(GST_APP_SINK(sink.get()));
  if (sample == nullptr) {
    return {};
  }
  const Bytes bytes = bytes_of(gst_sample_get_buffer(sample));
  gst_sample_unref(sample);
  return bytes;
}

class Elements : public ::testing::TestWithParam<Filter> {};

// ------------------------------------------------------------------------------------------------ buffers

TEST_P(Elements, NeutralSettingsGiveTheSameBuffer) {
  Filtering harness(GetParam());
  harness.make_neutral(GetParam());
  Buffer in = noisy_frame(kInfo);
  const Bytes before = bytes_of(in.get());
  const GstBuffer* address = in.get();
  const Buffer shared(gst_buffer_ref(in.get()));  // a buffer that may not be written, too
  const Buffer out = harness.filter(std::move(in));
  EXPECT_EQ(out.get(), address);
  EXPECT_EQ(bytes_of(out.get()), before);
}

TEST_P(Elements, ANeutralSettingMayComeAndGoBetweenFrames) {
  Filtering harness(GetParam());
  for (int i = 0; i < 6; ++i) {
    const bool neutral = i % 2 == 1;
    harness.set(GetParam().controlled, neutral ? "0" : std::to_string(GetParam().value));
    Buffer in = noisy_frame(kInfo, i);
    const Bytes before = bytes_of(in.get());
    const Buffer out = harness.filter(std::move(in));
    ASSERT_TRUE(out);
    EXPECT_EQ(bytes_of(out.get()) == before, neutral) << "frame " << i;
  }
}

TEST_P(Elements, AWritableBufferIsFilteredInPlace) {
  Filtering harness(GetParam());
  Buffer in = noisy_frame(kInfo);
  const Bytes before = bytes_of(in.get());
  const GstBuffer* address = in.get();
  const GstMemory* memory = gst_buffer_peek_memory(in.get(), 0);
  const Buffer out = harness.filter(std::move(in));
  EXPECT_EQ(out.get(), address);
  EXPECT_EQ(gst_buffer_peek_memory(out.get(), 0), memory);
  EXPECT_NE(bytes_of(out.get()), before);
}

TEST_P(Elements, ASharedBufferIsNotWritten) {
  Filtering harness(GetParam());
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
TEST_P(Elements, SharedMemoryIsNotWritten) {
  Filtering harness(GetParam());
  const Buffer original = noisy_frame(kInfo);
  const Bytes before = bytes_of(original.get());
  const Buffer out = harness.filter(Buffer(gst_buffer_copy(original.get())));
  ASSERT_TRUE(out);
  EXPECT_EQ(bytes_of(original.get()), before);
  EXPECT_NE(bytes_of(out.get()), before);
}

TEST_P(Elements, TheOtherBranchOfATeeIsUntouched) {
  constexpr int kFrames = 5;
  const Element pipeline = parse(
      "appsrc name=in format=time ! tee name=t "
      "t. ! queue ! appsink name=plain sync=false "
      "t. ! queue ! " +
      GetParam().line() + "! appsink name=filtered sync=false");
  const Element source = child(pipeline, "in");
  const Element plain = child(pipeline, "plain");
  const Element filter = child(pipeline, "filtered");
  gst_app_src_set_caps(GST_APP_SRC(source.get()), caps_of(kInfo).get());
  gst_element_set_state(pipeline.get(), GST_STATE_PLAYING);
  for (int i = 0; i < kFrames; ++i) {
    ASSERT_EQ(gst_app_src_push_buffer(GST_APP_SRC(source.get()), noisy_frame(kInfo, i).release()),
              GST_FLOW_OK);
  }
  gst_app_src_end_of_stream(GST_APP_SRC(source.get()));
  const std::vector<Bytes> wanted = filtered(GetParam(), kInfo, kFrames);
  for (int i = 0; i < kFrames; ++i) {
    EXPECT_EQ(pull_from(plain), bytes_of(noisy_frame(kInfo, i).get()));
    EXPECT_EQ(pull_from(filter), wanted[i]);
  }
  gst_element_set_state(pipeline.get(), GST_STATE_NULL);
}

const Caps& reference_caps() {
  static const Caps caps(gst_caps_new_empty_simple("timestamp/x-test"));
  return caps;
}

Buffer frame_with_everything() {
  static const char* kNoTags[] = {nullptr};
  if (gst_meta_get_info("NonlocalTestMeta") == nullptr) {
    gst_meta_register_custom("NonlocalTestMeta", kNoTags, nullptr, nullptr, nullptr);
  }
  Buffer buffer = noisy_frame(kInfo, 1);
  GST_BUFFER_DTS(buffer.get()) = 7 * GST_MSECOND;
  GST_BUFFER_OFFSET(buffer.get()) = 11;
  GST_BUFFER_OFFSET_END(buffer.get()) = 12;
  GST_BUFFER_FLAG_SET(buffer.get(),
                      GST_BUFFER_FLAG_MARKER | GST_BUFFER_FLAG_DISCONT | GST_VIDEO_BUFFER_FLAG_TFF);
  gst_buffer_add_video_region_of_interest_meta(buffer.get(), "face", 1, 2, 3, 4);
  GstCustomMeta* custom = gst_buffer_add_custom_meta(buffer.get(), "NonlocalTestMeta");
  gst_structure_set(gst_custom_meta_get_structure(custom), "answer", G_TYPE_INT, 42, nullptr);
  gst_buffer_add_reference_timestamp_meta(buffer.get(), reference_caps().get(), 99, GST_CLOCK_TIME_NONE);
  return buffer;
}

void expect_everything(GstBuffer* buffer) {
  EXPECT_EQ(GST_BUFFER_PTS(buffer), kFrameDuration);
  EXPECT_EQ(GST_BUFFER_DTS(buffer), 7 * GST_MSECOND);
  EXPECT_EQ(GST_BUFFER_DURATION(buffer), kFrameDuration);
  EXPECT_EQ(GST_BUFFER_OFFSET(buffer), 11u);
  EXPECT_EQ(GST_BUFFER_OFFSET_END(buffer), 12u);
  for (const guint flag :
       {guint{GST_BUFFER_FLAG_MARKER}, guint{GST_BUFFER_FLAG_DISCONT}, guint{GST_VIDEO_BUFFER_FLAG_TFF}}) {
    EXPECT_TRUE(GST_BUFFER_FLAG_IS_SET(buffer, flag)) << flag;
  }
  const auto* region = gst_buffer_get_video_region_of_interest_meta(buffer);
  ASSERT_NE(region, nullptr);
  EXPECT_EQ(g_quark_from_string("face"), region->roi_type);
  EXPECT_EQ(region->w, 3u);
  GstCustomMeta* custom = gst_buffer_get_custom_meta(buffer, "NonlocalTestMeta");
  ASSERT_NE(custom, nullptr);
  int answer = 0;
  EXPECT_TRUE(gst_structure_get_int(gst_custom_meta_get_structure(custom), "answer", &answer));
  EXPECT_EQ(answer, 42);
  EXPECT_NE(gst_buffer_get_reference_timestamp_meta(buffer, reference_caps().get()), nullptr);
}

TEST_P(Elements, TimesFlagsAndMetasSurvive) {
  for (const bool shared : {false, true}) {
    for (const bool neutral : {false, true}) {
      SCOPED_TRACE(std::string(shared ? "shared" : "writable") + (neutral ? ", neutral" : ""));
      Filtering harness(GetParam());
      if (neutral) {
        harness.make_neutral(GetParam());
      }
      EXPECT_TRUE(harness.filter(noisy_frame(kInfo, 0)));
      Buffer in = frame_with_everything();
      const Buffer other(shared ? gst_buffer_ref(in.get()) : nullptr);
      const Buffer out = harness.filter(std::move(in));
      ASSERT_TRUE(out);
      expect_everything(out.get());
    }
  }
}

// videorate marks the frames that it repeats as gaps: they are pictures as any, and stay marked.
TEST_P(Elements, FramesMarkedAsGapsAreFilteredToo) {
  Filtering plain(GetParam());
  Filtering marked(GetParam());
  for (int i = 0; i < 3; ++i) {
    Buffer in = noisy_frame(kInfo, i);
    const Bytes before = bytes_of(in.get());
    if (i > 0) {
      GST_BUFFER_FLAG_SET(in.get(), GST_BUFFER_FLAG_GAP);
    }
    const Buffer out = marked.filter(std::move(in));
    ASSERT_TRUE(out);
    EXPECT_EQ(GST_BUFFER_FLAG_IS_SET(out.get(), GST_BUFFER_FLAG_GAP), i > 0);
    EXPECT_NE(bytes_of(out.get()), before);
    EXPECT_EQ(bytes_of(out.get()), bytes_of(plain.filter(noisy_frame(kInfo, i)).get()));
  }
}

// Upstream may use the layouts that downstream understands, and no others: its buffers end there.
TEST_P(Elements, UpstreamIsOfferedWhatDownstreamTakes) {
  for (const bool takes_video_meta : {false, true}) {
    Filtering harness(GetParam());
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

TEST_P(Elements, ABufferOfTheWrongSizeIsReportedAndDoesNoHarm) {
  Filtering harness(GetParam());
  harness.push(Buffer(gst_buffer_new_allocate(nullptr, 10, nullptr)));
  EXPECT_FALSE(harness.messages(GstMessageType(GST_MESSAGE_WARNING | GST_MESSAGE_ERROR)).empty());
}

// ------------------------------------------------------------------------------------------ counts and time

TEST_P(Elements, AsManyFramesOutAsIn) {
  for (int frames = 1; frames <= 6; ++frames) {
    Filtering harness(GetParam());
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

TEST_P(Elements, AddNoLatency) {
  Filtering harness(GetParam());
  gst_harness_set_upstream_latency(harness.get(), 123 * GST_MSECOND);
  EXPECT_TRUE(harness.filter(noisy_frame(kInfo)));
  EXPECT_EQ(gst_harness_query_latency(harness.get()), 123 * GST_MSECOND);
}

// --------------------------------------------------------------------------------------------- what remains

TEST_P(Elements, NothingRemainsOfEarlierFramesAfterAFlushASeekOrNewCaps) {
  const std::vector<Bytes> fresh = filtered(GetParam(), kInfo, 4, 5);
  const auto later = [](const GstVideoInfo& first, const auto& between) {
    Filtering harness(GetParam(), first);
    return later_frames(harness, first, kInfo, between);
  };
  EXPECT_EQ(later(kInfo, [](Harness& harness) { harness.flush(); }), fresh);
  EXPECT_EQ(later(kInfo, [](Harness& harness) { harness.send_segment(); }), fresh);
  EXPECT_EQ(later(kInfo, [](Harness& harness) { harness.restart(kInfo); }), fresh);
  const GstVideoInfo other = video_info(GST_VIDEO_FORMAT_NV12, 31, 17);
  EXPECT_EQ(later(other, [](Harness& harness) { harness.set_format(kInfo); }), fresh);
}

TEST_P(Elements, FormatsMayChangeFrameByFrame) {
  Filtering harness(GetParam(), kInfo, GetParam().quick);
  for (const GstVideoFormat format : formats()) {
    const GstVideoInfo info = video_info(format, 19, 9);
    harness.set_format(info);
    const Buffer out = harness.filter(noisy_frame(info));
    ASSERT_TRUE(out);
    EXPECT_EQ(bytes_of(out.get()), filtered(GetParam(), info, 1, 0, GetParam().quick)[0]);
  }
}

TEST_P(Elements, DeepFormatsHoldValuesThatEightBitsCannot) {
  for (const GstVideoFormat format : formats()) {
    const GstVideoInfo info = video_info(format, 33, 16);
    const int depth = GST_VIDEO_INFO_COMP_DEPTH(&info, 0);
    if (depth == 8) {
      continue;
    }
    SCOPED_TRACE(gst_video_format_to_string(format));
    const Buffer out = Filtering(GetParam(), info).filter(noisy_frame(info));
    ASSERT_TRUE(out);
    for (const std::vector<int>& component : all_samples_of(out.get(), info)) {
      std::array<int, 4> remainders{};  // of the two lowest bits that 8 bits do not have
      for (const int value : component) {
        EXPECT_LT(value, 1 << depth);
        ++remainders[(value >> (depth - 10)) % 4];
      }
      for (const int count : remainders) {
        EXPECT_GT(count, 0);
      }
    }
  }
}

// -------------------------------------------------------------------------------------------------- settings

// 0 before kChange frames, then the filter's value.
void control(Harness& harness, const Filter& filter, int change) {
  GstControlSource* source = gst_interpolation_control_source_new();
  g_object_set(source, "mode", GST_INTERPOLATION_MODE_NONE, nullptr);
  auto* values = GST_TIMED_VALUE_CONTROL_SOURCE(source);
  gst_timed_value_control_source_set(values, 0, 0);
  gst_timed_value_control_source_set(values, change * kFrameDuration, filter.value);
  gst_object_add_control_binding(
      GST_OBJECT(harness.element()),
      gst_direct_control_binding_new_absolute(GST_OBJECT(harness.element()), filter.controlled, source));
  gst_object_unref(source);
}

TEST_P(Elements, AControlSourceChangesTheOutputAtItsFrame) {
  constexpr int kFrames = 8;
  constexpr int kChange = 5;
  Filtering harness(GetParam());
  control(harness, GetParam(), kChange);
  // Stream time is what counts: this segment shows time 0 at a running time of its own.
  harness.send_segment(10 * GST_SECOND);
  for (int i = 0; i < kFrames; ++i) {
    Buffer in = noisy_frame(kInfo, i);
    GST_BUFFER_PTS(in.get()) += 10 * GST_SECOND;
    const Bytes before = bytes_of(in.get());
    const Buffer out = harness.filter(std::move(in));
    ASSERT_TRUE(out);
    EXPECT_EQ(bytes_of(out.get()) != before, i >= kChange) << "frame " << i;
  }
}

TEST_P(Elements, AnyNumberOfThreadsGivesTheSameBytes) {
  for (const GstVideoFormat format :
       {GST_VIDEO_FORMAT_I420, GST_VIDEO_FORMAT_RGB, GST_VIDEO_FORMAT_P010_10LE}) {
    const GstVideoInfo info = video_info(format, 130, 70);
    const auto with_threads = [&](const std::string& threads) {
      return filtered(GetParam(), info, 3, 0, GetParam().quick + (" n-threads=" + threads));
    };
    const std::vector<Bytes> one = with_threads("1");
    for (const char* threads : {"2", "4", "0"}) {
      EXPECT_EQ(with_threads(threads), one) << "n-threads=" << threads;
    }
  }
}

int threads_of_this_process() {
  const auto tasks = std::filesystem::directory_iterator("/proc/self/task");
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

// In a process of its own (as ctest runs it) no helping thread is there before.
TEST_P(Elements, HaveNoMoreThreadsThanAskedFor) {
  const auto run = [](const char* threads) {
    filtered(GetParam(), kInfo, 2, 0, GetParam().quick + std::string(threads));
  };
  const int before = threads_of_this_process();
  run(" n-threads=1");
  EXPECT_LE(threads_of_this_process(), before);
  run(" n-threads=4");
  const int with_four = threads_of_this_process();
  EXPECT_LE(with_four, before + 4);  // three helpers, and one that a runtime keeps for itself
  for (int i = 0; i < 8; ++i) {
    run(" n-threads=4");
  }
  EXPECT_LE(threads_of_this_process(), with_four);
}

// Streaming threads come and go with the pipelines; helpers are shared and stay few.
TEST_P(Elements, LeaveNoThreadsBehind) {
  const auto run = [] {
    const Element pipeline =
        parse("videotestsrc num-buffers=3 ! video/x-raw,format=I420,width=32,height=32 ! queue ! " +
              GetParam().line("n-threads=3") + "! queue ! " + GetParam().line("n-threads=2") + "! fakesink");
    EXPECT_EQ(play(pipeline.get()), "");
  };
  int most_early = 0;
  for (int i = 0; i < 3; ++i) {
    run();
    most_early = std::max(most_early, threads_of_this_process());
  }
  for (int i = 0; i < 10; ++i) {
    run();
  }
  EXPECT_LE(threads_of_this_process(), most_early + 4);
}

// ------------------------------------------------------------------------------------------------ lateness

TEST_P(Elements, ALateEventDropsFramesAndPostsQos) {
  Filtering harness(GetParam());
  EXPECT_TRUE(harness.filter(noisy_frame(kInfo, 0)));
  harness.send_qos(3 * kFrameDuration, 0);  // nothing up to frame 3 can be in time
  for (int i = 1; i <= 3; ++i) {
    EXPECT_FALSE(harness.filter(noisy_frame(kInfo, i))) << "frame " << i;
  }
  EXPECT_EQ(harness.messages(GST_MESSAGE_QOS).size(), 3u);
  const Buffer next = harness.filter(noisy_frame(kInfo, 4));
  ASSERT_TRUE(next);
  EXPECT_TRUE(GST_BUFFER_FLAG_IS_SET(next.get(), GST_BUFFER_FLAG_DISCONT));
}

TEST_P(Elements, AFlushForgetsLateness) {
  Filtering harness(GetParam());
  EXPECT_TRUE(harness.filter(noisy_frame(kInfo, 0)));
  harness.send_qos(3 * kFrameDuration, 0);
  harness.flush();
  EXPECT_TRUE(harness.filter(noisy_frame(kInfo, 0)));
}

TEST_P(Elements, QosEventsReachUpstream) {
  Filtering harness(GetParam());
  EXPECT_TRUE(harness.filter(noisy_frame(kInfo, 0)));
  harness.send_qos(kFrameDuration, 0);
  bool seen = false;
  while (GstEvent* event = gst_harness_try_pull_upstream_event(harness.get())) {
    seen = seen || GST_EVENT_TYPE(event) == GST_EVENT_QOS;
    gst_event_unref(event);
  }
  EXPECT_TRUE(seen);
}

TEST_P(Elements, ARunWithoutAClockDropsNothing) {
  constexpr int kFrames = 60;
  const Element pipeline =
      parse("videotestsrc num-buffers=60 ! video/x-raw,format=I420,width=32,height=16,framerate=1000/1 ! " +
            GetParam().line() + "! fakesink name=sink sync=false qos=true signal-handoffs=true");
  int frames = 0;
  g_signal_connect(
      child(pipeline, "sink").get(), "handoff",
      G_CALLBACK(+[](GstElement*, GstBuffer*, GstPad*, gpointer count) { ++*static_cast<int*>(count); }),
      &frames);
  EXPECT_EQ(play(pipeline.get()), "");
  EXPECT_EQ(frames, kFrames);
}

// ---------------------------------------------------------------------------------------------------- runs

TEST_P(Elements, FiftyCyclesAndTheLastIsLikeTheFirst) {
  const Element pipeline = parse(
      "videotestsrc num-buffers=3 pattern=zone-plate kx2=80 ky2=40 kt=2 ! "
      "video/x-raw,format=I420,width=32,height=16 ! " +
      GetParam().line(GetParam().quick) + "! appsink name=sink sync=false");
  const Element sink = child(pipeline, "sink");
  std::vector<Bytes> first;
  for (int cycle = 0; cycle < 50; ++cycle) {
    ASSERT_NE(gst_element_set_state(pipeline.get(), GST_STATE_PLAYING), GST_STATE_CHANGE_FAILURE);
    std::vector<Bytes> frames;
    for (Bytes bytes = pull_from(sink); !bytes.empty(); bytes = pull_from(sink)) {
      frames.push_back(std::move(bytes));
    }
    ASSERT_EQ(gst_element_set_state(pipeline.get(), GST_STATE_NULL), GST_STATE_CHANGE_SUCCESS);
    ASSERT_EQ(frames.size(), 3u);
    if (cycle == 0) {
      first = frames;
    }
    ASSERT_EQ(frames, first) << "cycle " << cycle;
  }
}

// Turns properties of the element at random, reads all, and tells it of late frames, until `done`.
void turn_knobs(GstElement* element, const Filter& filter, unsigned seed, const std::atomic<bool>& done) {
  std::mt19937 random(seed);
  const Pad source(gst_element_get_static_pad(element, "src"));
  guint count = 0;
  GParamSpec** const readable = g_object_class_list_properties(G_OBJECT_GET_CLASS(element), &count);
  while (!done) {
    const Knob& knob = filter.knobs[random() % filter.knobs.size()];
    const char* value = knob.values[random() % knob.values.size()];
    gst_util_set_object_arg(G_OBJECT(element), knob.property, value);
    GValue read = G_VALUE_INIT;
    g_object_get_property(G_OBJECT(element), readable[random() % count]->name, &read);
    g_value_unset(&read);
    const auto lateness = static_cast<GstClockTimeDiff>(random() % 3) * GST_MSECOND - GST_MSECOND;
    gst_pad_send_event(source.get(), gst_event_new_qos(GST_QOS_TYPE_UNDERFLOW, 1.5, lateness, GST_SECOND));
    g_usleep(random() % 500);
  }
  g_free(readable);
}

// Made for ThreadSanitizer: properties, QoS events and queries from two threads each while buffers flow
// through two elements, each with a streaming thread of its own.
TEST_P(Elements, PropertiesMayChangeAtAnyTime) {
  constexpr int kFrames = 300;
  const Element pipeline = parse(
      "videotestsrc num-buffers=300 ! video/x-raw,format=NV12,width=24,height=16 ! queue ! " +
      GetParam().line("name=first qos=false") + "! queue ! " + GetParam().line("name=second qos=false") +
      "! queue ! fakesink name=sink sync=false signal-handoffs=true");
  std::atomic<int> frames = 0;
  g_signal_connect(child(pipeline, "sink").get(), "handoff",
                   G_CALLBACK(+[](GstElement*, GstBuffer*, GstPad*, gpointer count) {
                     ++*static_cast<std::atomic<int>*>(count);
                   }),
                   &frames);
  // What they start with is open before anybody asks for other files.
  ASSERT_NE(gst_element_set_state(pipeline.get(), GST_STATE_PAUSED), GST_STATE_CHANGE_FAILURE);
  ASSERT_EQ(gst_element_get_state(pipeline.get(), nullptr, nullptr, GST_CLOCK_TIME_NONE),
            GST_STATE_CHANGE_SUCCESS);
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (const unsigned seed : {1u, 2u, 3u, 4u}) {
    threads.emplace_back([&, seed] {
      turn_knobs(child(pipeline, seed % 2 == 0 ? "first" : "second").get(), GetParam(), seed, done);
    });
  }
  const std::string error = play(pipeline.get());
  done = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(error, "");
  EXPECT_EQ(frames, kFrames);
}

long resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  long pages = 0;
  long resident = 0;
  statm >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// What a frame leaves behind, if anything, must be less than a small fraction of it.
TEST_P(Elements, MemoryIsFlatOverFiveThousandFrames) {
  constexpr int kWarmUp = 1000;
  constexpr int kFrames = 5000;
  const GstVideoInfo info = video_info(GST_VIDEO_FORMAT_I420, 32, 32);
  Filtering harness(GetParam(), info, GetParam().quick + std::string(" n-threads=1"));
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

INSTANTIATE_TEST_SUITE_P(All, Elements, ::testing::ValuesIn(kFilters),
                         [](const auto& filter) { return std::string(filter.param.name); });

}  // namespace
}  // namespace nonlocal::test
