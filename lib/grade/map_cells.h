// Where samples lie among the cells of a map: between the middles of two of them, in x and in y.
#pragma once

#include <algorithm>

#include "nonlocal/matrix.h"

namespace nonlocal::grade {

struct CellPlace {
  // `at`: in cells, 0 the middle of the first one.
  CellPlace(double at, int cells) {
    const double inside = std::clamp(at, 0.0, static_cast<double>(cells - 1));
    first = std::min(static_cast<int>(inside), std::max(0, cells - 2));
    second = std::min(first + 1, cells - 1);
    share = static_cast<float>(inside - first);
  }

  // Of sample i of `size`.
  CellPlace(int i, int size, int cells) : CellPlace((i + 0.5) * cells / size - 0.5, cells) {}

  int first;
  int second;
  float share;
};

inline float interpolate(const ConstMatrix& map, const CellPlace& x, const CellPlace& y) {
  const auto along = [&x](const float* row) {
    return row[x.first] + x.share * (row[x.second] - row[x.first]);
  };
  const float upper = along(map.row(y.first));
  return upper + y.share * (along(map.row(y.second)) - upper);
}

}  // namespace nonlocal::grade
