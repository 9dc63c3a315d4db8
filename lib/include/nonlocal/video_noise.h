// How noisy a video's frames are, found frame by frame: what VideoDenoiser wants to be told. It is what the
// element nonlocaldenoise does unless it is given a sigma.
//
//   nonlocal::VideoNoiseEstimator estimator;
//   nonlocal::VideoDenoiser denoiser;
//   nonlocal::VideoDenoiserParameters parameters;
//   for (each frame) {
//     set_noise(parameters, estimator.update(luma, chroma));
//     denoiser.filter(luma, chroma, parameters);
//   }
#pragma once

#include <memory>
#include <span>

#include "nonlocal/export.h"
#include "nonlocal/noise_estimate.h"
#include "nonlocal/plane.h"
#include "nonlocal/video_denoiser.h"

namespace nonlocal {

// Standard deviations in 8-bit code values, 0 to 100.
struct VideoNoise {
  double level = 0;  // of luma, or of RGB (the root of the mean of the planes' variances), over the frame
  NoiseCurve sigma;  // the same by brightness, where the frame shows that it depends on it
  double chroma_level = 0;  // of both chroma planes over the frame
  double chroma_sigma = 0;  // and where luma has most
  double grain = 1;         // of luma and of chroma, as NoiseEstimator::grain()
  double chroma_grain = 1;

  VideoNoise() = default;
  // White noise of this sigma in every plane.
  VideoNoise(double sigma) : level(sigma), sigma(sigma), chroma_level(sigma), chroma_sigma(sigma) {}
};

// Keeps its working memory from frame to frame. One object serves one thread at a time.
class NONLOCAL_API VideoNoiseEstimator {
 public:
  VideoNoiseEstimator();
  ~VideoNoiseEstimator();
  VideoNoiseEstimator(VideoNoiseEstimator&&) noexcept;
  VideoNoiseEstimator& operator=(VideoNoiseEstimator&&) noexcept;

  // The noise of this frame, smoothed over those since reset() as NoiseEstimator::update() says: of luma by
  // its own brightness, of chroma by luma's. `luma` is one plane, or R, G and B; `chroma` none, where it is
  // not filtered (its noise is then 0), or two planes. Of an interlaced frame it should be one field: motion
  // makes them differ, which passes for noise. Uses at most `threads` threads (0: all); the result does not
  // depend on it. Throws InvalidArgument for other numbers of planes, planes that make no sense and fewer
  // than 0 threads.
  VideoNoise update(std::span<const Plane> luma, std::span<const Plane> chroma = {}, int threads = 0);

  // Forgets earlier frames: for a seek, new caps, another stream.
  void reset();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Tells the denoiser what noise there is: sigma, chroma_sigma and their grains, and nothing else. Where the
// parameters' method is kAttention, which takes one sigma a frame, those over the frame.
NONLOCAL_API void set_noise(VideoDenoiserParameters& parameters, const VideoNoise& noise);

}  // namespace nonlocal
