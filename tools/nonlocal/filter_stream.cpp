#include "filter_stream.h"

#include <gst/app/gstappsrc.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <exception>
#include <filesystem>
#include <optional>
#include <thread>

#include "failure.h"
#include "gst.h"
#include "partial_file.h"
#include "text.h"
#include "y4m_reader.h"

namespace nonlocal::tools {
namespace {

// YUV4MPEG2 as GStreamer 1.22 writes it.
constexpr int kStreamBits = 8;

constexpr const char* kInputName = "stream";
constexpr int kFramesWaiting = 4;  // read ahead of the filters

// GStreamer 1.22's y4menc writes frames as they lie in memory: without room between rows, where nothing asks
// for that, and where rows are multiples of four samples.
constexpr const char* kTight = "identity drop-allocation=true";
constexpr int kTightWidth = 8;

void check(const FilterJob& job, const MediaFile& media) {
  for (const Filter& filter : job.chain) check_properties(filter.element, filter.properties);
  if (job.output != kStandardStream) {
    check_container(job.output, codec_named(job.codec));
    return check_samples(job.input, codec_named(job.codec), media);
  }
  if (media.width % kTightWidth)
    throw Failure(formatted("%s: is %d samples wide, a stream takes multiples of %d: write a file",
                            job.input.c_str(), media.width, kTightWidth));
  if (isatty(STDOUT_FILENO)) throw Failure("-: frames go to a file or a program, not to a terminal");
  if (media.bits > kStreamBits)
    throw Failure(formatted("%s: has %d bits a sample, a stream would keep %d: write a file",
                            job.input.c_str(), media.bits, kStreamBits));
}

PipelineText stream_pipeline(const FilterJob& job, const MediaFile& media, const std::string& path) {
  PipelineText text;
  if (job.input == kStandardStream)
    text.add("appsrc format=time block=true").property("name", kInputName);
  else
    text.add("filesrc").property("location", job.input).add("! parsebin name=in");
  add_unused(text, media);
  if (job.input != kStandardStream) text.add("in. ! " + media.video_type + " ! decodebin");
  text.add("! queue !");
  add_filtering(text, job, media);
  if (job.output == kStandardStream)
    return text.add(kTight).add("! y4menc").property("name", kEncoderName).add("! fdsink fd=1 sync=false");
  add_coding(text, job, media);
  return text.add("! " + muxer_of(job.output) + " ! filesink").property("location", path);
}

// Reads frames into a pipeline, on a thread of its own.
class Feeder {
 public:
  Feeder() : reader_(STDIN_FILENO) {}

  [[nodiscard]] MediaFile media() const {
    const GstVideoInfo& info = reader_.info();
    MediaFile media;
    media.width = info.width;
    media.height = info.height;
    media.bits = GST_VIDEO_FORMAT_INFO_DEPTH(info.finfo, 0);
    return media;
  }

  // `pipeline` must be stopped before this goes.
  void start(Pipeline& pipeline) {
    source_ = pipeline.element(kInputName);
    const CapsPtr caps{gst_video_info_to_caps(&reader_.info())};
    g_object_set(source_.get(), "caps", caps.get(), "max-bytes", guint64(0), "max-buffers",
                 guint64(kFramesWaiting), nullptr);
    thread_ = std::jthread([this](const std::stop_token& stop) { feed(stop); });
  }

  // What went wrong in reading; after the pipeline's end.
  [[nodiscard]] bool failed() const { return !problem_.empty(); }
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  void feed(const std::stop_token& stop) {
    try {
      while (BufferPtr buffer = reader_.next(stop))
        if (gst_app_src_push_buffer(GST_APP_SRC(source_.get()), buffer.release()) != GST_FLOW_OK) break;
    } catch (const std::exception& error) {
      problem_ = error.what();
    }
    gst_app_src_end_of_stream(GST_APP_SRC(source_.get()));
  }

  Y4mReader reader_;
  ElementPtr source_;
  std::string problem_;  // written before the stream ends
  std::jthread thread_;
};

}  // namespace

bool is_stream(const FilterJob& job) { return job.input == kStandardStream || job.output == kStandardStream; }

StreamResult run_stream(const FilterJob& job, const std::function<void(int64_t)>& tick) {
  std::optional<Feeder> feeder;
  if (job.input == kStandardStream) feeder.emplace();
  const MediaFile media = feeder ? feeder->media() : inspect(job.input);
  check(job, media);
  std::optional<PartialFile> file;
  if (job.output != kStandardStream) file.emplace(job.output);
  std::atomic<int64_t> in = 0;
  std::atomic<int64_t> out = 0;
  std::atomic<GstClockTime> first = 0;
  std::atomic<GstClockTime> last = 0;
  Pipeline pipeline(stream_pipeline(job, media, file ? file->path().string() : "").description());
  end_without_unused(pipeline);
  pipeline.watch(filter_name(0).c_str(), "sink", [&](GstPad*, GstBuffer* buffer) {
    if (in++ == 0) first = GST_BUFFER_PTS(buffer);
    last = GST_BUFFER_PTS(buffer);
  });
  pipeline.watch(kEncoderName, "src", [&](GstPad*, GstBuffer*) { ++out; });
  pipeline.play();
  if (feeder) feeder->start(pipeline);
  pipeline.wait_for_end([&] { tick(out); });
  pipeline.stop();
  if (feeder && feeder->failed()) {
    if (!file || out == 0) throw Failure(feeder->problem());
    PartialFile(name_of_partial(job.output), file->path()).commit();
    throw Failure(feeder->problem() + "; the frames before are in " + name_of_partial(job.output));
  }
  if (in == 0) throw Failure(job.input + ": no frame could be decoded");
  if (in != out)
    throw Failure(
        formatted("%s: frames were lost: %ld in, %ld out", job.output.c_str(), long(in), long(out)));
  if (file) file->commit();
  const double frames_long = static_cast<double>(last - first) / GST_SECOND * media.frame_rate;
  return {out, media.frame_rate > 0 && std::abs(frames_long - static_cast<double>(out - 1)) > 1.5};
}

}  // namespace nonlocal::tools
