// Colour pictures as video.
#pragma once

#include <opencv2/core.hpp>

namespace nonlocal::tools {

// The three planes of I420 in one block, chroma halved both ways. Width and height must be even.
struct Yuv420 {
  explicit Yuv420(cv::Size size)
      : samples(1, size.area() * 3 / 2, CV_8U),
        y(size, CV_8U, samples.data),
        u(size / 2, CV_8U, samples.data + size.area()),
        v(size / 2, CV_8U, samples.data + size.area() * 5 / 4) {}

  cv::Mat samples;
  cv::Mat y, u, v;  // views
};

// ITU-R BT.709, video range, of 8-bit BGR.
Yuv420 to_yuv420(const cv::Mat& bgr);

}  // namespace nonlocal::tools
