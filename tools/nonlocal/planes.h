// Frames as planes of samples, to and from GStreamer's buffers.
#pragma once

#include <gst/video/video.h>

#include <opencv2/core.hpp>
#include <vector>

#include "gst.h"

namespace nonlocal::tools {

// CV_8U: luma; then, for I420, both chroma planes of half the width and height, rounded up.
using Planes = std::vector<cv::Mat>;

using BufferPtr = std::unique_ptr<GstBuffer, MiniObjectReleaser>;

// Copies. Throw Failure where the buffer cannot be mapped as `info` (GRAY8 or I420) says.
BufferPtr to_buffer(const Planes& planes, const GstVideoInfo& info);
Planes to_planes(GstBuffer* buffer, const GstVideoInfo& info);

// 8-bit BGR, by the colorimetry of `info`; of gray planes as they are.
cv::Mat to_bgr(const Planes& planes, const GstVideoInfo& info);

}  // namespace nonlocal::tools
