#include "text/position_grid.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace nonlocal::text {
namespace {

constexpr int kTaps = 4;

// Where a sample comes from, and how much of each.
struct Taps {
  std::array<int, kTaps> at;
  std::array<double, kTaps> weight;
};

double cubic(double distance) {
  constexpr double a = -0.75;
  const double d = std::abs(distance);
  if (d <= 1) {
    return ((a + 2) * d - (a + 3)) * d * d + 1;
  }
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

std::vector<Taps> taps(int from, int to) {
  std::vector<Taps> all(static_cast<std::size_t>(to));
  for (int i = 0; i < to; ++i) {
    const double place = (i + 0.5) * from / to - 0.5;
    const int first = static_cast<int>(std::floor(place)) - 1;
    for (int t = 0; t < kTaps; ++t) {
      all[static_cast<std::size_t>(i)].at[static_cast<std::size_t>(t)] = std::clamp(first + t, 0, from - 1);
      all[static_cast<std::size_t>(i)].weight[static_cast<std::size_t>(t)] = cubic(place - (first + t));
    }
  }
  return all;
}

}  // namespace

std::vector<float> positions_on(const std::vector<float>& from, int side, int width, int columns, int rows) {
  if (columns == side && rows == side) {
    return from;
  }
  const auto channels = static_cast<std::size_t>(width);
  std::vector<float> to(from.begin(), from.begin() + width);
  to.reserve(channels * (1 + static_cast<std::size_t>(columns) * static_cast<std::size_t>(rows)));
  const std::vector<Taps> across = taps(side, columns);
  std::vector<double> sums(channels);
  for (const Taps& y : taps(side, rows)) {
    for (const Taps& x : across) {
      std::ranges::fill(sums, 0);
      for (int i = 0; i < kTaps * kTaps; ++i) {
        const auto row = static_cast<std::size_t>(i / kTaps);
        const auto column = static_cast<std::size_t>(i % kTaps);
        const float* p =
            from.data() + channels * (1 + static_cast<std::size_t>(y.at[row] * side + x.at[column]));
        for (std::size_t c = 0; c < channels; ++c) {
          sums[c] += y.weight[row] * x.weight[column] * p[c];
        }
      }
      to.insert(to.end(), sums.begin(), sums.end());
    }
  }
  return to;
}

}  // namespace nonlocal::text
