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
  // The variance of the noise from pixel to pixel, in 65535ths of sigma², where it differs: of as many
  // columns and rows as the planes or half of them. Without data there is none.
  ConstPlane variance;
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

// A tile is filtered by bands of this many rows from top to bottom; even, for joint planes.
constexpr int kBand = 16;

// Where rows of a tile lie in memory that holds as many as a band needs: they take the place of those that
// are done with.
struct RowRing {
  bool operator==(const RowRing&) const = default;

  int size = 0;
  int above = 0;  // rows above the tile that are held at its top

  [[nodiscard]] int at(int y) const { return (y + above) % size; }
};

// The samples that are averaged: one for every column_step x row_step pixels of the tile.
struct Grid {
  bool operator==(const Grid&) const = default;

  int column_step = 1;  // 1 or 2
  int row_step = 1;
  int planes = 0;
  int values = 0;         // planes, or twice as many where samples are split
  int strip = 0;          // samples of a row in a strip
  int column_radius = 0;  // of the search window
  int row_radius = 0;
  RowRing samples;
  RowRing sums;
  int lead = 0;           // slots before the first, and after the last, of samples and of weights
  int pair_stride = 0;    // elements from a row, or map, to the next: of samples,
  int weight_stride = 0;  // of weights,
  int sum_stride = 0;     // of sums

  [[nodiscard]] bool empty() const { return planes == 0; }
  // Samples across or down where there are `pixels`.
  [[nodiscard]] int columns(int pixels) const { return (pixels + column_step - 1) / column_step; }
  [[nodiscard]] int rows(int pixels) const { return (pixels + row_step - 1) / row_step; }
};

// How a frame's tiles are laid out in scratch memory. Strips begin left of the tile, by its halo: columns are
// counted from x - halo_strips * strip of the tile.
struct TileLayout {
  TileLayout() = default;
  explicit TileLayout(const NlmFrame& frame);
  bool operator==(const TileLayout&) const = default;

  int strip = 0;        // columns in a strip
  int halo_strips = 0;  // at each side of the tile
  int tile_width = 0;   // even, for joint planes
  int channels = 0;     // planes that the distance is taken over
  int offsets = 0;      // maps of sums a row: one for every dx
  int offset_rows = 0;  // every dy from 0 on
  bool has_variance = false;
  RowRing guides;
  int guide_lead = 0;     // slots before the first, and after the last: of guide samples,
  int patch_lead = 0;     // of capped sums
  int guide_stride = 0;   // elements from a row, or map, to the next: of guide samples,
  int capped_stride = 0;  // of capped sums
  Grid own;               // the planes that the distance is taken over
  Grid joint;
};

struct GridScratch {
  void allocate(const Grid& grid);

  AlignedBuffer<std::int16_t> pairs;  // values x samples.size x pair_stride: (v[x], v[x + 1])
  // Those of a row, for every dx of the window: (2 column_radius + 2) x weight_stride. The last is an odd
  // offset's partner, without weight.
  AlignedBuffer<std::uint16_t> weight;
  AlignedBuffer<std::int32_t> sum;  // (1 + values) x sums.size x sum_stride: of w, of w v
};

// A thread's working memory.
struct TileScratch {
  void allocate(const TileLayout& layout);

  AlignedBuffer<std::int16_t> guide;    // channels x (guides.size + a blank one) x guide_stride
  AlignedBuffer<std::uint16_t> noise;   // (bias, root of WeightLaw) x guides.size x guide_stride
  AlignedBuffer<std::uint16_t> column;  // offset_rows x offsets x slots: vertical sums of squares
  AlignedBuffer<std::uint16_t> capped;  // slots and patch_lead before and after them: capped, of two offsets
  AlignedBuffer<std::uint16_t> line;    // rows on their way in or out, column by column
  AlignedBuffer<std::uint16_t> slots;   // and as slots
  GridScratch own;
  GridScratch joint;
};

// Filters `tile` of `frame`, with the instruction set that instruction_set() names.
void filter_tile(const NlmFrame& frame, const Tile& tile, const TileLayout& layout, TileScratch& scratch);

}  // namespace nonlocal::denoise
