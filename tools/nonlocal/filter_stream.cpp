#include "filter_stream.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <optional>

#include "failure.h"
#include "gst.h"
#include "partial_file.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

// YUV4MPEG2 as GStreamer 1.22 reads and writes it.
constexpr int kStreamBits = 8;

// GStreamer 1.22's y4menc writes frames as they lie in memory: without room between rows, where nothing asks
// for that, and where rows are multiples of four samples.
constexpr const char* kTight = "identity drop-allocation=true";
constexpr int kTightWidth = 8;

void check_width(const FilterJob& job, int width) {
  if (job.output == kStandardStream && width % kTightWidth)
    throw Failure(formatted("%s: is %d samples wide, a stream takes multiples of %d: write a file",
                            job.input.c_str(), width, kTightWidth));
}

int width_at(GstPad* pad) {
  const CapsPtr caps{gst_pad_get_current_caps(pad)};
  int width = 0;
  gst_structure_get_int(gst_caps_get_structure(caps.get(), 0), "width", &width);
  return width;
}

void check(const FilterJob& job, const MediaFile& media) {
  for (const Filter& filter : job.chain) check_properties(filter.element, filter.properties);
  check_width(job, media.width);
  if (job.output != kStandardStream) return check_container(job.output, codec_named(job.codec));
  if (isatty(STDOUT_FILENO)) throw Failure("-: frames go to a file or a program, not to a terminal");
  if (media.bits > kStreamBits)
    throw Failure(formatted("%s: has %d bits a sample, a stream would keep %d: write a file",
                            job.input.c_str(), media.bits, kStreamBits));
}

PipelineText stream_pipeline(const FilterJob& job, const MediaFile& media, const std::string& path) {
  PipelineText text;
  if (job.input == kStandardStream)
    text.add("fdsrc fd=0 ! y4mdec");
  else
    text.add("filesrc")
        .property("location", job.input)
        .add("! parsebin ! " + media.video_type + " ! decodebin");
  text.add("! queue ! videoconvert !");
  add_filters(text, job.chain);
  text.add("! queue ! videoconvert !");
  if (job.output == kStandardStream)
    return text.add(kTight).add("! y4menc name=encode ! fdsink fd=1 sync=false");
  const Codec& codec = codec_named(job.codec);
  text.add(encoder_of(codec, job.quality)).property("name", kEncoderName).add("! " + codec.coded);
  return text.add("! " + muxer_of(job.output) + " ! filesink").property("location", path);
}

}  // namespace

bool is_stream(const FilterJob& job) { return job.input == kStandardStream || job.output == kStandardStream; }

int64_t run_stream(const FilterJob& job, const std::function<void(int64_t)>& tick) {
  const MediaFile media = job.input == kStandardStream ? MediaFile() : inspect(job.input);
  check(job, media);
  std::optional<PartialFile> file;
  if (job.output != kStandardStream) file.emplace(job.output);
  std::atomic<int64_t> in = 0;
  std::atomic<int64_t> out = 0;
  std::atomic<int> width = 0;
  Pipeline pipeline(stream_pipeline(job, media, file ? file->path().string() : "").description());
  pipeline.watch(filter_name(0).c_str(), "sink", [&](GstPad* pad, GstBuffer*) {
    if (in++ == 0) width = width_at(pad);
  });
  pipeline.watch(kEncoderName, "src", [&](GstPad*, GstBuffer*) { ++out; });
  pipeline.play();
  pipeline.wait_for_end([&] {
    check_width(job, width);
    tick(out);
  });
  pipeline.stop();
  if (in == 0) throw Failure(job.input + ": no frame could be decoded");
  if (in != out)
    throw Failure(
        formatted("%s: frames were lost: %ld in, %ld out", job.output.c_str(), long(in), long(out)));
  if (file) file->commit();
  return out;
}

}  // namespace nonlocal::tools
