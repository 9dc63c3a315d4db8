#include "denoise/noise_line.h"

#include <algorithm>
#include <cmath>

namespace nonlocal {
namespace {

// Relative errors of a point's variance: that of any picture, of chance in the ten squares of a block, and
// from where on a point above the line is texture.
constexpr double kOwnError = 0.15;
constexpr double kChancePerBlock = 2.0 / 10;
constexpr double kTexture = 0.2;
constexpr double kLeastVariance = 0.05;

struct Sums {
  double weight = 0;
  double brightness = 0;
  double variance = 0;
};

double weight_of(const NoisePoint& p, double expected) {
  const double error = (p.variance - expected) / expected;
  const double doubt = error > 0 ? 1 + error * error / (kTexture * kTexture) : 1;
  return 1 / ((kOwnError * kOwnError + kChancePerBlock / p.blocks) * doubt * expected * expected);
}

double middle_variance(std::span<const NoisePoint> points) {
  double lowest = points[0].variance;
  double sum = 0;
  for (const NoisePoint& p : points) {
    lowest = std::min(lowest, p.variance);
    sum += p.variance;
  }
  return std::max((lowest + sum / static_cast<double>(points.size())) / 2, kLeastVariance);
}

// One step of iteratively reweighted least squares.
NoiseLine refit(std::span<const NoisePoint> points, const NoiseLine& last) {
  Sums mean;
  for (const NoisePoint& p : points) {
    const double w = weight_of(p, last.variance(p.brightness));
    mean.weight += w;
    mean.brightness += w * p.brightness;
    mean.variance += w * p.variance;
  }
  mean.brightness /= mean.weight;
  mean.variance /= mean.weight;
  double spread = 0;
  double together = 0;
  for (const NoisePoint& p : points) {
    const double w = weight_of(p, last.variance(p.brightness));
    spread += w * (p.brightness - mean.brightness) * (p.brightness - mean.brightness);
    together += w * (p.brightness - mean.brightness) * (p.variance - mean.variance);
  }
  NoiseLine line;
  line.slope = together / spread;
  line.offset = mean.variance - line.slope * mean.brightness;
  double largest = kLeastVariance;
  for (const NoisePoint& p : points) {
    largest = std::max(largest, line.slope * p.brightness + line.offset);
  }
  line.least = std::max(largest / 10, kLeastVariance);
  double misfit = 0;
  for (const NoisePoint& p : points) {
    const double expected = line.variance(p.brightness);
    misfit += weight_of(p, expected) * (p.variance - expected) * (p.variance - expected);
  }
  const double freedom = static_cast<double>(points.size()) - 2;
  line.slope_error = std::sqrt(std::max(misfit / freedom, 1.0) / spread);
  return line;
}

}  // namespace

NoiseLine fit_noise_line(std::span<const NoisePoint> points) {
  constexpr int steps = 20;
  NoiseLine line = NoiseLine::even(middle_variance(points));
  for (int i = 0; i < steps; ++i) {
    line = refit(points, line);
  }
  return line;
}

}  // namespace nonlocal
