// Seeded noisy frames to measure filters on.
#pragma once

#include <nonlocal/plane.h>

#include <opencv2/core.hpp>
#include <span>
#include <string>
#include <vector>

namespace nonlocal::tools {

// Of those that the element takes, by GStreamer's names.
struct BenchFormat {
  std::string name;
  int bit_depth;
  bool has_chroma;  // two planes of half the width and height
};

std::vector<std::string> bench_formats();

// `name` must be one of bench_formats().
BenchFormat bench_format(const std::string& name);

// Luma, then chroma where there is some: 8-bit samples in CV_8U, deeper ones in CV_16U.
struct BenchFrame {
  int bit_depth = 8;
  std::vector<cv::Mat> planes;

  [[nodiscard]] cv::Size size() const { return planes[0].size(); }
  [[nodiscard]] size_t bytes() const;
  [[nodiscard]] BenchFrame same_shape() const;  // of samples 0

  // Views of `count` planes from `first` on.
  [[nodiscard]] std::vector<ConstPlane> views(size_t first, size_t count) const;
  [[nodiscard]] std::vector<Plane> views(size_t first, size_t count);
};

// `count` moments of a street at night, Gaussian noise of `sigma` (of 255) on every plane, clipped. The
// street is drawn at 1280 x 720 at most and mirrored to fill larger frames: these show the same detail, as
// the time that a filter takes may depend on it.
std::vector<BenchFrame> noisy_frames(cv::Size size, const BenchFormat& format, double sigma, int count);

}  // namespace nonlocal::tools
