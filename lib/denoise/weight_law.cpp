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

}  // namespace

WeightLaw make_weight_law(const NonLocalMeansParameters& p, int channels, int bit_depth) {
  WeightLaw law;
  choose_sample_form(law, p.search_size, bit_depth);
  for (int i = 0; i < 16; ++i) {
    law.mantissa[i] = static_cast<std::uint8_t>(std::lround(255 * std::exp2(-i / 16.0)));
  }

  // A column of patch_size * channels squares must fit 16 bits, and the patch's sum too up to the reach. A single
  // pixel's difference is clipped at a value of which `clipped_to_zero` together bring the weight to zero.
  const double terms = static_cast<double>(p.patch_size) * p.patch_size * channels;
  const double h2 = std::max(filter_h(p) * filter_h(p), 1e-4);
  const double reach = 2 * p.sigma * p.sigma + kReach * h2;
  law.clip = static_cast<std::uint8_t>(std::min(127.0, std::floor(std::sqrt(65535.0 / (p.patch_size * channels)))));
  const double clipped_to_zero = terms >= 25 ? 4 : 1;
  const double largest_sum = std::min(clipped_to_zero * law.clip * law.clip, 60000.0);
  law.guide_scale = static_cast<float>(std::min(1.0, std::sqrt(largest_sum / (terms * reach))));

  const double unit = terms * law.guide_scale * law.guide_scale;  // sum for d² = 1
  const bool quantised = law.guide_scale < 1 || bit_depth > 8;
  const double quantisation = quantised ? terms * 2 / 12.0 : 0;   // two roundings, variance 1/12 each
  // Indices a unit of sum; at 255 the least difference beyond the bias has no weight already.
  const double step = std::min(kSixteenthsPerNat / (unit * h2), 255.0);
  // Half an index is taken off the bias, so that the index is rounded, not cut.
  const double bias = unit * 2 * p.sigma * p.sigma + quantisation - 0.5 / step;
  law.bias = static_cast<std::uint16_t>(std::lround(std::clamp(bias, 0.0, 65535.0)));

  law.magnify = step * 65536 > 65535;
  while (std::ldexp(step * 65536, -law.magnify_shift) > 65535) {
    ++law.magnify_shift;
  }
  law.scale = static_cast<std::uint16_t>(std::max(1L, std::lround(std::ldexp(step * 65536, -law.magnify_shift))));
  law.limit = static_cast<std::uint16_t>(std::min(255.99 / step, std::ldexp(65535.0, -law.magnify_shift)));
  return law;
}

}  // namespace nonlocal::denoise
