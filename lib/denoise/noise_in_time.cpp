#include "denoise/noise_in_time.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace nonlocal {
namespace {

constexpr int kHighestFlat = 6;  // orders of the coefficients that tell how flat a block is
constexpr int kHighestLow = 2;   // and of those that tell the power at low frequencies
constexpr int kLowCoefficients = 5;
constexpr double kMostRise = 1.7;  // from there to the mean
constexpr std::size_t kFewest = 32;
constexpr std::size_t kUsual = 128;
constexpr int kCoefficients = block_size * block_size;

template <typename Function>
void for_each_coefficient(Function function) {
  for (int r = 0; r < block_size; ++r) {
    for (int c = 0; c < block_size; ++c) {
      if (order(r, c) > 0) {
        function(r, c);
      }
    }
  }
}

// The lower quartile of the mean of squares of normal numbers, as a share of its expectation, where their
// variances make it vary like that of so many equal ones (F. Satterthwaite, Biometrics 1946; E. Wilson and M.
// Hilferty, PNAS 1931).
double quartile_share(double freedom) {
  const double spread = 2 / (9 * freedom);
  const double root = 1 - spread - 0.6745 * std::sqrt(spread);
  return root * root * root;
}

}  // namespace

void BlocksInTime::begin(int columns, int rows) {
  const int own_columns = (columns + 1) / 2;
  const int own_rows = (rows + 1) / 2;
  if (own_columns != columns_ || own_rows != rows_) {
    columns_ = own_columns;
    rows_ = own_rows;
    has_before_ = false;
    const std::size_t count = static_cast<std::size_t>(columns_) * rows_;
    now_.resize(count);
    before_.resize(count);
    candidates_.reserve(count);
    energies_.reserve(count);
  }
}

void BlocksInTime::add_candidate(int block) {
  const Block& a = now_[block];
  const Block& b = before_[block];
  float flatness = 0;
  for_each_coefficient([&](int r, int c) {
    const float sum = a[r][c] + b[r][c];
    flatness += order(r, c) <= kHighestFlat ? sum * sum : 0;
  });
  candidates_.push_back({flatness, block});
}

// The flattest blocks; of these the half that differs least, for in the other something may have moved. False
// where there are too few, or only copies.
bool BlocksInTime::choose_blocks() {
  energies_.clear();
  if (candidates_.size() < kFewest) {
    return false;
  }
  const auto less = [](const Candidate& a, const Candidate& b) {
    return a.energy != b.energy ? a.energy < b.energy : a.block < b.block;
  };
  const std::size_t used = std::min(candidates_.size(), std::max(kUsual, candidates_.size() / 32));
  std::nth_element(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(used - 1),
                   candidates_.end(), less);
  for (std::size_t i = 0; i < used; ++i) {
    const int block = candidates_[i].block;
    float energy = 0;
    for_each_coefficient([&](int r, int c) {
      const float difference = now_[block][r][c] - before_[block][r][c];
      energy += difference * difference / 2;
    });
    energies_.push_back({energy, block});
  }
  std::sort(energies_.begin(), energies_.end(), less);
  const bool differ = energies_.back().energy > 0;
  energies_.resize(energies_.size() / 2);
  return differ;
}

// Sums of squares of the chosen blocks' differences; of their means without what all have in common, as where
// lamps flicker.
Block BlocksInTime::power_of_differences() const {
  Block power = {};
  float mean = 0;
  for (const Candidate& chosen : energies_) {
    mean += (now_[chosen.block][0][0] - before_[chosen.block][0][0]) / static_cast<float>(energies_.size());
  }
  for (const Candidate& chosen : energies_) {
    const Block& a = now_[chosen.block];
    const Block& b = before_[chosen.block];
    for_each_coefficient([&](int r, int c) { power[r][c] += (a[r][c] - b[r][c]) * (a[r][c] - b[r][c]); });
    const float step = a[0][0] - b[0][0] - mean;
    power[0][0] += step * step;
  }
  return power;
}

NoiseInTime BlocksInTime::measure() const {
  const Block power = power_of_differences();
  double sum = 0;
  double sum_of_squares = 0;
  double low = 0;  // mean of those at low frequencies
  for_each_coefficient([&](int r, int c) {
    sum += power[r][c];
    sum_of_squares += static_cast<double>(power[r][c]) * power[r][c];
    low += order(r, c) <= kHighestLow ? power[r][c] / kLowCoefficients : 0;
  });
  if (sum == 0) {
    return {};
  }
  // In the blocks' means motion and light have their share: no more than is usual for noise.
  const double lowest = std::clamp<double>(power[0][0], low, kMostRise * low);
  const double quartile = energies_[energies_.size() / 2].energy;  // of those before the half was taken
  const double energy = quartile / quartile_share(sum * sum / sum_of_squares) * (1 + lowest / sum);
  return {energy / kCoefficients, std::max(1.0, kCoefficients * lowest / (sum + lowest)), 0};
}

}  // namespace nonlocal
