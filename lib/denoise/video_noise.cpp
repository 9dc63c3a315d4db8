#include "nonlocal/video_noise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "core/planes.h"
#include "nonlocal/error.h"

namespace nonlocal {
namespace {

constexpr double kMostSigma = 100;
constexpr std::size_t kColours = 3;
constexpr std::size_t kChromaPlanes = 2;

// The root of the mean of a group's variances, as d² is a mean over its planes, too.
class MeanSigma {
 public:
  void add(double sigma) {
    sum_of_squares_ += sigma * sigma;
    ++count_;
  }
  [[nodiscard]] double value() const { return std::min(std::sqrt(sum_of_squares_ / count_), kMostSigma); }

 private:
  double sum_of_squares_ = 0;
  int count_ = 0;
};

// Of planes that are filtered together.
struct GroupNoise {
  double level;
  NoiseCurve curve;
  double grain;
};

// By the brightness of `luma`, if that is given, and else by their own.
GroupNoise estimate(std::span<NoiseEstimator> estimators, std::span<const Plane> planes, int threads,
                    const ConstPlane& luma = {}) {
  MeanSigma level;
  MeanSigma dark;
  MeanSigma bright;
  double grain = 0;
  for (std::size_t i = 0; i < planes.size(); ++i) {
    NoiseEstimator& estimator = estimators[i];
    level.add(estimator.update(planes[i], threads, luma));
    dark.add(estimator.curve().dark);
    bright.add(estimator.curve().bright);
    grain += estimator.grain();
  }
  return {level.value(), {dark.value(), bright.value()}, grain / static_cast<double>(planes.size())};
}

void check_planes(std::span<const Plane> luma, std::span<const Plane> chroma) {
  const bool fits =
      (luma.size() == 1 || luma.size() == kColours) && (chroma.empty() || chroma.size() == kChromaPlanes);
  if (!fits) {
    throw InvalidArgument(
        "VideoNoiseEstimator: expected 1 plane of luma or 3 of RGB, and 0 or 2 of chroma, got " +
        std::to_string(luma.size()) + " and " + std::to_string(chroma.size()));
  }
  for (const std::span<const Plane> group : {luma, chroma}) {
    for (const Plane& plane : group) check_plane("VideoNoiseEstimator", plane);
  }
}

}  // namespace

struct VideoNoiseEstimator::State {
  std::array<NoiseEstimator, kColours> luma;
  std::array<NoiseEstimator, kChromaPlanes> chroma;
};

VideoNoiseEstimator::VideoNoiseEstimator() : state_(std::make_unique<State>()) {}
VideoNoiseEstimator::~VideoNoiseEstimator() = default;
VideoNoiseEstimator::VideoNoiseEstimator(VideoNoiseEstimator&&) noexcept = default;
VideoNoiseEstimator& VideoNoiseEstimator::operator=(VideoNoiseEstimator&&) noexcept = default;

VideoNoise VideoNoiseEstimator::update(std::span<const Plane> luma, std::span<const Plane> chroma,
                                       int threads) {
  check_planes(luma, chroma);
  const GroupNoise of_luma = estimate(state_->luma, luma, threads);
  VideoNoise noise;
  noise.level = of_luma.level;
  noise.sigma = of_luma.curve;
  noise.grain = of_luma.grain;
  if (!chroma.empty()) {
    const GroupNoise of_chroma = estimate(state_->chroma, chroma, threads, luma[0]);
    const bool most_in_bright = noise.sigma.dark < noise.sigma.bright;
    noise.chroma_level = of_chroma.level;
    noise.chroma_sigma = noise.sigma.is_level() ? of_chroma.level
                         : most_in_bright       ? of_chroma.curve.bright
                                                : of_chroma.curve.dark;
    noise.chroma_grain = of_chroma.grain;
  }
  return noise;
}

void VideoNoiseEstimator::reset() {
  for (NoiseEstimator& estimator : state_->luma) estimator.reset();
  for (NoiseEstimator& estimator : state_->chroma) estimator.reset();
}

void set_noise(VideoDenoiserParameters& parameters, const VideoNoise& noise) {
  const bool is_by_brightness = parameters.method == NonLocalMeansMethod::kDirect;
  parameters.sigma = is_by_brightness ? noise.sigma : noise.level;
  parameters.chroma_sigma = is_by_brightness ? noise.chroma_sigma : noise.chroma_level;
  parameters.grain = noise.grain;
  parameters.chroma_grain = noise.chroma_grain;
}

}  // namespace nonlocal
