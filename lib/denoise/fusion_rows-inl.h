// Temporal fusion, the loops over rows. Included once for every instruction set.
#if defined(NONLOCAL_DENOISE_FUSION_ROWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef NONLOCAL_DENOISE_FUSION_ROWS_INL_H
#undef NONLOCAL_DENOISE_FUSION_ROWS_INL_H
#else
#define NONLOCAL_DENOISE_FUSION_ROWS_INL_H
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "denoise/fusion_law.h"
#include "hwy/highway.h"
#include "nonlocal/plane.h"

HWY_BEFORE_NAMESPACE();
namespace nonlocal::denoise::HWY_NAMESPACE {

template <typename T>
void read_samples(const T* row, int step, int shift, int up, int width, uint16_t* HWY_RESTRICT to) {
  if (step == 1) {
    for (int x = 0; x < width; ++x) {
      to[x] = static_cast<uint16_t>(row[x] >> shift << up);
    }
  } else {
    for (int x = 0; x < width; ++x) {
      to[x] = static_cast<uint16_t>(row[static_cast<ptrdiff_t>(x) * step] >> shift << up);
    }
  }
}

// Row y of the plane as kStateDepth bits; of a last pair's missing second sample the first stands in.
void read_row(const ConstPlane& p, int y, uint16_t* HWY_RESTRICT to) {
  const std::byte* row = p.row(y);
  if (p.bit_depth == 16) {
    read_samples(reinterpret_cast<const uint16_t*>(row), p.step, 1, 0, p.width, to);
  } else if (p.bit_depth > 8) {
    read_samples(reinterpret_cast<const uint16_t*>(row), p.step, p.shift, kStateDepth - p.bit_depth, p.width,
                 to);
  } else {
    read_samples(reinterpret_cast<const uint8_t*>(row), p.step, 0, kStateDepth - 8, p.width, to);
  }
  to[p.width] = to[p.width - 1];
}

// Adds what a row of `cells` cells, of 1 or 2 samples each, has of (y - x̂) * scale, and of its square.
void add_differences(const uint16_t* HWY_RESTRICT y, const uint16_t* HWY_RESTRICT predicted, int samples,
                     float scale, int cells, float* HWY_RESTRICT square, float* HWY_RESTRICT mean) {
  if (samples == 1) {
    for (int i = 0; i < cells; ++i) {
      const float d = static_cast<float>(y[i] - predicted[i]) * scale;
      square[i] += d * d;
      mean[i] += d;
    }
    return;
  }
  for (int i = 0; i < cells; ++i) {
    const float a = static_cast<float>(y[2 * i] - predicted[2 * i]) * scale;
    const float b = static_cast<float>(y[2 * i + 1] - predicted[2 * i + 1]) * scale;
    square[i] += a * a + b * b;
    mean[i] += a + b;
  }
}

void store_squares(const float* HWY_RESTRICT sum, float factor, int cells, uint16_t* HWY_RESTRICT map) {
  for (int i = 0; i < cells; ++i) {
    map[i] = static_cast<uint16_t>(static_cast<int>(std::min(sum[i] * (factor * kUnit) + 0.5F, 65535.0F)));
  }
}

void store_means(const float* HWY_RESTRICT sum, float factor, int cells, int16_t* HWY_RESTRICT map) {
  for (int i = 0; i < cells; ++i) {
    map[i] =
        static_cast<int16_t>(static_cast<int>(std::clamp(sum[i] * (factor * kUnit), -32767.0F, 32767.0F)));
  }
}

// The sum of rows, and kMapMargin - 8 values beside.
template <typename T>
void sum_rows(const T* const* rows, int count, int cells, int32_t* HWY_RESTRICT sum) {
  constexpr int kBeside = kMapMargin / 2;
  const T* HWY_RESTRICT first = rows[0];
  for (int i = -kBeside; i < cells + kBeside; ++i) {
    sum[i] = first[i];
  }
  for (int r = 1; r < count; ++r) {
    const T* HWY_RESTRICT row = rows[r];
    for (int i = -kBeside; i < cells + kBeside; ++i) {
      sum[i] += row[i];
    }
  }
}

// The mean of 2 radius + 1 rows and columns.
void square_means(const uint16_t* const* rows, int cells, int32_t* HWY_RESTRICT sum, float* HWY_RESTRICT to) {
  constexpr int kRows = 2 * kSquareRadius + 1;
  constexpr float kFactor = 1 / (kUnit * kRows * kRows);
  sum_rows(rows, kRows, cells, sum);
  for (int i = 0; i < cells; ++i) {
    to[i] = static_cast<float>(sum[i - 2] + sum[i - 1] + sum[i] + sum[i + 1] + sum[i + 2]) * kFactor;
  }
}

// The squared means over (2 radius + 1)² cells less what noise adds, noise * (n + v); and a value beside.
void squared_means(const int16_t* const* rows, int radius, const uint16_t* HWY_RESTRICT own,
                   const uint16_t* HWY_RESTRICT before, float noise, int cells, int32_t* HWY_RESTRICT sum,
                   float* HWY_RESTRICT to) {
  const int count = 2 * radius + 1;
  const float factor = 1 / (kUnit * static_cast<float>(count * count));
  sum_rows(rows, count, cells, sum);
  for (int i = -1; i <= cells; ++i) {
    int total = sum[i - 1] + sum[i] + sum[i + 1];
    if (radius == 2) {
      total += sum[i - 2] + sum[i + 2];
    }
    const float mean = static_cast<float>(total) * factor;
    to[i] = mean * mean - noise * (static_cast<float>(own[i] + before[i]) / 65535);
  }
}

// Raises `most` to the mean of 3 x 3 values.
void raise_to_mean(const float* HWY_RESTRICT above, const float* HWY_RESTRICT row,
                   const float* HWY_RESTRICT below, int cells, float* HWY_RESTRICT most) {
  for (int i = 0; i < cells; ++i) {
    const float sum = (above[i - 1] + above[i] + above[i + 1]) + (row[i - 1] + row[i] + row[i + 1]) +
                      (below[i - 1] + below[i] + below[i + 1]);
    most[i] = std::max(most[i], sum * (1 / 9.0F));
  }
}

// Returns how many cells show something new.
int gain_row(const GainRow& r, int cells) {
  const float* HWY_RESTRICT square = r.square;
  const float* HWY_RESTRICT mean_square = r.mean_square;
  const uint16_t* HWY_RESTRICT own = r.own;
  const uint16_t* HWY_RESTRICT before = r.before;
  uint16_t* HWY_RESTRICT variance = r.variance;
  uint16_t* HWY_RESTRICT gain = r.gain;
  uint16_t* HWY_RESTRICT deviation = r.deviation;
  constexpr float kLeastSum = 1e-6F;  // variances are 0 or more than this: nothing is divided by 0
  const float sigma = 256 * r.sigma;
  int fresh = 0;
  for (int i = 0; i < cells; ++i) {
    const float n = static_cast<float>(own[i]) / 65535;
    const float v = static_cast<float>(before[i]) / 65535;
    const float by_square = square[i] - n - v - n * r.dead;
    const float by_mean = kMeanGain * (mean_square[i] - n * kMeanDead);
    const float q = std::max(std::max(by_square, by_mean), 0.0F);
    const float fused = (v + q) / std::max(v + q + n, kLeastSum);
    const float a = q > kCut ? 1.0F : fused;
    fresh += static_cast<int>(a + (1 - kNew));  // 1 above kNew
    gain[i] = static_cast<uint16_t>(static_cast<int>(a * 32767 + 0.5F));
    const float left = std::max(a * n, kLeastVariance);
    variance[i] = static_cast<uint16_t>(static_cast<int>(left * 65535 + 0.5F));
    deviation[i] = static_cast<uint16_t>(static_cast<int>(sigma * std::sqrt(left) + 0.5F));
  }
  return fresh;
}

// x̂ becomes x̂ + a (y - x̂).
void fuse_row(const uint16_t* HWY_RESTRICT y, const uint16_t* HWY_RESTRICT gain, int samples, int width,
              uint16_t* HWY_RESTRICT x) {
  const auto fused = [](int predicted, int sample, int a) {
    return static_cast<uint16_t>(predicted + (((sample - predicted) * a + (1 << 14)) >> 15));
  };
  // A gain of 32767 is 1.
  if (samples == 1) {
    for (int i = 0; i < width; ++i) {
      x[i] = fused(x[i], y[i], gain[i] + (gain[i] >> 14));
    }
    return;
  }
  for (int i = 0; i < width / 2; ++i) {
    const int a = gain[i] + (gain[i] >> 14);
    x[2 * i] = fused(x[2 * i], y[2 * i], a);
    x[2 * i + 1] = fused(x[2 * i + 1], y[2 * i + 1], a);
  }
  if (width % 2 != 0) {
    const int a = gain[width / 2] + (gain[width / 2] >> 14);
    x[width - 1] = fused(x[width - 1], y[width - 1], a);
  }
}

}  // namespace nonlocal::denoise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
