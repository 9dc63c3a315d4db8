// How noisy is a picture? An estimate of the standard deviation of its noise, from one frame, without a
// clean one beside it.
#pragma once

#include <memory>

#include "nonlocal/export.h"
#include "nonlocal/plane.h"

namespace nonlocal {

// Keeps its working memory from frame to frame. One object serves one thread at a time.
class NONLOCAL_API NoiseEstimator {
 public:
  NoiseEstimator();
  ~NoiseEstimator();
  NoiseEstimator(NoiseEstimator&&) noexcept;
  NoiseEstimator& operator=(NoiseEstimator&&) noexcept;

  // Sigma of this plane alone, in 8-bit code values at any bit depth; 0 where the plane is too small or too
  // uniform to tell. Uses at most `threads` threads (0: all); the result does not depend on it.
  double estimate(const ConstPlane& plane, int threads = 0);

  // The same, smoothed over the frames seen since reset(): what a video filter should use. A scene that
  // suddenly is noisier or cleaner is followed within a few frames.
  double update(const ConstPlane& plane, int threads = 0);

  // Forgets earlier frames: for a seek, new caps, another stream.
  void reset();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nonlocal
