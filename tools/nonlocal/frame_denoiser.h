// The library's non-local means on whole frames, in process, and how far it is from the formula.
#pragma once

#include <nonlocal/non_local_means.h>

#include "bench_frames.h"

namespace nonlocal::tools {

// The frame as the element filters it: luma by its own weights, both chroma planes by weights that they
// share, or jointly by those of luma.
class FrameDenoiser {
 public:
  // `parameters` are luma's.
  FrameDenoiser(const NonLocalMeansParameters& parameters, bool is_joint)
      : parameters_(parameters), is_joint_(is_joint) {}

  void filter(const BenchFrame& in, BenchFrame& out);

 private:
  NonLocalMeansParameters parameters_;
  bool is_joint_;
  NonLocalMeans luma_;
  NonLocalMeans chroma_;
};

struct Exactness {
  double psnr = 0;           // in decibels, of 255
  double largest_error = 0;  // in 8-bit code values
  int samples = 0;
};

// `out` = the filtered `in` against the formula in double precision, its results not rounded (8-bit rounding
// alone limits the PSNR to 58.9 dB), on seeded positions in every plane: about 4000 in all, fewer where large
// patches and windows make them long to compute.
Exactness exactness(const BenchFrame& in, const BenchFrame& out, const NonLocalMeansParameters& parameters,
                    bool is_joint);

}  // namespace nonlocal::tools
