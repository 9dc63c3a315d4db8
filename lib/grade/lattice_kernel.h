// Baked looks on tiles of frames: the vectorised part.
#pragma once

#include <array>
#include <cstddef>

#include "core/rounding.h"
#include "grade/frame_job.h"

namespace nonlocal::grade {

// Floats that a lattice's channel takes: whole vectors.
inline std::ptrdiff_t lattice_stride(int n) {
  return round_up(static_cast<std::ptrdiff_t>(n) * n * n, std::ptrdiff_t{16});
}

// A look, as sampled: the change, in levels, at the nodes of a lattice of n x n x n colours, for each place
// of a grid: [rows][columns][3][lattice_stride(n)]. Node i of an axis is the level 256 i / (n - 1); places
// are even, the first and the last on the frame's borders.
struct Lattices {
  const float* change;
  int n;
  int columns;
  int rows;

  [[nodiscard]] const float* at(int column, int row, int channel) const {
    return change + ((static_cast<std::ptrdiff_t>(row) * columns + column) * 3 + channel) * lattice_stride(n);
  }
  [[nodiscard]] bool has_places() const { return columns * rows > 1; }
  [[nodiscard]] bool has_shape_of(const Lattices& other) const {
    return n == other.n && columns == other.columns && rows == other.rows;
  }
};

// What is read for a pixel: tables of 4 floats a node. Without places one table, of the three channels'
// change and 0; with places one for each channel, of its change at the four corners of a cell of the grid:
// upper left, upper right, lower left, lower right.
struct Table {
  const float* cells = nullptr;  // a table after another, 4 lattice_stride(n) floats apart
  int n = 0;
  bool has_corners = false;
  float share = 1;  // the change's factor
  // Of a cell: its coordinates, 0 to 1 from one corner to the next, are x * x_step - column and so on, of
  // luma's samples and of chroma's.
  float x_step[2] = {}, x_begin[2] = {};
  float y_step[2] = {}, y_begin[2] = {};
};

// The least and the largest level of each channel.
struct LevelRanges {
  std::array<float, 3> least;
  std::array<float, 3> most;
};

struct LatticeKernels {
  std::size_t (*scratch_floats)();
  // Of all that grading a tile looks up.
  LevelRanges (*ranges)(const FrameJob& frame, const Tile& tile, float* scratch);
  // Four rows of `count` floats, a multiple of 16, side by side: cell i is from[0][i], from[1][i], ...; zeros
  // for none. Where `other` has rows, a blend: from + weight (other - from).
  void (*interleave)(const std::array<const float*, 4>& from, const std::array<const float*, 4>& other,
                     float weight, std::ptrdiff_t count, float* cells);
  // to = the weighted sum of `rows` rows of `count` floats, a multiple of 16, `stride` floats apart.
  void (*weigh)(const float* from, std::ptrdiff_t stride, const float* weights, int rows,
                std::ptrdiff_t count, float* to);
  // Adds the changes of 1 or 2 tables.
  void (*grade)(const FrameJob& frame, const Table* tables, int count, const Tile& tile, float* scratch);
};

LatticeKernels lattice_kernels();

}  // namespace nonlocal::grade
