#include "frame_watch.h"

#include <exception>

#include "filter_pipeline.h"

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

Psnr mean(const Psnr& sum, int64_t frames) {
  return {sum.luma / static_cast<double>(frames), sum.chroma / static_cast<double>(frames)};
}

}  // namespace

FrameWatch::FrameWatch(Pipeline& pipeline, const Wishes& wishes)
    : pipeline_(pipeline), wishes_(wishes), filter_(pipeline.element(kFilterName)) {
  const std::scoped_lock lock(mutex_);  // what is set here is seen by whoever locks it later
  if (!wishes_.reference.empty()) reference_.emplace(wishes_.reference);
  watch<&FrameWatch::enters>(filter_, "sink");
  watch<&FrameWatch::leaves>(filter_, "src");
  watch<&FrameWatch::encoded>(pipeline.element(kEncoderName), "src");
}

FrameWatch::~FrameWatch() {
  pipeline_.stop();
  const std::scoped_lock lock(mutex_);  // what the streaming threads set is seen here
}

template <void (FrameWatch::*see)(GstPad*, GstBuffer*)>
void FrameWatch::watch(const ElementPtr& element, const char* pad_name) {
  const auto probe = [](GstPad* pad, GstPadProbeInfo* info, gpointer self) {
    (static_cast<FrameWatch*>(self)->*see)(pad, GST_PAD_PROBE_INFO_BUFFER(info));
    return GST_PAD_PROBE_OK;
  };
  const PadPtr pad{gst_element_get_static_pad(element.get(), pad_name)};
  gst_pad_add_probe(pad.get(), GST_PAD_PROBE_TYPE_BUFFER, probe, this, nullptr);
}

void FrameWatch::enters(GstPad* pad, GstBuffer* buffer) {
  const CapsPtr caps{gst_pad_get_current_caps(pad)};
  const std::scoped_lock lock(mutex_);
  if (const char* format = gst_structure_get_string(gst_caps_get_structure(caps.get(), 0), "format"))
    seen_.format = format;
  keep_picture(picture_before_, buffer, caps.get(), seen_.frames_in);
  ++seen_.frames_in;
  if (GST_BUFFER_PTS_IS_VALID(buffer))
    seen_.last_seconds = static_cast<double>(GST_BUFFER_PTS(buffer)) / GST_SECOND;
  if (!reference_ || !seen_.problem.empty()) return;
  try {
    clean_frames_.push_back(reference_->next(caps.get()));
  } catch (const std::exception& error) {
    seen_.problem = error.what();
    return;
  }
  compare(buffer, caps.get(), clean_frames_.back().get(), before_sum_);
}

void FrameWatch::leaves(GstPad* pad, GstBuffer* buffer) {
  const CapsPtr caps{gst_pad_get_current_caps(pad)};
  double noise = 0;
  g_object_get(filter_.get(), "noise-level", &noise, nullptr);
  const std::scoped_lock lock(mutex_);
  keep_picture(picture_after_, buffer, caps.get(), seen_.frames_filtered);
  ++seen_.frames_filtered;
  seen_.noise = noise;
  noise_sum_ += noise;
  if (!reference_ || !seen_.problem.empty() || clean_frames_.empty()) return;
  const SamplePtr clean = std::move(clean_frames_.front());
  clean_frames_.pop_front();
  compare(buffer, caps.get(), clean.get(), after_sum_);
}

void FrameWatch::encoded(GstPad*, GstBuffer*) {
  const std::scoped_lock lock(mutex_);
  ++seen_.frames_out;
}

// The first frame is kept until the wanted one comes.
void FrameWatch::keep_picture(SamplePtr& kept, GstBuffer* buffer, GstCaps* caps, int64_t index) const {
  if (wishes_.picture_frame < 0 || (index != 0 && index != wishes_.picture_frame)) return;
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
  Observed observed = seen_;
  if (seen_.frames_filtered == 0) return observed;
  observed.mean_noise = noise_sum_ / static_cast<double>(seen_.frames_filtered);
  if (!reference_ || !seen_.problem.empty()) return observed;
  observed.before = mean(before_sum_, seen_.frames_in);
  observed.after = mean(after_sum_, seen_.frames_filtered);
  return observed;
}

}  // namespace nonlocal::tools
