// Cross-attention filters on frames: exactly, pixel by pixel, or baked into lattices.
//
// Given a prompt the filter is a function of (colour, place). GradeLook holds its change Δ, sampled: for each
// node of a coarse grid of places a lattice of N x N x N colours in the frame's own coordinates (Y, Cb, Cr,
// or R, G, B), so that no other colour space is ever made of a frame. Between nodes of a lattice Δ is
// interpolated in tetrahedra (J. Kasson et al.: Performing color space conversions with three-dimensional
// linear interpolation, Journal of Electronic Imaging, 1995), between places linearly in x and y.
//
// 4:2:0: luma is what the filter makes of each pixel's own luma with chroma interpolated linearly; chroma is
// what it makes of the chroma sample with the mean luma of its 2 x 2 pixels. Other subsampling likewise.
#pragma once

#include <memory>
#include <span>

#include "nonlocal/colour_format.h"
#include "nonlocal/cross_attention_filter.h"
#include "nonlocal/export.h"
#include "nonlocal/plane.h"

namespace nonlocal {

struct GradeLookParameters {
  // For filters that know places, how far the sampling may be from the filter: the root mean square of the
  // error at random colours and places, in 8-bit code values, 0.02 to 10; 0.6 are 53 dB. The fastest
  // sampling that is near enough is taken, else the nearest: 33 colours an axis without places, 33 at 9 x 5,
  // 25 at 17 x 9 or 17 at 33 x 17 places. Filters that do not know places have 33. A frame needs two samples
  // for each step of the grid, beside and above each other: smaller ones, as of 8 x 8 or one row, are off by
  // 2 to 50 codes where places matter, and better graded exactly.
  double tolerance = 0.6;
  int threads = 0;  // 0 (as many as the machine has) to 256; the look does not depend on it
};

// A filter baked for one colour format (its chroma site does not matter) and any bit depth and frame size. It
// holds 0.4 to 33 MB.
// Immutable: made where there is time, then shared with the thread that runs frames.
class NONLOCAL_API GradeLook {
 public:
  // Throws InvalidArgument if a parameter is out of range.
  static std::shared_ptr<const GradeLook> bake(const CrossAttentionFilter& filter, const ColourFormat& format,
                                               const GradeLookParameters& parameters = {});
  ~GradeLook();

  [[nodiscard]] const ColourFormat& format() const;
  [[nodiscard]] int lattice_size() const;  // N
  [[nodiscard]] int columns() const;       // of the grid of places; 1 where places do not matter
  [[nodiscard]] int rows() const;
  [[nodiscard]] double error() const;  // root mean square as measured, in 8-bit code values

 private:
  friend struct GradeAccess;
  struct State;
  explicit GradeLook(std::unique_ptr<const State> state);
  std::unique_ptr<const State> state_;
};

struct GradeParameters {
  double strength = 1;  // 0 (the frame as it is) to 4; 1: as trained. Neither bakes nor folds anew
  int threads = 0;      // 0 (as many as the machine has) to 256; the output does not depend on it
};

// Runs frames one after another. Working memory is kept: a frame of the size, format and filter or look of
// the one before allocates nothing. One object serves one thread at a time; different objects are
// independent.
//
// `in` and `out` are the planes that `format` says, 1 or 3, of 8 to 16 bits; each of `out` has the size of
// that of `in`, and its depth where they differ may be another. `out` may be the memory of `in`, plane by
// plane and sample by sample; otherwise they must not overlap. What is out of the codes' range, 0 .. 2^n - 1,
// is clamped. Bytes between the samples (alpha) are left alone. Throw InvalidArgument if planes do not fit, a
// parameter is out of range, or a look was baked for another format.
class NONLOCAL_API FrameGrader {
 public:
  FrameGrader();
  ~FrameGrader();
  FrameGrader(FrameGrader&&) noexcept;
  FrameGrader& operator=(FrameGrader&&) noexcept;

  // Exactly: every pixel asks every token.
  void run(std::span<const ConstPlane> in, std::span<const Plane> out, const ColourFormat& format,
           const CrossAttentionFilter& filter, const GradeParameters& parameters = {});

  // Baked.
  void run(std::span<const ConstPlane> in, std::span<const Plane> out, const ColourFormat& format,
           const GradeLook& look, const GradeParameters& parameters = {});

  // Between two looks: x + strength ((1 - weight) Δ_from + weight Δ_to), weight 0 to 1. Looks of one sampling
  // cost no more than one of them, others the sum of both.
  void run(std::span<const ConstPlane> in, std::span<const Plane> out, const ColourFormat& format,
           const GradeLook& from, const GradeLook& to, double weight, const GradeParameters& parameters = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nonlocal
