#include "region.h"

#include <opencv2/imgproc.hpp>

namespace nonlocal::tools {

cv::Mat gradient_energy(const cv::Mat& gray) {
  cv::Mat smooth;
  cv::Mat gradient_x;
  cv::Mat gradient_y;
  cv::GaussianBlur(gray, smooth, {}, 1);
  cv::Sobel(smooth, gradient_x, CV_32F, 1, 0);
  cv::Sobel(smooth, gradient_y, CV_32F, 0, 1);
  cv::Mat energy;
  cv::magnitude(gradient_x, gradient_y, energy);
  return energy;
}

Region strongest(const cv::Mat& energy, cv::Size size) {
  cv::Mat means;
  cv::boxFilter(energy, means, CV_32F, size, {0, 0}, true, cv::BORDER_CONSTANT);
  const cv::Rect corners(0, 0, energy.cols - size.width + 1, energy.rows - size.height + 1);
  Region best;
  cv::Point corner;
  cv::minMaxLoc(means(corners), nullptr, &best.mean, nullptr, &corner);
  best.place = {corner, size};
  return best;
}

}  // namespace nonlocal::tools
