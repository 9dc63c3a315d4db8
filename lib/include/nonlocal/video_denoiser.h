// The denoiser of a video's frames, whole: fusion over time, then non-local means of what noise is left, then
// a network that gives back what averaging took. It is what the element nonlocaldenoise runs.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "nonlocal/export.h"
#include "nonlocal/noise_estimate.h"
#include "nonlocal/non_local_means.h"
#include "nonlocal/plane.h"
#include "nonlocal/refinement.h"

namespace nonlocal {

struct VideoDenoiserParameters {
  // Standard deviation of the noise in 8-bit code values, 0 to 100: of luma, or of RGB, one number or by
  // brightness; and of the chroma planes, where luma has most. set_noise() sets them to what a
  // VideoNoiseEstimator finds (video_noise.h).
  NoiseCurve sigma = 10;
  double chroma_sigma = 10;
  double grain = 1;  // of luma and of chroma, as of TemporalFusionParameters
  double chroma_grain = 1;
  // 0 (leaves it as it is) to 10: multiplies h, and the noise that the network is told of, on luma, or on
  // RGB; and h on the chroma planes.
  double strength = 1;
  double chroma_strength = 1;
  int patch_size = 5;    // as of NonLocalMeansParameters
  int search_size = 11;  // that of luma; chroma_parameters() says what suits chroma
  // Chroma is averaged with the weights of luma, whatever its sigma; where frames are fused, though, chroma
  // without noise (chroma_sigma 0) is left as it is.
  bool joint_chroma = false;
  bool temporal = true;  // fuses frames; where it is false each is filtered by itself, whatever is ahead
  int threads = 0;       // 0: as many as the machine has; the output does not depend on it
  // kAttention takes one sigma for the frame, and neither joint_chroma nor temporal.
  NonLocalMeansMethod method = NonLocalMeansMethod::kDirect;
};

// A frame to be read: planes as VideoDenoiser::filter() takes them.
struct VideoFrame {
  std::span<const ConstPlane> luma;
  std::span<const ConstPlane> chroma;
};

// Filters frames one after another, in place and, without frames ahead, without delay. It keeps its memory
// between frames of one geometry. One object serves one thread at a time.
class NONLOCAL_API VideoDenoiser {
 public:
  VideoDenoiser();
  ~VideoDenoiser();
  VideoDenoiser(VideoDenoiser&&) noexcept;
  VideoDenoiser& operator=(VideoDenoiser&&) noexcept;

  // From now on the network of this file refines luma, or R, G and B each; find_model() says where the
  // library's are. To begin with none does. Throws what RefinementNetwork throws, and then leaves all as it
  // was.
  void refine_with(const std::string& model_file, NetworkPrecision precision = NetworkPrecision::kAutomatic);
  void do_not_refine();

  // `luma` is one plane, or R, G and B (up to four are filtered together); `chroma` none or two planes, of as
  // many columns and rows or half of them, rounded either way, and of the same depth. `ahead` are frames that
  // follow this one, the next first, as they come, where there are any yet: fused as well, from the last of
  // them back to this frame. Throws InvalidArgument if planes do not fit or a parameter is out of range: the
  // frame is then as it was.
  void filter(std::span<const Plane> luma, std::span<const Plane> chroma,
              const VideoDenoiserParameters& parameters, std::span<const VideoFrame> ahead = {});

  // The next frame has nothing to do with those before: after a seek, for example.
  void reset();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nonlocal
