// What one frame, and the one before, tell of its noise.
#pragma once

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "denoise/block_dct.h"
#include "denoise/noise_in_time.h"
#include "denoise/noise_line.h"
#include "nonlocal/noise_estimate.h"
#include "nonlocal/plane.h"

namespace nonlocal {

// What a frame tells.
struct FrameLevel {
  double sigma = 0;
  NoiseCurve curve;
  double grain = 1;
};

struct BlockMeasure {
  float low_energy;
  float mean;
  float brightness;  // that the noise depends on: the mean, or another plane's
  float least;
  float most;

  [[nodiscard]] bool constant() const { return least == most; }
};

// The range of a frame's values: what was clipped lies on its ends, be that at 0 and 255 or at video's 16 and
// 235.
struct Range {
  float least;
  float most;

  // What clipping to this range leaves of the variance of noise of this sigma in a block of this mean.
  [[nodiscard]] float share_left(float mean, float sigma) const;
};

// A block that may be chosen: its low frequencies' energy as it would be without clipping, and its number.
struct Candidate {
  float low_energy;
  int block;
  float share_left;

  bool operator<(const Candidate& other) const {
    return std::pair(low_energy, block) < std::pair(other.low_energy, other.block);
  }
};

// One frame's blocks and what they tell. Keeps its memory for the next frame.
class FrameNoise {
 public:
  static constexpr int high_count = 10;  // coefficients that measure the noise

  // Nothing where the frame cannot tell: too small, constant, or clipped nearly everywhere.
  std::optional<FrameLevel> estimate(const ConstPlane& plane, int threads);

  // The same with what the frame before tells, if that was given here, too.
  std::optional<FrameLevel> estimate_in_time(const ConstPlane& plane, const ConstPlane& brightness,
                                             int threads);
  [[nodiscard]] bool has_time() const { return noise_in_time_.has_value(); }
  void forget();

 private:
  static constexpr int band_count = 16;

  void lay_grid(const ConstPlane& plane, int most);
  bool measure_blocks(const ConstPlane& plane, const ConstPlane& brightness, int threads, bool in_time);
  std::optional<FrameLevel> level_of_blocks(const ConstPlane& plane);
  std::optional<NoiseInTime> compare_in_time();
  void crop_bars();
  [[nodiscard]] bool is_hopeless() const;
  [[nodiscard]] double drawn_share() const;
  std::optional<NoisePoint> flattest(const ConstPlane& plane);
  void choose_candidates(double sigma);
  void sort_into_bands();
  void choose_candidates(const std::vector<int>& band, const NoiseLine& noise);
  NoisePoint measure_noise(const ConstPlane& plane, std::size_t least_count);
  double even_variance();
  NoiseLine line_of(const ConstPlane& plane, double variance);
  [[nodiscard]] FrameLevel level_of(const NoisePoint& flattest, const NoiseLine& line) const;
  template <typename Function>
  void for_each_block(Function function) const;
  [[nodiscard]] int block_count() const { return (right_ - left_) * (bottom_ - top_); }

  int grid_step_ = 0;  // samples from a block to the next, in both directions
  int columns_ = 0;
  int rows_ = 0;
  std::vector<BlockMeasure> blocks_;
  std::vector<std::array<float, high_count>> high_energies_;  // of the blocks
  BlocksInTime in_time_;
  std::optional<NoiseInTime> noise_in_time_;  // the last that could be told
  Range range_{};
  // Of the grid, what lies between letterbox bars, ends excluded.
  int left_ = 0;
  int right_ = 0;
  int top_ = 0;
  int bottom_ = 0;
  std::array<std::vector<int>, band_count> bands_;  // the blocks by brightness, without constant ones
  std::vector<Candidate> candidates_;
  std::vector<float> block_energies_;  // of the candidates used, at the high frequencies
};

}  // namespace nonlocal
