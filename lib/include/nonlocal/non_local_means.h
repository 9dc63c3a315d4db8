// Non-local means: each pixel becomes the average of the pixels whose surroundings look alike.
//
//   out(x) = sum_y w(x, y) in(y) / sum_y w(x, y)            y in the search window around x
//   w(x, y) = exp(-max(d²(x, y) - 2 sigma², 0) / h²)        d²: mean squared difference of the two patches
//
// A. Buades, B. Coll, J.-M. Morel: A non-local algorithm for image denoising, CVPR 2005; the subtraction of
// 2 sigma², which is what noise alone adds to d², is from the same authors' IPOL article of 2011.
// Beyond its borders the picture is mirrored (the border pixel is not repeated).
#pragma once

#include <memory>
#include <span>

#include "nonlocal/export.h"
#include "nonlocal/plane.h"

namespace nonlocal {

// How the averages are computed: the same ones, but for rounding.
enum class NonLocalMeansMethod {
  kDirect,     // patches are compared offset by offset, in integers
  kAttention,  // as attention.h's: embedded patches are queries and keys, samples are values; floats, slower
};

struct NonLocalMeansParameters {
  int patch_size = 5;    // odd, 1 to 15; 1 compares single pixels: exp(-(I_i - I_j)² / h²)
  int search_size = 21;  // odd, 3 to 63: the window's width and height
  double sigma = 10;     // noise standard deviation in 8-bit code values at any bit depth; 0 to 100
  double strength =
      1;            // 0 (no filtering) to 10: multiplies h; 1 is the best for Gaussian noise of this sigma
  int threads = 0;  // 0: as many as the machine has; the output does not depend on it
  NonLocalMeansMethod method = NonLocalMeansMethod::kDirect;

  bool operator==(const NonLocalMeansParameters&) const = default;
};

// The h, in 8-bit code values, that `parameters` stand for where `planes` planes share their weights: from
// 0.93 sigma at sigma 5 to 0.49 sigma at sigma 50 for patches of 5 x 5 in a window of 21, less for larger
// patches, whose distances are surer, more for smaller windows, in which less is alike by chance.
// tools/train/fit_strength.py fits it to the highest PSNR on BSD400, McMaster, Set14 and LIVE1 (without the
// Kodak set's photographs).
NONLOCAL_API double filter_h(const NonLocalMeansParameters& parameters, int planes = 1);

// What suits the two chroma planes of a frame, filtered by themselves, where `luma` suits its luma (sigma is
// the chroma planes' own). They are smoother, so that h is larger where there is much noise and smaller where
// there is little: strength times 0.65 + 0.0225 sigma, at most 1.8. Where they are subsampled in both
// directions, 3/4 of the window's width and height still cover more of the picture. Fitted by the same script
// to chroma of McMaster, Set14 and LIVE1 in 4:2:0, for patches of 3 and 5.
NONLOCAL_API NonLocalMeansParameters chroma_parameters(const NonLocalMeansParameters& luma,
                                                       bool is_subsampled);

// The planes of a frame.
struct NonLocalMeansFrame {
  // 1 to 4 planes of one size and bit depth that share their weights: d² is the mean over all of them. `out`
  // has the size of `in` (depth, stride, step and shift may differ) and may be the same memory.
  std::span<const ConstPlane> in;
  std::span<const Plane> out;

  // 0 to 4 planes that are averaged with the weights of `in`: chroma with those of luma. They have its bit
  // depth and its width and height or half of each, rounded either way. A sample lies at the pixel of twice
  // its coordinates there, and is averaged over the samples within the search window: a quarter of them,
  // where both are half. d² does not see joint planes: an edge that is only theirs gets blurred.
  std::span<const ConstPlane> joint_in;
  std::span<const Plane> joint_out;

  // Where noise differs from pixel to pixel, v(x), its variance as a share of sigma², in 65535ths: 16 bits,
  // step 1, of the width and height of `in` or half of each, rounded up. 2 sigma² becomes (v(x) + v(y))
  // sigma² and h² becomes h² sqrt(v(x) v(y)). Below 0.05 or so weights get coarse. Without data: 1
  // everywhere.
  ConstPlane variance;
};

// Filters frames one after another. It keeps its working memory between frames of one geometry, so that a
// frame costs no allocation. One object serves one thread at a time; different objects are independent.
class NONLOCAL_API NonLocalMeans {
 public:
  NonLocalMeans();
  ~NonLocalMeans();
  NonLocalMeans(NonLocalMeans&&) noexcept;
  NonLocalMeans& operator=(NonLocalMeans&&) noexcept;

  // Sizes from 1 x 1 on. Throws InvalidArgument if the planes do not fit or a parameter is out of range, and
  // for joint planes and a variance with kAttention: windows of joint planes are not square in their samples,
  // and h² sqrt(v(x) v(y)) makes the weights' exponent no inner product.
  void filter(const NonLocalMeansFrame& frame, const NonLocalMeansParameters& parameters);

  // The same for planes that share their weights, alone.
  void filter(std::span<const ConstPlane> in, std::span<const Plane> out,
              const NonLocalMeansParameters& parameters);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nonlocal
