#include "network/tile_grid.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "core/rounding.h"
#include "network/convolution.h"

namespace nonlocal::network {
namespace {

// Larger tiles calculate less twice where they meet. What goes through the layers may leave the second-level
// cache: each value read serves hundreds of multiplications, and the third-level cache keeps up. But there it
// is shared, and memory: time grows by a part for each part of this.
constexpr double kSlowingBytes = 64 * 1024 * 1024;

// The time that a row of pixels takes beside its own.
constexpr int kRowPixels = 3;

// The last layer may calculate as many at once.
constexpr int kPixelsAtOnce = 4;

// Pixels that each layer writes, times its operations.
double operations(const RefinementModel& model, const TileShape& tile) {
  double sum = 0;
  int around = 2 * tile.border;
  for (const Layer& layer : model.layers) {
    around -= 2;
    sum += 18.0 * layer.in_channels * layer.out_channels * (tile.width + around + kRowPixels) *
           (tile.height + around);
  }
  return sum;
}

// Bytes that the layer that needs most reads and writes.
double footprint(const RefinementModel& model, NetworkPrecision precision, const TileShape& tile) {
  double most = 0;
  int around = 2 * tile.border;
  for (const Layer& layer : model.layers) {
    const double in = static_cast<double>(tile.width + around) * (tile.height + around) * layer.in_channels;
    around -= 2;
    const double out = static_cast<double>(tile.width + around) * (tile.height + around) * layer.out_channels;
    most = std::max(most, in + out);
  }
  return most * value_bytes(precision);
}

// The time that few threads and several take, in any unit.
double cost(const RefinementModel& model, NetworkPrecision precision, const TileGrid& grid) {
  const double tile = operations(model, grid.tile);
  double sum = 0;
  for (const int threads : {2, 3, 4, 6, 8}) {
    sum += ceil_divide(grid.count(), threads) * threads * tile;
  }
  return sum * (1 + footprint(model, precision, grid.tile) / kSlowingBytes);
}

}  // namespace

TileGrid cut_into_tiles(const RefinementModel& model, NetworkPrecision precision, int frame_width,
                        int frame_height) {
  const int r = model.unshuffle;
  const int width = ceil_divide(frame_width, r);
  const int height = ceil_divide(frame_height, r);
  constexpr int kSmallest = 16;
  TileGrid best{};
  double least = std::numeric_limits<double>::max();
  for (int columns = 1; columns <= std::max(1, width / kSmallest); ++columns) {
    for (int rows = 1; rows <= std::max(1, height / kSmallest); ++rows) {
      const int tile_width = ceil_divide(ceil_divide(width, columns), kPixelsAtOnce) * kPixelsAtOnce;
      const TileShape tile{r, static_cast<int>(model.layers.size()), tile_width, ceil_divide(height, rows)};
      const TileGrid grid{ceil_divide(width, tile.width), ceil_divide(height, tile.height), tile};
      const double time = cost(model, precision, grid);
      if (time < least) {
        least = time;
        best = grid;
      }
    }
  }
  return best;
}

}  // namespace nonlocal::network
