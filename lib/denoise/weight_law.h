// From d² to a weight in integers: what the kernel's inner loop needs to know, worked out once a frame.
//
// The weight exp(-max(d² - 2 sigma², 0) / h²) is looked up as mantissa[index % 16] << base >> index / 16,
// where index counts sixteenths of an octave: index = (sum - bias) * 16 / (ln 2 * H), with `sum` the summed
// squared difference that the kernel has at hand and H the h² in its units. So a weight is right within 2.2 %
// however small it is, which a linear table of 8 bits is not: hundreds of tiny weights together move a pixel.
#pragma once

#include <array>
#include <cstdint>

#include "nonlocal/non_local_means.h"

namespace nonlocal::denoise {

// h² is at least this: a strength next to nothing must not overflow.
constexpr double kLeastSquareOfH = 1e-4;

// Distances are measured on "guide" samples of 16 bits, guide_scale times the 8-bit code values (of which
// deeper samples have fractions) and rounded. They are squared in one of three forms; none of them changes a
// difference that still has a weight.
enum class SquareForm {
  kRounded,  // signed guide: d² / 2^15, rounded; all fit
  kClipped,  // the same, then clipped to `clip`
  kWhole,    // unsigned guide: |d| clipped to `clip`, then squared; for fine steps of deep samples
};

struct WeightLaw {
  SquareForm form = SquareForm::kRounded;
  float guide_scale = 1;
  std::uint16_t clip = 0;
  std::uint16_t column_cap =
      0;  // a column of the patch that sums up to more has no weight; a row of such fits

  std::uint16_t bias = 0;
  bool magnify = false;     // index = (min(sum - bias, limit) << magnify_shift) * scale >> 16 where true,
  std::uint16_t limit = 0;  // else min((sum - bias) * scale >> 16, 255)
  int magnify_shift = 0;
  std::uint16_t scale = 0;

  // For noise that differs from pixel to pixel, v times sigma² at one: index = (sum - bias of both pixels) *
  // root of one * root of the other, with bias = v noise_sum + rounding_sum and root = sqrt(step / v).
  float noise_sum = 0;
  float rounding_sum = 0;
  float step = 0;

  std::array<std::uint8_t, 16> mantissa{};
  int base = 7;
  bool split_values = false;  // sums of products need the samples' upper and lower bytes apart

  // The weight of a pixel with itself: that of d = 0.
  [[nodiscard]] int centre_weight() const { return mantissa[0] << base; }
};

// For `channels` planes of `bit_depth` bits; h must be above 0.
WeightLaw make_weight_law(const NonLocalMeansParameters& parameters, int channels, int bit_depth);

}  // namespace nonlocal::denoise
