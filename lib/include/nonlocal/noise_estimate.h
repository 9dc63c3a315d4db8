// How noisy is a picture? An estimate of the standard deviation of its noise, from one frame, without a
// clean one beside it.
//
// Meant for white Gaussian noise, which it gives within 15 % from sigma 3 to 50 on photographs that are
// themselves nearly free of noise. It looks at the flattest blocks of the frame, at the high frequencies of
// their DCT. What it makes of harder frames:
//
// - Clipped noise: corrected for what clipping took, in dark, over-exposed and video-range frames.
//
// - Letterbox bars: left out.
//
// - Drawings and writing: 0, or nearly so, where most of the frame has no contrast at all or its flattest
//   blocks are too uneven for noise.
//
// - The picture's own grain, and texture that leaves no place flat (fur all over): counted as noise, less
//   about one squared code value. Where they are strong, sigma up to 5 comes out too high, up to half as much
//   again.
//
// - Noise that depends on brightness, as a sensor's does (Poisson-Gaussian: variance a I + b): curve() tells
//   it, where the frame shows it beyond doubt; sigma is then the root of the mean variance over the frame.
//
// - Smooth noise, after scaling, compression or demosaicing: it has lost its high frequencies and in one
//   frame looks like texture, so that estimate() gives too little, even 0. update() compares successive
//   frames where they are flattest, and tells it and its grain, but for what stays from frame to frame: what
//   an encoder has once left of it, and does not touch again.
//
// - With 8 bits, noise well below one code value drowns in rounding and comes out lower still.
#pragma once

#include <memory>

#include "nonlocal/export.h"
#include "nonlocal/plane.h"

namespace nonlocal {

// Noise whose variance goes with brightness along a line: Poisson-Gaussian noise (A. Foi, M. Trimeche,
// V. Katkovnik, K. Egiazarian: Practical Poissonian-Gaussian noise modeling and fitting for single-image
// raw-data, IEEE Transactions on Image Processing 2008). Beyond the two ends it stays as it is there.
struct NoiseCurve {
  static constexpr double dark_brightness = 16;  // in 8-bit code values: the range of video's luma
  static constexpr double bright_brightness = 235;

  double dark = 0;  // standard deviations in 8-bit code values there
  double bright = 0;

  NoiseCurve() = default;
  NoiseCurve(double sigma) : dark(sigma), bright(sigma) {}  // the same at every brightness
  NoiseCurve(double at_dark, double at_bright) : dark(at_dark), bright(at_bright) {}

  [[nodiscard]] NONLOCAL_API double variance(double brightness) const;
  [[nodiscard]] double largest() const { return dark > bright ? dark : bright; }
  [[nodiscard]] double least() const { return dark > bright ? bright : dark; }
  // No more than a tenth between the ends.
  [[nodiscard]] bool is_level() const { return least() >= 0.9 * largest(); }

  bool operator==(const NoiseCurve&) const = default;
};

// Keeps its working memory from frame to frame. One object serves one thread at a time.
class NONLOCAL_API NoiseEstimator {
 public:
  NoiseEstimator();
  ~NoiseEstimator();
  NoiseEstimator(NoiseEstimator&&) noexcept;
  NoiseEstimator& operator=(NoiseEstimator&&) noexcept;

  // Sigma of this plane alone, in 8-bit code values at any bit depth; 0 where the plane cannot tell: smaller
  // than 8 x 8, constant, clipped nearly everywhere, or of little but two values. Uses at most `threads`
  // threads (0: all); the result does not depend on it. Throws InvalidArgument for a plane that makes no
  // sense or fewer than 0 threads.
  double estimate(const ConstPlane& plane, int threads = 0);

  // The same, smoothed over the frames seen since reset(): what a video filter should use. One or two odd
  // frames in a row change nothing; a scene that stays noisier or cleaner is followed at its third or fourth
  // frame. Frames that cannot tell keep the last value, which is 0 before any could.
  //
  // Where `brightness` is given, a plane of the same picture of any size and depth, curve() is by that one's:
  // chroma's noise depends on luma.
  double update(const ConstPlane& plane, int threads = 0, const ConstPlane& brightness = {});

  // How the noise that the last estimate() or update() told depends on brightness: sigma at both ends, where
  // it does not, or not beyond doubt.
  [[nodiscard]] NoiseCurve curve() const;

  // Over how many pixels the noise that the last update() told hangs together: its power at wavelengths
  // from 16 on over that of white noise of the same sigma. 1 where it is white, and after estimate().
  [[nodiscard]] double grain() const;

  // Forgets earlier frames: for a seek, new caps, another stream.
  void reset();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nonlocal
