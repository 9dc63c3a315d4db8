// Where the blocks of a frame were in the frame before: block matching from coarse to fine, on two pyramids
// of 8-bit pictures. A noisy frame is smoothed a little.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/aligned_buffer.h"
#include "nonlocal/plane.h"

namespace nonlocal::motion {

// In whole pixels, or in kFine: the block at (x, y) was at (x + v.x, y + v.y).
constexpr int kFine = 16;  // of a pixel

struct MotionVector {
  std::int16_t x = 0;
  std::int16_t y = 0;

  bool operator==(const MotionVector&) const = default;
};

// One vector for each kMotionBlock x kMotionBlock pixels.
constexpr int kMotionBlock = 16;

struct MotionField {
  int columns = 0;
  int rows = 0;
  std::vector<MotionVector> vectors;

  void resize(int width, int height);
  [[nodiscard]] MotionVector at(int column, int row) const {
    return vectors[static_cast<std::size_t>(row) * columns + column];
  }
  // That of the nearest block.
  [[nodiscard]] MotionVector nearest(int column, int row) const;
};

// A picture with room around it, which repeats its border samples.
class PaddedPicture {
 public:
  static constexpr int kPadding = 48;  // at least; multiple of 16

  void resize(int width, int height);
  [[nodiscard]] int width() const { return width_; }
  [[nodiscard]] int height() const { return height_; }
  [[nodiscard]] std::ptrdiff_t stride() const { return stride_; }
  [[nodiscard]] const std::uint8_t* row(int y) const {
    return bytes_.data() + (y + kPadding) * stride_ + kPadding;
  }
  [[nodiscard]] std::uint8_t* row(int y) { return bytes_.data() + (y + kPadding) * stride_ + kPadding; }

  // Fills what is beside rows first .. last - 1, and above and below the picture where those are at its edge.
  void pad(int first, int last);

 private:
  int width_ = 0;
  int height_ = 0;
  std::ptrdiff_t stride_ = 0;
  AlignedBuffer<std::uint8_t> bytes_;
};

struct RowSearch;

// What motion is searched on.
enum class MotionFrames {
  kNoisy,  // smoothed first; what they are compared with need not be noisy
  kClean,  // every other row of a window is compared
};

class MotionSearch {
 public:
  explicit MotionSearch(MotionFrames frames = MotionFrames::kNoisy) : frames_(frames) {}

  // Makes ready for frames of a size, which otherwise the first two do.
  void prepare(int width, int height, int threads);

  // What the next frame will be compared with: the mean of the planes, which are of one size and depth.
  // Smoothed a little where it is noisy, like the next frame.
  void remember(std::span<const ConstPlane> planes, bool is_noisy, int threads);

  // The same, of the planes that were searched last, as they were then: costs nothing.
  void remember_searched();

  // The motion of the mean of `planes`, whose noise has the standard deviation sigma in 8-bit code values,
  // since what remember() was last given: of the same size. Allocates nothing but for a new size.
  const MotionField& search(std::span<const ConstPlane> planes, double sigma, int threads);

  // What search() found last, to kFine of a pixel: from the differences beside each vector.
  const MotionField& refine(int threads);

 private:
  using Pyramid = std::vector<PaddedPicture>;

  void resize(Pyramid& pyramid, int width, int height);
  void add_lines(int width, int threads);
  [[nodiscard]] RowSearch row_search(std::size_t level, double sigma) const;
  void build(Pyramid& pyramid, std::span<const ConstPlane> planes, bool smooth, int threads);

  MotionFrames frames_;
  Pyramid current_;
  Pyramid before_;
  std::vector<MotionField> fields_;    // a level each
  std::vector<MotionField> improved_;  // by their neighbours
  MotionField fine_;
  AlignedBuffer<std::uint16_t> lines_;
  std::ptrdiff_t lines_a_thread_ = 0;
};

}  // namespace nonlocal::motion
