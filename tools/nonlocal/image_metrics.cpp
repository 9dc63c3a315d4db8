#include "image_metrics.h"

#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>

namespace nonlocal::tools {
namespace {

// The Gaussian window's weighted mean, where it fits in.
cv::Mat window_mean(const cv::Mat& samples) {
  constexpr double kDeviation = 1.5;
  constexpr int kMargin = kSsimWindow / 2;
  cv::Mat means;
  cv::GaussianBlur(samples, means, {kSsimWindow, kSsimWindow}, kDeviation);
  return means(cv::Rect(kMargin, kMargin, samples.cols - 2 * kMargin, samples.rows - 2 * kMargin));
}

}  // namespace

double plane_psnr(const cv::Mat& a, const cv::Mat& b) {
  const double error = cv::norm(a, b, cv::NORM_L2SQR) / static_cast<double>(a.total());
  return error == 0 ? kIdentical : std::min(kIdentical, 10 * std::log10(255 * 255 / error));
}

double plane_ssim(const cv::Mat& a, const cv::Mat& b) {
  constexpr double kC1 = (0.01 * 255) * (0.01 * 255);
  constexpr double kC2 = (0.03 * 255) * (0.03 * 255);
  cv::Mat x;
  cv::Mat y;
  a.convertTo(x, CV_64F);  // floats would lose the fourth decimal of bright, flat planes
  b.convertTo(y, CV_64F);
  const cv::Mat mean_x = window_mean(x);
  const cv::Mat mean_y = window_mean(y);
  const cv::Mat mean_xx = window_mean(x.mul(x));
  const cv::Mat mean_yy = window_mean(y.mul(y));
  const cv::Mat mean_xy = window_mean(x.mul(y));
  double sum = 0;
  for (int row = 0; row < mean_x.rows; ++row) {
    for (int column = 0; column < mean_x.cols; ++column) {
      const auto at = [&](const cv::Mat& m) { return m.at<double>(row, column); };
      const double mx = at(mean_x);
      const double my = at(mean_y);
      const double variances = at(mean_xx) - mx * mx + at(mean_yy) - my * my;
      const double covariance = at(mean_xy) - mx * my;
      sum += (2 * mx * my + kC1) * (2 * covariance + kC2) / ((mx * mx + my * my + kC1) * (variances + kC2));
    }
  }
  return sum / static_cast<double>(mean_x.total());
}

double plane_flicker(const cv::Mat& out, const cv::Mat& out_before, const cv::Mat& clean,
                     const cv::Mat& clean_before) {
  cv::Mat change;
  cv::Mat clean_change;
  cv::subtract(out, out_before, change, cv::noArray(), CV_16S);
  cv::subtract(clean, clean_before, clean_change, cv::noArray(), CV_16S);
  return cv::norm(change, clean_change, cv::NORM_L2) / std::sqrt(static_cast<double>(out.total()));
}

}  // namespace nonlocal::tools
