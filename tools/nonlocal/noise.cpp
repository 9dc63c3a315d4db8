#include "noise.h"

#include <cmath>
#include <numbers>
#include <opencv2/imgproc.hpp>

namespace nonlocal::tools {
namespace {

cv::Mat normal(cv::Size size, double sigma, cv::RNG& rng) {
  cv::Mat noise(size, CV_32F);
  rng.fill(noise, cv::RNG::NORMAL, 0, sigma);
  return noise;
}

// Of standard deviation 1: a Gaussian of s leaves white noise 1 / (2 sqrt(pi) s) of its own.
cv::Mat smooth(cv::Size size, cv::RNG& rng) {
  constexpr double s = 1;
  cv::Mat noise = normal(size, 2 * std::sqrt(std::numbers::pi) * s, rng);
  cv::GaussianBlur(noise, noise, cv::Size(), s, s, cv::BORDER_REFLECT_101);
  return noise;
}

// The standard deviation at each place as a share of that at 128.
cv::Mat camera_share(const cv::Mat& luma) {
  cv::Mat share;
  luma.convertTo(share, CV_32F, 1.0 / 144, 16.0 / 144);
  cv::sqrt(share, share);
  return share;
}

}  // namespace

uint64_t frame_seed(uint64_t seed, uint64_t frame) {
  uint64_t z = seed * 0x9E3779B97F4A7C15u + frame + 1;  // SplitMix64
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

void add_noise(cv::Mat samples, double sigma, cv::RNG& rng) {
  cv::add(samples, normal(samples.size(), sigma, rng), samples, cv::noArray(), CV_8U);
}

const std::vector<std::string>& noise_kinds() {
  static const std::vector<std::string> kinds = {"white", "camera", "smooth"};
  return kinds;
}

void add_noise(std::vector<cv::Mat>& planes, const std::string& kind, double sigma, cv::RNG& rng) {
  const cv::Mat share = kind == "camera" ? camera_share(planes[0]) : cv::Mat();
  for (cv::Mat& plane : planes) {
    if (kind == "white") {
      add_noise(plane, sigma, rng);
    } else if (kind == "smooth") {
      cv::add(plane, smooth(plane.size(), rng) * sigma, plane, cv::noArray(), CV_8U);
    } else {
      cv::Mat here;
      cv::resize(share, here, plane.size(), 0, 0, cv::INTER_AREA);
      cv::add(plane, normal(plane.size(), sigma, rng).mul(here), plane, cv::noArray(), CV_8U);
    }
  }
}

}  // namespace nonlocal::tools
