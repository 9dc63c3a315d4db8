// How noisy is a picture? An estimate of the standard deviation of its noise, from one frame, without a
// clean one beside it.
//
// Meant for white Gaussian noise, which it gives within 15 % from sigma 3 to 50 on photographs. It looks at
// the flattest blocks of the frame, at the high frequencies of their DCT. What it makes of harder frames:
//   clipped noise        corrected for what clipping took, in dark, over-exposed and video-range frames
//   letterbox bars       left out
//   drawings, test bars  0, or nearly so, where most of the frame has no contrast at all
//   much texture         sigma below 3 comes out too high where no place is flat (fur, grass all over)
//   grain of the picture counted as noise, less about one squared code value, which photographs have in
//   common noise that depends   that of the flattest places
//     on brightness
//   smooth noise         too low: noise that was scaled, compressed or demosaiced has lost high frequencies,
//   and in
//                        one frame it looks like texture. Give sigma by hand for such material.
// With 8 bits, noise well below one code value drowns in rounding and comes out lower still.
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

  // Sigma of this plane alone, in 8-bit code values at any bit depth; 0 where the plane cannot tell: smaller
  // than 8 x 8, constant, or clipped nearly everywhere. Uses at most `threads` threads (0: all); the result
  // does not depend on it. Throws InvalidArgument for a plane that makes no sense or fewer than 0 threads.
  double estimate(const ConstPlane& plane, int threads = 0);

  // The same, smoothed over the frames seen since reset(): what a video filter should use. One or two odd
  // frames in a row change nothing; a scene that stays noisier or cleaner is followed at its third or fourth
  // frame. Frames that cannot tell keep the last value, which is 0 before any could.
  double update(const ConstPlane& plane, int threads = 0);

  // Forgets earlier frames: for a seek, new caps, another stream.
  void reset();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nonlocal
