#include "psnr.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace nonlocal::tools {
namespace {

struct SquaredError {
  double sum = 0;
  double samples = 0;
  double peak = 1;

  void add(const SquaredError& other) {
    sum += other.sum;
    samples += other.samples;
    peak = other.peak;
  }
  [[nodiscard]] double decibels() const {
    if (samples == 0) return 0;
    if (sum == 0) return kIdentical;
    return std::min(kIdentical, 10 * std::log10(peak * peak * samples / sum));
  }
};

template <typename Sample>
double row_error(const uint8_t* a, const uint8_t* b, int width, int pixel_stride, int shift) {
  int64_t sum = 0;
  for (int x = 0; x < width; ++x) {
    const int va = *reinterpret_cast<const Sample*>(a + x * pixel_stride) >> shift;
    const int vb = *reinterpret_cast<const Sample*>(b + x * pixel_stride) >> shift;
    sum += int64_t{va - vb} * (va - vb);
  }
  return static_cast<double>(sum);
}

SquaredError component_error(const GstVideoFrame& a, const GstVideoFrame& b, int component) {
  const int depth = GST_VIDEO_FRAME_COMP_DEPTH(&a, component);
  const int width = GST_VIDEO_FRAME_COMP_WIDTH(&a, component);
  const int height = GST_VIDEO_FRAME_COMP_HEIGHT(&a, component);
  const int step = GST_VIDEO_FRAME_COMP_PSTRIDE(&a, component);
  const int shift = static_cast<int>(GST_VIDEO_FORMAT_INFO_SHIFT(a.info.finfo, component));
  const auto* data_a = static_cast<const uint8_t*>(GST_VIDEO_FRAME_COMP_DATA(&a, component));
  const auto* data_b = static_cast<const uint8_t*>(GST_VIDEO_FRAME_COMP_DATA(&b, component));
  SquaredError error{0, double(width) * height, double((1 << depth) - 1)};
  for (int y = 0; y < height; ++y) {
    const uint8_t* row_a = data_a + y * GST_VIDEO_FRAME_COMP_STRIDE(&a, component);
    const uint8_t* row_b = data_b + y * GST_VIDEO_FRAME_COMP_STRIDE(&b, component);
    error.sum += depth > 8 ? row_error<uint16_t>(row_a, row_b, width, step, shift)
                           : row_error<uint8_t>(row_a, row_b, width, step, shift);
  }
  return error;
}

}  // namespace

Psnr psnr(const GstVideoFrame& a, const GstVideoFrame& b) {
  const bool rgb = GST_VIDEO_INFO_IS_RGB(&a.info);
  const int components = std::min<int>(GST_VIDEO_FRAME_N_COMPONENTS(&a), 3);  // the fourth is alpha
  SquaredError luma;
  SquaredError chroma;
  for (int i = 0; i < components; ++i) (rgb || i == 0 ? luma : chroma).add(component_error(a, b, i));
  return {luma.decibels(), chroma.decibels()};
}

}  // namespace nonlocal::tools
