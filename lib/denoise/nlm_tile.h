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

// The largest tile that the scratch memory of `frame` is laid out for, and where things lie in it. Strips and
// rows begin above and left of the tile, by its halo: columns are counted from x - halo_strips * strip of the
// tile, rows from y - search_radius - patch_radius.
struct TileLayout {
  TileLayout() = default;
  TileLayout(const NlmFrame& frame, int tile_height);
  bool operator==(const TileLayout&) const = default;

  int strip = 0;        // columns in a strip
  int halo_strips = 0;  // at each side of the tile
  int tile_width = 0;
  int tile_height = 0;
  int channels = 0;       // planes that the distance is taken over
  int values = 0;         // planes that are averaged: channels, or twice as many where split
  int offsets = 0;        // maps of sums and of weights a row: one for every dx
  int rows = 0;           // tile_height and the halo above and below
  int guide_lead = 0;     // slots before the first, and after the last: of guide samples,
  int value_lead = 0;     // of samples to be averaged,
  int patch_lead = 0;     // of capped sums,
  int weight_lead = 0;    // of weights
  int guide_stride = 0;   // elements from a row, or map, to the next: of guide samples,
  int pair_stride = 0;    // of samples to be averaged,
  int sum_stride = 0;     // of sums,
  int capped_stride = 0;  // of capped sums,
  int weight_stride = 0;  // of weights

  // The memory that a row of the tile takes.
  [[nodiscard]] int bytes_a_row() const;
};

// A thread's working memory.
struct TileScratch {
  void allocate(const TileLayout& layout);

  AlignedBuffer<std::int16_t> guide;    // channels x (rows + a blank one) x guide_stride
  AlignedBuffer<std::int16_t> pairs;    // values x rows x pair_stride: (v[x], v[x + 1])
  AlignedBuffer<std::uint16_t> column;  // offsets x slots: vertical sums of squares
  AlignedBuffer<std::uint16_t> capped;  // slots and patch_lead before and after them: capped, of two offsets
  // (offsets + 1) x weight_stride: the last is an odd offset's partner, without weight.
  AlignedBuffer<std::uint16_t> weight;
  AlignedBuffer<std::int32_t> sum;   // (1 + values) x tile_height x sum_stride: of w, of w v
  AlignedBuffer<std::int32_t> line;  // rows on their way in or out
  AlignedBuffer<std::uint16_t> slots;
};

// Filters `tile` of `frame`, with the instruction set that instruction_set() names.
void filter_tile(const NlmFrame& frame, const Tile& tile, const TileLayout& layout, TileScratch& scratch);

}  // namespace nonlocal::denoise
