#include "live_frames.h"

#include <gst/app/gstappsink.h>
#include <gst/app/gstappsrc.h>
#include <gst/video/video.h>

#include <array>
#include <cstring>
#include <exception>
#include <iostream>

namespace nonlocal::tools {
namespace {

// More than any filter holds: those whose other half was dropped are forgotten.
constexpr size_t kMostInFilters = 16;

SamplePtr sample_of(GstPad* pad, GstBuffer* buffer) {
  const CapsPtr caps{gst_pad_get_current_caps(pad)};
  return SamplePtr{gst_sample_new(buffer, caps.get(), nullptr, nullptr)};
}

// A pipeline of its own, kept from frame to frame. JPEG has BT.601's matrix and the full range.
class JpegEncoder {
 public:
  JpegEncoder()
      : pipeline_(
            "appsrc name=frames format=time ! videoconvert ! video/x-raw,format=I420,colorimetry=1:4:0:0 ! "
            "jpegenc quality=88 ! appsink name=out sync=false"),
        in_(pipeline_.element("frames")),
        out_(pipeline_.element("out")) {
    pipeline_.play();
  }

  void begin(GstSample* frame) { gst_app_src_push_sample(GST_APP_SRC(in_.get()), frame); }

  // Throws Failure where the frame that was begun cannot be encoded.
  SamplePtr end() { return pipeline_.next_sample(out_.get()); }

 private:
  Pipeline pipeline_;
  ElementPtr in_;
  ElementPtr out_;
};

void append(std::string& message, GstSample* picture) {
  GstMapInfo map;
  GstBuffer* buffer = gst_sample_get_buffer(picture);
  if (!gst_buffer_map(buffer, &map, GST_MAP_READ)) return;
  message.append(reinterpret_cast<const char*>(map.data), map.size);
  gst_buffer_unmap(buffer, &map);
}

std::string number_of_four_bytes(size_t number) {
  const guint32 little = GUINT32_TO_LE(static_cast<guint32>(number));
  std::string bytes(sizeof little, '\0');
  std::memcpy(bytes.data(), &little, sizeof little);
  return bytes;
}

}  // namespace

LiveFrames::LiveFrames(Deliver deliver) : deliver_(std::move(deliver)), encoder_([this] { encode_all(); }) {}

LiveFrames::~LiveFrames() {
  {
    const std::scoped_lock lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  encoder_.join();
}

template <void (LiveFrames::*see)(GstPad*, GstBuffer*)>
void LiveFrames::probe(GstPad* pad) {
  const auto call = [](GstPad* seen, GstPadProbeInfo* info, gpointer self) {
    (static_cast<LiveFrames*>(self)->*see)(seen, GST_PAD_PROBE_INFO_BUFFER(info));
    return GST_PAD_PROBE_OK;
  };
  gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, call, this, nullptr);
}

void LiveFrames::watch(GstPad* before, GstPad* after) {
  probe<&LiveFrames::enters>(before);
  probe<&LiveFrames::leaves>(after);
}

void LiveFrames::enters(GstPad* pad, GstBuffer* buffer) {
  const std::scoped_lock lock(mutex_);
  if (!is_watched_) return;
  in_filters_.push_back({sample_of(pad, buffer), g_get_monotonic_time()});
  if (in_filters_.size() > kMostInFilters) in_filters_.pop_front();
}

void LiveFrames::leaves(GstPad* pad, GstBuffer* buffer) {
  {
    const std::scoped_lock lock(mutex_);
    ++counts_.after;
    if (!is_watched_) return;
    std::optional<Frame> before = take(GST_BUFFER_PTS(buffer));
    if (!before) return;
    counts_.milliseconds = static_cast<double>(g_get_monotonic_time() - before->came) / 1000;
    newest_ = {std::move(before->sample), sample_of(pad, buffer)};
  }
  changed_.notify_one();
}

// Those that came before it were dropped on their way.
std::optional<LiveFrames::Frame> LiveFrames::take(GstClockTime time) {
  while (!in_filters_.empty()) {
    const GstClockTime came = GST_BUFFER_PTS(gst_sample_get_buffer(in_filters_.front().sample.get()));
    if (came > time) return std::nullopt;
    Frame frame = std::move(in_filters_.front());
    in_filters_.pop_front();
    if (came == time) return frame;
  }
  return std::nullopt;
}

void LiveFrames::set_watched(bool is_watched) {
  const std::scoped_lock lock(mutex_);
  is_watched_ = is_watched;
  if (is_watched) return;
  is_wanted_ = false;
  in_filters_.clear();
  newest_.reset();
  counts_.milliseconds = 0;
}

void LiveFrames::want() {
  {
    const std::scoped_lock lock(mutex_);
    is_wanted_ = is_watched_;
  }
  changed_.notify_one();
}

LiveFrames::Counts LiveFrames::counts() const {
  const std::scoped_lock lock(mutex_);
  return counts_;
}

std::optional<LiveFrames::Pair> LiveFrames::wait_for_pair() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_over_ || (is_wanted_ && newest_); });
  if (is_over_) return std::nullopt;
  is_wanted_ = false;
  Pair pair = std::move(*newest_);
  newest_.reset();
  return pair;
}

void LiveFrames::encode_all() try {
  std::array<JpegEncoder, 2> encoders;
  while (const std::optional<Pair> pair = wait_for_pair()) {
    const bool differ = gst_sample_get_buffer(pair->before.get()) != gst_sample_get_buffer(pair->after.get());
    encoders[0].begin(pair->before.get());
    if (differ) encoders[1].begin(pair->after.get());
    const SamplePtr before = encoders[0].end();
    std::string message = number_of_four_bytes(gst_buffer_get_size(gst_sample_get_buffer(before.get())));
    append(message, before.get());
    if (differ) append(message, encoders[1].end().get());
    deliver_(BytesPtr{g_bytes_new(message.data(), message.size())});
  }
} catch (const std::exception& error) {
  std::cerr << "nonlocal: warning: no more pictures for browsers: " << error.what() << std::endl;
}

}  // namespace nonlocal::tools
