// A picture that shows what the filter did to a frame.
#pragma once

#include <gst/gst.h>

#include <opencv2/core.hpp>
#include <string>

namespace nonlocal::tools {

// Left half of `before`, right half of `after`, a thin line between; below, side by side, the most detailed
// region of each, four times enlarged. Both 8-bit BGR of one size, w x h; the result is w x (h + h / 2), or
// w x h for frames too small to show a detail of (below 64 samples either way).
cv::Mat before_after(const cv::Mat& before, const cv::Mat& after);

// The frame of a sample as 8-bit BGR. Throws Failure.
cv::Mat to_bgr(GstSample* sample);

}  // namespace nonlocal::tools
