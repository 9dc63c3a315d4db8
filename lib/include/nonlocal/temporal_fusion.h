// Recursive denoising over time: each frame is fused with what all frames before it told, along the motion
// between them. Causal: the output of a frame needs no later one.
//
//   x̂(p) = x(p + m)                            the fused frame before, moved by the motion m
//   q     = how much more x̂ differs from the frame y than noise explains: x̂ is wrong by that much
//   a     = (v + q) / (v + q + 1)               v: variance of x̂ as a share of sigma², moved likewise
//   x     = x̂ + a (y - x̂),    v = a
//
// This is a Kalman filter for each pixel, as in A. Kokaram's and others' motion-compensated temporal
// recursive filters; P. Arias, J.-M. Morel: Kalman filtering of patches for frame-recursive video denoising,
// CVPRW 2019. Where the frame shows something new (a cut, what was hidden, motion that was not found), q is
// large, so that x is y: there is no ghost of what was there before. What is left of the noise is for a
// spatial filter, which `variance()` tells how much there is.
#pragma once

#include <memory>
#include <span>

#include "nonlocal/export.h"
#include "nonlocal/plane.h"

namespace nonlocal {

struct TemporalFusionParameters {
  double sigma = 10;  // standard deviation of the noise of `guides`, in 8-bit code values; above 0, to 100
  double other_sigma = 10;  // that of `others`
  // Where the noise of a frame differs from cell to cell, its variance n as a share of sigma²: as variance(),
  // of the same size. Without data it is 1 everywhere. (Then 1 above is n, and v = a n.)
  ConstPlane variance;
  // Over how many pixels the noise hangs together, as NoiseEstimator::grain() tells: means of it are so much
  // less sure. 1 to 64.
  double grain = 1;
  double other_grain = 1;
  double deviation_scale = 1;  // what deviation() is multiplied by, 0 or more
  int threads = 0;             // 0: as many as the machine has; the output does not depend on it
};

// Fuses frames one after another; keeps its memory between frames of one geometry, so that a frame costs no
// allocation. One object serves one thread at a time.
class NONLOCAL_API TemporalFusion {
 public:
  TemporalFusion();
  ~TemporalFusion();
  TemporalFusion(TemporalFusion&&) noexcept;
  TemporalFusion& operator=(TemporalFusion&&) noexcept;

  // `guides` are the 1 to 4 planes that motion is found on: luma, or R, G and B. `others`, 0 to 3, follow it:
  // chroma, of as many columns and rows or half of them, rounded up. A frame of another geometry starts
  // afresh. Throws InvalidArgument if planes do not fit or a parameter is out of range.
  void fuse(std::span<const ConstPlane> guides, std::span<const ConstPlane> others,
            const TemporalFusionParameters& parameters);

  // What the last frame became, of 12 bits, valid until the next.
  [[nodiscard]] std::span<const ConstPlane> guides() const;
  [[nodiscard]] std::span<const ConstPlane> others() const;

  // The variance of what is left of the noise as a share of sigma², in 65535ths: 16 bits, half as many
  // columns and rows as the guides, rounded up. NonLocalMeansFrame takes it.
  [[nodiscard]] ConstPlane variance() const;

  // The same as a standard deviation of the guides' noise in 8-bit code values, times deviation_scale, at a
  // bit depth of 16. RefinementNetwork takes it.
  [[nodiscard]] ConstPlane deviation() const;

  // To be told after each frame: the guides as they left the spatial filter. Motion is found on them. Of any
  // depth; without it motion is found on what is fused, which is noisier.
  void remember(std::span<const ConstPlane> filtered_guides);

  // The next frame starts afresh.
  void reset();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nonlocal
