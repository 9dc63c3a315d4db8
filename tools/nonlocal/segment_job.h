// One segment of a plan, filtered. It gives the same frames whenever and wherever it is done again.
#pragma once

#include <functional>

#include "frame_watch.h"
#include "segments.h"
#include "work_folder.h"

namespace nonlocal::tools {

struct SegmentWishes {
  FrameWatch::Wishes watch;
  std::function<void(const Observed&)> tick = [](const Observed&) {};  // about ten times a second
  bool ends_at_interrupt = false;  // and gives what there is; else Ctrl-C throws Interrupted
};

struct SegmentResult {
  Observed seen;
  bool whole = false;  // false: Ctrl-C came before the end; work.partial(segment) has the frames until then
  SamplePtr picture_before;
  SamplePtr picture_after;
};

// Filters the segment into the folder: has() afterwards, where the result is whole and a reference, if any,
// fits. Throws Failure where frames got lost on the way, and for what GStreamer cannot do: a file that ends,
// a disk that is full.
SegmentResult run_segment(const Plan& plan, const Segment& segment, WorkFolder& work,
                          const SegmentWishes& wishes);

}  // namespace nonlocal::tools
