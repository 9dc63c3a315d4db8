#include "filter_pictures.h"

#include <gst/app/gstappsink.h>
#include <gst/app/gstappsrc.h>
#include <gst/video/video.h>

#include <algorithm>
#include <array>
#include <deque>
#include <mutex>
#include <opencv2/imgproc.hpp>
#include <utility>

#include "failure.h"
#include "frame_times.h"
#include "gst.h"
#include "partial_file.h"
#include "picture_file.h"
#include "pipeline_text.h"
#include "planes.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

constexpr guint64 kQueued = 4;  // pictures ready for the filters, so that they do not wait for a file
constexpr GstClockTime kPatience = 10 * GST_MSECOND;
constexpr int kFps = 25;  // fusion over time goes by frames: any rate does
constexpr int kAlpha = 3;
constexpr const char* kColorimetry = "1:4:7:1";  // all of the range and BT.601's matrix, as JPEG has it
constexpr double kMost16 = 65535;
constexpr double kMost10 = 1023;

// ------------------------------------------------------------------------------------- pictures and buffers

GstVideoFormat format_of(const cv::Mat& colours) {
  const bool deep = colours.depth() == CV_16U;
  if (colours.channels() == 1) return deep ? GST_VIDEO_FORMAT_GRAY16_LE : GST_VIDEO_FORMAT_GRAY8;
  return deep ? GST_VIDEO_FORMAT_Y444_10LE : GST_VIDEO_FORMAT_BGR;
}

GstVideoInfo info_of(const cv::Mat& colours) {
  GstVideoInfo info;
  gst_video_info_set_format(&info, format_of(colours), colours.cols, colours.rows);
  if (GST_VIDEO_INFO_IS_YUV(&info)) gst_video_colorimetry_from_string(&info.colorimetry, kColorimetry);
  info.fps_n = kFps;
  info.fps_d = 1;
  return info;
}

// The planes of a frame: one for each channel of Y444_10LE, else one for all. Valid as long as this.
class Mapped {
 public:
  Mapped(GstBuffer* buffer, const GstVideoInfo& info, int type, GstMapFlags flags) : type_(type) {
    if (!gst_video_frame_map(&frame_, &info, buffer, flags)) throw Failure("a frame could not be read");
  }
  ~Mapped() { gst_video_frame_unmap(&frame_); }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  [[nodiscard]] bool is_planar() const { return GST_VIDEO_FRAME_N_PLANES(&frame_) > 1; }

  cv::Mat plane(int i) {
    return {GST_VIDEO_FRAME_HEIGHT(&frame_), GST_VIDEO_FRAME_WIDTH(&frame_), is_planar() ? CV_16UC1 : type_,
            GST_VIDEO_FRAME_PLANE_DATA(&frame_, i),
            static_cast<size_t>(GST_VIDEO_FRAME_PLANE_STRIDE(&frame_, i))};
  }

 private:
  GstVideoFrame frame_ = {};
  int type_;
};

// Y444_10LE has its planes Y, Cb, Cr; OpenCV its channels Y, Cr, Cb, chroma about 0.5, where 10 bits have
// 512.
constexpr std::array<int, 3> kPlaneOfChannel = {0, 2, 1};
constexpr std::array<double, 3> kOffset = {0, 0.5, 0.5};

void to_ten_bits(const cv::Mat& colours, Mapped& mapped) {
  cv::Mat exact;
  colours.convertTo(exact, CV_32F, 1 / kMost16);
  cv::cvtColor(exact, exact, cv::COLOR_BGR2YCrCb);
  for (int i = 0; i < exact.channels(); ++i) {
    cv::Mat channel;
    cv::extractChannel(exact, channel, i);
    channel.convertTo(channel, CV_16U, kMost10, kOffset[i]);
    cv::Mat(cv::min(channel, kMost10)).copyTo(mapped.plane(kPlaneOfChannel[i]));
  }
}

cv::Mat of_ten_bits(Mapped& mapped) {
  std::vector<cv::Mat> channels(kPlaneOfChannel.size());
  for (size_t i = 0; i < channels.size(); ++i)
    mapped.plane(kPlaneOfChannel[i]).convertTo(channels[i], CV_32F, 1 / kMost10, -kOffset[i] / kMost10);
  cv::Mat colours;
  cv::merge(channels, colours);
  cv::cvtColor(colours, colours, cv::COLOR_YCrCb2BGR);
  colours.convertTo(colours, CV_16U, kMost16);
  return colours;
}

BufferPtr buffer_of(const cv::Mat& colours, const GstVideoInfo& info) {
  BufferPtr buffer{gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&info), nullptr)};
  Mapped mapped(buffer.get(), info, colours.type(), GST_MAP_WRITE);
  if (mapped.is_planar()) {
    to_ten_bits(colours, mapped);
  } else {
    colours.copyTo(mapped.plane(0));
  }
  return buffer;
}

cv::Mat picture_of(GstBuffer* buffer, const GstVideoInfo& info, int type) {
  Mapped mapped(buffer, info, type, GST_MAP_READ);
  return mapped.is_planar() ? of_ten_bits(mapped) : mapped.plane(0).clone();
}

// ------------------------------------------------------------------------------------------------- the clip

std::string pipeline_around(const FilterChain& chain) {
  PipelineText text;
  text.add("appsrc name=in format=time max-bytes=0 ! videoconvert !");
  add_filters(text, chain);
  text.add("! videoconvert ! capsfilter name=as-given ! appsink name=out sync=false max-buffers=4");
  return text.description();
}

// A prompt colours gray pictures, too.
bool keeps_gray(const FilterChain& chain) {
  return std::ranges::none_of(chain, [](const Filter& filter) { return filter.element == "textcross"; });
}

class Run {
 public:
  Run(const FilterRequest& request, const PictureClip& clip, FilterReport& report)
      : chain_(request.job.chain),
        clip_(clip),
        report_(report),
        first_(read(0)),
        info_(info_of(split(first_).colours)),
        pipeline_(pipeline_around(chain_)),
        source_(pipeline_.element("in")),
        sink_(pipeline_.element("out")) {}

  ~Run() { pipeline_.stop(); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  FilterResult filter() {
    const Stopwatch clock;
    set_up();
    warn_of_losses();
    start();
    while (written_ < clip_.inputs.size()) {
      feed();
      const SamplePtr sample{gst_app_sink_try_pull_sample(GST_APP_SINK(sink_.get()), kPatience)};
      if (sample) write(gst_sample_get_buffer(sample.get()));
      pipeline_.check_errors();
      if (is_interrupted())
        throw Interrupted(
            formatted("interrupted: %zu of %zu pictures are written", written_, clip_.inputs.size()));
      if (!sample && gst_app_sink_is_eos(GST_APP_SINK(sink_.get()))) break;
      report_.filtered(static_cast<int64_t>(written_), noise_now());
    }
    if (written_ < clip_.inputs.size())
      throw Failure(formatted("%zu pictures went in, %zu came out", clip_.inputs.size(), written_));
    return result(clock.ms() / 1000);
  }

 private:
  // Alpha passes by.
  struct Parts {
    cv::Mat colours;
    cv::Mat alpha;  // may be empty
  };

  static Parts split(const cv::Mat& picture) {
    Parts parts{picture, {}};
    if (picture.channels() <= kAlpha) return parts;
    cv::extractChannel(picture, parts.alpha, kAlpha);
    cv::cvtColor(picture, parts.colours, cv::COLOR_BGRA2BGR);
    return parts;
  }

  [[nodiscard]] cv::Mat read(size_t i) const {
    return keeps_gray(chain_) ? read_picture_as_stored(clip_.inputs[i]) : read_picture(clip_.inputs[i]);
  }

  void warn_of_losses() {
    const bool deep = first_.depth() == CV_16U;
    const std::string& out = clip_.outputs[0];
    const int bits = is_taken_as_it_is() ? static_cast<int>(GST_VIDEO_INFO_COMP_DEPTH(&info_, 0)) : 8;
    if (deep && bits < 16)
      report_.warn(clip_.inputs[0] + formatted(": has 16 bits a channel, is filtered with %d", bits));
    if (deep && !holds_16_bits(out))
      report_.warn(out + ": holds 8 bits a channel, " + clip_.inputs[0] + " has 16");
    if (first_.channels() > kAlpha && !holds_alpha(out))
      report_.warn(out + ": holds no alpha, " + clip_.inputs[0] + " has it");
  }

  // Filters know once they are open: a network of three channels takes 8-bit RGB alone. One that cannot be
  // opened says so later.
  bool is_taken_as_it_is() {
    gst_element_set_state(pipeline_.get(), GST_STATE_PAUSED);
    const CapsPtr caps{gst_video_info_to_caps(&info_)};
    const PadPtr pad{gst_element_get_static_pad(pipeline_.element(filter_name(0).c_str()).get(), "sink")};
    const CapsPtr taken{gst_pad_query_caps(pad.get(), caps.get())};
    return !gst_caps_is_empty(taken.get());
  }

  void set_up() {
    const CapsPtr caps{gst_video_info_to_caps(&info_)};
    gst_app_src_set_caps(GST_APP_SRC(source_.get()), caps.get());
    g_object_set(pipeline_.element("as-given").get(), "caps", caps.get(), nullptr);
  }

  void start() {
    denoiser_ = first_denoiser();
    if (!denoiser_.empty())
      pipeline_.watch(denoiser_.c_str(), "src", [this](GstPad*, GstBuffer*) { note_noise(); });
    Plan plan;
    plan.frames = static_cast<int64_t>(clip_.inputs.size());
    report_.begins(plan, 0);
    pipeline_.play();
  }

  [[nodiscard]] std::string first_denoiser() const {
    for (size_t i = 0; i < chain_.size(); ++i)
      if (chain_[i].element == "nonlocaldenoise") return filter_name(i);
    return "";
  }

  // On a streaming thread.
  void note_noise() {
    double noise = 0;
    g_object_get(pipeline_.element(denoiser_.c_str()).get(), "noise-level", &noise, nullptr);
    const std::scoped_lock lock(mutex_);
    noise_ = noise;
    noise_sum_ += noise;
  }

  [[nodiscard]] double noise_now() const {
    const std::scoped_lock lock(mutex_);
    return noise_;
  }

  void feed() {
    GstAppSrc* source = GST_APP_SRC(source_.get());
    while (pushed_ < clip_.inputs.size() && gst_app_src_get_current_level_buffers(source) < kQueued) push();
    if (pushed_ == clip_.inputs.size() && !std::exchange(has_ended_, true)) gst_app_src_end_of_stream(source);
  }

  void push() {
    const cv::Mat picture = pushed_ == 0 ? first_ : read(pushed_);
    if (picture.size() != first_.size() || picture.type() != first_.type())
      throw Failure(clip_.inputs[pushed_] + ": expected the same size, depth and channels as " +
                    clip_.inputs[0] + formatted(" (%dx%d), found ", first_.cols, first_.rows) +
                    formatted("%dx%d, %d channels", picture.cols, picture.rows, picture.channels()));
    const Parts parts = split(picture);
    alphas_.push_back(parts.alpha);
    BufferPtr buffer = buffer_of(parts.colours, info_);
    GST_BUFFER_PTS(buffer.get()) = gst_util_uint64_scale(pushed_, GST_SECOND, kFps);
    GST_BUFFER_DURATION(buffer.get()) = GST_SECOND / kFps;
    ++pushed_;
    // One that fails is reported by the pipeline.
    gst_app_src_push_buffer(GST_APP_SRC(source_.get()), buffer.release());
  }

  void write(GstBuffer* buffer) {
    const int type = CV_MAKETYPE(first_.depth(), std::min(first_.channels(), kAlpha));
    cv::Mat picture = picture_of(buffer, info_, type);
    const cv::Mat& alpha = alphas_.front();
    if (!alpha.empty()) {
      cv::cvtColor(picture, picture, cv::COLOR_BGR2BGRA);
      cv::insertChannel(alpha, picture, kAlpha);
    }
    write_picture(clip_.outputs[written_], picture);
    alphas_.pop_front();
    ++written_;
  }

  [[nodiscard]] FilterResult result(double seconds) const {
    const std::scoped_lock lock(mutex_);
    FilterResult result;
    result.plan.media.width = first_.cols;
    result.plan.media.height = first_.rows;
    result.all.format = gst_video_format_to_string(GST_VIDEO_INFO_FORMAT(&info_));
    result.all.frames_in = static_cast<int64_t>(pushed_);
    result.all.noise_sum = noise_sum_;
    result.frames_out = result.frames_now = static_cast<int64_t>(written_);
    result.seconds = seconds;
    return result;
  }

  const FilterChain& chain_;
  const PictureClip& clip_;
  FilterReport& report_;
  const cv::Mat first_;
  const GstVideoInfo info_;  // of the colours
  Pipeline pipeline_;
  ElementPtr source_;
  ElementPtr sink_;
  std::string denoiser_;  // its name; empty: none
  size_t pushed_ = 0;
  size_t written_ = 0;
  bool has_ended_ = false;
  std::deque<cv::Mat> alphas_;  // of the pictures that are in the filters

  mutable std::mutex mutex_;  // guards everything below
  double noise_ = 0;
  double noise_sum_ = 0;
};

}  // namespace

FilterResult filter_pictures(const FilterRequest& request, const PictureClip& clip, FilterReport& report) {
  for (const Filter& filter : request.job.chain) check_properties(filter.element, filter.properties);
  for (const std::string& output : clip.outputs) {
    check_picture_name(output);
    PartialFile::check(output);
  }
  return Run(request, clip, report).filter();
}

}  // namespace nonlocal::tools
