// Lets of a decoder's frames pass what a segment feeds its filters with, and of theirs what it keeps.
#pragma once

#include <gst/gst.h>

#include <atomic>

#include "gst.h"
#include "segments.h"

namespace nonlocal::tools {

class SegmentGate {
 public:
  // `pipeline`, of segment_pipeline(), has to stop before this goes: its threads come here. `jumps`: no frame
  // passes before jump().
  SegmentGate(Pipeline& pipeline, const Segment& segment, bool jumps);
  SegmentGate(const SegmentGate&) = delete;
  SegmentGate& operator=(const SegmentGate&) = delete;

  // Of a pipeline that plays: jumps to the key frame where the segment begins. False where that is not
  // possible. Throws Failure for an error in the pipeline, and Interrupted.
  bool jump();

  // From the next frame on nothing passes: the pipeline ends as at the end of the file.
  void close() { closed_ = true; }

  // The jump went too far: the segment lacks frames.
  [[nodiscard]] bool jumped_too_far() const { return too_far_; }

 private:
  // Each runs on a streaming thread.
  GstPadProbeReturn decoded(GstPad* pad, GstPadProbeInfo* info);
  GstPadProbeReturn frame(GstPad* pad, GstPadProbeInfo* info);
  GstPadProbeReturn event(GstEventType type);

  Pipeline& pipeline_;
  const Segment segment_;
  PadPtr pad_;
  const bool jumps_;
  std::atomic<bool> open_;             // to frames: they come from behind the jump
  std::atomic<bool> running_ = false;  // the decoder
  std::atomic<bool> closed_ = false;
  std::atomic<bool> too_far_ = false;
  bool begun_ = false;
};

}  // namespace nonlocal::tools
