// Where in a picture is there most to see?
#pragma once

#include <opencv2/core.hpp>

namespace nonlocal::tools {

// How much a gray picture varies around each pixel: the magnitude of its gradient, CV_32F.
cv::Mat gradient_energy(const cv::Mat& gray);

struct Region {
  cv::Rect place;
  double mean = 0;  // of the energy in it
};

// The place of `size`, which must fit in, with the most of `energy` (CV_32F).
Region strongest(const cv::Mat& energy, cv::Size size);

}  // namespace nonlocal::tools
