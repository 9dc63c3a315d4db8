#include "nonlocal/noise_estimate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "core/anew.h"
#include "core/planes.h"
#include "core/workers.h"
#include "denoise/frame_noise.h"
#include "nonlocal/error.h"

namespace nonlocal {
namespace {

// Follows the estimates of successive frames.
class Level {
 public:
  void follow(double sigma) {
    if (seen_ == 0) {
      recent_.fill(sigma);
    }
    recent_[seen_ % recent_.size()] = sigma;
    ++seen_;
    std::array<double, 5> sorted = recent_;
    std::sort(sorted.begin(), sorted.end());
    const double middle = sorted[sorted.size() / 2];
    if (seen_ <= recent_.size() || std::abs(middle - value_) > 0.25 * value_ + 0.5) {
      value_ = middle;
    } else {
      value_ += (middle - value_) / 16;
    }
  }

  [[nodiscard]] double value() const { return value_; }

 private:
  std::array<double, 5> recent_{};  // so many that a flash or a black frame or two pass unnoticed
  std::size_t seen_ = 0;
  double value_ = 0;
};

int checked_thread_count(int threads) {
  if (threads < 0) {
    throw InvalidArgument("NoiseEstimator: expected 0 or more threads, got " + std::to_string(threads));
  }
  return thread_count(threads);
}

}  // namespace

double NoiseCurve::variance(double brightness) const {
  const double part = (brightness - dark_brightness) / (bright_brightness - dark_brightness);
  return std::lerp(dark * dark, bright * bright, std::clamp(part, 0.0, 1.0));
}

struct NoiseEstimator::State {
  FrameNoise frame;
  Level sigma;
  Level dark;
  Level bright;
  Level grain;
  FrameLevel told;

  void start() { sigma = dark = bright = grain = {}; }
  void take_levels() { told = {sigma.value(), {dark.value(), bright.value()}, std::max(grain.value(), 1.0)}; }
};

NoiseEstimator::NoiseEstimator() : state_(std::make_unique<State>()) {}
NoiseEstimator::~NoiseEstimator() = default;
NoiseEstimator::NoiseEstimator(NoiseEstimator&&) noexcept = default;
NoiseEstimator& NoiseEstimator::operator=(NoiseEstimator&&) noexcept = default;

double NoiseEstimator::estimate(const ConstPlane& plane, int threads) {
  check_plane("NoiseEstimator", plane);
  const int checked = checked_thread_count(threads);
  or_anew(*state_, [&] { state_->told = state_->frame.estimate(plane, checked).value_or(FrameLevel{}); });
  return state_->told.sigma;
}

double NoiseEstimator::update(const ConstPlane& plane, int threads, const ConstPlane& brightness) {
  check_plane("NoiseEstimator", plane);
  if (brightness.data != nullptr) {
    check_plane("NoiseEstimator", brightness);
  }
  State& s = *state_;
  const bool had_time = s.frame.has_time();
  const int checked = checked_thread_count(threads);
  const auto level = or_anew(s, [&] { return s.frame.estimate_in_time(plane, brightness, checked); });
  if (s.frame.has_time() && !had_time) {
    s.start();  // what the first frames could not tell does not count
  }
  if (level) {
    s.sigma.follow(level->sigma);
    s.dark.follow(level->curve.dark);
    s.bright.follow(level->curve.bright);
    s.grain.follow(level->grain);
  }
  s.take_levels();
  return s.sigma.value();
}

NoiseCurve NoiseEstimator::curve() const { return state_->told.curve; }

double NoiseEstimator::grain() const { return state_->told.grain; }

void NoiseEstimator::reset() {
  state_->start();
  state_->frame.forget();
  state_->told = {};
}

}  // namespace nonlocal
