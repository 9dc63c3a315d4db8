#include "network/temporal_mean.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "network/temporal_mean.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "core/anew.h"
#include "core/rounding.h"
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "network/pixels.h"

#ifndef NONLOCAL_NETWORK_TEMPORAL_MEAN_ONCE
#define NONLOCAL_NETWORK_TEMPORAL_MEAN_ONCE
namespace nonlocal::network {

constexpr int kDepth = 15;  // bits of a plane: differences fit 16
constexpr int kSquare = 8;  // samples on a side that share a vector
constexpr int kFineBits = 4;
static_assert(motion::kFine == 1 << kFineBits && motion::kMotionBlock == 2 * kSquare);

// Shares of four neighbours in 32768ths, for places so many kFine behind the second (R. Keys: Cubic
// convolution interpolation for digital image processing, IEEE TASSP 1981, a = -1/2).
using CubicShares = std::array<std::int16_t, 4>;

constexpr CubicShares cubic_shares(int place) {
  const double t = static_cast<double>(place) / motion::kFine;
  const double shares[4] = {((-0.5 * t + 1) * t - 0.5) * t, (1.5 * t - 2.5) * t * t + 1,
                            ((-1.5 * t + 2) * t + 0.5) * t, (0.5 * t - 0.5) * t * t};
  CubicShares rounded{};
  for (std::size_t i = 0; i < rounded.size(); ++i) {
    const double share = std::min(shares[i] * 32768, 32767.0);
    rounded[i] = static_cast<std::int16_t>(share + (share < 0 ? -0.5 : 0.5));
  }
  return rounded;
}

constexpr auto kCubicShares = [] {
  std::array<CubicShares, motion::kFine> all{};
  for (int place = 0; place < motion::kFine; ++place) {
    all[static_cast<std::size_t>(place)] = cubic_shares(place);
  }
  return all;
}();

// Where rows of x̂ of one row of squares come from, and go to.
struct MovedRows {
  ConstPlane before;
  int first;                            // row of the frame
  int count;                            // up to kSquare
  const motion::MotionVector* vectors;  // a square, in kFine of a sample
  std::int16_t* to;                     // whole squares: beyond the row's end there is room
  std::ptrdiff_t stride;                // of `to`
};

}  // namespace nonlocal::network
#endif

HWY_BEFORE_NAMESPACE();
namespace nonlocal::network::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Samples = hn::CappedTag<std::int16_t, kSquare>;

// kSquare samples, each the sum of four that lie `step` apart from one another and a number, which may wrap
// on the way, but not in the end.
template <typename Finish>
HWY_INLINE void mix_four(const std::int16_t* HWY_RESTRICT from, std::ptrdiff_t step,
                         const CubicShares& shares, const Finish& finish, std::int16_t* HWY_RESTRICT to) {
  const Samples d;
  for (std::size_t i = 0; i < kSquare; i += hn::Lanes(d)) {
    const auto part = [&](int tap) HWY_ATTR {
      return hn::MulFixedPoint15(hn::LoadU(d, from + tap * step + i),
                                 hn::Set(d, shares[static_cast<std::size_t>(tap)]));
    };
    const auto sum = hn::Add(hn::Add(part(0), part(1)), hn::Add(part(2), part(3)));
    hn::StoreU(finish(sum), d, to + i);
  }
}

constexpr int kTaps = 4;
constexpr int kBeside = 1;                   // taps before a sample
constexpr int kTaken = kSquare + kTaps - 1;  // samples on a side of what makes a square

// `from`: kTaken rows and columns, the first of them kBeside before the square's.
void move_square(const std::int16_t* from, std::ptrdiff_t from_stride, int x_place, int y_place, int rows,
                 std::int16_t* to, std::ptrdiff_t stride) {
  std::int16_t across[kTaken][kSquare];
  const CubicShares& x_shares = kCubicShares[static_cast<std::size_t>(x_place)];
  const CubicShares& y_shares = kCubicShares[static_cast<std::size_t>(y_place)];
  // Cubics go beyond the samples on either side: around their middle there is room for that.
  const Samples d;
  const auto middle = hn::Set(d, std::int16_t{1 << (kDepth - 1)});
  const auto centred = [=](auto sum) HWY_ATTR { return hn::Sub(sum, middle); };
  const auto clamped = [=](auto sum)
                           HWY_ATTR { return hn::Max(hn::SaturatedAdd(sum, middle), hn::Zero(Samples())); };
  for (int y = 0; y < rows + kTaps - 1; ++y) {
    mix_four(from + y * from_stride, 1, x_shares, centred, across[y]);
  }
  for (int y = 0; y < rows; ++y) {
    mix_four(across[y], kSquare, y_shares, clamped, to + y * stride);
  }
}

void move_rows(const MovedRows& rows) {
  const ConstPlane& plane = rows.before;
  const std::ptrdiff_t stride = plane.stride / 2;
  const auto* samples = reinterpret_cast<const std::int16_t*>(plane.data);
  for (int x = 0; x < plane.width; x += kSquare) {
    const motion::MotionVector v = rows.vectors[x / kSquare];
    const int from_x = x + (v.x >> kFineBits);
    const int from_y = rows.first + (v.y >> kFineBits);
    const int x_place = v.x & (motion::kFine - 1);
    const int y_place = v.y & (motion::kFine - 1);
    std::int16_t* to = rows.to + x;
    const bool is_within = from_x >= kBeside && from_x - kBeside + kTaken <= plane.width &&
                           from_y >= kBeside && from_y - kBeside + rows.count + kTaps - 1 <= plane.height;
    if (is_within && x_place == 0 && y_place == 0) {
      for (int y = 0; y < rows.count; ++y) {
        std::memcpy(to + y * rows.stride, samples + (from_y + y) * stride + from_x, kSquare * sizeof(*to));
      }
    } else if (is_within) {
      move_square(samples + (from_y - kBeside) * stride + from_x - kBeside, stride, x_place, y_place,
                  rows.count, to, rows.stride);
    } else {
      std::int16_t taken[kTaken * kTaken];
      for (int i = 0; i < kTaken; ++i) {
        const std::int16_t* row = samples + std::clamp(from_y - kBeside + i, 0, plane.height - 1) * stride;
        for (int k = 0; k < kTaken; ++k) {
          taken[i * kTaken + k] = row[std::clamp(from_x - kBeside + k, 0, plane.width - 1)];
        }
      }
      move_square(taken, kTaken, x_place, y_place, rows.count, to, rows.stride);
    }
  }
}

// Adds the squares of a row's differences to the sums of its cells.
void add_squares(const std::int16_t* HWY_RESTRICT a, const std::int16_t* HWY_RESTRICT b, int width,
                 float* HWY_RESTRICT sums) {
  const auto square = [](int difference) {
    return static_cast<float>(difference) * static_cast<float>(difference);
  };
  for (int i = 0; i < width / 2; ++i) {
    sums[i] += square(a[2 * i] - b[2 * i]) + square(a[2 * i + 1] - b[2 * i + 1]);
  }
  if (width % 2 != 0) {
    sums[width / 2] += 2 * square(a[width - 1] - b[width - 1]);
  }
}

// w / (1 + w) = 1 / (1 + exp(scale sum)) for both samples of each cell, with the sum over three rows of cells
// and three of their columns, or what half of the cell's own mean would make it. `sums` has room for one
// value on either side; rows are whole vectors.
void share_row(std::array<const float*, 3> rows, int cells, float scale, float* HWY_RESTRICT sums,
               float* HWY_RESTRICT shares) {
  for (int i = 0; i < cells; ++i) {
    sums[i] = rows[0][i] + rows[1][i] + rows[2][i];
  }
  sums[-1] = sums[0];
  sums[cells] = sums[cells - 1];
  constexpr float kOwnShare = 9 / 2.0F;  // of nine cells
  const hn::ScalableTag<float> d;
  const auto one = hn::Set(d, 1.0F);
  const auto most = hn::Set(d, 80.0F);  // exp() of it is a float still
  for (int i = 0; i < cells; i += static_cast<int>(hn::Lanes(d))) {
    const auto around =
        hn::Add(hn::Add(hn::LoadU(d, sums + i - 1), hn::Load(d, sums + i)), hn::LoadU(d, sums + i + 1));
    const auto sum = hn::Max(around, hn::Mul(hn::Load(d, rows[1] + i), hn::Set(d, kOwnShare)));
    const auto share = hn::Div(one, hn::Add(one, hn::Exp(d, hn::Min(hn::Mul(sum, hn::Set(d, scale)), most))));
    hn::StoreInterleaved2(share, share, d, shares + static_cast<std::ptrdiff_t>(2) * i);
  }
}

// o + (x̂ - o) w / (1 + w), in 8-bit code values.
void mix_row(const std::int16_t* HWY_RESTRICT own, const std::int16_t* HWY_RESTRICT moved,
             const float* HWY_RESTRICT shares, int width, float* HWY_RESTRICT codes) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> d32;
  const hn::Rebind<std::int16_t, decltype(d)> d16;
  const auto code = hn::Set(d, 1.0F / (1 << (kDepth - 8)));
  const int lanes = static_cast<int>(hn::Lanes(d));
  for (int x = 0; x < width; x += lanes) {  // rows are whole vectors
    const auto o = hn::PromoteTo(d32, hn::Load(d16, own + x));
    const auto difference = hn::Sub(hn::PromoteTo(d32, hn::Load(d16, moved + x)), o);
    const auto mean = hn::MulAdd(hn::ConvertTo(d, difference), hn::Load(d, shares + x), hn::ConvertTo(d, o));
    hn::Store(hn::Mul(mean, code), d, codes + x);
  }
}

}  // namespace nonlocal::network::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nonlocal::network {
namespace {

HWY_EXPORT(move_rows);
HWY_EXPORT(add_squares);
HWY_EXPORT(share_row);
HWY_EXPORT(mix_row);

constexpr int kBandRows = 32;
constexpr int kMargin = 2;  // rows beyond a band on either side: of cells, one
constexpr int kMovedRows = kBandRows + 2 * kMargin;
constexpr int kRoom = 16;           // values beside a row of sums: one, and aligned
constexpr double kSearchSigma = 2;  // noise that is left, for the search

// Rows are whole vectors.
std::ptrdiff_t stride_of(int values) { return round_up(values, 32); }

int cells_of(int side) { return ceil_divide(side, 2); }
int squares_of(int side) { return ceil_divide(side, kSquare); }

const std::int16_t* samples_of(const Plane& plane, int y) {
  return reinterpret_cast<const std::int16_t*>(plane.row(y));
}

}  // namespace

void TemporalMean::Frame::allocate(int width, int height, int channels) {
  const std::ptrdiff_t stride = stride_of(width) * 2;
  memory.resize(static_cast<std::size_t>(channels));
  planes.clear();
  for (AlignedBuffer<std::byte>& bytes : memory) {
    bytes.allocate(static_cast<std::size_t>(stride) * height);
    planes.push_back({bytes.data(), width, height, stride, kDepth, 1, 0});
  }
  views.assign(planes.begin(), planes.end());
}

TemporalMean::Scratch::Scratch(int width, int channels) : stride(stride_of(width)) {
  const auto cells = static_cast<std::size_t>(stride_of(cells_of(width)));
  moved.allocate(static_cast<std::size_t>(stride) * kMovedRows * channels);
  squares.allocate(cells * (kMovedRows / 2));
  shares.allocate(2 * cells * (kBandRows / 2));
  sums.allocate(cells + 3 * kRoom);
  codes.allocate(static_cast<std::size_t>(stride));
}

void TemporalMean::prepare(int width, int height, int channels, int threads) {
  or_anew(
      *this, [&] { allocate(width, height, channels, threads); }, [&] { return TemporalMean(h_); });
}

void TemporalMean::allocate(int width, int height, int channels, int threads) {
  if (width != width_ || height != height_ || channels != static_cast<int>(now_.planes.size())) {
    has_before_ = false;
    now_.allocate(width, height, channels);
    before_.allocate(width, height, channels);
    vectors_.assign(static_cast<std::size_t>(squares_of(width)) * squares_of(height), {});
    scratch_.clear();
    cell_stride_ = stride_of(cells_of(width));
    width_ = width;
    height_ = height;
  }
  while (static_cast<int>(scratch_.size()) < threads) {
    scratch_.emplace_back(width, channels);
  }
  motion_.prepare(width, height, threads);
}

int TemporalMean::bands() const { return ceil_divide(height_, kBandRows); }

int TemporalMean::first_row(int band) const { return std::min(band * kBandRows, height_); }

std::int16_t* TemporalMean::Scratch::moved_row(int channel, int y) {
  return moved.data() + (static_cast<std::ptrdiff_t>(channel) * kMovedRows + y - first) * stride;
}

void TemporalMean::find_motion(int threads) {
  if (has_before_) {
    motion_.search(now_.views, kSearchSigma, threads);
    const motion::MotionField& field = motion_.refine(threads);
    Workers::shared().run(field.rows, threads, [&](int row, int) {
      move_squares(field, 2 * row);
      move_squares(field, 2 * row + 1);
    });
    motion_.remember_searched();
  } else {
    motion_.remember(now_.views, false, threads);
  }
}

// From a vector a block to one a square, of which a block has four: each lies a quarter of a block from its
// own block's middle, towards the three nearest others.
void TemporalMean::move_squares(const motion::MotionField& field, int row) {
  const auto mean = [](int own, int beside, int other, int opposite) {
    return static_cast<std::int16_t>((9 * own + 3 * (beside + other) + opposite + 8) >> 4);
  };
  if (row >= squares_of(height_)) {
    return;
  }
  const int columns = squares_of(width_);
  motion::MotionVector* vectors = vectors_.data() + static_cast<std::ptrdiff_t>(row) * columns;
  const int beside_row = row / 2 + (row % 2 != 0 ? 1 : -1);
  for (int column = 0; column < columns; ++column) {
    const int beside = column / 2 + (column % 2 != 0 ? 1 : -1);
    const motion::MotionVector own = field.at(column / 2, row / 2);
    const motion::MotionVector a = field.nearest(beside, row / 2);
    const motion::MotionVector b = field.nearest(column / 2, beside_row);
    const motion::MotionVector c = field.nearest(beside, beside_row);
    vectors[column] = {mean(own.x, a.x, b.x, c.x), mean(own.y, a.y, b.y, c.y)};
  }
}

void TemporalMean::begin_band(int band, int slot) {
  if (has_before_) {
    Scratch& s = scratch_[static_cast<std::size_t>(slot)];
    s.first = first_row(band) - kMargin;
    move(std::min(first_row(band + 1) + kMargin, height_), s);
    weigh(band, s);
  }
}

// Rows of x̂ to last - 1, and of cells how they differ from o.
void TemporalMean::move(int last, Scratch& s) const {
  const auto move_rows = HWY_DYNAMIC_DISPATCH(move_rows);
  const auto add = HWY_DYNAMIC_DISPATCH(add_squares);
  std::fill_n(s.squares.data(), s.squares.size(), 0.0F);
  const int first = std::max(s.first, 0);
  for (std::size_t i = 0; i < now_.planes.size(); ++i) {
    const int channel = static_cast<int>(i);
    for (int y = first; y < last;) {
      const int end = std::min((y / kSquare + 1) * kSquare, last);
      const motion::MotionVector* vectors =
          vectors_.data() + static_cast<std::ptrdiff_t>(y / kSquare) * squares_of(width_);
      move_rows({before_.views[i], y, end - y, vectors, s.moved_row(channel, y), s.stride});
      y = end;
    }
    for (int y = first; y < last; ++y) {
      float* sums = s.squares.data() + (y - s.first) / 2 * cell_stride_;
      add(samples_of(now_.planes[i], y), s.moved_row(channel, y), width_, sums);
      if (y + 1 == height_ && height_ % 2 != 0) {  // half a cell
        add(samples_of(now_.planes[i], y), s.moved_row(channel, y), width_, sums);
      }
    }
  }
}

void TemporalMean::weigh(int band, Scratch& s) const {
  const auto share = HWY_DYNAMIC_DISPATCH(share_row);
  const double code = 1 << (kDepth - 8);
  const double samples = 36.0 * static_cast<double>(now_.planes.size());  // of 3 x 3 cells
  const auto scale = static_cast<float>(1 / (samples * code * code * h_ * h_));
  const auto sums = [&](int row) -> const float* {
    return s.squares.data() + (std::clamp(row, 0, cells_of(height_) - 1) - s.first / 2) * cell_stride_;
  };
  const int first = first_row(band) / 2;
  for (int row = first; row < cells_of(first_row(band + 1)); ++row) {
    share({sums(row - 1), sums(row), sums(row + 1)}, cells_of(width_), scale, s.sums.data() + kRoom,
          s.shares.data() + (row - first) * 2 * cell_stride_);
  }
}

float* TemporalMean::row(int channel, int y, int slot) {
  Scratch& s = scratch_[static_cast<std::size_t>(slot)];
  const Plane& own = now_.planes[static_cast<std::size_t>(channel)];
  if (!has_before_) {
    load_codes(own, 0, y, width_, s.codes.data());
  } else {
    HWY_DYNAMIC_DISPATCH(mix_row)
    (samples_of(own, y), s.moved_row(channel, y), s.shares.data() + y % kBandRows / 2 * 2 * cell_stride_,
     width_, s.codes.data());
  }
  return s.codes.data();
}

}  // namespace nonlocal::network
#endif
