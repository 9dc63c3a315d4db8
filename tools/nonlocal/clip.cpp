// nonlocal clip: a noisy clip as from a camera in low light, and the clean one that it was made from.
#include <gst/app/gstappsrc.h>
#include <gst/video/video.h>

#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "commands.h"
#include "failure.h"
#include "gst.h"
#include "noise.h"
#include "option_checks.h"
#include "partial_file.h"
#include "pipeline_text.h"
#include "progress.h"
#include "scene.h"
#include "text.h"
#include "yuv420.h"

namespace nonlocal::tools {
namespace {

struct ClipOptions {
  std::string output;
  std::string clean;
  std::string size = "1280x720";
  int frames = 75;
  int fps = 25;
  double sigma = 15;
  double chroma_sigma = -1;  // negative: half of sigma
  uint64_t seed = 1;
  bool quiet = false;
};

cv::Size parsed_size(const std::string& text) {
  constexpr int kSmallest = 32;
  constexpr int kLargest = 8192;
  int width = 0;
  int height = 0;
  const auto fits = [](int n) { return n >= kSmallest && n <= kLargest && n % 2 == 0; };
  if (!read_size(text, width, height) || !fits(width) || !fits(height))
    throw Failure("--size takes WIDTHxHEIGHT, both even, from 32 to 8192, not " + text);
  return {width, height};
}

// Writes I420 frames to a Matroska file without loss.
class LosslessWriter {
 public:
  LosslessWriter(const std::string& path, cv::Size size, int fps)
      : file_(path),
        pipeline_(encoding(file_.path().string())),
        source_(pipeline_.element("frames")),
        fps_(fps) {
    gst_video_info_set_format(&info_, GST_VIDEO_FORMAT_I420, size.width, size.height);
    info_.fps_n = fps;
    info_.fps_d = 1;
    gst_video_colorimetry_from_string(&info_.colorimetry, GST_VIDEO_COLORIMETRY_BT709);
    const CapsPtr caps{gst_video_info_to_caps(&info_)};
    gst_app_src_set_caps(GST_APP_SRC(source_.get()), caps.get());
    pipeline_.play();
  }

  void write(const cv::Mat& samples) {
    GstBuffer* buffer = gst_buffer_new_memdup(samples.data, samples.total());
    GST_BUFFER_PTS(buffer) = gst_util_uint64_scale(written_, GST_SECOND, fps_);
    GST_BUFFER_DURATION(buffer) =
        gst_util_uint64_scale(written_ + 1, GST_SECOND, fps_) - GST_BUFFER_PTS(buffer);
    describe_planes(buffer);
    ++written_;
    if (gst_app_src_push_buffer(GST_APP_SRC(source_.get()), buffer) == GST_FLOW_OK) return;
    pipeline_.check_errors();
    throw Failure(file_.path().string() + ": the encoder takes no more frames");
  }

  void finish() {
    gst_app_src_end_of_stream(GST_APP_SRC(source_.get()));
    pipeline_.wait_for_end([] {});
    pipeline_.stop();
  }

  void commit() { file_.commit(); }

 private:
  static std::string encoding(const std::string& path) {
    PipelineText text;
    text.add(
        "appsrc name=frames format=time block=true max-buffers=4 max-bytes=0 ! avenc_ffv1 ! matroskamux");
    text.add("! filesink").property("location", path);
    return text.description();
  }

  // The planes are packed; GStreamer would expect rows of a multiple of four bytes.
  void describe_planes(GstBuffer* buffer) const {
    const int width = info_.width;
    const gsize luma = gsize(width) * info_.height;
    gsize offsets[GST_VIDEO_MAX_PLANES] = {0, luma, luma * 5 / 4};
    gint strides[GST_VIDEO_MAX_PLANES] = {width, width / 2, width / 2};
    gst_buffer_add_video_meta_full(buffer, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_I420, width,
                                   info_.height, 3, offsets, strides);
  }

  PartialFile file_;
  Pipeline pipeline_;
  ElementPtr source_;
  GstVideoInfo info_;
  uint64_t written_ = 0;
  int fps_;
};

// Chroma, made of all three channels and halved in size, has less of a sensor's noise.
double chroma_sigma(const ClipOptions& options) {
  return options.chroma_sigma < 0 ? options.sigma / 2 : options.chroma_sigma;
}

void check_name(const std::string& path) {
  if (std::filesystem::path(path).extension() != ".mkv")
    throw Failure(path + ": a clip is written without loss, as .mkv");
}

void run(const ClipOptions& options) {
  const cv::Size size = parsed_size(options.size);
  check_name(options.output);
  if (!options.clean.empty()) check_name(options.clean);
  if (options.clean == options.output) throw Failure("--clean: the noisy and the clean clip need two names");
  if (options.frames > NightStreet::kLongest * options.fps) throw Failure("--frames: at most 60 seconds");
  catch_interrupts();
  start_gstreamer();

  LosslessWriter noisy(options.output, size, options.fps);
  std::optional<LosslessWriter> clean;
  if (!options.clean.empty()) clean.emplace(options.clean, size, options.fps);
  {
    Progress progress(options.frames, options.quiet);
    const NightStreet street(size, options.seed);
    for (int i = 0; i < options.frames; ++i) {
      check_interrupted();
      const Yuv420 frame = to_yuv420(street.frame(static_cast<double>(i) / options.fps));
      if (clean) clean->write(frame.samples);
      cv::RNG rng(frame_seed(options.seed, i));
      add_noise(frame.y, options.sigma, rng);
      for (const cv::Mat& plane : {frame.u, frame.v}) add_noise(plane, chroma_sigma(options), rng);
      noisy.write(frame.samples);
      progress.show(i + 1, "");
    }
  }
  noisy.finish();
  if (clean) clean->finish();
  noisy.commit();
  if (clean) clean->commit();
}

}  // namespace

void add_clip(CLI::App& app) {
  auto* command =
      app.add_subcommand("clip", "Make a noisy clip as from a camera in low light, to try the filter on");
  const auto options = std::make_shared<ClipOptions>();
  command->add_option("OUT", options->output, "The noisy clip to write: .mkv (FFV1, lossless)")->required();
  command->add_option("--clean", options->clean, "Write the clip without noise here: .mkv");
  command->add_option("--size", options->size, "WIDTHxHEIGHT, both even")->capture_default_str();
  command->add_option("--frames", options->frames, "How many frames")
      ->check(CLI::Range(1, 7200))
      ->capture_default_str();
  command->add_option("--fps", options->fps, "Frames a second")
      ->check(CLI::Range(1, 120))
      ->capture_default_str();
  command->add_option("--sigma", options->sigma, "Standard deviation of the noise of luma, of 255")
      ->check(number_within(0, 100))
      ->capture_default_str();
  command->add_option("--chroma-sigma", options->chroma_sigma, "And of both chroma planes [half of --sigma]")
      ->check(number_within(0, 100));
  command->add_option("--seed", options->seed, "Of the picture and its noise: the same seed, the same frames")
      ->capture_default_str();
  command->add_flag("--quiet", options->quiet, "Show no progress");
  command->callback([options] { run(*options); });
}

}  // namespace nonlocal::tools
