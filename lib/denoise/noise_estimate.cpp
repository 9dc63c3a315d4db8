#include "nonlocal/noise_estimate.h"

#include "core/planes.h"

namespace nonlocal {

struct NoiseEstimator::State {};
NoiseEstimator::NoiseEstimator() : state_(std::make_unique<State>()) {}
NoiseEstimator::~NoiseEstimator() = default;
NoiseEstimator::NoiseEstimator(NoiseEstimator&&) noexcept = default;
NoiseEstimator& NoiseEstimator::operator=(NoiseEstimator&&) noexcept = default;
double NoiseEstimator::estimate(const ConstPlane& plane, int) {
  check_plane("NoiseEstimator", plane);
  return 10;
}
double NoiseEstimator::update(const ConstPlane& plane, int threads) { return estimate(plane, threads); }
void NoiseEstimator::reset() {}

}  // namespace nonlocal
