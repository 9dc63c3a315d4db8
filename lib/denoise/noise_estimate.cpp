// The estimate in short (N. N. Ponomarenko, V. V. Lukin, M. S. Zriakhov, A. Kaarna, J. Astola: An automatic
// approach to lossy compression of AVIRIS images, IGARSS 2007; studied by M. Colom, A. Buades: Analysis and
// extension of the Ponomarenko et al. method, IPOL 2013): of all 8 x 8 blocks take those whose low
// frequencies hold the least energy, for they show little but noise, and measure the noise at their high
// frequencies. White noise is independent from one DCT coefficient to another, so choosing by the low ones
// does not bias the high.
#include "nonlocal/noise_estimate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/planes.h"
#include "core/workers.h"
#include "nonlocal/error.h"

namespace nonlocal {
namespace {

constexpr int block_size = 8;
constexpr int most_blocks = 16384;  // what a frame costs at most; 1 % of them tell sigma to within 2 %

// Coefficients (i, j) up to i + j = highest_low choose the blocks, those from lowest_high measure the noise:
// the corner of the highest, where pictures have least.
constexpr int highest_low = 6;
constexpr int lowest_high = 11;
constexpr int high_count = 10;

// transform() leaves row and column r of a block with the frequency frequencies[r].
constexpr std::array<int, block_size> frequencies = {0, 2, 4, 6, 1, 3, 5, 7};
constexpr int order(int r, int c) { return frequencies[r] + frequencies[c]; }

using Block = std::array<std::array<float, block_size>, block_size>;
using Quarter = std::array<std::array<float, 4>, 4>;

// Half of a basis function of the orthonormal DCT each, at [position][function]: the other half is its mirror
// image, negated for the odd ones.
Quarter half_cosines(int first_frequency) {
  Quarter cosines{};
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < 4; ++k) {
      const int frequency = first_frequency + 2 * k;
      cosines[i][k] = static_cast<float>((frequency == 0 ? std::sqrt(0.125) : 0.5) *
                                         std::cos(std::numbers::pi * (2 * i + 1) * frequency / 16));
    }
  }
  return cosines;
}
const Quarter even_cosines = half_cosines(0);
const Quarter odd_cosines = half_cosines(1);

void transform_columns(Block& block) {
  Block out{};
  for (int i = 0; i < 4; ++i) {
    std::array<float, block_size> sum;
    std::array<float, block_size> difference;
    for (int x = 0; x < block_size; ++x) {
      sum[x] = block[i][x] + block[7 - i][x];
      difference[x] = block[i][x] - block[7 - i][x];
    }
    for (int k = 0; k < 4; ++k) {
      for (int x = 0; x < block_size; ++x) {
        out[k][x] += even_cosines[i][k] * sum[x];
        out[k + 4][x] += odd_cosines[i][k] * difference[x];
      }
    }
  }
  block = out;
}

void transform_rows(Block& block) {
  for (auto& row : block) {
    std::array<float, 4> even{};
    std::array<float, 4> odd{};
    for (int i = 0; i < 4; ++i) {
      const float sum = row[i] + row[7 - i];
      const float difference = row[i] - row[7 - i];
      for (int k = 0; k < 4; ++k) {
        even[k] += even_cosines[i][k] * sum;
        odd[k] += odd_cosines[i][k] * difference;
      }
    }
    std::copy(even.begin(), even.end(), row.begin());
    std::copy(odd.begin(), odd.end(), row.begin() + 4);
  }
}

void transform(Block& block) {
  transform_columns(block);
  transform_rows(block);
}

double code_values_in_an_8_bit_one(const ConstPlane& plane) { return 1 << (plane.bit_depth - 8); }

// What rounding to whole code values adds.
double rounding_variance(const ConstPlane& plane) {
  const double step = 1 / code_values_in_an_8_bit_one(plane);
  return step * step / 12;
}

template <typename Sample, bool packed>
void load(const ConstPlane& plane, int left, int top, Block& block) {
  const auto scale = static_cast<float>(1 / code_values_in_an_8_bit_one(plane));
  const std::ptrdiff_t step = packed ? 1 : plane.step;
  for (int y = 0; y < block_size; ++y) {
    const auto* row = reinterpret_cast<const Sample*>(plane.row(top + y)) + left * step;
    for (int x = 0; x < block_size; ++x) {
      block[y][x] = static_cast<float>(row[x * step] >> plane.shift) * scale;
    }
  }
}

// In 8-bit code values.
void load(const ConstPlane& plane, int left, int top, Block& block) {
  if (plane.bit_depth == 8) {
    plane.step == 1 ? load<uint8_t, true>(plane, left, top, block)
                    : load<uint8_t, false>(plane, left, top, block);
  } else {
    plane.step == 1 ? load<uint16_t, true>(plane, left, top, block)
                    : load<uint16_t, false>(plane, left, top, block);
  }
}

struct BlockMeasure {
  float low_energy;
  float mean;
  float least;
  float most;

  [[nodiscard]] bool constant() const { return least == most; }
};

BlockMeasure measure(Block& block) {
  std::array<float, block_size> least = block[0];
  std::array<float, block_size> most = block[0];
  for (const auto& row : block) {
    for (int x = 0; x < block_size; ++x) {
      least[x] = std::min(least[x], row[x]);
      most[x] = std::max(most[x], row[x]);
    }
  }
  transform(block);
  std::array<float, block_size> low{};
  for (int r = 0; r < block_size; ++r) {
    for (int c = 0; c < block_size; ++c) {
      low[c] += order(r, c) > 0 && order(r, c) <= highest_low ? block[r][c] * block[r][c] : 0.0F;
    }
  }
  float low_energy = 0;
  for (const float energy : low) {
    low_energy += energy;
  }
  return {low_energy, block[0][0] / block_size, *std::min_element(least.begin(), least.end()),
          *std::max_element(most.begin(), most.end())};
}

// What clipping leaves of the variance of a normal distribution, as a share: where values below a limit
// become the limit, by how far the mean of what is left lies from it, in sigmas of the unclipped
// distribution. With xi the distance of the unclipped mean, phi and Phi the normal density and distribution
// (the censored normal's moments: A. Foi, Clipped noisy images, Signal Processing 2009):
//   mean = phi + xi Phi       variance = (1 + xi²) Phi + xi phi - mean²
class ClippedVariance {
 public:
  ClippedVariance() {
    double last_mean = 0;
    double last_variance = 0;
    std::size_t filled = 0;
    for (double xi = -8; filled < shares_.size(); xi += 1.0 / 256) {
      const double density = std::exp(-xi * xi / 2) / std::sqrt(2 * std::numbers::pi);
      const double distribution = std::erfc(-xi / std::numbers::sqrt2) / 2;
      const double mean = density + xi * distribution;
      const double variance = (1 + xi * xi) * distribution + xi * density - mean * mean;
      for (; filled < shares_.size() && static_cast<double>(filled) / per_sigma <= mean; ++filled) {
        const double part = (static_cast<double>(filled) / per_sigma - last_mean) / (mean - last_mean);
        shares_[filled] = static_cast<float>(std::lerp(last_variance, variance, std::max(0.0, part)));
      }
      last_mean = mean;
      last_variance = variance;
    }
  }

  [[nodiscard]] float operator()(float distance) const {
    const float at = std::max(distance, 0.0F) * per_sigma;
    if (at >= static_cast<float>(shares_.size() - 1)) {
      return 1;
    }
    const auto below = static_cast<std::size_t>(at);
    return std::lerp(shares_[below], shares_[below + 1], at - static_cast<float>(below));
  }

 private:
  static constexpr int per_sigma = 32;
  std::array<float, 4 * per_sigma + 1> shares_{};
};
const ClippedVariance clipped_variance;

// The range of a frame's values: what was clipped lies on its ends, be that at 0 and 255 or at video's 16 and
// 235.
struct Range {
  float least;
  float most;

  // What clipping to this range leaves of noise of this sigma in a block of this mean.
  [[nodiscard]] float share_left(float mean, float sigma) const {
    return sigma > 0 ? clipped_variance((mean - least) / sigma) * clipped_variance((most - mean) / sigma) : 1;
  }
};

// A block that may be chosen: its low frequencies' energy as it would be without clipping, and its number.
struct Candidate {
  float low_energy;
  int block;
  float share_left;

  bool operator<(const Candidate& other) const {
    return std::pair(low_energy, block) < std::pair(other.low_energy, other.block);
  }
};

// Sorts them.
template <typename Values>
double median(Values& values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

// Photographs hold grain of their own, and texture fine enough to pass for noise: one squared code value is
// what is common (it centres the errors on LIVE1, Set14 and McMaster with noise of sigma 3 added). Takes away
// that, but of small variances, which may as well be a clean camera's noise, no more than a quarter.
double without_own_grain(double variance) { return variance * (variance + 3) / (variance + 4); }

// 1 up to `from`, 0 from `to` on.
double fade(double value, double from, double to) { return std::clamp((to - value) / (to - from), 0.0, 1.0); }

// One frame's blocks and what they tell. Keeps its memory for the next frame.
class FrameNoise {
 public:
  // Sigma, or nothing where the frame cannot tell: too small, constant, or clipped nearly everywhere.
  std::optional<double> estimate(const ConstPlane& plane, int threads);

 private:
  void lay_grid(const ConstPlane& plane);
  void measure_blocks(const ConstPlane& plane, int threads);
  void crop_bars();
  void choose_candidates(double sigma);
  void load_candidate(const ConstPlane& plane, const Candidate& candidate, Block& block) const;
  double noise_variance(const ConstPlane& plane);
  double even_variance();
  template <typename Function>
  void for_each_block(Function function) const;

  int grid_step_ = 0;  // samples from a block to the next, in both directions
  int columns_ = 0;
  int rows_ = 0;
  std::vector<BlockMeasure> blocks_;
  Range range_{};
  // Of the grid, what lies between letterbox bars, ends excluded.
  int left_ = 0;
  int right_ = 0;
  int top_ = 0;
  int bottom_ = 0;
  std::vector<Candidate> candidates_;
  std::vector<float> block_energies_;  // of the candidates used, at the high frequencies
};

template <typename Function>
void FrameNoise::for_each_block(Function function) const {
  for (int y = top_; y < bottom_; ++y) {
    for (int x = left_; x < right_; ++x) {
      function(y * columns_ + x);
    }
  }
}

// Blocks overlap in small frames and leave gaps in large ones.
void FrameNoise::lay_grid(const ConstPlane& plane) {
  grid_step_ = 0;
  do {
    grid_step_ += 2;
    columns_ = (plane.width - block_size) / grid_step_ + 1;
    rows_ = (plane.height - block_size) / grid_step_ + 1;
  } while (static_cast<int64_t>(columns_) * rows_ > most_blocks);
  blocks_.resize(static_cast<std::size_t>(columns_) * rows_);
  candidates_.reserve(blocks_.size());
  block_energies_.reserve(blocks_.size());
}

void FrameNoise::measure_blocks(const ConstPlane& plane, int threads) {
  Workers::shared().run(rows_, threads, [&](int y, int) {
    for (int x = 0; x < columns_; ++x) {
      Block block;
      load(plane, x * grid_step_, y * grid_step_, block);
      blocks_[static_cast<std::size_t>(y) * columns_ + x] = measure(block);
    }
  });
  range_ = {blocks_[0].least, blocks_[0].most};
  for (const BlockMeasure& block : blocks_) {
    range_.least = std::min(range_.least, block.least);
    range_.most = std::max(range_.most, block.most);
  }
}

// Leaves the smallest rectangle that has all blocks with any contrast, unless it is too small for a picture
// between bars: then it is a drawing.
void FrameNoise::crop_bars() {
  left_ = 0;
  right_ = columns_;
  top_ = 0;
  bottom_ = rows_;
  int left = columns_;
  int right = 0;
  int top = rows_;
  int bottom = 0;
  for_each_block([&](int i) {
    if (!blocks_[i].constant()) {
      left = std::min(left, i % columns_);
      right = std::max(right, i % columns_ + 1);
      top = std::min(top, i / columns_);
      bottom = std::max(bottom, i / columns_ + 1);
    }
  });
  const int64_t area = static_cast<int64_t>(std::max(0, right - left)) * std::max(0, bottom - top);
  if (area >= 0.3 * static_cast<double>(blocks_.size())) {
    left_ = left;
    right_ = right;
    top_ = top;
    bottom_ = bottom;
  }
}

// Those that show noise of this sigma, as far as clipping leaves it; unclipped ones alone where they suffice.
void FrameNoise::choose_candidates(double sigma) {
  constexpr float hopeless = 0.25F;
  constexpr float nearly_all = 0.9F;
  candidates_.clear();
  std::size_t whole = 0;
  for_each_block([&](int i) {
    const BlockMeasure& block = blocks_[i];
    const float share_left = range_.share_left(block.mean, static_cast<float>(sigma));
    if (!block.constant() && share_left >= hopeless) {
      candidates_.push_back({block.low_energy / share_left, i, share_left});
      whole += share_left >= nearly_all ? 1 : 0;
    }
  });
  if (whole >= 256 && whole >= candidates_.size() / 10) {
    std::erase_if(candidates_, [](const Candidate& candidate) { return candidate.share_left < nearly_all; });
  }
}

// Its DCT, as it would be without clipping.
void FrameNoise::load_candidate(const ConstPlane& plane, const Candidate& candidate, Block& block) const {
  load(plane, candidate.block % columns_ * grid_step_, candidate.block / columns_ * grid_step_, block);
  transform(block);
  const float gain = 1 / std::sqrt(candidate.share_left);
  for (auto& row : block) {
    for (float& value : row) {
      value *= gain;
    }
  }
}

// What the lower quartile of the blocks' energies tells of the variance. Noise is alike in all blocks: their
// energies follow the chi-squared distribution. Writing and other edges differ from block to block, which the
// quartile shows.
double FrameNoise::even_variance() {
  constexpr double quartile_of_chi_squared = 6.737;  // of high_count degrees of freedom
  const auto quartile = block_energies_.begin() + static_cast<std::ptrdiff_t>(block_energies_.size() / 4);
  std::nth_element(block_energies_.begin(), quartile, block_energies_.end());
  return *quartile / quartile_of_chi_squared;
}

// Of the candidates, starts with the 1 % that hold least low frequencies, and doubles their number for as
// long as what they measure does not rise by more than chance, that is, until texture comes in. Where the
// blocks are far more uneven than noise is, the even part of it counts.
double FrameNoise::noise_variance(const ConstPlane& plane) {
  const std::size_t count = candidates_.size();
  const std::size_t first = std::max(std::min<std::size_t>(128, (count + 3) / 4), count / 100);
  const std::size_t last = std::max(first, count / 10);
  const auto end = candidates_.begin() + static_cast<std::ptrdiff_t>(last);
  std::nth_element(candidates_.begin(), end - 1, candidates_.end());
  std::sort(candidates_.begin(), end);

  std::array<double, high_count> energy{};
  block_energies_.clear();
  double variance = -1;
  std::size_t accepted = 0;
  for (std::size_t used = 0, target = first; used < last; target = std::min(2 * target, last)) {
    for (; used < target; ++used) {
      Block block;
      load_candidate(plane, candidates_[used], block);
      std::size_t k = 0;
      float block_energy = 0;
      for (int r = 0; r < block_size; ++r) {
        for (int c = 0; c < block_size; ++c) {
          if (order(r, c) >= lowest_high) {
            const float of_one = block[r][c] * block[r][c];
            energy[k++] += of_one;
            block_energy += of_one;
          }
        }
      }
      block_energies_.push_back(block_energy);
    }
    std::array<double, high_count> variances = energy;
    for (double& value : variances) {
      value /= static_cast<double>(used);
    }
    const double wider = median(variances);
    if (variance >= 0 && wider > variance * (1 + 0.5 / std::sqrt(static_cast<double>(used)))) {
      break;
    }
    variance = wider;
    accepted = used;
  }
  block_energies_.resize(accepted);
  variance = std::min(variance, even_variance() / 0.7);
  return std::max(0.0, variance - rounding_variance(plane));
}

std::optional<double> FrameNoise::estimate(const ConstPlane& plane, int threads) {
  if (plane.width < block_size || plane.height < block_size) {
    return std::nullopt;
  }
  lay_grid(plane);
  measure_blocks(plane, threads);
  crop_bars();

  int blocks = 0;
  int clipped = 0;
  int drawn = 0;
  for_each_block([&](int i) {
    const BlockMeasure& block = blocks_[i];
    const bool at_limit = block.mean == range_.least || block.mean == range_.most;
    ++blocks;
    clipped += block.constant() && at_limit ? 1 : 0;
    drawn += block.constant() && !at_limit ? 1 : 0;
  });
  if (clipped > 0.75 * blocks) {
    return std::nullopt;
  }

  // How much clipping leaves depends on sigma. Clipped noise ends up at about twice the first guess at most;
  // what runs away is a picture of two values, such as writing, where the model does not hold.
  constexpr double most_growth = 2.5;
  double first = 0;
  double sigma = 0;
  for (int i = 0; i < 8; ++i) {
    choose_candidates(sigma);
    if (candidates_.size() < 0.01 * blocks) {
      return std::nullopt;
    }
    const double last = sigma;
    sigma = std::sqrt(noise_variance(plane));
    first = i == 0 ? sigma : first;
    if (sigma > most_growth * first) {
      return std::nullopt;
    }
    if (std::abs(sigma - last) <= 0.005 * sigma) {
      break;
    }
  }
  return std::sqrt(without_own_grain(sigma * sigma)) * fade(static_cast<double>(drawn) / blocks, 0.5, 0.7);
}

// Follows the estimates of successive frames.
class Level {
 public:
  double follow(double sigma) {
    recent_[seen_ % recent_.size()] = sigma;
    ++seen_;
    const double middle = median_of_recent();
    if (seen_ <= recent_.size() || std::abs(middle - value_) > 0.25 * value_ + 0.5) {
      value_ = middle;
    } else {
      value_ += (middle - value_) / 16;
    }
    return value_;
  }

  [[nodiscard]] double value() const { return value_; }

 private:
  [[nodiscard]] double median_of_recent() const {
    std::array<double, size> sorted = recent_;
    const std::size_t count = std::min(seen_, size);
    std::sort(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(count));
    return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
  }

  static constexpr std::size_t size = 5;  // so that a flash or a black frame or two pass unnoticed
  std::array<double, size> recent_{};
  std::size_t seen_ = 0;
  double value_ = 0;
};

int checked_thread_count(int threads) {
  if (threads < 0) {
    throw InvalidArgument("NoiseEstimator: expected 0 or more threads, got " + std::to_string(threads));
  }
  return thread_count(threads);
}

}  // namespace

struct NoiseEstimator::State {
  FrameNoise frame;
  Level level;
};

NoiseEstimator::NoiseEstimator() : state_(std::make_unique<State>()) {}
NoiseEstimator::~NoiseEstimator() = default;
NoiseEstimator::NoiseEstimator(NoiseEstimator&&) noexcept = default;
NoiseEstimator& NoiseEstimator::operator=(NoiseEstimator&&) noexcept = default;

double NoiseEstimator::estimate(const ConstPlane& plane, int threads) {
  check_plane("NoiseEstimator", plane);
  return state_->frame.estimate(plane, checked_thread_count(threads)).value_or(0);
}

double NoiseEstimator::update(const ConstPlane& plane, int threads) {
  check_plane("NoiseEstimator", plane);
  const std::optional<double> sigma = state_->frame.estimate(plane, checked_thread_count(threads));
  return sigma ? state_->level.follow(*sigma) : state_->level.value();
}

void NoiseEstimator::reset() { state_->level = {}; }

}  // namespace nonlocal
