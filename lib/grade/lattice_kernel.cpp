#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "grade/lattice_kernel.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "grade/frame_rows-inl.h"
#include "grade/lattice_kernel.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace nonlocal::grade::HWY_NAMESPACE {

constexpr int kLatticeChunk = 256;

// Where the corners of each pixel's tetrahedron lie in a table, and their weights.
struct Corners {
  HWY_ALIGN std::int32_t first[kLatticeChunk];
  HWY_ALIGN std::int32_t second[kLatticeChunk];
  HWY_ALIGN std::int32_t third[kLatticeChunk];  // the last is at first + a constant
  HWY_ALIGN float weight[4][kLatticeChunk];
};

// A cube of the lattice is split along its diagonal into 6 tetrahedra: from the node before the colour one
// goes along the axis of the largest fraction, then of the middle one, then of the least.
HWY_INLINE void find_corners(const std::array<float*, 3>& level, int count, int n, Corners& to) {
  const V scale = hn::Set(F(), static_cast<float>(n - 1) / 256);
  const V most = hn::Set(F(), 255.999F);
  const V size = hn::Set(F(), static_cast<float>(n));
  // Floats from a node to the next.
  const V step[3] = {hn::Set(F(), static_cast<float>(4 * n * n)), hn::Set(F(), static_cast<float>(4 * n)),
                     hn::Set(F(), 4.0F)};
  const V all = hn::Add(step[0], hn::Add(step[1], step[2]));
  const V one = hn::Set(F(), 1.0F);
  for (int i = 0; i < count; i += kFloatLanes) {
    V whole[3];
    V f[3];
    for (int c = 0; c < 3; ++c) {
      const V clamped = hn::Min(hn::Max(hn::LoadU(F(), level[c] + i), hn::Zero(F())), most);
      const V at = hn::Mul(clamped, scale);
      whole[c] = hn::ConvertTo(F(), hn::ConvertTo(I(), at));
      f[c] = hn::Sub(at, whole[c]);
    }
    const V node = hn::MulAdd(hn::MulAdd(whole[0], size, whole[1]), size, whole[2]);
    const V largest = hn::Max(f[0], hn::Max(f[1], f[2]));
    const V least = hn::Min(f[0], hn::Min(f[1], f[2]));
    const V middle = hn::Sub(hn::Add(f[0], hn::Add(f[1], f[2])), hn::Add(largest, least));
    // Where two are alike, the axes before the others come first.
    const V after = hn::IfThenElse(hn::Ge(f[1], f[2]), step[1], step[2]);
    const V to_second = hn::IfThenElse(hn::Ge(f[0], hn::Max(f[1], f[2])), step[0], after);
    const V before = hn::IfThenElse(hn::Le(f[1], f[0]), step[1], step[0]);
    const V from_third = hn::IfThenElse(hn::Le(f[2], hn::Min(f[0], f[1])), step[2], before);
    const V base = hn::Mul(node, step[2]);
    const auto index = [](V v) HWY_ATTR { return hn::ConvertTo(I(), v); };
    hn::Store(index(base), I(), to.first + i);
    hn::Store(index(hn::Add(base, to_second)), I(), to.second + i);
    hn::Store(index(hn::Add(base, hn::Sub(all, from_third))), I(), to.third + i);
    hn::Store(hn::Sub(one, largest), F(), to.weight[0] + i);
    hn::Store(hn::Sub(largest, middle), F(), to.weight[1] + i);
    hn::Store(hn::Sub(middle, least), F(), to.weight[2] + i);
    hn::Store(least, F(), to.weight[3] + i);
  }
}

// to = w0 a + w1 b + w2 c + w3 d, of four floats each.
HWY_INLINE void add_cells(const float* w, const float* a, const float* b, const float* c, const float* d,
                          float* to) {
#if HWY_TARGET == HWY_SCALAR
  for (int k = 0; k < 4; ++k) {
    to[k] = w[0] * a[k] + w[kLatticeChunk] * b[k] + w[2 * kLatticeChunk] * c[k] + w[3 * kLatticeChunk] * d[k];
  }
#else
  const hn::FixedTag<float, 4> four;
  auto sum = hn::Mul(hn::Set(four, w[0]), hn::Load(four, a));
  sum = hn::MulAdd(hn::Set(four, w[kLatticeChunk]), hn::Load(four, b), sum);
  sum = hn::MulAdd(hn::Set(four, w[2 * kLatticeChunk]), hn::Load(four, c), sum);
  sum = hn::MulAdd(hn::Set(four, w[3 * kLatticeChunk]), hn::Load(four, d), sum);
  hn::Store(sum, four, to);
#endif
}

// The sums of four cells of each table, for each pixel: `to` is tables x kLatticeChunk x 4.
template <int kTables>
HWY_INLINE void look_up(const float* const* tables, int n, const Corners& at, int count, float* to) {
  const ptrdiff_t last = 4 * (static_cast<ptrdiff_t>(n) * n + n + 1);
  for (int i = 0; i < count; ++i) {
    const ptrdiff_t first = at.first[i];
    const ptrdiff_t second = at.second[i];
    const ptrdiff_t third = at.third[i];
    HWY_UNROLL(3)
    for (int t = 0; t < kTables; ++t) {
      const float* table = tables[t];
      add_cells(at.weight[0] + i, table + first, table + second, table + third, table + first + last,
                to + (t * kLatticeChunk + i) * 4);
    }
  }
}

struct LatticeScratch {
  Corners corners;
  HWY_ALIGN float sums[3 * 4 * kLatticeChunk];
  HWY_ALIGN float change[3][kLatticeChunk];
};

std::size_t lattice_scratch_floats() {
  return sizeof(LatticeScratch) / sizeof(float) + rows_floats(2 * kLatticeChunk);
}

class LatticeMapper {
 public:
  static constexpr int kChunk = kLatticeChunk;

  LatticeMapper(const FrameJob& frame, const Table* tables, int count, float* scratch)
      : frame_(frame), tables_(tables), count_(count), s_(*reinterpret_cast<LatticeScratch*>(scratch)) {}

  void map(const std::array<float*, 3>& level, int count, int x, int y, Sampling sampling) {
    // Both tables see the levels as they came.
    for (int i = 0; i < count_; ++i) {
      find_corners(level, count, tables_[i].n, s_.corners);
      if (tables_[i].has_corners) {
        sum_corners(tables_[i], count, x, y, sampling, i == 0);
      } else {
        sum_channels(tables_[i], count, i == 0);
      }
    }
    const int first = sampling == Sampling::kChroma ? 1 : 0;
    const int end = sampling == Sampling::kLuma ? 1 : 3;
    const V strength = hn::Set(F(), frame_.strength);
    for (int c = first; c < end; ++c) {
      for (int i = 0; i < count; i += kFloatLanes) {
        const V change = hn::Load(F(), s_.change[c] + i);
        hn::StoreU(hn::MulAdd(strength, change, hn::LoadU(F(), level[c] + i)), F(), level[c] + i);
      }
    }
  }

 private:
  HWY_INLINE void add(V change, V share, int channel, int i, bool is_first) {
    float* at = s_.change[channel] + i;
    hn::Store(hn::MulAdd(share, change, is_first ? hn::Zero(F()) : hn::Load(F(), at)), F(), at);
  }

  void sum_channels(const Table& table, int count, bool is_first) {
    look_up<1>(&table.cells, table.n, s_.corners, count, s_.sums);
    const V share = hn::Set(F(), table.share);
    for (int i = 0; i < count; i += kFloatLanes) {
      V v[4];
      hn::LoadInterleaved4(F(), s_.sums + 4 * i, v[0], v[1], v[2], v[3]);
      for (int c = 0; c < 3; ++c) {
        add(v[c], share, c, i, is_first);
      }
    }
  }

  void sum_corners(const Table& table, int count, int x, int y, Sampling sampling, bool is_first) {
    const ptrdiff_t size = 4 * lattice_stride(table.n);
    const int channel = sampling == Sampling::kChroma ? 1 : 0;
    const float* cells[3] = {table.cells + channel * size, table.cells + (channel + 1) * size,
                             table.cells + 2 * size};
    int channels = 3;
    if (sampling == Sampling::kLuma) {
      channels = 1;
      look_up<1>(cells, table.n, s_.corners, count, s_.sums);
    } else if (sampling == Sampling::kChroma) {
      channels = 2;
      look_up<2>(cells, table.n, s_.corners, count, s_.sums);
    } else {
      look_up<3>(cells, table.n, s_.corners, count, s_.sums);
    }
    const int which = sampling == Sampling::kChroma ? 1 : 0;
    const V share = hn::Set(F(), table.share);
    const V v = hn::Set(F(), static_cast<float>(y) * table.y_step[which] + table.y_begin[which]);
    const V step = hn::Set(F(), table.x_step[which]);
    const V begin = hn::Set(F(), static_cast<float>(x) * table.x_step[which] + table.x_begin[which]);
    for (int i = 0; i < count; i += kFloatLanes) {
      const V u = hn::MulAdd(hn::Iota(F(), static_cast<float>(i)), step, begin);
      for (int c = 0; c < channels; ++c) {
        V corner[4];
        hn::LoadInterleaved4(F(), s_.sums + 4 * (c * kLatticeChunk + i), corner[0], corner[1], corner[2],
                             corner[3]);
        const V upper = hn::MulAdd(u, hn::Sub(corner[1], corner[0]), corner[0]);
        const V lower = hn::MulAdd(u, hn::Sub(corner[3], corner[2]), corner[2]);
        add(hn::MulAdd(v, hn::Sub(lower, upper), upper), share, channel + c, i, is_first);
      }
    }
  }

  const FrameJob& frame_;
  const Table* tables_;
  int count_;
  LatticeScratch& s_;
};

void lattice_grade(const FrameJob& frame, const Table* tables, int count, const Tile& tile, float* scratch) {
  LatticeMapper mapper(frame, tables, count, scratch);
  grade_tile(frame, tile, mapper,
             make_rows(scratch + sizeof(LatticeScratch) / sizeof(float), 2 * kLatticeChunk));
}

void lattice_interleave(const std::array<const float*, 4>& from, const std::array<const float*, 4>& other,
                        float weight, ptrdiff_t count, float* cells) {
  const V w = hn::Set(F(), weight);
  for (ptrdiff_t i = 0; i < count; i += kFloatLanes) {
    V v[4];
    for (int k = 0; k < 4; ++k) {
      v[k] = from[k] == nullptr ? hn::Zero(F()) : hn::LoadU(F(), from[k] + i);
      if (other[k] != nullptr) {
        v[k] = hn::MulAdd(w, hn::Sub(hn::LoadU(F(), other[k] + i), v[k]), v[k]);
      }
    }
    hn::StoreInterleaved4(v[0], v[1], v[2], v[3], F(), cells + 4 * i);
  }
}

void lattice_weigh(const float* from, ptrdiff_t stride, const float* weights, int rows, ptrdiff_t count,
                   float* to) {
  for (ptrdiff_t i = 0; i < count; i += kFloatLanes) {
    V sum = hn::Zero(F());
    for (int r = 0; r < rows; ++r) {
      sum = hn::MulAdd(hn::Set(F(), weights[r]), hn::LoadU(F(), from + r * stride + i), sum);
    }
    hn::StoreU(sum, F(), to + i);
  }
}

// Keeps track of the least and the largest of rows of levels.
class Range {
 public:
  // Written out: compilers do not build implicit ones for the instruction set.
  Range() : least_(hn::Set(F(), 256.0F)), most_(hn::Zero(F())) {}

  // There is room for a vector beyond `count`.
  void add(float* row, int count) {
    std::fill_n(row + count, kFloatLanes, row[0]);
    for (int i = 0; i < count; i += kFloatLanes) {
      const V v = hn::LoadU(F(), row + i);
      least_ = hn::Min(least_, v);
      most_ = hn::Max(most_, v);
    }
  }
  void add(float level) {
    least_ = hn::Min(least_, hn::Set(F(), level));
    most_ = hn::Max(most_, hn::Set(F(), level));
  }
  [[nodiscard]] float least() const { return hn::GetLane(hn::MinOfLanes(F(), least_)); }
  [[nodiscard]] float most() const { return hn::GetLane(hn::MaxOfLanes(F(), most_)); }

 private:
  V least_;
  V most_;
};

// The least and the largest of the bytes of a part of a plane, or of those nearest to it.
std::pair<int, int> byte_range(const ConstPlane& p, int x, int y, int width, int height) {
  const hn::ScalableTag<std::uint8_t> bytes;
  const int lanes = static_cast<int>(hn::Lanes(bytes));
  const int left = std::clamp(x, 0, p.width - 1);
  const int count = std::clamp(x + width, left + 1, p.width) - left;
  const int top = std::clamp(y, 0, p.height - 1);
  const int bottom = std::clamp(y + height, top + 1, p.height);
  auto least = hn::Set(bytes, 255);
  auto most = hn::Zero(bytes);
  int least_left = 255;  // of rows shorter than a vector
  int most_left = 0;
  for (int row = top; row < bottom; ++row) {
    const auto* from = reinterpret_cast<const std::uint8_t*>(p.row(row)) + left;
    // The last vector overlaps the one before.
    for (int i = 0; count >= lanes && i < count; i += lanes) {
      const auto v = hn::LoadU(bytes, from + std::min(i, count - lanes));
      least = hn::Min(least, v);
      most = hn::Max(most, v);
    }
    for (int i = 0; count < lanes && i < count; ++i) {
      least_left = std::min<int>(least_left, from[i]);
      most_left = std::max<int>(most_left, from[i]);
    }
  }
  HWY_ALIGN std::uint8_t all[2][HWY_MAX_BYTES];
  hn::Store(least, bytes, all[0]);
  hn::Store(most, bytes, all[1]);
  return {std::min<int>(least_left, *std::min_element(all[0], all[0] + lanes)),
          std::max<int>(most_left, *std::max_element(all[1], all[1] + lanes))};
}

LevelRanges lattice_ranges(const FrameJob& frame, const Tile& tile, float* scratch) {
  const Rows r = make_rows(scratch + sizeof(LatticeScratch) / sizeof(float), 2 * kLatticeChunk);
  Range ranges[3];
  const auto add = [&](int plane, int x, int y, int width, int height) HWY_ATTR {
    const ConstPlane& p = frame.in[plane];
    if (p.bit_depth == 8 && p.step == 1) {
      const auto [least, most] = byte_range(p, x, y, width, height);
      const FloatScale& s = frame.in_scale[plane];
      ranges[plane].add(static_cast<float>(least) * s.by + s.plus);
      ranges[plane].add(static_cast<float>(most) * s.by + s.plus);
      return;
    }
    for (int row = y; row < y + height; ++row) {
      for (int i = 0; i < width; i += kLatticeChunk) {
        const int n = std::min(kLatticeChunk, width - i);
        // Beyond the border: interpolation, and the mean of pixels, repeat what is there.
        load_extended(p, x + i, row, n, frame.in_scale[plane], r.level[plane]);
        ranges[plane].add(r.level[plane], n);
      }
    }
  };
  if (frame.is_subsampled()) {
    add(0, tile.x, tile.y, tile.width, tile.height);
    for (int plane = 1; plane < 3; ++plane) {
      add(plane, (tile.x >> frame.half_x) - 1, (tile.y >> frame.half_y) - 1, (tile.width >> frame.half_x) + 3,
          (tile.height >> frame.half_y) + 3);
    }
  } else {
    const Packed layout = packed(frame.in, frame.planes);
    for (int y = tile.y; y < tile.y + tile.height; ++y) {
      for (int i = 0; i < tile.width; i += kLatticeChunk) {
        const int n = std::min(kLatticeChunk, tile.width - i);
        load_pixels(layout, frame, tile.x + i, y, n, r);
        for (int c = 0; c < frame.planes; ++c) {
          ranges[c].add(r.level[c], n);
        }
      }
    }
  }
  LevelRanges all{};
  for (int c = 0; c < 3; ++c) {
    const Range& range = ranges[std::min(c, frame.planes - 1)];
    all.least[c] = range.least();
    all.most[c] = range.most();
  }
  return all;
}

LatticeKernels instruction_set_lattice_kernels() {
  return {&lattice_scratch_floats, &lattice_ranges, &lattice_interleave, &lattice_weigh, &lattice_grade};
}

}  // namespace nonlocal::grade::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nonlocal::grade {

HWY_EXPORT(instruction_set_lattice_kernels);

LatticeKernels lattice_kernels() { return HWY_DYNAMIC_DISPATCH(instruction_set_lattice_kernels)(); }

}  // namespace nonlocal::grade
#endif
