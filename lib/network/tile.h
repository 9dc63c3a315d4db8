// A tile of a frame: from the planes to what the first convolution reads, and from what the last one wrote
// back.
#pragma once

#include <cstddef>
#include <vector>

#include "core/aligned_buffer.h"
#include "nonlocal/plane.h"
#include "nonlocal/refinement.h"

namespace nonlocal::network {

struct Frame {
  ConstPlane noisy;
  ConstPlane estimate;
  ConstPlane sigma_map;  // without data where sigma is the same everywhere
  float sigma = 0;       // where there is no map
  Plane out;
};

// The columns of samples that a column of tiles reads, mirrored beyond the frame's borders.
struct MirroredColumns {
  MirroredColumns(int first, int count, int width, int samples_each);

  int load_first;  // these are loaded,
  int load_count;
  std::vector<int> index;  // and then these of them taken in turn;
  int plain_first = 0;     // from here on, as many lie as they are loaded
  int plain_count = 0;

  [[nodiscard]] bool is_plain() const { return plain_count == static_cast<int>(index.size()); }
};

// Counts blocks of r x r samples ("pixels").
struct TileShape {
  int unshuffle;  // r
  int border;     // pixels that the convolutions take off each side
  int width;      // what is left of it
  int height;

  [[nodiscard]] int in_width() const { return width + 2 * border; }
  [[nodiscard]] int in_height() const { return height + 2 * border; }
};

// A column of tiles of a frame.
struct TileColumn {
  TileColumn(const TileShape& shape, int first_pixel, int frame_width);

  int first;             // sample
  MirroredColumns full;  // of a plane of the frame's size
  MirroredColumns half;  // of a map of half that size
};

// A thread's working memory for rows.
class TileRows {
 public:
  TileRows(const TileShape& shape, NetworkPrecision precision);

  // Writes in_width x in_height pixels of padded_channels(2 r² + 1) values, channels side by side.
  void load(const Frame& frame, const TileColumn& column, int first_pixel_row, void* pixels);

  // Reads width x height pixels of r² float values, and refines the estimate by them.
  void store(const Frame& frame, const TileColumn& column, int first_pixel_row, const float* pixels);

 private:
  template <typename Value>
  void load_pixels(const Frame& frame, const TileColumn& column, int first_pixel_row, Value* pixels);
  template <typename Value>
  void load_plane_row(const ConstPlane& plane, const TileColumn& column, int y, int channel, Value* pixels);
  template <typename Value>
  const Value* row_values(const ConstPlane& plane, const MirroredColumns& columns, int y);
  template <typename Value>
  void load_sigma_row(const Frame& frame, const TileColumn& column, int first_row, Value* pixels);
  void load_mirrored(const ConstPlane& plane, const MirroredColumns& columns, int y, float* codes);

  TileShape shape_;
  NetworkPrecision precision_;
  int channels_;
  AlignedBuffer<float> loaded_;
  AlignedBuffer<float> codes_;
  AlignedBuffer<float> sum_;
  AlignedBuffer<float> values_;  // of any type
};

}  // namespace nonlocal::network
