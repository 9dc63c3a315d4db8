#include "segment_job.h"

#include <malloc.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "failure.h"
#include "filter_pipeline.h"
#include "segment_gate.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

// Goes, unless the segment is whole.
class PartialSegment {
 public:
  explicit PartialSegment(std::filesystem::path path) : path_(std::move(path)) {}
  ~PartialSegment() {
    std::error_code ignored;
    if (!kept_) std::filesystem::remove(path_, ignored);
  }
  PartialSegment(const PartialSegment&) = delete;
  PartialSegment& operator=(const PartialSegment&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  void keep() { kept_ = true; }

 private:
  std::filesystem::path path_;
  bool kept_ = false;
};

// GStreamer's data protocol cannot write all events that it must read again: of those, what frames need.
GstPadProbeReturn plain_events_only(GstPad*, GstPadProbeInfo* info, gpointer) {
  auto* event = GST_PAD_PROBE_INFO_EVENT(info);
  switch (GST_EVENT_TYPE(event)) {
    case GST_EVENT_STREAM_START:
      gst_event_unref(event);
      GST_PAD_PROBE_INFO_DATA(info) = gst_event_new_stream_start("segment");
      return GST_PAD_PROBE_OK;
    case GST_EVENT_CAPS:
    case GST_EVENT_SEGMENT:
    case GST_EVENT_EOS:
      return GST_PAD_PROBE_OK;
    default:
      return GST_PAD_PROBE_DROP;
  }
}

void write_plain_events_only(const Pipeline& pipeline) {
  const PadPtr pad{gst_element_get_static_pad(pipeline.element(kStoreName).get(), "sink")};
  gst_pad_add_probe(pad.get(), GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, plain_events_only, nullptr, nullptr);
}

void check_complete(const Observed& seen) {
  const long in = seen.report.frames_in;
  const long out = seen.report.frames_out();
  if (in != seen.frames_filtered || in != out)
    throw Failure(
        formatted("frames were lost: %ld in, %ld filtered, %ld out", in, long(seen.frames_filtered), out));
}

// Frames that cannot be put in order are not worth keeping.
void check_times(std::vector<GstClockTime> times) {
  std::ranges::sort(times);
  const auto twice = std::ranges::adjacent_find(times);
  if (twice == times.end()) return;
  if (!GST_CLOCK_TIME_IS_VALID(*twice)) throw Failure("its frames have no times");
  throw Failure(formatted("more than one frame has the time %.3f s, as in an animated GIF: convert it first",
                          static_cast<double>(*twice) / GST_SECOND));
}

// x264 (164, with mbtree) reads memory that it has not written: what the same frames are coded to would
// depend on what lay there before. From here on malloc() gives zeros (the complement of the number), as a new
// process does.
void make_encoders_repeatable() { mallopt(M_PERTURB, 0xff); }

// Null where the file cannot be sought in as the segment needs it.
std::optional<SegmentResult> run_once(const Plan& plan, const Segment& segment,
                                      const std::filesystem::path& path, const SegmentWishes& wishes,
                                      bool jumps) {
  Pipeline pipeline(segment_pipeline(plan.job, plan.media, path.string()).description());
  write_plain_events_only(pipeline);
  end_without_unused(pipeline);
  if (plan.media.is_matroska)
    begin_segments_at_zero(
        PadPtr{gst_element_get_static_pad(pipeline.element(kDecodedName).get(), "sink")}.get());
  SegmentGate gate(pipeline, segment, jumps);
  FrameWatch watch(pipeline, plan.job.chain, segment, wishes.watch);
  SegmentResult result;
  result.whole = true;
  const auto end_early = [&] {
    result.whole = false;
    gate.close();
  };
  pipeline.play();
  if (jumps && !gate.jump()) return std::nullopt;
  const auto tick = [&] {
    const Observed seen = watch.observed();
    if (!seen.change.empty()) throw Failure(seen.change);
    wishes.tick(seen);
  };
  pipeline.wait_for_end(tick, wishes.ends_at_interrupt ? end_early : std::function<void()>());
  if (gate.jumped_too_far()) return std::nullopt;
  pipeline.stop();
  result.seen = watch.observed();
  result.picture_before = watch.take_picture_before();
  result.picture_after = watch.take_picture_after();
  return result;
}

}  // namespace

SegmentResult run_segment(const Plan& plan, const Segment& segment, WorkFolder& work,
                          const SegmentWishes& wishes) {
  make_encoders_repeatable();
  PartialSegment partial(work.partial(segment));
  const bool begins_later = segment.feed_begin > 0;
  auto result = run_once(plan, segment, partial.path(), wishes, begins_later);
  if (!result) result = run_once(plan, segment, partial.path(), wishes, false);
  check_complete(result->seen);
  check_times(result->seen.report.times);
  if (!result->seen.problem.empty()) return std::move(*result);
  if (result->whole) work.finish(segment, result->seen.report);
  partial.keep();
  return std::move(*result);
}

}  // namespace nonlocal::tools
