// A file filtered from beginning to end, segment by segment.
#pragma once

#include <functional>
#include <string>

#include "filter_pipeline.h"
#include "segments.h"
#include "work_folder.h"

namespace nonlocal::tools {

struct FilterRequest {
  FilterJob job;
  std::string picture;    // a before/after PNG of the middle frame; empty: none
  std::string reference;  // the clean version of the input; empty: none
  bool resume = false;    // goes on where a run that did not end stopped
  double segment_seconds = kSegmentSeconds;
};

struct FilterResult {
  Plan plan;
  SegmentReport all;  // counts and sums over all segments; without times
  int64_t frames_out = 0;
  int64_t frames_now = 0;   // of those, by this run
  double last_seconds = 0;  // where the last frame is
  double seconds = 0;       // that it took
  std::string description;  // one pipeline for the whole, for gst_parse_launch; empty for pictures
  std::string command;      // and for a shell
};

// What goes on meanwhile.
class FilterListener {
 public:
  virtual ~FilterListener() = default;
  virtual void indexed(
      int64_t frames) = 0;  // about ten times a second, as the input is read for the first time
  virtual void begins(const Plan& plan, int64_t frames_done) = 0;
  virtual void filtered(int64_t frames, double noise) = 0;  // about ten times a second, of all frames
  virtual void joined(int64_t frames) = 0;                  // with each frame
};

// The output has its name only once it is whole. Throws Failure, and Interrupted after Ctrl-C: finished
// segments are kept for the next run then, and after Ctrl-C a file beside the output has what there is, to
// play.
FilterResult run_filter(const FilterRequest& request, FilterListener& listener);

}  // namespace nonlocal::tools
