// Non-local means on one tile of a frame: the vectorised kernel. How it works: README.md in this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/aligned_buffer.h"
#include "denoise/weight_law.h"
#include "nonlocal/plane.h"

namespace nonlocal::denoise {

// What is the same for all tiles of a frame.
struct NlmFrame {
  std::span<const ConstPlane> in;  // all of one size and depth; not the memory of `out`
  std::span<const Plane> out;
  // Planes that are averaged with the weights of `in`, where there are any: of the same depth, with as many
  // columns and rows or half of them.
  std::span<const ConstPlane> joint_in;
  std::span<const Plane> joint_out;
  int patch_radius = 0;
  int search_radius = 0;
  WeightLaw law;
};

struct Tile {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
};

// A tile is cut into kStrips strips side by side, each layout.strip columns wide; a "slot" holds one column
// of every strip. A vector's lanes are neighbouring strips, so columns at any distance are whole aligned
// vectors, and horizontal sums run down the slots. Slots before the first and after the last repeat columns
// of the strips beside.
constexpr int kStrips = 32;

// The samples that are averaged: one for every column_step x row_step pixels of the tile.
struct Grid {
  bool operator==(const Grid&) const = default;

  int column_step = 1;  // 1 or 2
  int row_step = 1;
  int planes = 0;
  int values = 0;         // planes, or twice as many where samples are split
  int strip = 0;          // samples of a row in a strip
  int height = 0;         // rows of samples in a tile
  int column_radius = 0;  // of the search window
  int row_radius = 0;
  int lead = 0;           // slots before the first, and after the last, of samples and of weights
  int pair_stride = 0;    // elements from a row, or map, to the next: of samples,
  int weight_stride = 0;  // of weights,
  int sum_stride = 0;     // of sums

  [[nodiscard]] bool empty() const { return planes == 0; }
  [[nodiscard]] int sample_rows() const { return height + 2 * row_radius; }
  [[nodiscard]] int bytes_a_row() const { return 2 * values * pair_stride + 4 * (1 + values) * sum_stride; }
};

// The largest tile that the scratch memory of `frame` is laid out for, and where things lie in it. Strips and
// rows begin above and left of the tile, by its halo: columns are counted from x - halo_strips * strip of the
// tile, rows from y - search_radius - patch_radius, or row_radius rows of a grid.
struct TileLayout {
  TileLayout() = default;
  TileLayout(const NlmFrame& frame, int tile_height);
  bool operator==(const TileLayout&) const = default;

  int strip = 0;        // columns in a strip
  int halo_strips = 0;  // at each side of the tile
  int tile_width = 0;   // both even, for joint planes
  int tile_height = 0;
  int channels = 0;       // planes that the distance is taken over
  int offsets = 0;        // maps of sums a row: one for every dx
  int rows = 0;           // tile_height and the halo above and below
  int guide_lead = 0;     // slots before the first, and after the last: of guide samples,
  int patch_lead = 0;     // of capped sums
  int guide_stride = 0;   // elements from a row, or map, to the next: of guide samples,
  int capped_stride = 0;  // of capped sums
  Grid own;               // the planes that the distance is taken over
  Grid joint;

  // The memory that a row of the tile takes.
  [[nodiscard]] int bytes_a_row() const;
};

struct GridScratch {
  void allocate(const Grid& grid);

  AlignedBuffer<std::int16_t> pairs;  // values x sample_rows x pair_stride: (v[x], v[x + 1])
  // Those of a row, for every dx of the window: (2 column_radius + 2) x weight_stride. The last is an odd
  // offset's partner, without weight.
  AlignedBuffer<std::uint16_t> weight;
  AlignedBuffer<std::int32_t> sum;  // (1 + values) x height x sum_stride: of w, of w v
};

// A thread's working memory.
struct TileScratch {
  void allocate(const TileLayout& layout);

  AlignedBuffer<std::int16_t> guide;    // channels x (rows + a blank one) x guide_stride
  AlignedBuffer<std::uint16_t> column;  // offsets x slots: vertical sums of squares
  AlignedBuffer<std::uint16_t> capped;  // slots and patch_lead before and after them: capped, of two offsets
  AlignedBuffer<std::uint16_t> line;    // rows on their way in or out, column by column
  AlignedBuffer<std::uint16_t> slots;   // and as slots
  GridScratch own;
  GridScratch joint;
};

// Filters `tile` of `frame`, with the instruction set that instruction_set() names.
void filter_tile(const NlmFrame& frame, const Tile& tile, const TileLayout& layout, TileScratch& scratch);

}  // namespace nonlocal::denoise
