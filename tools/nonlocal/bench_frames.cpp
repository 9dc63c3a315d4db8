#include "bench_frames.h"

#include <algorithm>
#include <opencv2/imgproc.hpp>

#include "scene.h"

namespace nonlocal::tools {
namespace {

constexpr uint64_t kSeed = 1;
const BenchFormat kFormats[] = {
    {"GRAY8", 8, false}, {"GRAY10", 10, false}, {"I420", 8, true}, {"I420_10LE", 10, true}};

// Cut or mirrored from a street drawn at a size that does not take long.
cv::Mat street_frame(const NightStreet& street, cv::Size size, double seconds) {
  const cv::Mat drawn = street.frame(seconds);
  const cv::Rect shown(0, 0, std::min(size.width, drawn.cols), std::min(size.height, drawn.rows));
  cv::Mat frame;
  cv::copyMakeBorder(drawn(shown), frame, 0, size.height - shown.height, 0, size.width - shown.width,
                     cv::BORDER_REFLECT_101);
  return frame;
}

// Y', Cr and Cb of 8 bits.
std::vector<cv::Mat> yuv_planes(const cv::Mat& bgr, bool has_chroma) {
  cv::Mat yuv;
  cv::cvtColor(bgr, yuv, cv::COLOR_BGR2YCrCb);
  std::vector<cv::Mat> planes;
  cv::split(yuv, planes);
  if (!has_chroma) planes.resize(1);
  for (size_t i = 1; i < planes.size(); ++i) {
    cv::Mat half;
    cv::resize(planes[i], half, {(bgr.cols + 1) / 2, (bgr.rows + 1) / 2}, 0, 0, cv::INTER_AREA);
    planes[i] = half;
  }
  return planes;
}

cv::Mat with_noise(const cv::Mat& clean, int bit_depth, double sigma, cv::RNG& rng) {
  cv::Mat exact(clean.size(), CV_32F);
  rng.fill(exact, cv::RNG::NORMAL, 0, sigma);
  cv::add(exact, clean, exact, cv::noArray(), CV_32F);
  cv::Mat noisy;
  exact.convertTo(noisy, bit_depth > 8 ? CV_16U : CV_8U, 1 << (bit_depth - 8));  // rounds, clips below
  return cv::min(noisy, (1 << bit_depth) - 1);
}

template <typename View, typename Frame>
std::vector<View> make_views(Frame& frame, size_t first, size_t count) {
  std::vector<View> views;
  for (size_t i = first; i < first + count; ++i) {
    const cv::Mat& plane = frame.planes[i];
    View view;
    view.data = reinterpret_cast<decltype(view.data)>(plane.data);
    view.width = plane.cols;
    view.height = plane.rows;
    view.stride = static_cast<std::ptrdiff_t>(plane.step);
    view.bit_depth = frame.bit_depth;
    views.push_back(view);
  }
  return views;
}

}  // namespace

std::vector<std::string> bench_formats() {
  std::vector<std::string> names;
  for (const BenchFormat& format : kFormats) names.push_back(format.name);
  return names;
}

BenchFormat bench_format(const std::string& name) {
  return *std::ranges::find(kFormats, name, &BenchFormat::name);
}

size_t BenchFrame::bytes() const {
  size_t sum = 0;
  for (const cv::Mat& plane : planes) sum += plane.total() * plane.elemSize();
  return sum;
}

BenchFrame BenchFrame::same_shape() const {
  BenchFrame other{bit_depth, {}};
  for (const cv::Mat& plane : planes) other.planes.emplace_back(plane.size(), plane.type(), cv::Scalar(0));
  return other;
}

std::vector<ConstPlane> BenchFrame::views(size_t first, size_t count) const {
  return make_views<ConstPlane>(*this, first, count);
}

std::vector<Plane> BenchFrame::views(size_t first, size_t count) {
  return make_views<Plane>(*this, first, count);
}

std::vector<BenchFrame> noisy_frames(cv::Size size, const BenchFormat& format, double sigma, int count) {
  constexpr int kSmallest = 32;  // that a street can be drawn at
  const NightStreet street({std::clamp(size.width, kSmallest, 1280), std::clamp(size.height, kSmallest, 720)},
                           kSeed);
  cv::RNG rng(kSeed);
  std::vector<BenchFrame> frames;
  for (int i = 0; i < count; ++i) {
    BenchFrame frame{format.bit_depth, {}};
    for (const cv::Mat& plane : yuv_planes(street_frame(street, size, i), format.has_chroma))
      frame.planes.push_back(with_noise(plane, format.bit_depth, sigma, rng));
    frames.push_back(std::move(frame));
  }
  return frames;
}

}  // namespace nonlocal::tools
