#include "evaluate_element.h"

#include <gst/app/gstappsink.h>
#include <gst/app/gstappsrc.h>

#include <algorithm>
#include <mutex>

#include "failure.h"
#include "pipeline_text.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

constexpr guint64 kQueued = 8;                       // frames ready for the element, so that it never waits
constexpr GstClockTime kPatience = 2 * GST_MSECOND;  // before looking whether it needs more

PipelineText element_words(const ElementSetting& setting) {
  PipelineText text;
  text.add(setting.element);
  for (const auto& [name, value] : setting.properties) text.property(name, value);
  return text;
}

std::string pipeline_around(const ElementSetting& setting) {
  return "appsrc name=in format=time max-bytes=0 ! " + element_words(setting).description() +
         " name=filter ! appsink name=out sync=false";
}

// When frames enter and leave the element, and the noise that it says then.
class ElementWatch {
 public:
  explicit ElementWatch(Pipeline& pipeline)
      : pipeline_(pipeline),
        element_(pipeline.element("filter")),
        tells_noise_(g_object_class_find_property(G_OBJECT_GET_CLASS(element_.get()), "noise-level") !=
                     nullptr) {
    watch<&ElementWatch::enters>("sink");
    watch<&ElementWatch::leaves>("src");
  }

  // Stops the pipeline: none of its threads may come back here.
  ~ElementWatch() { pipeline_.stop(); }
  ElementWatch(const ElementWatch&) = delete;
  ElementWatch& operator=(const ElementWatch&) = delete;

  [[nodiscard]] std::vector<double> times() const {
    const std::scoped_lock lock(mutex_);
    std::vector<double> ms;
    for (size_t i = 0; i < std::min(entered_.size(), left_.size()); ++i)
      ms.push_back(left_[i] - (i == 0 ? entered_[i] : std::max(entered_[i], left_[i - 1])));
    return ms;
  }

  [[nodiscard]] std::vector<double> noise() const {
    const std::scoped_lock lock(mutex_);
    return noise_;
  }

 private:
  void enters() {
    const std::scoped_lock lock(mutex_);
    entered_.push_back(clock_.ms());
  }

  void leaves() {
    const double now = clock_.ms();
    double noise = 0;
    if (tells_noise_) g_object_get(element_.get(), "noise-level", &noise, nullptr);
    const std::scoped_lock lock(mutex_);
    left_.push_back(now);
    if (tells_noise_) noise_.push_back(noise);
  }

  template <void (ElementWatch::*see)()>
  void watch(const char* pad_name) {
    const auto probe = [](GstPad*, GstPadProbeInfo*, gpointer self) {
      (static_cast<ElementWatch*>(self)->*see)();
      return GST_PAD_PROBE_OK;
    };
    const PadPtr pad{gst_element_get_static_pad(element_.get(), pad_name)};
    gst_pad_add_probe(pad.get(), GST_PAD_PROBE_TYPE_BUFFER, probe, this, nullptr);
  }

  Pipeline& pipeline_;
  ElementPtr element_;
  bool tells_noise_;
  Stopwatch clock_;
  mutable std::mutex mutex_;  // guards everything below
  std::vector<double> entered_;
  std::vector<double> left_;
  std::vector<double> noise_;
};

// Keeps the source filled, then ends the stream.
class Feeder {
 public:
  Feeder(GstElement* source, const Sequence& noisy) : source_(GST_APP_SRC(source)), noisy_(noisy) {
    const CapsPtr caps{gst_video_info_to_caps(&noisy.info)};
    gst_app_src_set_caps(source_, caps.get());
  }

  void feed() {
    while (pushed_ < noisy_.frames.size() && gst_app_src_get_current_level_buffers(source_) < kQueued) push();
    if (pushed_ < noisy_.frames.size() || has_ended_) return;
    gst_app_src_end_of_stream(source_);
    has_ended_ = true;
  }

 private:
  void push() {
    const GstVideoInfo& info = noisy_.info;
    const auto time = [&](uint64_t frame) {
      return gst_util_uint64_scale(frame, GST_SECOND * info.fps_d, info.fps_n);
    };
    BufferPtr buffer = to_buffer(noisy_.frames[pushed_], info);
    GST_BUFFER_PTS(buffer.get()) = time(pushed_);
    GST_BUFFER_DURATION(buffer.get()) = time(pushed_ + 1) - time(pushed_);
    ++pushed_;
    gst_app_src_push_buffer(source_, buffer.release());  // one that fails is reported by the pipeline
  }

  GstAppSrc* source_;
  const Sequence& noisy_;
  size_t pushed_ = 0;
  bool has_ended_ = false;
};

}  // namespace

std::string element_text(const ElementSetting& setting) { return element_words(setting).description(); }

Filtered run_element(const Sequence& noisy, const ElementSetting& setting, const Tick& tick) {
  Pipeline pipeline(pipeline_around(setting));
  const ElementPtr source = pipeline.element("in");
  const ElementPtr sink = pipeline.element("out");
  Filtered filtered;
  {
    ElementWatch watch(pipeline);
    Feeder feeder(source.get(), noisy);
    pipeline.play();
    while (!gst_app_sink_is_eos(GST_APP_SINK(sink.get()))) {
      feeder.feed();
      const SamplePtr sample{gst_app_sink_try_pull_sample(GST_APP_SINK(sink.get()), kPatience)};
      if (sample) filtered.frames.push_back(to_planes(gst_sample_get_buffer(sample.get()), noisy.info));
      tick(sample ? 1 : 0);
      pipeline.check_errors();
      check_interrupted();
    }
    pipeline.stop();
    filtered.ms = watch.times();
    filtered.noise = watch.noise();
  }
  if (filtered.frames.size() != noisy.frames.size())
    throw Failure(formatted("%s gave %zu frames for %zu", element_text(setting).c_str(),
                            filtered.frames.size(), noisy.frames.size()));
  return filtered;
}

}  // namespace nonlocal::tools
