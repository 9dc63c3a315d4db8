#include "denoise/noise_map.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "core/rounding.h"
#include "core/workers.h"

namespace nonlocal {
namespace {

constexpr int kRowsATask = 16;
constexpr int kSamplesAround = 36;

// Adds the samples of a row to those of its pairs of columns; a last column without a partner counts twice.
template <typename Sample, bool packed>
void add_pairs(const ConstPlane& plane, int y, float* sums) {
  const auto* row = reinterpret_cast<const Sample*>(plane.row(y));
  const std::ptrdiff_t step = packed ? 1 : plane.step;
  const auto sample = [&](int x) { return row[x * step] >> plane.shift; };
  for (int cell = 0; cell < plane.width / 2; ++cell) {
    sums[cell] += static_cast<float>(sample(2 * cell) + sample(2 * cell + 1));
  }
  if (plane.width % 2 != 0) {
    sums[plane.width / 2] += static_cast<float>(2 * sample(plane.width - 1));
  }
}

void add_pairs(const ConstPlane& plane, int y, float* sums) {
  if (plane.bit_depth == 8) {
    plane.step == 1 ? add_pairs<std::uint8_t, true>(plane, y, sums)
                    : add_pairs<std::uint8_t, false>(plane, y, sums);
  } else {
    plane.step == 1 ? add_pairs<std::uint16_t, true>(plane, y, sums)
                    : add_pairs<std::uint16_t, false>(plane, y, sums);
  }
}

// Of one row of cells: three rows' sums to variances and deviations.
struct Law {
  float slope;  // of the variance as a share of the largest, by the sum of samples around
  float offset;
  float least;
  float largest_deviation;  // as stored

  Law(const NoiseCurve& noise, double strength, const ConstPlane& plane, std::size_t planes) {
    const double largest = noise.largest() * noise.largest();
    const double a_value = std::ldexp(kSamplesAround * static_cast<double>(planes), plane.bit_depth - 8);
    const double dark = noise.dark * noise.dark / largest;
    const double bright = noise.bright * noise.bright / largest;
    const double rise = (bright - dark) / (NoiseCurve::bright_brightness - NoiseCurve::dark_brightness);
    slope = static_cast<float>(rise / a_value);
    offset = static_cast<float>(dark - rise * NoiseCurve::dark_brightness);
    least = static_cast<float>(std::min(dark, bright));
    largest_deviation = static_cast<float>(256 * std::min(noise.largest() * strength, 255.0));
  }

  void apply(const float* sums, int cells, std::uint16_t* variance, std::uint16_t* deviation) const {
    for (int i = 0; i < cells; ++i) {
      const float share = std::clamp(slope * sums[i] + offset, least, 1.0F);
      variance[i] = static_cast<std::uint16_t>(65535 * share + 0.5F);
      deviation[i] = static_cast<std::uint16_t>(largest_deviation * std::sqrt(share) + 0.5F);
    }
  }
};

}  // namespace

ConstPlane NoiseMap::view(const AlignedBuffer<std::uint16_t>& map) const {
  return {reinterpret_cast<const std::byte*>(map.data()), cells_, cell_rows_, cells_ * 2, 16, 1, 0};
}

void NoiseMap::prepare(const ConstPlane& plane, int threads) {
  const int cells = (plane.width + 1) / 2;
  const int rows = (plane.height + 1) / 2;
  if (cells != cells_ || rows != cell_rows_) {
    cells_ = cells;
    cell_rows_ = rows;
    variance_.allocate(static_cast<std::size_t>(cells) * rows);
    deviation_.allocate(static_cast<std::size_t>(cells) * rows);
    scratch_.clear();
  }
  while (std::ssize(scratch_) < threads) {
    scratch_.emplace_back().allocate(static_cast<std::size_t>(cells) * 5);
  }
}

// Of a row of cells, that is of two rows of samples; beyond the frame its last row is repeated.
void NoiseMap::sum_cells(std::span<const ConstPlane> planes, int row, float* sums) const {
  std::fill_n(sums, cells_, 0.0F);
  const int inside = std::clamp(row, 0, cell_rows_ - 1);
  for (const ConstPlane& plane : planes) {
    for (const int y : {2 * inside, 2 * inside + 1}) {
      add_pairs(plane, std::min(y, plane.height - 1), sums);
    }
  }
}

void NoiseMap::make(std::span<const ConstPlane> planes, const NoiseCurve& noise, double strength,
                    int threads) {
  prepare(planes[0], threads);
  const Law law(noise, strength, planes[0], planes.size());
  Workers::shared().run(ceil_divide(cell_rows_, kRowsATask), threads, [&](int task, int slot) {
    float* const rows = scratch_[slot].data();  // a ring of three
    float* const columns = rows + 3 * cells_;
    float* const around = columns + cells_;
    const auto ring_row = [&](int y) { return rows + (y + 3) % 3 * cells_; };
    const int first = task * kRowsATask;
    sum_cells(planes, first - 1, ring_row(first - 1));
    sum_cells(planes, first, ring_row(first));
    for (int y = first; y < std::min(first + kRowsATask, cell_rows_); ++y) {
      sum_cells(planes, y + 1, ring_row(y + 1));
      for (int i = 0; i < cells_; ++i) {
        columns[i] = rows[i] + rows[cells_ + i] + rows[2 * cells_ + i];
      }
      around[0] = 2 * columns[0] + columns[std::min(1, cells_ - 1)];
      for (int i = 1; i < cells_ - 1; ++i) {
        around[i] = columns[i - 1] + columns[i] + columns[i + 1];
      }
      if (cells_ > 1) {
        around[cells_ - 1] = columns[cells_ - 2] + 2 * columns[cells_ - 1];
      }
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(y) * cells_;
      law.apply(around, cells_, variance_.data() + at, deviation_.data() + at);
    }
  });
}

}  // namespace nonlocal
