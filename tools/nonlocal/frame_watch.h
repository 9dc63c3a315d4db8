// Watches a segment's frames as they enter and leave the filters, and leave the encoder. What a segment does
// not keep, its lead-in and the frames ahead, is not looked at.
#pragma once

#include <gst/gst.h>

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>

#include "gst.h"
#include "reference.h"
#include "segment_report.h"
#include "segments.h"

namespace nonlocal::tools {

// What has been seen so far of a segment.
struct Observed {
  SegmentReport report;
  int64_t frames_filtered = 0;
  double last_seconds = 0;  // the newest frame's place in the recording
  double noise = 0;     // noise-level at the newest frame, in 8-bit code values; 0 without nonlocaldenoise
  std::string problem;  // why the comparison with the reference stopped; empty if it did not
  std::string change;   // where frames got another size, which a file cannot hold; empty if they did not
};

class FrameWatch {
 public:
  struct Wishes {
    int64_t picture_frame = -1;      // the frame, counted from the recording's first, to keep; -1: none
    Reference* reference = nullptr;  // the clean version, or none
  };

  // `pipeline`, with the filters of `chain`, must outlive this.
  FrameWatch(Pipeline& pipeline, const FilterChain& chain, const Segment& segment, const Wishes& wishes);

  // Stops the pipeline: none of its threads may come back here.
  ~FrameWatch();
  FrameWatch(const FrameWatch&) = delete;
  FrameWatch& operator=(const FrameWatch&) = delete;

  [[nodiscard]] Observed observed() const;

  // The frame wished for, before and after; null if it did not come. Of a pipeline that has stopped.
  [[nodiscard]] SamplePtr take_picture_before() { return std::move(picture_before_); }
  [[nodiscard]] SamplePtr take_picture_after() { return std::move(picture_after_); }

 private:
  // Each runs on a streaming thread.
  void enters(GstPad* pad, GstBuffer* buffer);
  void leaves(GstPad* pad, GstBuffer* buffer);
  void encoded(GstPad* pad, GstBuffer* buffer);

  void check_size(GstCaps* caps, int64_t index);
  [[nodiscard]] double noise_level() const;
  void keep_picture(SamplePtr& kept, GstBuffer* buffer, GstCaps* caps, int64_t index) const;
  void compare(GstBuffer* buffer, GstCaps* caps, GstSample* clean, Psnr& sum);

  Pipeline& pipeline_;
  const Segment segment_;
  Wishes wishes_;
  ElementPtr denoiser_;  // the first; null without one
  PadPtr decoded_;       // where frames leave the decoder
  PadPtr into_encoder_;

  mutable std::mutex mutex_;  // guards everything below
  Observed seen_;
  std::deque<SamplePtr> clean_frames_;  // of the frames that are in the filters
  SamplePtr picture_before_;
  SamplePtr picture_after_;
  CapsPtr caps_;  // of the frames that entered so far
};

}  // namespace nonlocal::tools
