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

// The largest tile that the scratch memory of `frame` is laid out for, and where things lie in it. Columns
// are counted from x - search_radius - patch_radius of the tile, rows from y - search_radius - patch_radius.
struct TileLayout {
  TileLayout() = default;
  TileLayout(const NlmFrame& frame, int tile_width, int tile_height);
  bool operator==(const TileLayout&) const = default;

  int tile_width = 0;
  int tile_height = 0;
  int channels = 0;       // planes that the distance is taken over
  bool deep = false;      // samples of more than 8 bits
  int values = 0;         // planes that are averaged: channels, or twice as many where split
  int offsets = 0;        // maps of sums and of weights a row: one for every dx
  int columns = 0;        // computed a row, a multiple of the widest vector
  int rows = 0;           // tile_height and the halo above and below
  int margin = 0;         // guide columns left and right of these that may be read, but do not matter
  int value_columns = 0;  // samples of a row that may be averaged, and what the last vector reads beyond them
  // In elements: from a row or map to the next, and from its start to the first column.
  int guide_stride = 0;
  int pair_stride = 0;
  int pair_lead = 0;
  int weight_stride = 0;
  int weight_lead = 0;
  int sum_stride = 0;
};

// A thread's working memory.
struct TileScratch {
  void allocate(const TileLayout& layout);

  AlignedBuffer<std::uint8_t> guide;     // channels x (rows + a blank one) x guide_stride, at 8 bits
  AlignedBuffer<std::uint16_t> guide16;  // the same for deeper samples
  AlignedBuffer<std::int16_t> value;     // a row of samples less their middle
  AlignedBuffer<std::uint16_t> column;   // offsets x columns: vertical sums of squares
  // (offsets + 2) x weight_stride: a map without weight, an odd offset's partner, and room for the lead.
  AlignedBuffer<std::uint16_t> weight;
  AlignedBuffer<std::int16_t> pairs;  // values x rows x pair_stride: (v[x], v[x + 1])
  AlignedBuffer<std::int32_t> sum;    // (1 + values) x tile_height x sum_stride: of w, of w v
  AlignedBuffer<std::int32_t> line;   // a row on its way in or out
};

// Filters `tile` of `frame`, with the instruction set that instruction_set() names.
void filter_tile(const NlmFrame& frame, const Tile& tile, const TileLayout& layout, TileScratch& scratch);

}  // namespace nonlocal::denoise
