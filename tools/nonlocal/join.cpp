#include "join.h"

#include <gst/app/gstappsink.h>
#include <gst/app/gstappsrc.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "coded_colours.h"
#include "failure.h"
#include "filter_pipeline.h"
#include "gst.h"
#include "matroska_tags.h"
#include "orientation.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

struct Part {
  Segment segment;
  std::filesystem::path coded;
  SegmentReport report;
};

std::vector<Part> parts_of(const Plan& plan, const WorkFolder& work, const std::optional<CutSegment>& cut) {
  std::vector<Part> parts;
  for (const Segment& segment : plan.segments) {
    if (work.has(segment)) {
      parts.push_back({segment, work.coded(segment), work.report(segment)});
      continue;
    }
    if (!cut) throw Failure(formatted("%s: segment %d is not finished", work.path().c_str(), segment.index));
    if (!cut->coded.empty()) parts.push_back({segment, cut->coded, cut->report});
    break;
  }
  return parts;
}

[[noreturn]] void fail(const Part& part, const std::string& what) {
  throw Failure(part.coded.string() + ": " + what);
}

// The times of all frames as they follow each other in the file. They rise from segment to segment, and in
// each, once sorted, from frame to frame.
std::vector<GstClockTime> checked_times(const std::vector<Part>& parts) {
  std::vector<GstClockTime> all;
  GstClockTime next = 0;
  for (const Part& part : parts) {
    std::vector<GstClockTime> sorted = part.report.times;
    std::ranges::sort(sorted);
    for (const GstClockTime time : sorted) {
      if (!GST_CLOCK_TIME_IS_VALID(time)) fail(part, "a frame has no time");
      if (time < next || !part.segment.keeps(time))
        fail(part, formatted("a frame at %.3f s is out of place", static_cast<double>(time) / GST_SECOND));
      next = time + 1;
    }
    all.insert(all.end(), part.report.times.begin(), part.report.times.end());
  }
  return all;
}

// Decoding times: those of the frames in the order in which they are shown, so much earlier that none is
// decoded after it is shown. They may lie before 0. Encoders' own do not fit from segment to segment where
// the frame rate varies.
std::vector<gint64> decoding_times(const std::vector<GstClockTime>& times) {
  std::vector<GstClockTime> shown = times;
  std::ranges::sort(shown);
  const auto count = static_cast<gint64>(times.size());
  gint64 delay = 0;
  for (gint64 i = 0; i < count; ++i)
    delay = std::max<gint64>(delay, i - (std::ranges::lower_bound(shown, times[i]) - shown.begin()));
  const GstClockTime step = count > 1 ? shown[1] - shown[0] : GST_SECOND;
  std::vector<gint64> decoded(times.size());
  for (gint64 i = 0; i < count; ++i)
    decoded[i] = i < delay ? static_cast<gint64>(shown[0]) - (delay - i) * static_cast<gint64>(step)
                           : static_cast<gint64>(shown[i - delay]);
  return decoded;
}

// What the last frame must last longer so that all decoding takes as long as all showing: MP4's muxer writes
// an edit list of that length, and players show nothing behind it. More than 0 where frames at the end are
// farther apart than those at the beginning.
gint64 lacking(const std::vector<GstClockTime>& shown, const std::vector<gint64>& decoded) {
  if (shown.empty()) return 0;
  const auto [first, last] = std::ranges::minmax(shown);
  return std::max<gint64>(static_cast<gint64>(last - first) - (decoded.back() - decoded.front()), 0);
}

// Reads a segment's coded frames.
class CodedFrames {
 public:
  explicit CodedFrames(const std::filesystem::path& path)
      : pipeline_(PipelineText()
                      .add("filesrc")
                      .property("location", path.string())
                      .add("! gdpdepay ! appsink name=frames sync=false max-buffers=64")
                      .description()),
        sink_(pipeline_.element("frames")) {
    pipeline_.play();
  }

  // Null at the end.
  SamplePtr next() { return pipeline_.next_sample(sink_.get()); }

 private:
  Pipeline pipeline_;
  ElementPtr sink_;
};

// The muxer's side.
class JoinedFrames {
 public:
  explicit JoinedFrames(Pipeline& pipeline) : pipeline_(pipeline), source_(pipeline.element(kJoinedName)) {
    gst_segment_init(&segment_, GST_FORMAT_TIME);
    segment_.start = kZero;
  }

  // It lasts so much longer than it says.
  void push(GstSample* coded, GstClockTime shown, gint64 decoded, gint64 longer) {
    GstCaps* caps = gst_sample_get_caps(coded);
    if (caps_ && size_of(caps) != size_of(caps_.get()))
      throw Failure("frames are " + size_of(caps) + " behind others of " + size_of(caps_.get()) +
                    ": a file holds frames of one size");
    if (caps_ && !gst_caps_is_equal(caps, caps_.get()))
      throw Failure("segments are coded in different ways: " + description(caps) + ", before " +
                    description(caps_.get()));
    if (!caps_) caps_.reset(gst_caps_ref(caps));
    GstBuffer* buffer = gst_buffer_copy(gst_sample_get_buffer(coded));
    write_colours(buffer, caps);
    GST_BUFFER_PTS(buffer) = kZero + shown;
    GST_BUFFER_DTS(buffer) = kZero + decoded;
    if (GST_BUFFER_DURATION_IS_VALID(buffer)) GST_BUFFER_DURATION(buffer) += longer;
    const SamplePtr sample{gst_sample_new(buffer, caps, &segment_, nullptr)};
    gst_buffer_unref(buffer);
    gst_app_src_push_sample(GST_APP_SRC(source_.get()), sample.get());
    wait_for_room();
  }

  void end() { gst_app_src_end_of_stream(GST_APP_SRC(source_.get())); }

 private:
  // So far in that decoding times before the first frame's are none below 0.
  static constexpr GstClockTime kZero = 3600 * GST_SECOND;

  static std::string description(const GstCaps* caps) { return StringPtr{gst_caps_to_string(caps)}.get(); }

  void wait_for_room() {
    constexpr guint64 kMost = 64;
    while (gst_app_src_get_current_level_buffers(GST_APP_SRC(source_.get())) > kMost) {
      pipeline_.check_errors();
      check_interrupted();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  Pipeline& pipeline_;
  ElementPtr source_;
  GstSegment segment_;
  CapsPtr caps_;
};

}  // namespace

void join(const Plan& plan, const WorkFolder& work, const std::filesystem::path& path,
          const std::optional<CutSegment>& cut, const std::function<void(int64_t)>& tick) {
  const std::vector<Part> parts = parts_of(plan, work, cut);
  const std::vector<GstClockTime> shown = checked_times(parts);
  const std::vector<gint64> decoded = decoding_times(shown);
  const gint64 longer = muxer_of(path) == "matroskamux" ? 0 : lacking(shown, decoded);
  Pipeline pipeline(join_pipeline(plan.job, plan.media, path.string()).description());
  end_without_unused(pipeline);
  mux_by_stream_time(pipeline, plan.media);
  keep_tags(pipeline, plan.media);
  JoinedFrames joined(pipeline);
  pipeline.play();
  size_t frame = 0;
  for (const Part& part : parts) {
    CodedFrames coded(part.coded);
    const size_t end = frame + part.report.times.size();
    for (SamplePtr sample; (sample = coded.next()); ++frame) {
      if (frame == end) fail(part, "has more frames than its report says");
      joined.push(sample.get(), shown[frame], decoded[frame], frame + 1 == shown.size() ? longer : 0);
      tick(static_cast<int64_t>(frame));
    }
    if (frame != end) fail(part, "has fewer frames than its report says");
  }
  joined.end();
  pipeline.wait_for_end([&] { tick(static_cast<int64_t>(frame)); });
  pipeline.stop();
  if (is_matroska(path)) mend_tags(path);
  if (says_orientation(path) && !plan.media.orientation.empty())
    write_orientation(path, plan.media.orientation, plan.media.width, plan.media.height);
}

}  // namespace nonlocal::tools
