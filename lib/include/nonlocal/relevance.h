// The way back: which regions of a frame matter to a text, and where each of a prompt's tokens acts.
//
//   α = C(O(f(v), q)),   v' = αᵀ g(v)
//
// v are the frame's regions, f(v) their keys, g(v) their values, q the text as one query, O the relevance of
// a key to a query and C the softmax over the regions.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>

#include "nonlocal/attention.h"
#include "nonlocal/colour_format.h"
#include "nonlocal/cross_attention_filter.h"
#include "nonlocal/export.h"
#include "nonlocal/matrix.h"
#include "nonlocal/plane.h"

namespace nonlocal {

struct RegionRelevanceParameters {
  Relevance relevance = Relevance::kScaledDotProduct;  // or kAdditive
  std::optional<double> scale = std::nullopt;    // of kScaledDotProduct, -1e30 to 1e30; none: 1 / sqrt(dim)
  std::span<const float> relevance_weight = {};  // of kAdditive: dim weights
};

// α: `weights` gets one for each row of `keys`, regions x dim; they add up to 1. `query` has dim values.
// Throws InvalidArgument if something does not fit or another relevance is asked for.
NONLOCAL_API void region_relevance(std::span<const float> query, const ConstMatrix& keys,
                                   const RegionRelevanceParameters& parameters, std::span<float> weights);

// v': `pooled` gets the average of the rows of `values`, regions x value_dim, by these weights. Throws
// InvalidArgument if something does not fit.
NONLOCAL_API void pool_regions(std::span<const float> weights, const ConstMatrix& values,
                               std::span<float> pooled);

struct TokenMapParameters {
  int columns = 64;  // of cells, 1 to 1024, and at most as many as the frame has
  int rows = 36;
  int threads = 0;  // 0 (as many as the machine has) to 256; the maps do not depend on it
};

// Where each token of a prompt acts on a frame: for each cell of a coarse grid the token's attention weight
// times the length of its change, |W_out v|, in units of the colour (1: from black to a full channel), summed
// over layers and heads and averaged over 4 x 4 pixels spread over the cell (chroma: the nearest sample).
//
// Working memory is kept: another frame of the same size, format and filter allocates nothing. One object
// serves one thread at a time.
class NONLOCAL_API TokenMaps {
 public:
  TokenMaps();
  ~TokenMaps();
  TokenMaps(TokenMaps&&) noexcept;
  TokenMaps& operator=(TokenMaps&&) noexcept;

  // Planes are as FrameGrader's. Throws InvalidArgument as that does.
  void run(std::span<const ConstPlane> frame, const ColourFormat& format, const CrossAttentionFilter& filter,
           const TokenMapParameters& parameters = {});

  [[nodiscard]] int tokens() const;  // 0 before the first frame
  // rows x columns, valid until the next run. Throws InvalidArgument unless 0 <= token < tokens().
  [[nodiscard]] ConstMatrix map(int token) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A perceptually even colour map, from dark blue over magenta and orange to yellow: R, G and B in 0 .. 1 for
// a value of 0 .. 1 (others are clamped). Equal steps of the value are equal distances in CIELAB (ISO/CIE
// 11664-4, ΔE*ab), and lightness rises with the value alone: L* 10 + 78 t, hue 280° to 460°, chroma 20 + 35 t
// + 35 sin(πt), for the t that lies as far along that curve. Colours are sRGB (IEC 61966-2-1).
NONLOCAL_API std::array<double, 3> heat_colour(double value);

struct HeatMapParameters {
  double most = 1;       // the map's value that is shown as 1; above 0
  double opacity = 0.6;  // 0 (the frame as it is) to 1 (the map alone)
  int threads = 0;       // 0 (as many as the machine has) to 256; the output does not depend on it
};

// Lays `map`, interpolated linearly between the middles of its cells, over a frame: (1 - opacity) frame +
// opacity heat_colour(map / most), in steps of the map of 1/1024; not a number counts as 0. Planes are as
// FrameGrader's, in place too; the map has at most 4096 cells in a row. Allocates nothing. Throws
// InvalidArgument if something does not fit or a parameter is out of range.
NONLOCAL_API void blend_heat_map(const ConstMatrix& map, std::span<const ConstPlane> in,
                                 std::span<const Plane> out, const ColourFormat& format,
                                 const HeatMapParameters& parameters = {});

struct MaskParameters {
  double most = 1;  // the map's value that is shown as white; above 0
  int threads = 0;  // 0 (as many as the machine has) to 256; the output does not depend on it
};

// Puts `map` in the picture's place: black where it is 0, white where it is `most`, as the format writes
// them, without colour, interpolated as above; not a number counts as 0. One plane of ColourModel::kGray may
// be the alpha of a frame. Planes are as FrameGrader's; the map has at most 4096 cells in a row. Allocates
// nothing. Throws InvalidArgument if something does not fit or a parameter is out of range.
NONLOCAL_API void paint_mask(const ConstMatrix& map, std::span<const Plane> frame, const ColourFormat& format,
                             const MaskParameters& parameters = {});

// Where the map says so, a frame becomes another: frame + m (changed - frame), m the map interpolated as
// above and clamped to 0 .. 1; at most 4096 cells in a row. Planes are as FrameGrader's, `changed` of the
// frame's sizes and depths. Allocates nothing. Throws InvalidArgument if something does not fit.
NONLOCAL_API void mix_by_map(const ConstMatrix& map, std::span<const ConstPlane> changed,
                             std::span<const Plane> frame, const ColourFormat& format, int threads = 0);

}  // namespace nonlocal
