#include "denoise/noise_in_time.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace nonlocal {
namespace {

constexpr int kHighestFlat = 6;  // orders of the coefficients that tell how flat a block is
constexpr int kHighestLow = 2;   // and of those that tell the power at low frequencies
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

// The flattest blocks; of these the half that differs least, for in the other something may have moved.
std::optional<NoiseInTime> BlocksInTime::measure() {
  if (candidates_.size() < kFewest) {
    return std::nullopt;
  }
  const auto less = [](const Candidate& a, const Candidate& b) {
    return a.flatness != b.flatness ? a.flatness < b.flatness : a.block < b.block;
  };
  const std::size_t used = std::min(candidates_.size(), std::max(kUsual, candidates_.size() / 32));
  std::nth_element(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(used - 1),
                   candidates_.end(), less);
  energies_.clear();
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
  if (energies_.back().flatness == 0) {
    return std::nullopt;
  }
  energies_.resize(energies_.size() / 2);

  Block power = {};
  double brightness = 0;
  for (const Candidate& candidate : energies_) {
    const Block& a = now_[candidate.block];
    const Block& b = before_[candidate.block];
    for_each_coefficient([&](int r, int c) { power[r][c] += (a[r][c] - b[r][c]) * (a[r][c] - b[r][c]); });
    brightness += (a[0][0] + b[0][0]) / (2 * block_size);
  }
  double sum = 0;
  double sum_of_squares = 0;
  double low = 0;
  int lows = 0;
  for_each_coefficient([&](int r, int c) {
    sum += power[r][c];
    sum_of_squares += static_cast<double>(power[r][c]) * power[r][c];
    if (order(r, c) <= kHighestLow) {
      low += power[r][c];
      ++lows;
    }
  });
  if (sum == 0) {
    return NoiseInTime{};
  }
  const double quartile = energies_[energies_.size() / 2].flatness;
  const double energy = quartile / quartile_share(sum * sum / sum_of_squares);
  const double low_share = low / lows / sum;  // of a coefficient at low frequencies, like the mean's
  const double all = energy * (1 + low_share);
  return NoiseInTime{all / kCoefficients, std::max(1.0, kCoefficients * low_share / (1 + low_share)),
                     brightness / static_cast<double>(energies_.size())};
}

}  // namespace nonlocal
