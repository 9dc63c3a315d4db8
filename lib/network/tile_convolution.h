// Convolutions of bfloat16 in Intel's AMX's tiles, for the networks' few channels: oneDNN's fill up to 32 of
// each tap.
#pragma once

#include <cstdint>

#include "core/aligned_buffer.h"
#include "network/step.h"

namespace nonlocal::network {

// A convolution's weights as tiles take them. The taps of a kernel's row are neighbours in memory, all their
// channels side by side, and are summed as one row of k * pitch values in pieces of `step`, of which the last
// overlaps the one before where they do not come out even: no piece is read beyond.
struct TileWeights {
  TileWeights(const Op& op, int in_channels, int in_pitch, int out_pitch);

  int row_values;                      // even
  int steps;                           // pieces of a row
  int step;                            // values of a piece, even, at most 32
  int out_tiles;                       // of 16 channels
  AlignedBuffer<std::uint16_t> cells;  // [out_tiles][kernel rows][steps][step / 2][16][2]
  AlignedBuffer<float> bias;           // [out_tiles][16 rows][16], all rows alike

 private:
  // Where a row's cells have one of its values.
  [[nodiscard]] int cell_value(int value) const;
};

// Whether this convolution is made so: the CPU has tiles, sums are of all channels, taps are neighbours, and
// what follows is at most a sum and a ReLU, leaky with a slope from 0 to 1 or not.
bool is_tile_convolution(const Op& op, const StepPlace& place);

// As convolution_step.
Step tile_convolution_step(const Op& op, const TileWeights& weights, const StepPlace& place,
                           bool sum_is_there);

}  // namespace nonlocal::network
