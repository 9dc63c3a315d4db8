#include "frame_denoiser.h"

#include <algorithm>
#include <cmath>

#include "reference/non_local_means.h"

namespace nonlocal::tools {
namespace {

constexpr uint64_t kSeed = 7;
constexpr int kChromaStep = 2;  // pixels a sample, both ways

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

std::vector<reference::Picture> exact_pictures(const BenchFrame& frame, size_t first, size_t count) {
  std::vector<reference::Picture> pictures;
  for (size_t i = first; i < first + count; ++i)
    pictures.push_back(exact_picture(frame.planes[i], frame.bit_depth));
  return pictures;
}

reference::Parameters exact_parameters(const NonLocalMeansParameters& p, size_t planes) {
  return {p.patch_size, p.search_size, p.sigma, filter_h(p, static_cast<int>(planes))};
}

// Planes first .. first + count - 1 of `out` against `exact`, which gives them at a position.
template <typename Exact>
void add_errors(const BenchFrame& out, size_t first, size_t count, const NonLocalMeansParameters& p,
                const Exact& exact, Errors& errors) {
  constexpr double kDifferences = 8e7;  // of samples that the reference takes: some tenths of a second
  const double each = std::pow(p.patch_size * p.search_size, 2) * static_cast<double>(count);
  const int positions = static_cast<int>(std::clamp(kDifferences / each, 64.0, 4096.0 / count));
  cv::RNG rng(kSeed);
  for (int n = 0; n < positions; ++n) {
    const int x = rng.uniform(0, out.planes[first].cols);
    const int y = rng.uniform(0, out.planes[first].rows);
    const std::vector<double> means = exact(x, y);
    for (size_t i = 0; i < count; ++i)
      errors.add(code_value(out.planes[first + i], out.bit_depth, x, y) - means[i]);
  }
}

// Of planes that share their weights.
void add_own_errors(const BenchFrame& in, const BenchFrame& out, size_t first, size_t count,
                    const NonLocalMeansParameters& p, Errors& errors) {
  const std::vector<reference::Picture> pictures = exact_pictures(in, first, count);
  const reference::Parameters parameters = exact_parameters(p, count);
  const auto exact = [&](int x, int y) { return reference::non_local_mean(pictures, x, y, parameters); };
  add_errors(out, first, count, p, exact, errors);
}

// Of chroma by luma's weights.
void add_joint_errors(const BenchFrame& in, const BenchFrame& out, const NonLocalMeansParameters& p,
                      Errors& errors) {
  const std::vector<reference::Picture> luma = exact_pictures(in, 0, 1);
  const std::vector<reference::Picture> chroma = exact_pictures(in, 1, 2);
  const reference::Parameters parameters = exact_parameters(p, 1);
  const auto exact = [&](int x, int y) {
    return reference::joint_mean(luma, chroma, x, y, kChromaStep, kChromaStep, parameters);
  };
  add_errors(out, 1, 2, p, exact, errors);
}

}  // namespace

void FrameDenoiser::filter(const BenchFrame& in, BenchFrame& out) {
  if (in.planes.size() == 1) {
    luma_.filter(in.views(0, 1), out.views(0, 1), parameters_);
  } else if (is_joint_) {
    luma_.filter({in.views(0, 1), out.views(0, 1), in.views(1, 2), out.views(1, 2), {}}, parameters_);
  } else {
    luma_.filter(in.views(0, 1), out.views(0, 1), parameters_);
    chroma_.filter(in.views(1, 2), out.views(1, 2), chroma_parameters(parameters_, true));
  }
}

Exactness exactness(const BenchFrame& in, const BenchFrame& out, const NonLocalMeansParameters& parameters,
                    bool is_joint) {
  Errors errors;
  add_own_errors(in, out, 0, 1, parameters, errors);
  if (in.planes.size() > 1 && is_joint)
    add_joint_errors(in, out, parameters, errors);
  else if (in.planes.size() > 1)
    add_own_errors(in, out, 1, 2, chroma_parameters(parameters, true), errors);
  const double psnr = 10 * std::log10(255.0 * 255.0 * errors.count / errors.squares);
  return {psnr, errors.largest, errors.count};
}

}  // namespace nonlocal::tools
