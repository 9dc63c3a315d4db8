// Frames with a region of a colour on gray, as models with planted relevance find it
// (tests/parity/planted.py).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "image.h"
#include "nonlocal/colour_format.h"
#include "nonlocal/matrix.h"

namespace nonlocal::testing {

using Rgb = std::array<double, 3>;

// In parts of the frame's sides.
struct Region {
  double left, top, right, bottom;
  [[nodiscard]] bool has(double x, double y) const {
    return x >= left && x < right && y >= top && y < bottom;
  }
};

struct Patch {
  Region region;
  Rgb colour;
};

// A frame's layout. Chroma of half the size is the colour of the luma sample at its even place.
struct FrameKind {
  std::string name;
  ColourFormat format;
  int bit_depth = 8;
  bool is_half = false;  // chroma, in both directions
};

inline std::vector<FrameKind> frame_kinds() {
  const ColourFormat limited{ColourModel::kYCbCr, ColourMatrix::kBt709, ColourRange::kLimited};
  const ColourFormat full{ColourModel::kYCbCr, ColourMatrix::kBt601, ColourRange::kFull};
  return {{"RGB", {}, 8, false},
          {"I420", limited, 8, true},
          {"I420, full range, BT.601", full, 8, true},
          {"I420 of 10 bits", limited, 10, true},
          {"Y444 of 12 bits", limited, 12, false},
          {"RGB of 16 bits", {}, 16, false}};
}

inline double code_of(const FrameKind& kind, int plane, const Rgb& c) {
  const double most = std::pow(2.0, kind.bit_depth) - 1;
  if (kind.format.model == ColourModel::kRgb) {
    return c[static_cast<std::size_t>(plane)] * most;
  }
  const bool is_709 = kind.format.matrix == ColourMatrix::kBt709;
  const double red = is_709 ? 0.2126 : 0.299;
  const double blue = is_709 ? 0.0722 : 0.114;
  const double luma = red * c[0] + (1 - red - blue) * c[1] + blue * c[2];
  const double chroma = plane == 1 ? (c[2] - luma) / (2 - 2 * blue) : (c[0] - luma) / (2 - 2 * red);
  const double unit = std::pow(2.0, kind.bit_depth - 8);
  if (kind.format.range == ColourRange::kFull) {
    return plane == 0 ? luma * most : 128 * unit + chroma * most;
  }
  return plane == 0 ? (16 + 219 * luma) * unit : (128 + 224 * chroma) * unit;
}

// Patches on gray that is darker to the right, everything with a little noise; a later patch covers an
// earlier one. One image a plane.
inline std::vector<Image> planted_frame(const FrameKind& kind, int width, int height,
                                        const std::vector<Patch>& patches) {
  std::mt19937 random(1);
  std::normal_distribution<double> noise(0, 0.02);
  std::vector<Image> planes;
  for (int plane = 0; plane < 3; ++plane) {
    const int half = plane > 0 && kind.is_half ? 2 : 1;
    Image image((width + half - 1) / half, (height + half - 1) / half, kind.bit_depth, 1);
    for (int y = 0; y < image.height(); ++y) {
      for (int x = 0; x < image.width(); ++x) {
        const double u = (x * half + 0.5) / width;
        const double v = (y * half + 0.5) / height;
        Rgb colour = {0.7 - 0.4 * u, 0.7 - 0.4 * u, 0.7 - 0.4 * u};
        for (const Patch& patch : patches) {
          colour = patch.region.has(u, v) ? patch.colour : colour;
        }
        for (double& c : colour) {
          c = std::clamp(c + noise(random), 0.0, 1.0);
        }
        image.set(0, x, y, static_cast<int>(std::lround(code_of(kind, plane, colour))));
      }
    }
    planes.push_back(image);
  }
  return planes;
}

inline std::vector<ConstPlane> views_of(const std::vector<Image>& planes) {
  std::vector<ConstPlane> views;
  for (const Image& image : planes) {
    views.push_back(image.views()[0]);
  }
  return views;
}

// How a map lies to a region.
struct Found {
  bool has_most;  // whether the largest value lies within
  double inside;  // the part of the map's sum that lies within
  double mean;    // of the cells within
  double beyond;  // of the others
};

inline Found look_at(const ConstMatrix& map, const Region& region) {
  Found found{};
  double largest = -1;
  double sums[2] = {};
  int cells[2] = {};
  for (int y = 0; y < map.rows; ++y) {
    for (int x = 0; x < map.columns; ++x) {
      const bool is_inside = region.has((x + 0.5) / map.columns, (y + 0.5) / map.rows);
      const double value = map.row(y)[x];
      sums[is_inside ? 1 : 0] += value;
      ++cells[is_inside ? 1 : 0];
      if (value > largest) {
        largest = value;
        found.has_most = is_inside;
      }
    }
  }
  found.inside = sums[1] / (sums[0] + sums[1]);
  found.mean = sums[1] / cells[1];
  found.beyond = sums[0] / cells[0];
  return found;
}

}  // namespace nonlocal::testing
