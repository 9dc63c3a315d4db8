// A frame's colours at the size that a model sees: see nonlocal/region_finder.h.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "core/aligned_buffer.h"
#include "nonlocal/colour_format.h"
#include "nonlocal/network.h"
#include "nonlocal/plane.h"
#include "text/preprocessor.h"

namespace nonlocal::text {

// Which samples of a line make a new one, and how much of each.
struct LineTaps {
  int first, count;
  const float* weight;
};

// Those of all new samples of one axis.
class AxisTaps {
 public:
  // `samples` lie `step` apart from `origin` on, in units of the frame's own, of which the whole axis has
  // `length`: so are chroma's where there are fewer of them. `count` new samples share the length evenly.
  void make(PictureFilter filter, int samples, double step, double origin, int length, int count);
  [[nodiscard]] LineTaps at(int i) const {
    const Place& p = places_[static_cast<std::size_t>(i)];
    return {p.first, p.count, weights_.data() + p.weight};
  }

 private:
  struct Place {
    int first, count;
    std::size_t weight;
  };
  std::vector<Place> places_;
  std::vector<float> weights_;
};

class FrameResampler {
 public:
  FrameResampler(PictureFilter filter, int threads) : filter_(filter), threads_(threads) {}

  // `frame` is sound. Frames of one size and format, to one size, allocate nothing from the second one on.
  void run(std::span<const ConstPlane> frame, const ColourFormat& format, int columns, int rows);

  // R, G and B of 0 .. 1.
  [[nodiscard]] const std::array<ConstFloatPlane, 3>& rgb() const { return rgb_; }

 private:
  struct Shape {
    ColourFormat format;
    int width, height, chroma_width, chroma_height, columns, rows;
    bool operator==(const Shape&) const = default;
  };
  void prepare(const Shape& shape);
  void make_row(std::span<const ConstPlane> frame, int row, float* line);
  void make_colours(int planes, int bit_depth, int row);

  PictureFilter filter_;
  int threads_;
  Shape shape_ = {};
  std::array<AxisTaps, 2> across_, down_;  // of luma, R, G, B; of chroma
  AlignedBuffer<float> samples_;           // three planes of rows x columns
  AlignedBuffer<float> lines_;             // of each thread
  std::array<ConstFloatPlane, 3> rgb_ = {};
};

}  // namespace nonlocal::text
