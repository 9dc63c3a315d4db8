#include "denoise/weight_law.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace nonlocal::denoise {
namespace {

constexpr double kSixteenthsPerNat = 16 / std::numbers::ln2;

// Beyond d² = 2 sigma² + 10 h² a weight is below 1/22000: 441 of them together are 2 % of one.
constexpr double kReach = 10;

// The largest scale at which signed 16 bits hold a centred 8-bit sample.
constexpr double kFinestRounded = 257;

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

// What the largest weighted sum and the sums' 16 bits leave for the scale of the guide.
struct DistanceRange {
  double
      enough;    // a single difference in 8-bit code values beyond which there is no weight, or there is none
  double reach;  // a patch's sum of squares beyond which there is no weight, in the same units
  double largest_sum;   // that it may become
  double largest_term;  // that a square may become
};

// Squares of differences d as d² / 2^15.
void choose_rounded_form(WeightLaw& law, const DistanceRange& r) {
  constexpr double kUnit = 32768;
  const double scale =
      std::min({std::sqrt(kUnit * r.largest_sum / r.reach), std::sqrt(kUnit * r.largest_term) / r.enough,
                32767 / r.enough, kFinestRounded});
  law.guide_scale = static_cast<float>(scale);
  law.clip = static_cast<std::uint16_t>(r.largest_term);
  const double largest = std::min(255 * scale, 32767.0);
  law.form = largest * largest / kUnit + 1 > r.largest_term ? SquareForm::kClipped : SquareForm::kRounded;
}

// d² itself, where that is finer.
void choose_whole_form(WeightLaw& law, const DistanceRange& r, int bit_depth) {
  const double largest = std::min(255.0, std::floor(std::sqrt(r.largest_term)));
  const double scale =
      std::min({std::ldexp(1.0, bit_depth - 8), largest / r.enough, std::sqrt(r.largest_sum / r.reach)});
  if (scale > law.guide_scale / std::sqrt(32768.0)) {
    law.form = SquareForm::kWhole;
    law.guide_scale = static_cast<float>(scale);
    law.clip = static_cast<std::uint16_t>(largest);
  }
}

void choose_distance_form(WeightLaw& law, int columns, int channels, double reach_of_distance,
                          int bit_depth) {
  const double reach = reach_of_distance * columns * columns * channels;
  law.column_cap = static_cast<std::uint16_t>(65535 / columns);
  const DistanceRange range = {std::min(255.0, std::sqrt(reach)), reach, 0.95 * law.column_cap,
                               std::floor(65535.0 / (columns * channels))};
  choose_rounded_form(law, range);
  if (bit_depth > 8 && law.guide_scale >= static_cast<float>(kFinestRounded)) {
    choose_whole_form(law, range, bit_depth);
  }
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
  const double h2 = std::max(h * h, kLeastSquareOfH);
  choose_distance_form(law, p.patch_size, channels, 2 * p.sigma * p.sigma + kReach * h2, bit_depth);

  const bool whole = law.form == SquareForm::kWhole;
  const double unit = terms * law.guide_scale * law.guide_scale / (whole ? 1 : 32768);  // sum for d² = 1
  // Two roundings to integers of the guide add 1/12 each to a whole square.
  const bool rounded = whole && law.guide_scale < std::ldexp(1.0, bit_depth - 8);
  const double roundings = rounded ? terms * 2 / 12.0 : 0;
  // Indices a unit of sum; at 255 the least difference beyond the bias has no weight already.
  const double step = std::min(kSixteenthsPerNat / (unit * h2), 255.0);
  // Half an index is taken off the bias, so that the index is rounded, not cut.
  const double bias = unit * 2 * p.sigma * p.sigma + roundings - 0.5 / step;
  law.bias = static_cast<std::uint16_t>(std::lround(std::clamp(bias, 0.0, 65535.0)));

  law.noise_sum = static_cast<float>(std::max(unit * p.sigma * p.sigma - 0.25 / step, 0.0));
  law.rounding_sum = static_cast<float>(roundings / 2);
  law.step = static_cast<float>(step);

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
