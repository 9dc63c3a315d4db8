#include "denoise/weight_law.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace nonlocal::denoise {
namespace {

constexpr double kSixteenthsPerNat = 16 / std::numbers::ln2;

// Beyond d² = 2 sigma² + 10 h² a weight is below 1/22000: 441 of them together are 2 % of one.
constexpr double kReach = 10;

// The largest base, 7 at most, for which `count` weights times samples of |value| <= magnitude fit an int32.
int largest_base(double count, double magnitude) {
  int base = 7;
  while (base > 0 && count * magnitude * (255 << base) >= 2147483647.0) {
    --base;
  }
  return base;
}

void choose_sample_form(WeightLaw& law, int search_size, int bit_depth) {
  const double count = static_cast<double>(search_size) * search_size;
  law.base = largest_base(count, std::ldexp(1.0, bit_depth - 1));
  law.split_values = bit_depth > 8 && law.base < 5;
  if (law.split_values) {
    law.base = largest_base(count, 128);
  }
}

// A column of `rows` clipped and shifted squares must fit 16 bits, the patch's sum too as far as weights
// reach, and a single clipped difference must be beyond that reach: then clipping changes no weight.
void choose_distance_form(WeightLaw& law, int rows, double terms, double reach, int bit_depth) {
  constexpr double kLargestSum = 60000;
  const double enough = std::min(255.0, std::sqrt(reach * terms));  // in 8-bit code values
  const double finest = std::ldexp(1.0, bit_depth - 8);
  law.guide_scale = static_cast<float>(bit_depth == 8 ? 1.0 : std::min(finest, 255 / enough));
  const double needed = std::min(255.0, enough * law.guide_scale);
  const double sum = reach * terms * law.guide_scale * law.guide_scale;
  double clip = 0;
  const auto fits = [&] {
    // Squares of bytes are made as signed products where they are not shifted, and not clipped where they
    // are.
    const bool bytes = bit_depth == 8;
    const double most = bytes && law.square_shift == 0 ? 127 : 255;
    const double least = bytes && law.square_shift > 0 ? 255 : std::floor(needed);
    clip = std::floor(std::min(most, std::sqrt(std::ldexp(65535.0 / rows, law.square_shift))));
    return clip >= least && std::ldexp(sum, -law.square_shift) <= kLargestSum;
  };
  while (!fits()) {
    ++law.square_shift;
  }
  law.clip = static_cast<std::uint8_t>(clip);
}

}  // namespace

WeightLaw make_weight_law(const NonLocalMeansParameters& p, int channels, int bit_depth) {
  WeightLaw law;
  choose_sample_form(law, p.search_size, bit_depth);
  for (int i = 0; i < 16; ++i) {
    law.mantissa[i] = static_cast<std::uint8_t>(std::lround(255 * std::exp2(-i / 16.0)));
  }

  const double terms = static_cast<double>(p.patch_size) * p.patch_size * channels;
  const double h = filter_h(p, channels);
  const double h2 = std::max(h * h, 1e-4);
  choose_distance_form(law, p.patch_size * channels, terms, 2 * p.sigma * p.sigma + kReach * h2, bit_depth);

  const double squares_a_unit = std::ldexp(law.guide_scale * law.guide_scale, -law.square_shift);
  const double unit = terms * squares_a_unit;  // sum for d² = 1
  const bool rounded = law.guide_scale < std::ldexp(1.0, bit_depth - 8);
  const double roundings = (rounded ? terms * 2 / 12.0 * std::ldexp(1.0, -law.square_shift) : 0) -
                           terms * (0.5 - std::ldexp(0.5, -law.square_shift));
  // Indices a unit of sum; at 255 the least difference beyond the bias has no weight already.
  const double step = std::min(kSixteenthsPerNat / (unit * h2), 255.0);
  // Half an index is taken off the bias, so that the index is rounded, not cut.
  const double bias = unit * 2 * p.sigma * p.sigma + roundings - 0.5 / step;
  law.bias = static_cast<std::uint16_t>(std::lround(std::clamp(bias, 0.0, 65535.0)));

  law.magnify = step * 65536 > 65535;
  while (std::ldexp(step * 65536, -law.magnify_shift) > 65535) {
    ++law.magnify_shift;
  }
  law.scale =
      static_cast<std::uint16_t>(std::max(1L, std::lround(std::ldexp(step * 65536, -law.magnify_shift))));
  law.limit = static_cast<std::uint16_t>(std::min(255.99 / step, std::ldexp(65535.0, -law.magnify_shift)));
  return law;
}

}  // namespace nonlocal::denoise
