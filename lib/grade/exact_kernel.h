// A cross-attention filter on tiles of frames and on nodes of lattices: the vectorised part.
#pragma once

#include <array>
#include <cstddef>

#include "grade/colour_space.h"
#include "grade/folded.h"
#include "grade/frame_job.h"

namespace nonlocal::grade {

// The places' features of a frame's columns and rows, made once for each size.
struct PlaceTables {
  // [2 F][stride] of luma's columns and of chroma's, [rows][2 F] of the rows; none where F is 0.
  const float* x[2] = {};
  const float* y[2] = {};
  std::ptrdiff_t stride = 0;
};

struct ExactJob {
  const Folded* folded;
  // ColourSpace as floats.
  float to_rgb[3][3];
  float offset[3];
  float from_rgb[3][3];
  PlaceTables places;
};

ExactJob make_exact_job(const Folded& folded, const ColourSpace& space);

// What the instruction set in use has.
struct ExactKernels {
  int chunk;  // pixels that are mapped together: tiles are to be twice as wide
  std::size_t (*scratch_floats)(const Folded& folded);
  void (*grade)(const FrameJob& frame, const ExactJob& job, const Tile& tile, float* scratch);
  // The change, in levels, at nodes first .. first + count - 1 of the lattice of n x n x n colours, at a
  // place whose features are x and y. `change` is 3 channels, lattice_stride(n) apart.
  void (*sample)(const ExactJob& job, int n, int first, int count, const float* x, const float* y,
                 float* change, float* scratch);
  // The same at given levels, which the changes are added to.
  void (*map)(const ExactJob& job, const std::array<float*, 3>& level, int count, const float* x,
              const float* y, float* scratch);
  // What each token does at up to `chunk` pixels of one row: token t's effects, summed over layers and heads,
  // go to effects + t * chunk. `x` are rows of features, `stride` apart; there is room for whole chunks.
  void (*token_effects)(const ExactJob& job, const std::array<float*, 3>& level, int count, const float* x,
                        std::ptrdiff_t stride, const float* y, float* effects, float* scratch);
};

ExactKernels exact_kernels();

}  // namespace nonlocal::grade
