// The denoiser of a video's frames, whole: fusion over time, then non-local means of what noise is left. It
// is what the element nonlocaldenoise runs.
#pragma once

#include <memory>
#include <span>

#include "nonlocal/export.h"
#include "nonlocal/plane.h"

namespace nonlocal {

struct VideoDenoiserParameters {
  double sigma = 10;  // standard deviation of the noise in 8-bit code values, 0 to 100: of luma, or of RGB,
  double chroma_sigma = 10;    // of the chroma planes
  double strength = 1;         // 0 (leaves it as it is) to 10: multiplies h on luma, or on RGB,
  double chroma_strength = 1;  // on the chroma planes
  int patch_size = 5;          // as of NonLocalMeansParameters
  int search_size = 11;        // that of luma; chroma_parameters() says what suits chroma
  bool joint_chroma = false;   // chroma is averaged with the weights of luma
  bool temporal = true;        // fuses frames; where it is false each is filtered by itself
  int threads = 0;             // 0: as many as the machine has; the output does not depend on it
};

// Filters frames one after another, in place and without delay. It keeps its memory between frames of one
// geometry. One object serves one thread at a time.
class NONLOCAL_API VideoDenoiser {
 public:
  VideoDenoiser();
  ~VideoDenoiser();
  VideoDenoiser(VideoDenoiser&&) noexcept;
  VideoDenoiser& operator=(VideoDenoiser&&) noexcept;

  // `luma` is one plane, or R, G and B; `chroma` none or two planes, of as many columns and rows or half of
  // them, rounded either way. Throws InvalidArgument if planes do not fit or a parameter is out of range.
  void filter(std::span<const Plane> luma, std::span<const Plane> chroma,
              const VideoDenoiserParameters& parameters);

  // The next frame has nothing to do with those before: after a seek, for example.
  void reset();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nonlocal
