#include "grade/block_motion.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "core/rounding.h"
#include "core/workers.h"

namespace nonlocal::grade {
namespace {

constexpr int kLongSide = 320;
constexpr int kBlock = 16;                           // samples compared, about the middle of a step
constexpr int kBefore = (kBlock - kMotionStep) / 2;  // of them before it
constexpr int kStill = kBlock * kBlock / 2;          // half a code value: what to stay is preferred by

int block_difference(const std::uint8_t* a, std::ptrdiff_t a_stride, const std::uint8_t* b,
                     std::ptrdiff_t b_stride) {
  int sum = 0;
  for (int y = 0; y < kBlock; ++y) {
    for (int x = 0; x < kBlock; ++x) {
      sum += std::abs(a[x] - b[x]);
    }
    a += a_stride;
    b += b_stride;
  }
  return sum;
}

}  // namespace

// The mean of every second row: half the memory, and as good.
template <typename Sample>
void SmallPicture::take_row(const ConstPlane& from, int y) {
  const int step = row_factor_ > 1 ? 2 : 1;
  const int rows = ceil_divide(row_factor_, step);
  const int deeper = from.shift + from.bit_depth - 8;
  std::uint8_t* to = samples_.data() + (y + kRoom) * stride() + kRoom;
  for (int x = 0; x < width_; ++x) {
    std::uint32_t sum = 0;
    for (int r = 0; r < rows; ++r) {
      const auto* line = reinterpret_cast<const Sample*>(from.row(y * row_factor_ + r * step));
      for (int i = 0; i < factor_; ++i) {
        sum += line[static_cast<std::ptrdiff_t>(x * factor_ + i) * from.step];
      }
    }
    to[x] = static_cast<std::uint8_t>((sum / (rows * factor_)) >> deeper);
  }
  std::memset(to - kRoom, to[0], kRoom);
  std::memset(to + width_, to[width_ - 1], kRoom);
}

void SmallPicture::take(const ConstPlane& from, int threads) {
  const int factor = std::max(1, ceil_divide(std::max(from.width, from.height), kLongSide));
  // A frame that is narrower than the factor has one sample there.
  factor_ = std::min(factor, from.width);
  row_factor_ = std::min(factor, from.height);
  width_ = from.width / factor_;
  height_ = from.height / row_factor_;
  samples_.resize(static_cast<std::size_t>(stride()) * (height_ + 2 * kRoom));
  Workers::shared().run(height_, threads, [&](int y, int) {
    from.bytes_per_sample() == 1 ? take_row<std::uint8_t>(from, y) : take_row<std::uint16_t>(from, y);
  });
  for (int y = 0; y < kRoom; ++y) {
    std::memcpy(samples_.data() + y * stride(), at(-kRoom, 0), stride());
    std::memcpy(samples_.data() + (kRoom + height_ + y) * stride(), at(-kRoom, height_ - 1), stride());
  }
}

// Of one block.
struct BlockMotion::Search {
  const SmallPicture& now;
  const SmallPicture& before;
  int x, y;  // its first sample
  BlockVector best = {};
  int least;  // what it differs there, and what moving costs

  Search(const SmallPicture& now_, const SmallPicture& before_, int column, int row)
      : now(now_), before(before_), x(column * kMotionStep - kBefore), y(row * kMotionStep - kBefore) {
    least = difference(best) - kStill;
  }

  [[nodiscard]] int difference(BlockVector v) const {
    return block_difference(now.at(x, y), now.stride(), before.at(x + v.x, y + v.y), before.stride());
  }

  void attempt(int dx, int dy) {
    constexpr int kRoom = SmallPicture::kRoom;
    const BlockVector v = {
        static_cast<std::int16_t>(std::clamp(x + dx, -kRoom, before.width() + kRoom - kBlock) - x),
        static_cast<std::int16_t>(std::clamp(y + dy, -kRoom, before.height() + kRoom - kBlock) - y)};
    if (v == best) {
      return;
    }
    const int found = difference(v) - (v == BlockVector() ? kStill : 0);
    if (found < least) {
      least = found;
      best = v;
    }
  }

  void attempt_neighbours(const BlockMotion& m, const std::vector<BlockVector>& vectors, int column,
                          int row) {
    for (int r = std::max(0, row - 1); r <= std::min(m.rows_ - 1, row + 1); ++r) {
      for (int c = std::max(0, column - 1); c <= std::min(m.columns_ - 1, column + 1); ++c) {
        const BlockVector v = vectors[static_cast<std::size_t>(r) * m.columns_ + c];
        attempt(v.x, v.y);
      }
    }
  }

  void improve() {
    for (const int step : {4, 2, 1}) {
      const BlockVector from = best;
      for (int dy = -step; dy <= step; dy += step) {
        for (int dx = -step; dx <= step; dx += step) {
          attempt(from.x + dx, from.y + dy);
        }
      }
    }
  }
};

void BlockMotion::begin(const SmallPicture& picture) {
  picture_ = picture;
  columns_ = ceil_divide(picture.width(), kMotionStep);
  rows_ = ceil_divide(picture.height(), kMotionStep);
  vectors_.assign(static_cast<std::size_t>(columns_) * rows_, BlockVector());
  before_.resize(vectors_.size());
  differences_.assign(vectors_.size(), 0);
}

void BlockMotion::follow(const SmallPicture& now, int threads) {
  const auto pass = [&](bool improves) {
    std::swap(before_, vectors_);
    Workers::shared().run(rows_, threads, [&](int row, int) {
      for (int column = 0; column < columns_; ++column) {
        Search search(now, picture_, column, row);
        search.attempt_neighbours(*this, before_, column, row);
        if (improves) {
          search.improve();
        }
        const std::size_t block = static_cast<std::size_t>(row) * columns_ + column;
        vectors_[block] = search.best;
        differences_[block] = search.least + (search.best == BlockVector() ? kStill : 0);
      }
    });
  };
  pass(true);
  pass(false);  // what one block has found may be right for the next
}

double BlockMotion::difference(int column, int row) const {
  return differences_[static_cast<std::size_t>(row) * columns_ + column] / double{kBlock * kBlock};
}

double BlockMotion::difference() const {
  const auto sum = std::accumulate(differences_.begin(), differences_.end(), std::int64_t{0});
  return static_cast<double>(sum) / (static_cast<double>(differences_.size()) * kBlock * kBlock);
}

}  // namespace nonlocal::grade
