// Where the blocks of a picture were on one that stays the same, while pictures come in turn.
//
// Each vector begins as the best of none, its own on the picture before and its neighbours' there (G. de Haan
// et al.: True-motion estimation with 3-D recursive search block matching, IEEE Transactions on Circuits and
// Systems for Video Technology, 1993), and is improved in steps of 4, 2 and 1: so that errors do not add up,
// what was covered and comes to light again fits at once, and things may go far, though no further at once
// than 7 samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nonlocal/plane.h"

namespace nonlocal::grade {

constexpr int kMotionStep = 8;  // samples from one block to the next; blocks overlap

// Luma of at most 320 samples a side in eight bits, with room around it, which repeats the border.
class SmallPicture {
 public:
  static constexpr int kRoom = 16;

  void take(const ConstPlane& from, int threads);

  [[nodiscard]] int width() const { return width_; }
  [[nodiscard]] int height() const { return height_; }
  [[nodiscard]] std::ptrdiff_t stride() const { return width_ + 2 * kRoom; }
  // x and y from -kRoom to size + kRoom - 1.
  [[nodiscard]] const std::uint8_t* at(int x, int y) const {
    return samples_.data() + (y + kRoom) * stride() + kRoom + x;
  }

 private:
  template <typename Sample>
  void take_row(const ConstPlane& from, int y);

  int factor_ = 1;  // samples of the frame to one, beside each other
  int row_factor_ = 1;
  int width_ = 0;
  int height_ = 0;
  std::vector<std::uint8_t> samples_;
};

// In samples: what is at (x, y) was at (x + v.x, y + v.y).
struct BlockVector {
  std::int16_t x = 0;
  std::int16_t y = 0;

  bool operator==(const BlockVector&) const = default;
};

class BlockMotion {
 public:
  // The picture that stays; nothing has moved yet.
  void begin(const SmallPicture& picture);

  // The next one, of the same size.
  void follow(const SmallPicture& now, int threads);

  [[nodiscard]] const SmallPicture& picture() const { return picture_; }
  [[nodiscard]] int columns() const { return columns_; }
  [[nodiscard]] int rows() const { return rows_; }
  [[nodiscard]] BlockVector at(int column, int row) const {
    return vectors_[static_cast<std::size_t>(row) * columns_ + column];
  }

  // Mean absolute difference of what a block shows from where it was found, in code values; and of all
  // blocks.
  [[nodiscard]] double difference(int column, int row) const;
  [[nodiscard]] double difference() const;

 private:
  struct Search;

  SmallPicture picture_;
  int columns_ = 0;
  int rows_ = 0;
  std::vector<BlockVector> vectors_;
  std::vector<BlockVector> before_;
  std::vector<int> differences_;  // of each block, a sum
};

}  // namespace nonlocal::grade
