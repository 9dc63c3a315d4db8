#include "motion/motion_search.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "motion/motion_search.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "core/rounding.h"
#include "core/workers.h"
#include "hwy/highway.h"

#ifndef NONLOCAL_MOTION_MOTION_SEARCH_ONCE
#define NONLOCAL_MOTION_MOTION_SEARCH_ONCE
namespace nonlocal::motion {

// Blocks are compared with what is around them, so that flat ones follow.
constexpr int kMargin = 8;
constexpr int kWindow = kMotionBlock + 2 * kMargin;

// Everything that one row of blocks needs.
struct RowSearch {
  const PaddedPicture& current;
  const PaddedPicture& before;
  const MotionField* coarse;  // of half the size; the coarsest level has none, and looks everywhere
  int still;                  // what any motion at all costs, as a sum of absolute differences
  int pixel;                  // and what it costs a pixel, in 1024ths
  int good;                   // such a sum is what noise alone makes
  int row_step;               // from one row of a window that is compared to the next
  MotionField* field;
  const MotionField* neighbours;  // where they are known already
};

// Rows of the mean of planes as bytes, smoothed along the row or not.
struct RowMean {
  std::span<const ConstPlane> planes;
  bool smooth;
  std::uint16_t* sum;   // a row
  std::uint8_t* bytes;  // a row, two samples before it and two after
};

}  // namespace nonlocal::motion
#endif

HWY_BEFORE_NAMESPACE();
namespace nonlocal::motion::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR
int window_difference(const uint8_t* a, ptrdiff_t a_stride, const uint8_t* b, ptrdiff_t b_stride, int rows) {
  int sum = 0;
  for (int y = 0; y < rows; ++y, a += a_stride, b += b_stride) {
    for (int x = 0; x < kWindow; ++x) {
      sum += std::abs(a[x] - b[x]);
    }
  }
  return sum;
}
#else
// The sum of absolute differences of `rows` rows of two windows.
int window_difference(const uint8_t* HWY_RESTRICT a, ptrdiff_t a_stride, const uint8_t* HWY_RESTRICT b,
                      ptrdiff_t b_stride, int rows) {
  const hn::CappedTag<uint8_t, kWindow> d;
  const hn::Repartition<uint64_t, decltype(d)> d64;
  auto sum = hn::Zero(d64);
  for (int y = 0; y < rows; ++y, a += a_stride, b += b_stride) {
    for (size_t x = 0; x < kWindow; x += hn::Lanes(d)) {
      const auto va = hn::LoadU(d, a + x);
      const auto vb = hn::LoadU(d, b + x);
      const auto difference = hn::Or(hn::SaturatedSub(va, vb), hn::SaturatedSub(vb, va));
      sum = hn::Add(sum, hn::SumsOf8(difference));
    }
  }
  return static_cast<int>(hn::GetLane(hn::SumOfLanes(d64, sum)));
}
#endif

// A block with what is around it.
class Window {
 public:
  Window(const RowSearch& s, int column, int row)
      : s_(s), x_(column * kMotionBlock - kMargin), y_(row * kMotionBlock - kMargin) {}

  // A motion to where the picture has samples.
  void clamp(int& x, int& y) const {
    constexpr int kPadding = PaddedPicture::kPadding;
    x = std::clamp(x, -kPadding - x_, s_.before.width() + kPadding - kWindow - x_);
    y = std::clamp(y, -kPadding - y_, s_.before.height() + kPadding - kWindow - y_);
  }

  // Of the window and where that was, with such a motion.
  [[nodiscard]] int difference(int x, int y) const {
    return window_difference(s_.current.row(y_) + x_, s_.current.stride() * s_.row_step,
                             s_.before.row(y_ + y) + x_ + x, s_.before.stride() * s_.row_step,
                             kWindow / s_.row_step);
  }

 private:
  const RowSearch& s_;
  int x_;
  int y_;
};

// The best of the vectors that were tried for a block.
class Best {
 public:
  Best(const RowSearch& s, int column, int row)
      : s_(s), window_(s, column, row), cost_(window_.difference(0, 0)) {}

  // Not worse than noise makes it.
  [[nodiscard]] bool is_good() const { return cost_ <= s_.good; }

  void try_vector(int x, int y) {
    window_.clamp(x, y);
    int cost = x == 0 && y == 0 ? 0 : s_.still + (s_.pixel * (std::abs(x) + std::abs(y)) >> 10);
    const MotionVector v = {static_cast<int16_t>(x), static_cast<int16_t>(y)};
    if (cost >= cost_ || v == vector_) {
      return;
    }
    cost += window_.difference(x, y);
    if (cost < cost_) {
      cost_ = cost;
      vector_ = v;
    }
  }
  void try_vector(MotionVector v) { try_vector(v.x, v.y); }

  void try_around(int reach) {
    const MotionVector centre = vector_;
    for (int y = -reach; y <= reach; ++y) {
      for (int x = -reach; x <= reach; ++x) {
        if (x != 0 || y != 0) {
          try_vector(centre.x + x, centre.y + y);
        }
      }
    }
  }

  [[nodiscard]] MotionVector vector() const { return vector_; }

 private:
  const RowSearch& s_;
  Window window_;
  int cost_;
  MotionVector vector_;  // to stay, to begin with
};

constexpr MotionVector kCross[] = {{0, 0}, {-1, 0}, {1, 0}, {0, -1}, {0, 1}};

MotionVector search_block(const RowSearch& s, int column, int row) {
  constexpr int kCoarseReach = 4;
  Best best(s, column, row);
  if (best.is_good()) {
    return best.vector();
  }
  if (s.neighbours != nullptr) {
    for (const MotionVector& to : kCross) {
      best.try_vector(s.neighbours->nearest(column + to.x, row + to.y));
    }
    return best.vector();
  }
  if (s.coarse == nullptr) {
    best.try_around(kCoarseReach);
    return best.vector();
  }
  for (const MotionVector& to : kCross) {
    const MotionVector v = s.coarse->nearest(column / 2 + to.x, row / 2 + to.y);
    best.try_vector(2 * v.x, 2 * v.y);
  }
  if (best.is_good()) {
    return best.vector();
  }
  const MotionVector start = best.vector();
  best.try_around(1);
  if (best.vector() != start) {
    best.try_around(1);
  }
  return best.vector();
}

void search_row(const RowSearch& s, int row) {
  for (int column = 0; column < s.field->columns; ++column) {
    s.field->vectors[static_cast<size_t>(row) * s.field->columns + column] = search_block(s, column, row);
  }
}

// How far from `here`, in kFine, the least difference is, which goes up alike on either side of it.
int least_between(int before, int here, int behind) {
  const int slope = std::max(before, behind) - here;
  return slope > 0 ? std::clamp(kFine * (before - behind) / (2 * slope), -kFine / 2, kFine / 2) : 0;
}

// `neighbours` in kFine.
void refine_row(const RowSearch& s, int row) {
  for (int column = 0; column < s.field->columns; ++column) {
    const Window window(s, column, row);
    const auto difference = [&](int x, int y) {
      window.clamp(x, y);
      return window.difference(x, y);
    };
    const MotionVector v = s.neighbours->at(column, row);
    const int here = difference(v.x, v.y);
    MotionVector& fine = s.field->vectors[static_cast<size_t>(row) * s.field->columns + column];
    fine = {static_cast<int16_t>(kFine * v.x), static_cast<int16_t>(kFine * v.y)};
    if (here > 0) {
      fine.x = static_cast<int16_t>(fine.x +
                                    least_between(difference(v.x - 1, v.y), here, difference(v.x + 1, v.y)));
      fine.y = static_cast<int16_t>(fine.y +
                                    least_between(difference(v.x, v.y - 1), here, difference(v.x, v.y + 1)));
    }
  }
}

// One plane's row as bytes.
template <typename T>
void copy_row(const T* HWY_RESTRICT row, int down, int width, uint8_t* HWY_RESTRICT to) {
  for (int x = 0; x < width; ++x) {
    to[x] = static_cast<uint8_t>(row[x] >> down);
  }
}

template <typename T>
void add_row(const T* HWY_RESTRICT row, int step, int shift, int depth_shift, int width,
             uint16_t* HWY_RESTRICT sum) {
  const int down = shift + depth_shift;
  if (step == 1) {
    for (int x = 0; x < width; ++x) {
      sum[x] = static_cast<uint16_t>(sum[x] + (row[x] >> down));
    }
  } else {
    for (int x = 0; x < width; ++x) {
      sum[x] = static_cast<uint16_t>(sum[x] + (row[static_cast<ptrdiff_t>(x) * step] >> down));
    }
  }
}

// (1 4 6 4 1) / 16 of five rows of bytes.
void smooth_down(const uint8_t* const rows[5], int width, uint8_t* HWY_RESTRICT to) {
  const uint8_t* HWY_RESTRICT a = rows[0];
  const uint8_t* HWY_RESTRICT b = rows[1];
  const uint8_t* HWY_RESTRICT c = rows[2];
  const uint8_t* HWY_RESTRICT d = rows[3];
  const uint8_t* HWY_RESTRICT e = rows[4];
  for (int x = 0; x < width; ++x) {
    to[x] = static_cast<uint8_t>((a[x] + 4 * b[x] + 6 * c[x] + 4 * d[x] + e[x] + 8) >> 4);
  }
}

void smooth_along(const uint8_t* HWY_RESTRICT from, int width, uint8_t* HWY_RESTRICT to) {
  for (int x = 0; x < width; ++x) {
    to[x] = static_cast<uint8_t>(
        (from[x - 2] + 4 * from[x - 1] + 6 * from[x] + 4 * from[x + 1] + from[x + 2] + 8) >> 4);
  }
}

void sum_planes(const RowMean& m, int y) {
  std::fill_n(m.sum, m.planes[0].width, 0);
  for (const ConstPlane& p : m.planes) {
    const std::byte* row = p.row(y);
    if (p.bit_depth > 8) {
      add_row(reinterpret_cast<const uint16_t*>(row), p.step, p.shift, p.bit_depth - 8, p.width, m.sum);
    } else {
      add_row(reinterpret_cast<const uint8_t*>(row), p.step, p.shift, 0, p.width, m.sum);
    }
  }
}

// Row y of the mean.
void mean_row(const RowMean& m, int y, uint8_t* to) {
  const int width = m.planes[0].width;
  const int count = static_cast<int>(m.planes.size());
  uint8_t* HWY_RESTRICT bytes = m.smooth ? m.bytes : to;
  const ConstPlane& first = m.planes[0];
  if (count == 1 && first.step == 1) {
    const std::byte* row = first.row(y);
    if (first.bit_depth > 8) {
      copy_row(reinterpret_cast<const uint16_t*>(row), first.shift + first.bit_depth - 8, width, bytes);
    } else {
      copy_row(reinterpret_cast<const uint8_t*>(row), first.shift, width, bytes);
    }
  } else {
    sum_planes(m, y);
    for (int x = 0; x < width; ++x) {
      bytes[x] = static_cast<uint8_t>(m.sum[x] / count);
    }
  }
  if (m.smooth) {
    bytes[-2] = bytes[-1] = bytes[0];
    bytes[width + 1] = bytes[width] = bytes[width - 1];
    smooth_along(bytes, width, to);
  }
}

void halve_row(const uint8_t* HWY_RESTRICT upper, const uint8_t* HWY_RESTRICT lower, int width,
               uint8_t* HWY_RESTRICT to) {
  for (int x = 0; x < width; ++x) {
    to[x] =
        static_cast<uint8_t>((upper[2 * x] + upper[2 * x + 1] + lower[2 * x] + lower[2 * x + 1] + 2) >> 2);
  }
}

}  // namespace nonlocal::motion::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nonlocal::motion {
namespace {

HWY_EXPORT(search_row);
HWY_EXPORT(refine_row);
HWY_EXPORT(mean_row);
HWY_EXPORT(smooth_down);
HWY_EXPORT(halve_row);

constexpr int kSmallestLevel = 40;  // rows or columns
constexpr int kMostLevels = 5;
constexpr int kBandRows = 16;

std::ptrdiff_t byte_stride(int width) { return round_up(width + 4, 64); }

int level_count(int width, int height) {
  int levels = 1;
  while (levels < kMostLevels && std::min(width, height) >> levels >= kSmallestLevel) {
    ++levels;
  }
  return levels;
}

}  // namespace

void MotionField::resize(int width, int height) {
  columns = ceil_divide(width, kMotionBlock);
  rows = ceil_divide(height, kMotionBlock);
  vectors.assign(static_cast<std::size_t>(columns) * rows, {});
}

MotionVector MotionField::nearest(int column, int row) const {
  return at(std::clamp(column, 0, columns - 1), std::clamp(row, 0, rows - 1));
}

void PaddedPicture::resize(int width, int height) {
  width_ = width;
  height_ = height;
  stride_ = round_up(width, kMotionBlock) + 2 * kPadding;
  bytes_.allocate(static_cast<std::size_t>(stride_) * (round_up(height, kMotionBlock) + 2 * kPadding));
}

void PaddedPicture::pad(int first, int last) {
  const std::size_t right = static_cast<std::size_t>(stride_ - kPadding - width_);
  for (int y = first; y < last; ++y) {
    std::uint8_t* at = row(y);
    std::memset(at - kPadding, at[0], kPadding);
    std::memset(at + width_, at[width_ - 1], right);
  }
  const auto repeat = [&](int from, int to) {
    std::memcpy(row(to) - kPadding, row(from) - kPadding, static_cast<std::size_t>(stride_));
  };
  for (int y = 1; first == 0 && y <= kPadding; ++y) {
    repeat(0, -y);
  }
  for (int y = height_; last == height_ && y < round_up(height_, kMotionBlock) + kPadding; ++y) {
    repeat(height_ - 1, y);
  }
}

void MotionSearch::resize(Pyramid& pyramid, int width, int height) {
  if (!pyramid.empty() && pyramid[0].width() == width && pyramid[0].height() == height) {
    return;
  }
  pyramid.resize(level_count(width, height));
  fields_.resize(pyramid.size());
  improved_.resize(pyramid.size());
  for (std::size_t l = 0; l < pyramid.size(); ++l) {
    pyramid[l].resize(width, height);
    fields_[l].resize(width, height);
    improved_[l].resize(width, height);
    width = ceil_divide(width, 2);
    height = ceil_divide(height, 2);
  }
  fine_.resize(pyramid[0].width(), pyramid[0].height());
}

void MotionSearch::prepare(int width, int height, int threads) {
  resize(current_, width, height);
  resize(before_, width, height);
  add_lines(width, threads);
}

// Working memory of threads: a row of sums; then rows of bytes, one before and those after it is smoothed
// along, kBandRows and two above and below them.
void MotionSearch::add_lines(int width, int threads) {
  const std::ptrdiff_t a_thread = round_up(width, 32) + byte_stride(width) * (kBandRows + 5) / 2;
  const std::size_t needed = static_cast<std::size_t>(a_thread) * threads;
  if (lines_a_thread_ != a_thread || lines_.size() < needed) {
    lines_.allocate(needed);
    lines_a_thread_ = a_thread;
  }
}

void MotionSearch::build(Pyramid& pyramid, std::span<const ConstPlane> planes, bool smooth, int threads) {
  PaddedPicture& whole = pyramid[0];
  const int width = whole.width();
  const int height = whole.height();
  add_lines(width, threads);
  const int bands = ceil_divide(height, kBandRows);
  const auto make_mean = HWY_DYNAMIC_DISPATCH(mean_row);
  const auto smooth_rows = HWY_DYNAMIC_DISPATCH(smooth_down);
  Workers::shared().run(bands, threads, [&](int band, int slot) {
    std::uint16_t* sum = lines_.data() + slot * lines_a_thread_;
    auto* bytes = reinterpret_cast<std::uint8_t*>(sum + round_up(width, 32));
    const RowMean mean = {planes, smooth, sum, bytes + 2};
    const int first = band * kBandRows;
    const int last = std::min(first + kBandRows, height);
    if (!smooth) {
      for (int y = first; y < last; ++y) {
        make_mean(mean, y, whole.row(y));
      }
    } else {
      const std::ptrdiff_t stride = byte_stride(width);
      std::uint8_t* lines = bytes + stride;
      const auto line = [&](int y) { return lines + (y - first + 2) * stride; };
      for (int y = first - 2; y < last + 2; ++y) {
        make_mean(mean, std::clamp(y, 0, height - 1), line(y));
      }
      for (int y = first; y < last; ++y) {
        const std::uint8_t* rows[5] = {line(y - 2), line(y - 1), line(y), line(y + 1), line(y + 2)};
        smooth_rows(rows, width, whole.row(y));
      }
    }
    whole.pad(first, last);
  });
  const auto halve = HWY_DYNAMIC_DISPATCH(halve_row);
  for (std::size_t l = 1; l < pyramid.size(); ++l) {
    PaddedPicture& small = pyramid[l];
    const PaddedPicture& large = pyramid[l - 1];
    Workers::shared().run(ceil_divide(small.height(), kBandRows), threads, [&](int band, int) {
      const int last = std::min((band + 1) * kBandRows, small.height());
      for (int y = band * kBandRows; y < last; ++y) {
        halve(large.row(2 * y), large.row(2 * y + 1), small.width(), small.row(y));
      }
      small.pad(band * kBandRows, last);
    });
  }
}

void MotionSearch::remember(std::span<const ConstPlane> planes, bool is_noisy, int threads) {
  resize(before_, planes[0].width, planes[0].height);
  build(before_, planes, is_noisy, threads);
}

// Of a level, without its fields.
RowSearch MotionSearch::row_search(std::size_t level, double sigma) const {
  const int row_step = frames_ == MotionFrames::kClean ? 2 : 1;
  const int samples = kWindow * kWindow / row_step;
  // Noise alone makes one place a little more alike than another: to stay costs nothing.
  const double still = 0.02 * samples * sigma;
  constexpr double kGood = 0.3;
  const auto whole = [](double cost) { return static_cast<int>(std::lround(cost)); };
  return {current_[level],
          before_[level],
          nullptr,
          whole(still),
          whole(still * 0.02 * 1024),
          whole(kGood * samples * sigma),
          row_step,
          nullptr,
          nullptr};
}

void MotionSearch::remember_searched() { current_.swap(before_); }

const MotionField& MotionSearch::search(std::span<const ConstPlane> planes, double sigma, int threads) {
  resize(current_, planes[0].width, planes[0].height);
  build(current_, planes, frames_ == MotionFrames::kNoisy, threads);
  const auto search_row = HWY_DYNAMIC_DISPATCH(search_row);
  for (std::size_t l = current_.size(); l-- > 0;) {
    RowSearch s = row_search(l, sigma);
    s.coarse = l + 1 < current_.size() ? &improved_[l + 1] : nullptr;
    s.field = &fields_[l];
    const auto search_all = [&] {
      Workers::shared().run(s.field->rows, threads, [&](int row, int) { search_row(s, row); });
    };
    search_all();
    s.neighbours = &fields_[l];
    s.field = &improved_[l];
    search_all();
  }
  return improved_[0];
}

const MotionField& MotionSearch::refine(int threads) {
  RowSearch s = row_search(0, 0);
  s.neighbours = &improved_[0];
  s.field = &fine_;
  const auto refine_row = HWY_DYNAMIC_DISPATCH(refine_row);
  Workers::shared().run(fine_.rows, threads, [&](int row, int) { refine_row(s, row); });
  return fine_;
}

}  // namespace nonlocal::motion
#endif
