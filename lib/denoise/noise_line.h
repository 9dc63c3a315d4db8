// How the variance of noise goes with brightness, fitted to measurements that texture may have spoilt.
#pragma once

#include <cmath>
#include <span>

namespace nonlocal {

// Noise as some blocks of much the same brightness show it.
struct NoisePoint {
  double brightness = 0;  // in 8-bit code values
  double variance = 0;
  int blocks = 0;
};

// variance(I) = slope I + offset, but at least a tenth of the largest of the points it was fitted to.
struct NoiseLine {
  double slope = 0;
  double offset = 0;
  double least = 0;
  double slope_error = 0;  // standard error of the slope

  static NoiseLine even(double variance) { return {0, variance, variance, 0}; }
  [[nodiscard]] double variance(double brightness) const {
    const double value = slope * brightness + offset;
    return value > least ? value : least;
  }
  // The slope in multiples of its standard error; 0 for a level line.
  [[nodiscard]] double surety() const { return slope == 0 ? 0 : std::abs(slope) / slope_error; }
};

// Texture only adds to a variance: points above the line count the less the farther they lie. Three points
// at least, of different brightness.
NoiseLine fit_noise_line(std::span<const NoisePoint> points);

}  // namespace nonlocal
