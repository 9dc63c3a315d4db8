// A frame to be graded, and what its tiles need to know.
#pragma once

#include <array>
#include <cstddef>

#include "nonlocal/plane.h"

namespace nonlocal::grade {

// Along one axis, the chroma at luma's sample i of parity p: first * chroma[i / 2 + offset] + second * the
// next one; chroma of full size is chroma[i].
struct ChromaTaps {
  int offset;
  float first;
  float second;
};

// level = code * by + plus, and back.
struct FloatScale {
  float by, plus;
  float inverse, inverse_plus;
  float most;  // code
};

struct FrameJob {
  int planes;  // 1 or 3
  int width;
  int height;
  std::array<ConstPlane, 3> in;
  std::array<Plane, 3> out;  // of chroma that is written elsewhere first: that place
  std::array<FloatScale, 3> in_scale;
  std::array<FloatScale, 3> out_scale;
  int half_x = 0;  // 1: chroma has half the columns
  int half_y = 0;  // 1: and half the rows
  std::array<ChromaTaps, 2> x_taps;
  std::array<ChromaTaps, 2> y_taps;
  float strength;

  [[nodiscard]] bool is_subsampled() const { return half_x + half_y > 0; }
};

// Of luma's samples; where chroma is subsampled, from even ones on.
struct Tile {
  int x, y, width, height;
  // The middle of the tile and those above and below it in the same cell of places: the cell goes by it, and
  // not by the tile's own, as how many there are depends on the threads.
  int middle_x = 0, middle_y = 0;
};

// Which samples are mapped, and so which of the three channels change.
enum class Sampling { kAll, kLuma, kChroma };

// Rows of levels, in aligned memory, with room for a vector beyond the tile's width and one before.
struct Rows {
  std::array<float*, 3> level;
  float* line;
  float* other_line;
};

inline constexpr int kRowMargin = 64;
inline constexpr int kRowsOfScratch = 5;

inline Rows make_rows(float* memory, int longest) {
  const std::ptrdiff_t stride = longest + 2 * kRowMargin;
  float* first = memory + kRowMargin;
  return {{first, first + stride, first + 2 * stride}, first + 3 * stride, first + 4 * stride};
}

inline std::size_t rows_floats(int longest) {
  return static_cast<std::size_t>(kRowsOfScratch) * (longest + 2 * kRowMargin);
}

}  // namespace nonlocal::grade
