// PSNR, SSIM and flicker as their formulas read: double precision, every sum anew, no tricks.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace nonlocal::reference {

// 8-bit samples, row by row.
struct SamplePlane {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> sample;

  [[nodiscard]] double at(int x, int y) const { return sample[static_cast<std::size_t>(y) * width + x]; }
};

inline double psnr(const SamplePlane& a, const SamplePlane& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.sample.size(); ++i) {
    const double d = static_cast<double>(a.sample[i]) - b.sample[i];
    sum += d * d;
  }
  return sum == 0 ? 100 : 10 * std::log10(255.0 * 255.0 / (sum / static_cast<double>(a.sample.size())));
}

// Equation 13 of Wang, Bovik, Sheikh and Simoncelli (2004), one window.
inline double ssim_at(const SamplePlane& a, const SamplePlane& b, int left, int top) {
  constexpr int kSize = 11;
  constexpr double kDeviation = 1.5;
  constexpr double kC1 = 0.01 * 255 * 0.01 * 255;
  constexpr double kC2 = 0.03 * 255 * 0.03 * 255;
  const auto weight = [&](int i, int j) {
    const double u = i - kSize / 2;
    const double v = j - kSize / 2;
    return std::exp(-(u * u + v * v) / (2 * kDeviation * kDeviation));
  };
  double weights = 0;
  double mean_a = 0;
  double mean_b = 0;
  for (int j = 0; j < kSize; ++j) {
    for (int i = 0; i < kSize; ++i) {
      weights += weight(i, j);
      mean_a += weight(i, j) * a.at(left + i, top + j);
      mean_b += weight(i, j) * b.at(left + i, top + j);
    }
  }
  mean_a /= weights;
  mean_b /= weights;
  double variance_a = 0;
  double variance_b = 0;
  double covariance = 0;
  for (int j = 0; j < kSize; ++j) {
    for (int i = 0; i < kSize; ++i) {
      const double da = a.at(left + i, top + j) - mean_a;
      const double db = b.at(left + i, top + j) - mean_b;
      variance_a += weight(i, j) / weights * da * da;
      variance_b += weight(i, j) / weights * db * db;
      covariance += weight(i, j) / weights * da * db;
    }
  }
  return (2 * mean_a * mean_b + kC1) * (2 * covariance + kC2) /
         ((mean_a * mean_a + mean_b * mean_b + kC1) * (variance_a + variance_b + kC2));
}

// The mean over all windows that lie within the plane.
inline double ssim(const SamplePlane& a, const SamplePlane& b) {
  double sum = 0;
  int windows = 0;
  for (int y = 0; y + 11 <= a.height; ++y) {
    for (int x = 0; x + 11 <= a.width; ++x, ++windows) {
      sum += ssim_at(a, b, x, y);
    }
  }
  return sum / windows;
}

inline double flicker(const SamplePlane& out, const SamplePlane& out_before, const SamplePlane& clean,
                      const SamplePlane& clean_before) {
  double sum = 0;
  for (int y = 0; y < out.height; ++y) {
    for (int x = 0; x < out.width; ++x) {
      const double d = (out.at(x, y) - out_before.at(x, y)) - (clean.at(x, y) - clean_before.at(x, y));
      sum += d * d;
    }
  }
  return std::sqrt(sum / (static_cast<double>(out.width) * out.height));
}

}  // namespace nonlocal::reference
