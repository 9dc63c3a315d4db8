// How far are two frames of one format and size apart?
#pragma once

#include <gst/video/video.h>

#include "image_metrics.h"

namespace nonlocal::tools {

// In decibels, of one frame or averaged over frames. Identical frames count as kIdentical.
struct Psnr {
  double luma = 0;    // of all three channels for RGB
  double chroma = 0;  // of both chroma planes together; 0 for gray and RGB
};

Psnr psnr(const GstVideoFrame& a, const GstVideoFrame& b);

}  // namespace nonlocal::tools
