#include "frame_watch.h"

#include <exception>
#include <string_view>

#include "filter_pipeline.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

// A frame mapped for reading as long as this lives.
class MappedFrame {
 public:
  MappedFrame(GstBuffer* buffer, GstCaps* caps) {
    GstVideoInfo info;
    mapped_ =
        gst_video_info_from_caps(&info, caps) && gst_video_frame_map(&frame_, &info, buffer, GST_MAP_READ);
  }
  ~MappedFrame() {
    if (mapped_) gst_video_frame_unmap(&frame_);
  }
  MappedFrame(const MappedFrame&) = delete;
  MappedFrame& operator=(const MappedFrame&) = delete;

  explicit operator bool() const { return mapped_; }
  [[nodiscard]] const GstVideoFrame& get() const { return frame_; }

 private:
  GstVideoFrame frame_ = {};
  bool mapped_ = false;
};

// The name of the first filter of this element; empty: none.
std::string name_of_first(const FilterChain& chain, std::string_view element) {
  for (size_t i = 0; i < chain.size(); ++i)
    if (chain[i].element == element) return filter_name(i);
  return "";
}

// "I420"; empty where the pad has no format yet.
std::string format_at(GstPad* pad) {
  const CapsPtr caps{gst_pad_get_current_caps(pad)};
  const char* format =
      caps ? gst_structure_get_string(gst_caps_get_structure(caps.get(), 0), "format") : nullptr;
  return format ? format : "";
}

}  // namespace

FrameWatch::FrameWatch(Pipeline& pipeline, const FilterChain& chain, const Segment& segment,
                       const Wishes& wishes)
    : pipeline_(pipeline), segment_(segment), wishes_(wishes) {
  const std::scoped_lock lock(mutex_);  // what is set here is seen by whoever locks it later
  const std::string denoiser = name_of_first(chain, "nonlocaldenoise");
  if (!denoiser.empty()) denoiser_ = pipeline.element(denoiser.c_str());
  decoded_.reset(gst_element_get_static_pad(pipeline.element(kDecodedName).get(), "src"));
  into_encoder_.reset(gst_element_get_static_pad(pipeline.element(kEncoderName).get(), "sink"));
  const auto see = [this](void (FrameWatch::*what)(GstPad*, GstBuffer*)) {
    return [this, what](GstPad* pad, GstBuffer* buffer) {
      if (segment_.keeps(stream_time(pad, buffer))) (this->*what)(pad, buffer);
    };
  };
  pipeline.watch(filter_name(0).c_str(), "sink", see(&FrameWatch::enters));
  pipeline.watch(filter_name(chain.size() - 1).c_str(), "src", see(&FrameWatch::leaves));
  pipeline.watch(kEncoderName, "src", see(&FrameWatch::encoded));
}

FrameWatch::~FrameWatch() {
  pipeline_.stop();
  const std::scoped_lock lock(mutex_);  // what the streaming threads set is seen here
}

void FrameWatch::enters(GstPad* pad, GstBuffer* buffer) {
  const CapsPtr caps{gst_pad_get_current_caps(pad)};
  const std::scoped_lock lock(mutex_);
  seen_.report.format = format_at(pad);
  if (seen_.report.decoded.empty()) seen_.report.decoded = format_at(decoded_.get());
  const int64_t index = segment_.first + seen_.report.frames_in;
  check_size(caps.get(), index);
  keep_picture(picture_before_, buffer, caps.get(), index);
  ++seen_.report.frames_in;
  seen_.last_seconds = static_cast<double>(stream_time(pad, buffer)) / GST_SECOND;
  if (!wishes_.reference || !seen_.problem.empty()) return;
  try {
    clean_frames_.push_back(wishes_.reference->frame(index, caps.get()));
  } catch (const std::exception& error) {
    seen_.problem = error.what();
    return;
  }
  compare(buffer, caps.get(), clean_frames_.back().get(), seen_.report.before);
}

void FrameWatch::check_size(GstCaps* caps, int64_t index) {
  if (caps == caps_.get()) return;
  const std::string before = caps_ ? size_of(caps_.get()) : size_of(caps);
  if (before != size_of(caps) && seen_.change.empty())
    seen_.change = formatted("frame %ld is %s, those before are %s: a file holds frames of one size",
                             long(index), size_of(caps).c_str(), before.c_str());
  caps_.reset(gst_caps_ref(caps));
}

double FrameWatch::noise_level() const {
  double noise = 0;
  if (denoiser_) g_object_get(denoiser_.get(), "noise-level", &noise, nullptr);
  return noise;
}

void FrameWatch::leaves(GstPad* pad, GstBuffer* buffer) {
  const CapsPtr caps{gst_pad_get_current_caps(pad)};
  const double noise = noise_level();
  const std::scoped_lock lock(mutex_);
  keep_picture(picture_after_, buffer, caps.get(), segment_.first + seen_.frames_filtered);
  ++seen_.frames_filtered;
  seen_.noise = noise;
  seen_.report.noise_sum += noise;
  if (!wishes_.reference || !seen_.problem.empty() || clean_frames_.empty()) return;
  const SamplePtr clean = std::move(clean_frames_.front());
  clean_frames_.pop_front();
  compare(buffer, caps.get(), clean.get(), seen_.report.after);
  ++seen_.report.compared;
}

void FrameWatch::encoded(GstPad* pad, GstBuffer* buffer) {
  const std::scoped_lock lock(mutex_);
  if (seen_.report.coded.empty()) seen_.report.coded = format_at(into_encoder_.get());
  seen_.report.times.push_back(stream_time(pad, buffer));
}

void FrameWatch::keep_picture(SamplePtr& kept, GstBuffer* buffer, GstCaps* caps, int64_t index) const {
  if (index != wishes_.picture_frame) return;
  GstBuffer* copy = gst_buffer_copy_deep(buffer);
  kept.reset(gst_sample_new(copy, caps, nullptr, nullptr));
  gst_buffer_unref(copy);
}

void FrameWatch::compare(GstBuffer* buffer, GstCaps* caps, GstSample* clean, Psnr& sum) {
  if (!clean) {
    seen_.problem = "it has fewer frames than the input";
    return;
  }
  const MappedFrame ours(buffer, caps);
  const MappedFrame theirs(gst_sample_get_buffer(clean), gst_sample_get_caps(clean));
  if (!ours || !theirs) {
    seen_.problem = "a frame could not be read";
    return;
  }
  const auto same = [&](auto of) { return of(ours.get()) == of(theirs.get()); };
  if (!same([](const GstVideoFrame& f) { return GST_VIDEO_FRAME_WIDTH(&f); }) ||
      !same([](const GstVideoFrame& f) { return GST_VIDEO_FRAME_HEIGHT(&f); })) {
    seen_.problem = "its frames have another size";
    return;
  }
  const Psnr frame = psnr(ours.get(), theirs.get());
  sum.luma += frame.luma;
  sum.chroma += frame.chroma;
}

Observed FrameWatch::observed() const {
  const std::scoped_lock lock(mutex_);
  return seen_;
}

}  // namespace nonlocal::tools
