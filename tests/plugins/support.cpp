#include "support.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <iterator>
#include <random>
#include <stdexcept>

namespace nonlocal::test {
namespace {

constexpr std::uint8_t kJunk = 0xA5;

class MappedFrame {
 public:
  MappedFrame(GstBuffer* buffer, const GstVideoInfo& info, GstMapFlags flags) {
    if (!gst_video_frame_map(&frame_, &info, buffer, flags)) {
      throw std::runtime_error("cannot map a frame");
    }
  }
  ~MappedFrame() { gst_video_frame_unmap(&frame_); }
  MappedFrame(const MappedFrame&) = delete;
  MappedFrame& operator=(const MappedFrame&) = delete;
  GstVideoFrame* operator->() { return &frame_; }
  GstVideoFrame* get() { return &frame_; }

  std::uint8_t* sample(int component, int x, int y) {
    // P010 interleaves U and V of two bytes each; GStreamer 1.22 says that V begins one byte after U.
    const bool v_of_p010 = GST_VIDEO_FRAME_FORMAT(&frame_) == GST_VIDEO_FORMAT_P010_10LE && component == 2;
    const int offset = v_of_p010 ? 2 : GST_VIDEO_FRAME_COMP_POFFSET(&frame_, component);
    auto* plane = static_cast<std::uint8_t*>(
        GST_VIDEO_FRAME_PLANE_DATA(&frame_, GST_VIDEO_FRAME_COMP_PLANE(&frame_, component)));
    return plane + offset + y * GST_VIDEO_FRAME_COMP_STRIDE(&frame_, component) +
           x * GST_VIDEO_FRAME_COMP_PSTRIDE(&frame_, component);
  }

 private:
  GstVideoFrame frame_;
};

int colour_components(const GstVideoInfo& info) {
  return std::min<int>(3, GST_VIDEO_INFO_N_COMPONENTS(&info));
}

int bytes_per_sample(const GstVideoInfo& info) { return GST_VIDEO_INFO_COMP_DEPTH(&info, 0) > 8 ? 2 : 1; }

template <typename Visit>
void each_sample(MappedFrame& frame, int component, const Visit& visit) {
  for (int y = 0; y < GST_VIDEO_FRAME_COMP_HEIGHT(frame.get(), component); ++y) {
    for (int x = 0; x < GST_VIDEO_FRAME_COMP_WIDTH(frame.get(), component); ++x) {
      visit(x, y, frame.sample(component, x, y));
    }
  }
}

void store(const GstVideoInfo& info, std::uint8_t* where, int value) {
  if (bytes_per_sample(info) == 1) {
    *where = static_cast<std::uint8_t>(value);
    return;
  }
  const auto stored = static_cast<std::uint16_t>(value << GST_VIDEO_FORMAT_INFO_SHIFT(info.finfo, 0));
  std::memcpy(where, &stored, 2);
}

int load(const GstVideoInfo& info, const std::uint8_t* where) {
  if (bytes_per_sample(info) == 1) {
    return *where;
  }
  std::uint16_t stored = 0;
  std::memcpy(&stored, where, 2);
  return stored >> GST_VIDEO_FORMAT_INFO_SHIFT(info.finfo, 0);
}

Buffer junk_buffer(std::size_t size) {
  Buffer buffer(gst_buffer_new_allocate(nullptr, size, nullptr));
  gst_buffer_memset(buffer.get(), 0, kJunk, size);
  return buffer;
}

}  // namespace

const std::vector<GstVideoFormat>& formats() {
  static const std::vector<GstVideoFormat> all = {
      GST_VIDEO_FORMAT_GRAY8,     GST_VIDEO_FORMAT_I420,      GST_VIDEO_FORMAT_YV12,
      GST_VIDEO_FORMAT_NV12,      GST_VIDEO_FORMAT_NV21,      GST_VIDEO_FORMAT_YUY2,
      GST_VIDEO_FORMAT_Y42B,      GST_VIDEO_FORMAT_Y444,      GST_VIDEO_FORMAT_RGB,
      GST_VIDEO_FORMAT_BGR,       GST_VIDEO_FORMAT_RGBx,      GST_VIDEO_FORMAT_BGRx,
      GST_VIDEO_FORMAT_RGBA,      GST_VIDEO_FORMAT_BGRA,      GST_VIDEO_FORMAT_GRAY16_LE,
      GST_VIDEO_FORMAT_I420_10LE, GST_VIDEO_FORMAT_I422_10LE, GST_VIDEO_FORMAT_Y444_10LE,
      GST_VIDEO_FORMAT_P010_10LE};
  return all;
}

GstVideoInfo video_info(GstVideoFormat format, int width, int height, GstVideoInterlaceMode mode) {
  GstVideoInfo info;
  if (!gst_video_info_set_interlaced_format(&info, format, mode, width, height)) {
    throw std::runtime_error("no such video format");
  }
  info.fps_n = kFrameRate;
  info.fps_d = 1;
  return info;
}

Caps caps_of(const GstVideoInfo& info) {
  GstVideoInfo copy = info;
  return Caps(gst_video_info_to_caps(&copy));
}

Buffer noisy_frame(const GstVideoInfo& info, int index, unsigned seed, double sigma) {
  Buffer buffer = junk_buffer(GST_VIDEO_INFO_SIZE(&info));
  std::mt19937 random(seed * 1000003u + static_cast<unsigned>(index));
  MappedFrame frame(buffer.get(), info, GST_MAP_READWRITE);
  for (int component = 0; component < colour_components(info); ++component) {
    const int depth = GST_VIDEO_INFO_COMP_DEPTH(&info, component);
    const int most = (1 << depth) - 1;
    std::normal_distribution<double> noise(0, sigma * (1 << (depth - 8)));
    const int width = GST_VIDEO_FRAME_COMP_WIDTH(frame.get(), component);
    const int height = GST_VIDEO_FRAME_COMP_HEIGHT(frame.get(), component);
    each_sample(frame, component, [&](int x, int y, std::uint8_t* where) {
      const double slope = most * (x + y + 1.0) / (width + height);
      store(info, where, std::clamp(static_cast<int>(std::lround(slope + noise(random))), 0, most));
    });
  }
  GST_BUFFER_PTS(buffer.get()) = index * kFrameDuration;
  GST_BUFFER_DURATION(buffer.get()) = kFrameDuration;
  return buffer;
}

Buffer padded_frame(GstBuffer* packed, const GstVideoInfo& info) {
  GstVideoInfo elsewhere = info;
  std::size_t end = 6;
  for (unsigned plane = 0; plane < GST_VIDEO_INFO_N_PLANES(&info); ++plane) {
    const auto rows = static_cast<std::size_t>(GST_VIDEO_INFO_COMP_HEIGHT(&info, plane));
    elsewhere.offset[plane] = end;
    elsewhere.stride[plane] = info.stride[plane] + 10 + 4 * static_cast<int>(plane);
    end += elsewhere.stride[plane] * rows + 14;
  }
  Buffer buffer = junk_buffer(end);
  gst_buffer_add_video_meta_full(buffer.get(), GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_INFO_FORMAT(&info),
                                 GST_VIDEO_INFO_WIDTH(&info), GST_VIDEO_INFO_HEIGHT(&info),
                                 GST_VIDEO_INFO_N_PLANES(&info), elsewhere.offset, elsewhere.stride);
  gst_buffer_copy_into(buffer.get(), packed, GST_BUFFER_COPY_TIMESTAMPS, 0, -1);
  MappedFrame to(buffer.get(), info, GST_MAP_READWRITE);
  MappedFrame from(packed, info, GST_MAP_READ);
  for (int component = 0; component < colour_components(info); ++component) {
    each_sample(from, component, [&](int x, int y, const std::uint8_t* where) {
      std::memcpy(to.sample(component, x, y), where, bytes_per_sample(info));
    });
  }
  return buffer;
}

Bytes bytes_of(GstBuffer* buffer) {
  Bytes bytes(gst_buffer_get_size(buffer));
  gst_buffer_extract(buffer, 0, bytes.data(), bytes.size());
  return bytes;
}

std::vector<int> samples_of(GstBuffer* buffer, const GstVideoInfo& info, int component) {
  MappedFrame frame(buffer, info, GST_MAP_READ);
  std::vector<int> samples;
  each_sample(frame, component,
              [&](int, int, const std::uint8_t* where) { samples.push_back(load(info, where)); });
  return samples;
}

std::vector<std::vector<int>> all_samples_of(GstBuffer* buffer, const GstVideoInfo& info) {
  std::vector<std::vector<int>> all;
  for (int component = 0; component < colour_components(info); ++component) {
    all.push_back(samples_of(buffer, info, component));
  }
  return all;
}

std::vector<bool> sample_bytes(GstBuffer* buffer, const GstVideoInfo& info) {
  std::vector<bool> belongs(gst_buffer_get_size(buffer), false);
  GstMapInfo whole;
  gst_buffer_map(buffer, &whole, GST_MAP_READ);
  MappedFrame frame(buffer, info, GST_MAP_READ);
  for (int component = 0; component < colour_components(info); ++component) {
    each_sample(frame, component, [&](int, int, const std::uint8_t* where) {
      std::fill_n(belongs.begin() + (where - whole.data), bytes_per_sample(info), true);
    });
  }
  gst_buffer_unmap(buffer, &whole);
  return belongs;
}

Harness::Harness(const GstVideoInfo& info, const std::string& line, const std::string& element)
    : harness_(gst_harness_new_parse(line.c_str())),
      element_(gst_harness_find_element(harness_, element.c_str())),
      bus_(gst_bus_new()) {
  gst_element_set_bus(harness_->element, bus_.get());
  set_format(info);
}

Harness::~Harness() {
  gst_element_set_bus(harness_->element, nullptr);
  gst_harness_teardown(harness_);
}

Harness& Harness::set(const char* property, const std::string& value) {
  gst_util_set_object_arg(G_OBJECT(element()), property, value.c_str());
  return *this;
}

double Harness::number(const char* property) {
  GValue value = G_VALUE_INIT;
  g_value_init(&value, G_TYPE_DOUBLE);
  g_object_get_property(G_OBJECT(element()), property, &value);
  return g_value_get_double(&value);
}

GstFlowReturn Harness::push(Buffer buffer) { return gst_harness_push(harness_, buffer.release()); }

Buffer Harness::pull() { return Buffer(gst_harness_try_pull(harness_)); }

int Harness::count_ready() { return static_cast<int>(gst_harness_buffers_in_queue(harness_)); }

Buffer Harness::filter(Buffer buffer) {
  EXPECT_EQ(push(std::move(buffer)), GST_FLOW_OK);
  return pull();
}

void Harness::set_format(const GstVideoInfo& info) {
  gst_harness_set_src_caps(harness_, caps_of(info).release());
}

void Harness::flush() {
  EXPECT_TRUE(gst_harness_push_event(harness_, gst_event_new_flush_start()));
  EXPECT_TRUE(gst_harness_push_event(harness_, gst_event_new_flush_stop(TRUE)));
  send_segment();
}

void Harness::restart(const GstVideoInfo& info) {
  gst_element_set_state(element(), GST_STATE_READY);
  gst_element_set_state(element(), GST_STATE_PLAYING);
  EXPECT_TRUE(gst_harness_push_event(harness_, gst_event_new_stream_start("again")));
  set_format(info);
  send_segment();
}

void Harness::send_segment(GstClockTime start) {
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  segment.start = start;
  EXPECT_TRUE(gst_harness_push_event(harness_, gst_event_new_segment(&segment)));
}

void Harness::send_qos(GstClockTimeDiff lateness, GstClockTime running_time, double proportion) {
  gst_harness_push_upstream_event(
      harness_, gst_event_new_qos(lateness > 0 ? GST_QOS_TYPE_UNDERFLOW : GST_QOS_TYPE_OVERFLOW, proportion,
                                  lateness, running_time));
}

template <typename Wanted>
std::vector<Message> Harness::take_messages(const Wanted& wanted) {
  while (GstMessage* message = gst_bus_pop(bus_.get())) {
    inbox_.emplace_back(message);
  }
  const auto taken = std::stable_partition(inbox_.begin(), inbox_.end(), std::not_fn(wanted));
  std::vector<Message> messages(std::make_move_iterator(taken), std::make_move_iterator(inbox_.end()));
  inbox_.erase(taken, inbox_.end());
  return messages;
}

std::vector<Message> Harness::messages(GstMessageType types) {
  return take_messages(
      [&](const Message& message) { return (GST_MESSAGE_TYPE(message.get()) & types) != 0; });
}

std::vector<Message> Harness::reports() {
  return take_messages([this](const Message& message) {
    return GST_MESSAGE_TYPE(message.get()) == GST_MESSAGE_ELEMENT &&
           GST_MESSAGE_SRC(message.get()) == GST_OBJECT(element_.get());
  });
}

std::vector<Bytes> filter_all(const GstVideoInfo& info, const std::vector<std::string>& settings, int frames,
                              int first) {
  Harness harness(info);
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    harness.set(setting.substr(0, equals).c_str(), setting.substr(equals + 1));
  }
  std::vector<Bytes> out;
  for (int i = first; i < first + frames; ++i) {
    const Buffer frame = harness.filter(noisy_frame(info, i));
    out.push_back(frame ? bytes_of(frame.get()) : Bytes());
  }
  return out;
}

Element parse(const std::string& pipeline) {
  GError* error = nullptr;
  GstElement* element = gst_parse_launch_full(pipeline.c_str(), nullptr, GST_PARSE_FLAG_FATAL_ERRORS, &error);
  if (element == nullptr) {
    const std::string what = error->message;
    g_error_free(error);
    throw std::runtime_error(pipeline + ": " + what);
  }
  gst_object_ref_sink(element);
  return Element(element);
}

std::vector<Bytes> later_frames(Harness& harness, const GstVideoInfo& first, const GstVideoInfo& info,
                                const std::function<void(Harness&)>& between) {
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(harness.filter(noisy_frame(first, i, 7, 40)));
  }
  between(harness);
  std::vector<Bytes> out;
  for (int i = 5; i < 9; ++i) {
    const Buffer frame = harness.filter(noisy_frame(info, i));
    out.push_back(frame ? bytes_of(frame.get()) : Bytes());
  }
  return out;
}

ErrorReport error_of(GstMessage* message) {
  GError* error = nullptr;
  gst_message_parse_error(message, &error, nullptr);
  ErrorReport report{error->domain, error->code, error->message};
  g_error_free(error);
  return report;
}

ErrorReport play_to_error(GstElement* pipeline) {
  gst_element_set_state(pipeline, GST_STATE_PLAYING);
  const Bus bus(gst_element_get_bus(pipeline));
  const Message message(gst_bus_timed_pop_filtered(bus.get(), GST_CLOCK_TIME_NONE,
                                                   GstMessageType(GST_MESSAGE_EOS | GST_MESSAGE_ERROR)));
  ErrorReport report;
  if (GST_MESSAGE_TYPE(message.get()) == GST_MESSAGE_ERROR) {
    report = error_of(message.get());
  }
  gst_element_set_state(pipeline, GST_STATE_NULL);
  return report;
}

std::string play(GstElement* pipeline) { return play_to_error(pipeline).text; }

}  // namespace nonlocal::test
