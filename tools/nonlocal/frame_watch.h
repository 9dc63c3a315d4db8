// Watches the frames of a running pipeline as they enter and leave the filter, and leave the encoder.
#pragma once

#include <gst/gst.h>

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>

#include "gst.h"
#include "psnr.h"
#include "reference.h"

namespace nonlocal::tools {

// What has been seen so far.
struct Observed {
  int64_t frames_in = 0;
  int64_t frames_filtered = 0;
  int64_t frames_out = 0;
  double last_seconds = 0;     // the newest frame's place in the stream
  double noise = 0;            // the filter's noise-level at the newest frame, in 8-bit code values
  double mean_noise = 0;       // and its mean over the frames
  std::string format;          // GStreamer's name of the frames' format
  std::optional<Psnr> before;  // means over the frames, where there is a reference
  std::optional<Psnr> after;
  std::string problem;  // why the comparison with the reference stopped; empty if it did not
};

class FrameWatch {
 public:
  struct Wishes {
    int64_t picture_frame = -1;  // the frame, counted from 0, to keep for a picture; -1: none
    std::string reference;       // path of the clean version; empty: none
  };

  // `pipeline` must outlive this.
  FrameWatch(Pipeline& pipeline, const Wishes& wishes);

  // Stops the pipeline: none of its threads may come back here.
  ~FrameWatch();
  FrameWatch(const FrameWatch&) = delete;
  FrameWatch& operator=(const FrameWatch&) = delete;

  [[nodiscard]] Observed observed() const;

  // The frame kept for the picture, before and after; the first frame if the stream was shorter than thought.
  [[nodiscard]] GstSample* picture_before() const { return picture_before_.get(); }
  [[nodiscard]] GstSample* picture_after() const { return picture_after_.get(); }

 private:
  // Each runs on a streaming thread.
  void enters(GstPad* pad, GstBuffer* buffer);
  void leaves(GstPad* pad, GstBuffer* buffer);
  void encoded(GstPad* pad, GstBuffer* buffer);

  template <void (FrameWatch::*see)(GstPad*, GstBuffer*)>
  void watch(const ElementPtr& element, const char* pad_name);

  void keep_picture(SamplePtr& kept, GstBuffer* buffer, GstCaps* caps, int64_t index) const;
  void compare(GstBuffer* buffer, GstCaps* caps, GstSample* clean, Psnr& sum);

  Pipeline& pipeline_;
  Wishes wishes_;
  ElementPtr filter_;
  std::optional<Reference> reference_;

  mutable std::mutex mutex_;  // guards everything below
  Observed seen_;
  double noise_sum_ = 0;
  Psnr before_sum_;
  Psnr after_sum_;
  std::deque<SamplePtr> clean_frames_;  // of the frames that are in the filter
  SamplePtr picture_before_;
  SamplePtr picture_after_;
};

}  // namespace nonlocal::tools
