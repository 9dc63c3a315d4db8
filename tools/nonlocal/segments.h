// A recording cut into segments that can be filtered one by one: in any order, on any machine, again after a
// failure. Joined they give the same frames as a run over the whole, since every run filters segment by
// segment:
//
//   const Plan plan = make_plan(job, kSegmentSeconds, tick);
//   WorkFolder work(WorkFolder::beside(job.output), plan, resume);               // work_folder.h
//   for (const Segment& segment : plan.segments)
//     if (!work.has(segment)) run_segment(plan, segment, work, {});              // segment_job.h
//   join(plan, work, path, std::nullopt, tick);                                  // join.h
//   work.remove();
//
// A segment begins a chain's reach behind a key frame. The frames between, its lead-in, are decoded and
// filtered but not kept: behind them fusion over time has settled, and the decoder needs nothing before the
// key frame.
#pragma once

#include <gst/gst.h>

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "filter_pipeline.h"
#include "frame_index.h"
#include "media_file.h"

namespace nonlocal::tools {

// Spans hold their beginning, not their end, in stream time: nanoseconds from the file's beginning. The first
// segment's begin at 0, the last one's end at GST_CLOCK_TIME_NONE.
struct Segment {
  int index = 0;
  int64_t first = 0;       // its first frame, counted from 0
  int64_t frames = 0;      // how many frames the recording's index has in it
  GstClockTime begin = 0;  // what is kept
  GstClockTime end = GST_CLOCK_TIME_NONE;
  GstClockTime feed_begin = 0;  // what the filters are fed with: lead-in, what is kept, frames ahead
  GstClockTime feed_end = GST_CLOCK_TIME_NONE;

  // A frame of this time; NONE is one without.
  [[nodiscard]] bool keeps(GstClockTime time) const {
    return time >= begin && (end == GST_CLOCK_TIME_NONE || time < end);
  }
};

// What a segment lasts, about, where the user does not say.
inline constexpr double kSegmentSeconds = 20;

// Segment n begins from n times `seconds` on at the first frame that a lead-in behind a key frame reaches.
// All is one segment where the frames have no times of their own.
std::vector<Segment> cut(const FrameIndex& index, double seconds, const Reach& reach);

// All that says which frames come out.
struct Plan {
  FilterJob job;
  MediaFile media;
  int64_t frames = 0;  // that the recording's index has
  std::vector<Segment> segments;
};

// Reads the input's index: the file once, without decoding; `tick` is called about ten times a second with
// the frames found so far. Throws Failure for an input that cannot be read, for filters' properties that are
// wrong, and for an output that cannot hold what there is to write.
Plan make_plan(const FilterJob& job, double segment_seconds, const std::function<void(int64_t)>& tick);

// The plan as a file: job, segments, and by what the input can be recognised. Equal plans have equal recipes;
// the output's name is no part of it, but for what kind of file that is.
nlohmann::json recipe_of(const Plan& plan);

// The plan that recipe_of() wrote; looks at the input anew. Throws Failure where that is another file now.
Plan plan_of(const nlohmann::json& recipe);

}  // namespace nonlocal::tools
