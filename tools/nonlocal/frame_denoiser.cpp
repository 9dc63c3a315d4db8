#include "frame_denoiser.h"

#include <algorithm>
#include <cmath>

#include "reference/non_local_means.h"

namespace nonlocal::tools {
namespace {

constexpr uint64_t kSeed = 7;

struct Errors {
  double squares = 0;
  double largest = 0;
  int count = 0;

  void add(double error) {
    squares += error * error;
    largest = std::max(largest, std::abs(error));
    ++count;
  }
};

double code_value(const cv::Mat& plane, int bit_depth, int x, int y) {
  const int sample = bit_depth > 8 ? plane.at<uint16_t>(y, x) : plane.at<uint8_t>(y, x);
  return static_cast<double>(sample) / (1 << (bit_depth - 8));
}

reference::Picture exact_picture(const cv::Mat& plane, int bit_depth) {
  reference::Picture picture(plane.cols, plane.rows);
  for (int y = 0; y < plane.rows; ++y)
    for (int x = 0; x < plane.cols; ++x) picture.at(x, y) = code_value(plane, bit_depth, x, y);
  return picture;
}

// Of planes that share their weights.
void add_errors(const BenchFrame& in, const BenchFrame& out, size_t first, size_t count,
                const NonLocalMeansParameters& p, Errors& errors) {
  constexpr double kDifferences = 8e7;  // of samples that the reference takes: some tenths of a second
  const double each = std::pow(p.patch_size * p.search_size, 2) * static_cast<double>(count);
  const int positions = static_cast<int>(std::clamp(kDifferences / each, 64.0, 4096.0 / count));
  std::vector<reference::Picture> pictures;
  for (size_t i = first; i < first + count; ++i)
    pictures.push_back(exact_picture(in.planes[i], in.bit_depth));
  const reference::Parameters parameters{p.patch_size, p.search_size, p.sigma,
                                         filter_h(p, static_cast<int>(count))};
  cv::RNG rng(kSeed);
  for (int n = 0; n < positions; ++n) {
    const int x = rng.uniform(0, pictures[0].width);
    const int y = rng.uniform(0, pictures[0].height);
    const std::vector<double> exact = reference::non_local_mean(pictures, x, y, parameters);
    for (size_t i = 0; i < count; ++i)
      errors.add(code_value(out.planes[first + i], out.bit_depth, x, y) - exact[i]);
  }
}

}  // namespace

void FrameDenoiser::filter(const BenchFrame& in, BenchFrame& out) {
  luma_.filter(in.views(0, 1), out.views(0, 1), parameters_);
  if (in.planes.size() > 1) chroma_.filter(in.views(1, 2), out.views(1, 2), parameters_);
}

Exactness exactness(const BenchFrame& in, const BenchFrame& out, const NonLocalMeansParameters& parameters) {
  Errors errors;
  add_errors(in, out, 0, 1, parameters, errors);
  if (in.planes.size() > 1) add_errors(in, out, 1, 2, parameters, errors);
  const double psnr = 10 * std::log10(255.0 * 255.0 * errors.count / errors.squares);
  return {psnr, errors.largest, errors.count};
}

}  // namespace nonlocal::tools
