// Codes of a frame's planes as numbers to calculate with, and as R, G and B.
//
// A sample's level is its code as one of 8 bits: a number in 0 .. 256 that any bit depth has, so that one
// lattice serves them all.
#pragma once

#include <array>

#include "nonlocal/colour_format.h"

namespace nonlocal::grade {

// level = code * by + plus.
struct LevelScale {
  double by;
  double plus;
};

LevelScale level_scale(const ColourFormat& format, int channel, int bit_depth);

// The level of black, or of no chroma.
double level_origin(const ColourFormat& format, int channel);

using Matrix3 = std::array<std::array<double, 3>, 3>;

// Luma's weights of R, G and B.
std::array<double, 3> luma_weights(ColourMatrix matrix);

// colour = to_rgb levels + offset, colour in 0 .. 1; a change of the colour is one of from_rgb times it in
// levels. Gray: all three levels are luma's, and so are from_rgb's rows.
struct ColourSpace {
  Matrix3 to_rgb;
  std::array<double, 3> offset;
  Matrix3 from_rgb;
};

ColourSpace colour_space(const ColourFormat& format);

}  // namespace nonlocal::grade
