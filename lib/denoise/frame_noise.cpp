// The estimate in short (N. N. Ponomarenko, V. V. Lukin, M. S. Zriakhov, A. Kaarna, J. Astola: An automatic
// approach to lossy compression of AVIRIS images, IGARSS 2007; studied by M. Colom, A. Buades: Analysis and
// extension of the Ponomarenko et al. method, IPOL 2013): of all 8 x 8 blocks take those whose low
// frequencies hold the least energy, for they show little but noise, and measure the noise at their high
// frequencies. White noise is independent from one DCT coefficient to another, so choosing by the low ones
// does not bias the high.
#include "denoise/frame_noise.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>
#include <tuple>

#include "core/workers.h"

namespace nonlocal {
namespace {

constexpr int most_blocks = 16384;  // what a frame costs at most; 1 % of them tell sigma to within 2 %

// Coefficients (i, j) up to i + j = highest_low choose the blocks, those from lowest_high measure the noise:
// the corner of the highest, where pictures have least.
constexpr int highest_low = 6;
constexpr int lowest_high = 11;
constexpr int high_count = FrameNoise::high_count;

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

// The mean brightness of the block at (left, top) of a plane of this size, from every second sample at most.
float brightness_of(const ConstPlane& luma, int width, int height, int left, int top) {
  constexpr int taken = 4;  // of a row, and rows
  float sum = 0;
  for (int i = 0; i < taken * taken; ++i) {
    const auto place = [](int first, int index, int size, int size_of_luma) {
      const int64_t doubled = 2 * first + (2 * index + 1) * block_size / taken;
      return static_cast<int>(std::min<int64_t>(doubled * size_of_luma / (2 * size), size_of_luma - 1));
    };
    const int x = place(left, i % taken, width, luma.width);
    const std::byte* row = luma.row(place(top, i / taken, height, luma.height));
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(x) * luma.step;
    sum += static_cast<float>(
        (luma.bit_depth == 8 ? std::to_integer<int>(row[at]) : reinterpret_cast<const uint16_t*>(row)[at]) >>
        luma.shift);
  }
  return sum / static_cast<float>(taken * taken * code_values_in_an_8_bit_one(luma));
}

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
  const float mean = block[0][0] / block_size;
  return {low_energy, mean, mean, *std::min_element(least.begin(), least.end()),
          *std::max_element(most.begin(), most.end())};
}

// Rows and columns of the coefficients that measure the noise.
constexpr auto high_places = [] {
  std::array<std::pair<int, int>, high_count> places{};
  std::size_t count = 0;
  for (int r = 0; r < block_size; ++r) {
    for (int c = 0; c < block_size; ++c) {
      if (order(r, c) >= lowest_high) {
        places[count++] = {r, c};
      }
    }
  }
  return places;
}();

std::array<float, high_count> high_energies(const Block& block) {
  std::array<float, high_count> energies;
  for (std::size_t k = 0; k < energies.size(); ++k) {
    const auto [r, c] = high_places[k];
    energies[k] = block[r][c] * block[r][c];
  }
  return energies;
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

// Photographs hold grain of their own, and texture fine enough to pass for noise: one squared code value is
// what is common (it centres the errors on LIVE1, Set14 and McMaster with noise of sigma 3 added). Takes away
// that, but of small variances, which may as well be a clean camera's noise, no more than a quarter.
double without_own_grain(double variance) { return variance * (variance + 3) / (variance + 4); }

// 1 up to `from`, 0 from `to` on.
double fade(double value, double from, double to) { return std::clamp((to - value) / (to - from), 0.0, 1.0); }

// The middle of the values, which it sorts.
double median(std::array<double, high_count>& values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

// What the frame before adds, where it shows more noise than this frame's high frequencies do. Where these
// hold but a little of it, how they depend on brightness tells nothing of the rest.
FrameLevel with_smooth_noise(const FrameLevel& level, const NoiseInTime& in_time) {
  const double expected = std::max(level.curve.variance(in_time.brightness), 0.01);
  const double excess = std::sqrt(in_time.variance / expected);
  const double share = (1 - fade(std::sqrt(in_time.variance), 0.5, 1)) * (1 - fade(excess, 1.15, 1.4));
  if (share == 0) {
    return level;
  }
  const auto raised = [&](double sigma) {
    const double variance = sigma * sigma;
    const double in_shape = variance / expected * in_time.variance;
    return std::sqrt(std::lerp(variance, std::lerp(in_time.variance, in_shape, fade(excess, 2, 4)), share));
  };
  return {raised(level.sigma),
          {raised(level.curve.dark), raised(level.curve.bright)},
          std::lerp(1.0, in_time.grain, share)};
}

}  // namespace

float Range::share_left(float mean, float sigma) const {
  return sigma > 0 ? clipped_variance((mean - least) / sigma) * clipped_variance((most - mean) / sigma) : 1;
}

template <typename Function>
void FrameNoise::for_each_block(Function function) const {
  for (int y = top_; y < bottom_; ++y) {
    for (int x = left_; x < right_; ++x) {
      function(y * columns_ + x);
    }
  }
}

// Blocks overlap in small frames and leave gaps in large ones.
void FrameNoise::lay_grid(const ConstPlane& plane, int most) {
  grid_step_ = 0;
  do {
    grid_step_ += 2;
    columns_ = (plane.width - block_size) / grid_step_ + 1;
    rows_ = (plane.height - block_size) / grid_step_ + 1;
  } while (static_cast<int64_t>(columns_) * rows_ > most);
  blocks_.resize(static_cast<std::size_t>(columns_) * rows_);
  high_energies_.resize(blocks_.size());
  candidates_.reserve(blocks_.size());
  block_energies_.reserve(blocks_.size());
}

bool FrameNoise::measure_blocks(const ConstPlane& plane, const ConstPlane& brightness, int threads,
                                bool in_time) {
  if (plane.width < block_size || plane.height < block_size) {
    return false;
  }
  // Chroma is smoother than luma: a quarter of the blocks tells as much.
  lay_grid(plane, brightness.data == nullptr ? most_blocks : most_blocks / 4);
  if (in_time) {
    in_time_.begin(columns_, rows_);
  }
  Workers::shared().run(rows_, threads, [&](int y, int) {
    for (int x = 0; x < columns_; ++x) {
      Block block;
      load(plane, x * grid_step_, y * grid_step_, block);
      BlockMeasure& measured = blocks_[static_cast<std::size_t>(y) * columns_ + x];
      measured = measure(block);
      high_energies_[static_cast<std::size_t>(y) * columns_ + x] = high_energies(block);
      if (brightness.data != nullptr) {
        measured.brightness =
            brightness_of(brightness, plane.width, plane.height, x * grid_step_, y * grid_step_);
      }
      if (in_time && BlocksInTime::is_wanted(x, y)) {
        in_time_.keep(x, y, block);
      }
    }
  });
  range_ = {blocks_[0].least, blocks_[0].most};
  for (const BlockMeasure& block : blocks_) {
    range_.least = std::min(range_.least, block.least);
    range_.most = std::max(range_.most, block.most);
  }
  return true;
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
    // Nor blocks that lie half on a bar.
    const int astride = (block_size - 1) / grid_step_;
    const auto inside = [&](int first, int last, int count) {
      const std::pair narrow(first > 0 ? first + astride : 0, last < count ? last - astride : count);
      return narrow.first < narrow.second ? narrow : std::pair(first, last);
    };
    std::tie(left_, right_) = inside(left, right, columns_);
    std::tie(top_, bottom_) = inside(top, bottom, rows_);
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

// Those of a band of brightness, for noise that depends on it.
void FrameNoise::choose_candidates(const std::vector<int>& band, const NoiseLine& noise) {
  constexpr float enough_left = 0.5F;
  candidates_.clear();
  for (const int i : band) {
    const BlockMeasure& block = blocks_[i];
    const auto sigma = static_cast<float>(std::sqrt(noise.variance(block.brightness)));
    const float share_left = range_.share_left(block.mean, sigma);
    if (share_left > enough_left) {
      candidates_.push_back({block.low_energy / share_left, i, share_left});
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
NoisePoint FrameNoise::measure_noise(const ConstPlane& plane, std::size_t least_count) {
  const std::size_t count = candidates_.size();
  const std::size_t first = std::max(std::min(least_count, (count + 3) / 4), count / 100);
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
      const Candidate& candidate = candidates_[used];
      float block_energy = 0;
      for (std::size_t k = 0; k < energy.size(); ++k) {
        // As it would be without clipping.
        const float of_one = high_energies_[candidate.block][k] / candidate.share_left;
        energy[k] += of_one;
        block_energy += of_one;
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
  double brightness = 0;
  for (std::size_t i = 0; i < accepted; ++i) {
    brightness += blocks_[candidates_[i].block].brightness;
  }
  return {brightness / static_cast<double>(accepted), std::max(0.0, variance - rounding_variance(plane)),
          static_cast<int>(accepted)};
}

// Clipped nearly everywhere.
bool FrameNoise::is_hopeless() const {
  int clipped = 0;
  for_each_block([&](int i) {
    const BlockMeasure& block = blocks_[i];
    clipped += block.constant() && (block.mean == range_.least || block.mean == range_.most) ? 1 : 0;
  });
  return clipped > 0.75 * block_count();
}

// Of the blocks, those of one value that is not a limit: a camera leaves none.
double FrameNoise::drawn_share() const {
  int drawn = 0;
  for_each_block([&](int i) {
    const BlockMeasure& block = blocks_[i];
    drawn += block.constant() && block.mean != range_.least && block.mean != range_.most ? 1 : 0;
  });
  return static_cast<double>(drawn) / block_count();
}

// The noise of the flattest blocks, as if it were the same everywhere.
std::optional<NoisePoint> FrameNoise::flattest(const ConstPlane& plane) {
  // How much clipping leaves depends on sigma. Clipped noise ends up at about twice the first guess at most;
  // what runs away is a picture of two values, such as writing, where the model does not hold.
  constexpr double most_growth = 2.5;
  double first = 0;
  double sigma = 0;
  NoisePoint found;
  for (int i = 0; i < 6; ++i) {
    choose_candidates(sigma);
    if (candidates_.size() < 0.01 * block_count()) {
      return std::nullopt;
    }
    const double last = sigma;
    found = measure_noise(plane, 128);
    sigma = std::sqrt(found.variance);
    first = i == 0 ? sigma : first;
    if (sigma > most_growth * first) {
      return std::nullopt;
    }
    if (std::abs(sigma - last) <= 0.005 * sigma) {
      break;
    }
  }
  return found;
}

void FrameNoise::sort_into_bands() {
  for (std::vector<int>& band : bands_) {
    band.clear();
    band.reserve(blocks_.size());
  }
  for_each_block([&](int i) {
    if (!blocks_[i].constant()) {
      // Samples of 9 to 15 bits may be above their range: 10 bits at the top of 16, taken for some at the
      // bottom.
      const auto band = static_cast<std::size_t>(blocks_[i].brightness) * bands_.size() / 256;
      bands_[std::min(band, bands_.size() - 1)].push_back(i);
    }
  });
}

// The noise at every brightness that has enough blocks. What clipping leaves depends on the noise: the line
// is fitted again for that, unless it is level anyway.
NoiseLine FrameNoise::line_of(const ConstPlane& plane, double variance) {
  constexpr std::size_t least_blocks = 48;
  constexpr std::size_t fewest_points = 4;  // a line goes through any two
  sort_into_bands();
  NoiseLine line = NoiseLine::even(variance);
  for (int pass = 0; pass < 2; ++pass) {
    std::array<NoisePoint, band_count> points;
    std::size_t count = 0;
    for (const std::vector<int>& band : bands_) {
      choose_candidates(band, line);
      if (candidates_.size() >= least_blocks) {
        points[count++] = measure_noise(plane, least_blocks);
      }
    }
    if (count < fewest_points) {
      return NoiseLine::even(variance);
    }
    line = fit_noise_line(std::span(points).first(count));
    if (line.surety() < 2) {
      break;
    }
  }
  return line;
}

FrameLevel FrameNoise::level_of(const NoisePoint& flattest, const NoiseLine& line) const {
  // On photographs the slope of noise that does not depend on brightness is within three of its errors,
  // seldom five, and that of Poisson's noise four to sixteen. Between five and ten the flattest blocks have a
  // say: they lie on the line, unless it is one of texture.
  const double surety = line.surety();
  const double misfit = line.variance(flattest.brightness) / std::max({flattest.variance, line.least, 1e-3});
  const double trust = (1 - fade(surety, 3, 5)) * std::max(fade(misfit, 1.15, 1.3), 1 - fade(surety, 7, 10));
  const double white = without_own_grain(flattest.variance);
  const auto variance = [&](double brightness) {
    return std::lerp(white, without_own_grain(line.variance(brightness)), trust);
  };
  double sum = 0;
  for_each_block([&](int i) { sum += variance(blocks_[i].brightness); });
  const double shown = fade(drawn_share(), 0.5, 0.7);
  return {shown * std::sqrt(sum / block_count()),
          {shown * std::sqrt(variance(NoiseCurve::dark_brightness)),
           shown * std::sqrt(variance(NoiseCurve::bright_brightness))}};
}

std::optional<FrameLevel> FrameNoise::estimate(const ConstPlane& plane, int threads) {
  if (!measure_blocks(plane, {}, threads, false)) {
    return std::nullopt;
  }
  return level_of_blocks(plane);
}

std::optional<FrameLevel> FrameNoise::estimate_in_time(const ConstPlane& plane, const ConstPlane& brightness,
                                                       int threads) {
  if (!measure_blocks(plane, brightness, threads, true)) {
    return std::nullopt;
  }
  const std::optional<FrameLevel> level = level_of_blocks(plane);
  if (const std::optional<NoiseInTime> noise = compare_in_time()) {
    noise_in_time_ = noise;
  }
  return level && noise_in_time_ ? with_smooth_noise(*level, *noise_in_time_) : level;
}

// Where nothing is clipped, which would take from the difference.
std::optional<NoiseInTime> FrameNoise::compare_in_time() {
  const auto block_at = [this](int x, int y) -> const BlockMeasure& {
    return blocks_[static_cast<std::size_t>(y) * columns_ + x];
  };
  const auto is_whole = [&](int x, int y) {
    const BlockMeasure& block = block_at(x, y);
    return x >= left_ && x < right_ && y >= top_ && y < bottom_ && block.least > range_.least &&
           block.most < range_.most;
  };
  return in_time_.compare(is_whole, [&](int x, int y) { return block_at(x, y).brightness; });
}

void FrameNoise::forget() {
  in_time_.reset();
  noise_in_time_.reset();
}

std::optional<FrameLevel> FrameNoise::level_of_blocks(const ConstPlane& plane) {
  crop_bars();
  if (is_hopeless()) {
    return std::nullopt;
  }
  const std::optional<NoisePoint> noise = flattest(plane);
  if (!noise) {
    return std::nullopt;
  }
  return level_of(*noise, line_of(plane, noise->variance));
}

}  // namespace nonlocal
