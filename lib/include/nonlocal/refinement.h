// The refinement network: gives back what averaging took from a picture along with its noise.
//
//   refined = g + 255 shuffle(N([unshuffle(f / 255 - 1/2), unshuffle(g / 255 - 1/2), 4 mean(s) / 255]))
//
// f is the noisy plane, or an average of several frames, g a non-local estimate of f without its noise, s the
// standard deviation of f's noise, all in 8-bit code values at any bit depth. unshuffle turns blocks of r x r
// samples into r² channels of one (W. Shi et al.: Real-Time Single Image and Video Super-Resolution Using an
// Efficient Sub-Pixel Convolutional Neural Network, CVPR 2016), as in K. Zhang et al.: FFDNet, TIP 2018, from
// where the map of the noise as an input comes too; mean is that of s over the block. N has L convolutions of
// 3 x 3 with biases, C channels between them, and a ReLU after each but the last. Beyond its borders the
// frame is mirrored (the border sample is not repeated), so that N sees no border.
#pragma once

#include <memory>
#include <string>

#include "nonlocal/export.h"
#include "nonlocal/plane.h"

namespace nonlocal {

// What the convolutions calculate with; sums are always of 32 bits.
enum class NetworkPrecision {
  kAutomatic,  // kBfloat16 where it is supported and the faster one, else kFloat32; Network's: see there
  kFloat32,
  kBfloat16,  // CPUs with AVX512_BF16; twice as fast as kFloat32, but not on Intel's without AMX
  kInt8,      // twice as fast again, less exact (see below); CPUs with AVX512_VNNI or AVX_VNNI
};

// Whether this CPU multiplies in this precision. kAutomatic and kFloat32 are for every CPU.
NONLOCAL_API bool is_supported(NetworkPrecision precision);

// Refines frames one after another. It keeps weights and working memory between frames of one size, so that a
// frame costs no allocation. One object serves one thread at a time; different objects are independent.
//
// A model file is a safetensors file with F32 tensors "conv0.weight" [C, 2 r² + 1, 3, 3], "conv0.bias" [C],
// to "conv{L - 1}.weight" [r², C, 3, 3], "conv{L - 1}.bias" [r²]; the channels of a block of r x r samples go
// row by row, f's before g's, and s comes last. Its metadata has "format": "nonlocal.refinement", "version":
// "1", "unshuffle": r (2 or 4), "layers": L (1 to 32), "channels": C (1 to 512).
//
// kInt8 keeps the input in steps of 1 code value (s: 1/4, up to 63.75), weights in 255 steps for each output
// channel, and what comes out of a ReLU in 255 steps from 0 to that channel's maximum. The maxima are those
// that a synthetic noisy picture leads to, plus a quarter, unless the file has them: tensors "conv0.maximum"
// [C] to "conv{L - 2}.maximum" [C].
class NONLOCAL_API RefinementNetwork {
 public:
  // Throws ModelError if the file cannot be read, or is no such model, and InvalidArgument if the precision
  // is not supported.
  explicit RefinementNetwork(const std::string& path,
                             NetworkPrecision precision = NetworkPrecision::kAutomatic);
  ~RefinementNetwork();
  RefinementNetwork(RefinementNetwork&&) noexcept;
  RefinementNetwork& operator=(RefinementNetwork&&) noexcept;

  // Makes ready for frames of width x height and for `threads` threads (0: as many as the machine has), which
  // otherwise the first frame does: some milliseconds. Throws InvalidArgument for a size or a number of
  // threads that makes no sense.
  void prepare(int width, int height, int threads = 0);

  // Refines `estimate` with noise of one standard deviation, 0 to 255 code values. All planes have one size,
  // from 1 x 1 on; each may have its own bit depth and layout. `out` is rounded to its bit depth, and may be
  // the memory of any other plane, or part of it: that one is then copied first. The output depends neither
  // on `threads` (0: as many as the machine has) nor on the layout. Throws InvalidArgument if the planes do
  // not fit or a value is out of range.
  void refine(const ConstPlane& noisy, const ConstPlane& estimate, double sigma, const Plane& out,
              int threads = 0);

  // The same with noise that varies: `sigma` holds the standard deviation around each sample, with the size
  // of the others or half of it, rounded up, where each value stands for 2 x 2 samples.
  void refine(const ConstPlane& noisy, const ConstPlane& estimate, const ConstPlane& sigma, const Plane& out,
              int threads = 0);

  [[nodiscard]] int unshuffle() const;  // r
  [[nodiscard]] int layers() const;     // L
  [[nodiscard]] int channels() const;   // C

  // The one in use: never kAutomatic.
  [[nodiscard]] NetworkPrecision precision() const;

  // Floating-point operations a frame of this size, two a multiplication with its addition, without what is
  // calculated twice where tiles meet.
  [[nodiscard]] double operations(int width, int height) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The file of the model `name`, which comes with the library ("refine_balanced"); a name with a '/' is that
// of the file itself. Looks for name.safetensors in the folder that the environment variable NONLOCAL_MODELS
// names, where it is set, then in the folder that models are installed to, beside this library, then where it
// was built. Throws ModelError if there is none.
NONLOCAL_API std::string find_model(const std::string& name);

}  // namespace nonlocal
