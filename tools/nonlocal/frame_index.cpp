#include "frame_index.h"

#include <algorithm>
#include <mutex>

#include "filter_pipeline.h"
#include "gst.h"
#include "pipeline_text.h"

namespace nonlocal::tools {
namespace {

struct CodedFrame {
  GstClockTime time;
  bool key;
};

// Gathers coded frames on a streaming thread.
class Gatherer {
 public:
  // `has_headers`: some packets are no frames but tell of them.
  explicit Gatherer(bool has_headers) : has_headers_(has_headers) {}

  void take(GstPad* pad, GstBuffer* buffer) {
    if (has_headers_ && GST_BUFFER_FLAG_IS_SET(buffer, GST_BUFFER_FLAG_HEADER)) return;
    const GstClockTime time = stream_time(pad, buffer);
    // What lies before the beginning of an edit list is decoded, never shown.
    const bool shown = GST_BUFFER_PTS_IS_VALID(buffer) ? GST_CLOCK_TIME_IS_VALID(time) : true;
    if (!shown || GST_BUFFER_FLAG_IS_SET(buffer, GST_BUFFER_FLAG_DECODE_ONLY)) return;
    const std::scoped_lock lock(mutex_);
    frames_.push_back({time, !GST_BUFFER_FLAG_IS_SET(buffer, GST_BUFFER_FLAG_DELTA_UNIT)});
  }

  [[nodiscard]] int64_t count() const {
    const std::scoped_lock lock(mutex_);
    return static_cast<int64_t>(frames_.size());
  }

  [[nodiscard]] std::vector<CodedFrame> frames() const {
    const std::scoped_lock lock(mutex_);
    return frames_;
  }

 private:
  const bool has_headers_;
  mutable std::mutex mutex_;
  std::vector<CodedFrame> frames_;
};

FrameIndex index_of(std::vector<CodedFrame> frames) {
  FrameIndex index;
  index.frames = static_cast<int64_t>(frames.size());
  std::ranges::sort(frames, {}, &CodedFrame::time);
  const bool twice =
      std::ranges::adjacent_find(frames, {}, &CodedFrame::time) != frames.end();  // or more than one without
  if (frames.empty() || twice || !GST_CLOCK_TIME_IS_VALID(frames.back().time)) return index;
  for (const CodedFrame& frame : frames) {
    if (frame.key) index.keys.push_back(static_cast<int64_t>(index.times.size()));
    index.times.push_back(frame.time);
  }
  return index;
}

}  // namespace

FrameIndex index_frames(const std::string& path, const MediaFile& media,
                        const std::function<void(int64_t)>& tick) {
  PipelineText text;
  text.add("filesrc").property("location", path).add("! parsebin name=in");
  text.add("in. ! " + media.video_type + " ! fakesink name=frames sync=false");
  add_unused(text, media);
  Pipeline pipeline(text.description());
  end_without_unused(pipeline);
  if (media.is_matroska)
    begin_segments_at_zero(
        PadPtr{gst_element_get_static_pad(pipeline.element("frames").get(), "sink")}.get());
  Gatherer gatherer(media.video_type == "video/x-theora");
  pipeline.watch("frames", "sink", [&](GstPad* pad, GstBuffer* buffer) { gatherer.take(pad, buffer); });
  pipeline.play();
  pipeline.wait_for_end([&] { tick(gatherer.count()); });
  pipeline.stop();
  return index_of(gatherer.frames());
}

}  // namespace nonlocal::tools
