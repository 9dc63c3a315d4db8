#include "grade/colour_space.h"

#include <cmath>

namespace nonlocal::grade {
namespace {

bool is_chroma(const ColourFormat& format, int channel) {
  return format.model == ColourModel::kYCbCr && channel > 0;
}

// Levels from black to white, or from the least to the largest chroma.
double span_of(const ColourFormat& format, int channel) {
  if (format.range == ColourRange::kFull) {
    return 255;
  }
  return is_chroma(format, channel) ? 224 : 219;
}

// R, G and B of Y', Cb, Cr: 0 .. 1, -0.5 .. 0.5.
Matrix3 from_ycbcr(const std::array<double, 3>& k) {
  const double cr = 2 * (1 - k[0]);
  const double cb = 2 * (1 - k[2]);
  return {{{1, 0, cr}, {1, -k[2] * cb / k[1], -k[0] * cr / k[1]}, {1, cb, 0}}};
}

Matrix3 to_ycbcr(const std::array<double, 3>& k) {
  const double cr = 2 * (1 - k[0]);
  const double cb = 2 * (1 - k[2]);
  return {{{k[0], k[1], k[2]},
           {-k[0] / cb, -k[1] / cb, (1 - k[2]) / cb},
           {(1 - k[0]) / cr, -k[1] / cr, -k[2] / cr}}};
}

constexpr Matrix3 kIdentity = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};

}  // namespace

double level_origin(const ColourFormat& format, int channel) {
  if (is_chroma(format, channel)) {
    return 128;
  }
  return format.range == ColourRange::kFull ? 0 : 16;
}

LevelScale level_scale(const ColourFormat& format, int channel, int bit_depth) {
  if (format.range == ColourRange::kLimited) {
    return {std::ldexp(1.0, 8 - bit_depth), 0};
  }
  const double by = 255 / (std::ldexp(1.0, bit_depth) - 1);
  return {by, is_chroma(format, channel) ? 128 - std::ldexp(by, bit_depth - 1) : 0};
}

std::array<double, 3> luma_weights(ColourMatrix matrix) {
  switch (matrix) {
    case ColourMatrix::kBt601:
      return {0.299, 0.587, 0.114};
    case ColourMatrix::kBt2020:
      return {0.2627, 0.6780, 0.0593};
    default:
      return {0.2126, 0.7152, 0.0722};
  }
}

ColourSpace colour_space(const ColourFormat& format) {
  const std::array<double, 3> weights = luma_weights(format.matrix);
  const bool is_ycbcr = format.model == ColourModel::kYCbCr;
  ColourSpace space{
      is_ycbcr ? from_ycbcr(weights) : kIdentity, {0, 0, 0}, is_ycbcr ? to_ycbcr(weights) : kIdentity};
  if (format.model == ColourModel::kGray) {
    space.from_rgb = {weights, weights, weights};
  }
  for (int channel = 0; channel < 3; ++channel) {
    const double span = span_of(format, channel);
    for (int i = 0; i < 3; ++i) {
      space.to_rgb[i][channel] /= span;
      space.offset[i] -= space.to_rgb[i][channel] * level_origin(format, channel);
      space.from_rgb[channel][i] *= span;
    }
  }
  return space;
}

}  // namespace nonlocal::grade
