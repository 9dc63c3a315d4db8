// Where samples lie among the cells of a map: between the middles of two of them, in x and in y.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

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

constexpr int kMostMapColumns = 4096;  // as many as RegionFinder finds

// The map along one row of samples, a value for each column of cells; what is not a number is 0.
class MapRow {
 public:
  MapRow(const ConstMatrix& map, const CellPlace& y) : cells_(map.columns) {
    const float* upper = map.row(y.first);
    const float* lower = map.row(y.second);
    for (int c = 0; c < cells_; ++c) {
      const float value = upper[c] + y.share * (lower[c] - upper[c]);
      values_[c] = std::isnan(value) ? 0 : value;
    }
  }

  // From the middle of one cell to that of the next values lie on a straight line. For each such piece of the
  // `width` samples: run(begin, end, value of the first, what is added from one to the next).
  template <typename Run>
  void for_each_piece(int width, Run&& run) const {
    const double samples_a_cell = static_cast<double>(width) / cells_;
    int begin = 0;
    for (int cell = -1; cell < cells_ && begin < width; ++cell) {
      const bool is_last = cell + 1 >= cells_;
      const double next_middle = (cell + 1.5) * samples_a_cell - 0.5;
      const int end = is_last ? width : std::min(width, static_cast<int>(std::ceil(next_middle)));
      if (end <= begin) {
        continue;
      }
      const float first = values_[std::max(cell, 0)];
      const float step = cell < 0 || is_last ? 0 : values_[cell + 1] - first;
      const double share = (begin + 0.5) / samples_a_cell - 0.5 - cell;
      run(begin, end, first + step * static_cast<float>(share), step / static_cast<float>(samples_a_cell));
      begin = end;
    }
  }

 private:
  int cells_;
  std::array<float, kMostMapColumns> values_;
};

// Throws InvalidArgument, naming `who`, unless the map has 1 x 1 cells or more, at most kMostMapColumns in a
// row.
void check_map(const char* who, const ConstMatrix& map);

}  // namespace nonlocal::grade
