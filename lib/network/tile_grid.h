// How a frame is cut into tiles.
#pragma once

#include "network/refinement_model.h"
#include "network/tile.h"

namespace nonlocal::network {

struct TileGrid {
  int columns;
  int rows;
  TileShape tile;

  [[nodiscard]] int count() const { return columns * rows; }
};

// Tiles all of one shape, from the frame's upper left corner on. What lies beyond the frame is calculated in
// vain. Does not depend on the number of threads: neither does the output, then, to the last bit.
TileGrid cut_into_tiles(const RefinementModel& model, NetworkPrecision precision, int frame_width,
                        int frame_height);

}  // namespace nonlocal::network
