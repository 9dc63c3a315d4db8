// Non-local means, the inner loops over a row of a tile: distances, weights and averages. Included once for
// every instruction set.
#if defined(NONLOCAL_DENOISE_NLM_KERNEL_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef NONLOCAL_DENOISE_NLM_KERNEL_INL_H
#undef NONLOCAL_DENOISE_NLM_KERNEL_INL_H
#else
#define NONLOCAL_DENOISE_NLM_KERNEL_INL_H
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "denoise/nlm_tile.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace nonlocal::denoise::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// ---------------------------------------------------------------------------------------------------------------
// What the inner loops work on

// The four rows of guide samples that move vertical sums of squares one row down: those compared with are
// given for the first of the offsets, which are a column apart.
struct GuideRows {
  const int16_t* entering;
  const int16_t* entering_other;
  const int16_t* leaving;
  const int16_t* leaving_other;
  ptrdiff_t channel_stride;
  int channels;
};

// Rows of what WeightLaw calls bias and root, of pixels and of those they are compared with at the first of
// the offsets.
struct NoiseRows {
  const uint16_t* bias;
  const uint16_t* bias_other;
  const uint16_t* root;
  const uint16_t* root_other;
};

// How a sum becomes an index: noise is the same everywhere, the same and a scale above one, or by pixel.
enum class NoiseForm { kPlain, kMagnified, kByPixel };

// Vertical sums and weights of a row, a map of each for every offset.
struct OffsetMaps {
  int offsets;
  int slots;
  int patch_radius;
  uint16_t* HWY_RESTRICT column;
  uint16_t* HWY_RESTRICT capped;  // for two offsets
  ptrdiff_t capped_stride;
  uint16_t* HWY_RESTRICT weight;
  ptrdiff_t weight_stride;
};

// A row of pixels' neighbours side by side, two at a time: pair k adds
//   first[x + k * weight_step] * v(x) + second[x + k * weight_step] * v(x + 1)
// to each pixel x, where (v(x), v(x + 1)) are the two samples at pairs[2 x + k * pairs_step] on, as
// interleave_pairs arranges them.
struct PairedWeights {
  const uint16_t* first;
  const uint16_t* second;
  ptrdiff_t weight_step;
  const int16_t* pairs;
  ptrdiff_t pairs_step;
  int count;
};

HWY_INLINE ptrdiff_t slots(int n) { return static_cast<ptrdiff_t>(n) * kStrips; }

// Fill `extra` slots before the first, or after the last, of `count` from the strips beside.
template <typename T>
HWY_INLINE void extend_before(T* slots, int count, int extra) {
  const ptrdiff_t back = static_cast<ptrdiff_t>(count) * kStrips - 1;
  for (T* to = slots - kStrips; extra > 0; --extra, to -= kStrips) {
    std::memcpy(to, to + back, kStrips * sizeof(T));
  }
}
template <typename T>
HWY_INLINE void extend_after(T* slots, int count, int extra) {
  const ptrdiff_t back = static_cast<ptrdiff_t>(count) * kStrips - 1;
  for (T* to = slots + back + 1; extra > 0; --extra, to += kStrips) {
    std::memcpy(to, to - back, kStrips * sizeof(T));
  }
}
template <typename T>
HWY_INLINE void extend(T* slots, int count, int extra) {
  extend_before(slots, count, extra);
  extend_after(slots, count, extra);
}

#if HWY_TARGET != HWY_SCALAR

using Du8 = hn::ScalableTag<uint8_t>;
using Du16 = hn::ScalableTag<uint16_t>;
using Di16 = hn::ScalableTag<int16_t>;
using Di32 = hn::ScalableTag<int32_t>;
using Vu8 = hn::Vec<Du8>;
using Vu16 = hn::Vec<Du16>;
using Vi16 = hn::Vec<Di16>;
using Vi32 = hn::Vec<Di32>;

constexpr int kStep = static_cast<int>(hn::MaxLanes(Du16()));
static_assert(kStrips % kStep == 0);

// A value that the compiler knows nothing about: it must be ready in a register where it is made. GCC would
// rearrange what leads to it; clang does not, and takes no vectors this way.
template <class V>
HWY_INLINE V settled(V v) {
#if HWY_ARCH_X86 && !defined(__clang__)
  __asm__("" : "+v"(v.raw));
#endif
  return v;
}

// ---------------------------------------------------------------------------------------------------------------
// What instruction sets do differently

// sum[i] + a[2i] * b[2i] + a[2i + 1] * b[2i + 1]
HWY_INLINE Vi32 add_products(Vi32 sum, Vi16 a, Vi16 b) {
#if HWY_TARGET == HWY_AVX3_DL
  // In assembly because Highway 1.0.3 checks for AVX512_VNNI at run time, but does not tell the compiler.
  __asm__("vpdpwssd %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "vm"(b.raw));
  return sum;
#elif HWY_TARGET == HWY_AVX3
  return hn::Add(sum, Vi32{_mm512_madd_epi16(a.raw, b.raw)});
#elif HWY_TARGET == HWY_AVX2
  return hn::Add(sum, Vi32{_mm256_madd_epi16(a.raw, b.raw)});
#elif HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSSE3
  return hn::Add(sum, Vi32{_mm_madd_epi16(a.raw, b.raw)});
#else
  const Di32 d;
  const auto even = [&](Vi16 v) { return hn::ShiftRight<16>(hn::ShiftLeft<16>(hn::BitCast(d, v))); };
  const auto odd = [&](Vi16 v) { return hn::ShiftRight<16>(hn::BitCast(d, v)); };
  return hn::Add(sum, hn::Add(hn::Mul(even(a), even(b)), hn::Mul(odd(a), odd(b))));
#endif
}

// mantissa[index % 16] << base >> index / 16.
class WeightTable {
 public:
  // An index that the table takes for any index: on AVX-512 shifts by 16 and more give zero.
  static HWY_INLINE Vu16 saturated(Vu16 index) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
    return index;
#else
    return hn::Min(index, hn::Set(Du16(), 255));
#endif
  }

  HWY_INLINE explicit WeightTable(const WeightLaw& law) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
    alignas(64) uint16_t table[32];
    for (int i = 0; i < 32; ++i) {
      table[i] = static_cast<uint16_t>(law.mantissa[i % 16] << law.base);
    }
    mantissa_ = hn::Load(Du16(), table);
#else
    alignas(16) static constexpr uint8_t kPowers[16] = {128, 64, 32, 16, 8, 4, 2, 1};
    mantissa_ = hn::LoadDup128(Du8(), law.mantissa.data());
    powers_ = hn::LoadDup128(Du8(), kPowers);
    shift_ = 7 - law.base;
#endif
  }

  HWY_INLINE Vu16 operator()(Vu16 index) const {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
    const __m512i mantissa = _mm512_permutexvar_epi16(index.raw, mantissa_.raw);  // the index's lower 5 bits
    return Vu16{_mm512_srlv_epi16(mantissa, hn::ShiftRight<4>(index).raw)};
#else
    // Both factors are looked up as bytes, 16 entries a table: mantissa << 8, and 2^(15 - octave) from its
    // upper and lower byte, one of which is zero.
    const Du8 d8;
    const Du16 d16;
    const Vu16 low_nibble = hn::And(index, hn::Set(d16, 15));
    const Vu8 mantissa_index = hn::BitCast(d8, hn::Or(hn::ShiftLeft<8>(low_nibble), hn::Set(d16, 0x80)));
    const Vu16 octave = hn::ShiftRight<4>(index);
    const Vu8 power_index =
        hn::BitCast(d8, hn::Xor(hn::Or(octave, hn::ShiftLeft<8>(octave)), hn::Set(d16, 0x0008)));
    const Vu16 mantissa = hn::BitCast(d16, hn::TableLookupBytesOr0(mantissa_, mantissa_index));
    const Vu16 power = hn::BitCast(d16, hn::TableLookupBytes(powers_, power_index));
    return hn::ShiftRightSame(hn::MulHigh(mantissa, power), shift_);
#endif
  }

 private:
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  Vu16 mantissa_;
#else
  Vu8 mantissa_;
  Vu8 powers_;
  int shift_;
#endif
};

// ---------------------------------------------------------------------------------------------------------------
// Distances and weights

template <SquareForm kForm>
class Square {
 public:
  HWY_INLINE explicit Square(const WeightLaw& law) : clip_(hn::Set(Du16(), law.clip)) {}
  HWY_INLINE Vu16 operator()(const int16_t* a, const int16_t* b) const {
    const Di16 di;
    const Du16 du;
    const Vi16 va = hn::Load(di, a);
    const Vi16 vb = hn::Load(di, b);
    if constexpr (kForm == SquareForm::kWhole) {
      const Vu16 ua = hn::BitCast(du, va);
      const Vu16 ub = hn::BitCast(du, vb);
      const Vu16 d = hn::Min(hn::Sub(hn::Max(ua, ub), hn::Min(ua, ub)), clip_);
      return hn::Mul(d, d);
    } else {
      const Vi16 d = hn::SaturatedSub(va, vb);
      const Vu16 square = hn::BitCast(du, hn::MulFixedPoint15(d, d));
      return kForm == SquareForm::kClipped ? hn::Min(square, clip_) : square;
    }
  }

 private:
  Vu16 clip_;
};

// Moves the vertical sums at `i` one row down: adds the entering row's squares, subtracts the leaving row's.
template <class S>
HWY_INLINE Vu16 moved_down(const S& square, const GuideRows& rows, ptrdiff_t i,
                           uint16_t* HWY_RESTRICT column) {
  const Du16 d;
  const Vu16 change = hn::Sub(square(rows.entering + i, rows.entering_other + i),
                              square(rows.leaving + i, rows.leaving_other + i));
  const Vu16 sum = hn::Add(hn::Load(d, column + i), change);
  hn::Store(sum, d, column + i);
  return sum;
}

template <class S>
HWY_INLINE void move_down(const S& square, const GuideRows& rows, int count, uint16_t* HWY_RESTRICT column) {
  for (int i = 0; i < count; i += kStep) {
    moved_down(square, rows, i, column);
  }
}

HWY_INLINE GuideRows at_offset(GuideRows rows, int offset, int channel) {
  const ptrdiff_t by = channel * rows.channel_stride;
  const ptrdiff_t other = by + static_cast<ptrdiff_t>(offset) * kStrips;
  return {
      rows.entering + by, rows.entering_other + other, rows.leaving + by, rows.leaving_other + other, 0, 1};
}

template <SquareForm kForm>
void move_sums_down(const GuideRows& rows, const WeightLaw& law, const OffsetMaps& maps) {
  const Square<kForm> square(law);
  const int count = maps.slots * kStrips;
  for (int o = 0; o < maps.offsets; ++o) {
    for (int c = 0; c < rows.channels; ++c) {
      move_down(square, at_offset(rows, o, c), count, maps.column + o * count);
    }
  }
}

template <NoiseForm kNoise>
class Weigh {
 public:
  HWY_INLINE Weigh(const WeightLaw& law, const NoiseRows& noise)
      : noise_(noise),
        table_(law),
        bias_(hn::Set(Du16(), law.bias)),
        scale_(hn::Set(Du16(), law.scale)),
        limit_(hn::Set(Du16(), law.limit)),
        shift_(law.magnify_shift) {}

  // The weights of the pixels at i and at i + other.
  HWY_INLINE Vu16 operator()(Vu16 sum, ptrdiff_t i, ptrdiff_t other) const {
    if constexpr (kNoise == NoiseForm::kByPixel) {
      const Du16 d;
      const Vu16 bias = hn::Add(hn::Load(d, noise_.bias + i), hn::Load(d, noise_.bias_other + i + other));
      const Vu16 excess = hn::MulHigh(hn::SaturatedSub(sum, bias), hn::Load(d, noise_.root + i));
      return table_(WeightTable::saturated(hn::MulHigh(excess, hn::Load(d, noise_.root_other + i + other))));
    } else if constexpr (kNoise == NoiseForm::kMagnified) {
      const Vu16 excess = hn::Min(hn::SaturatedSub(sum, bias_), limit_);
      return table_(hn::MulHigh(hn::ShiftLeftSame(excess, shift_), scale_));
    } else {
      return table_(WeightTable::saturated(hn::MulHigh(hn::SaturatedSub(sum, bias_), scale_)));
    }
  }

 private:
  NoiseRows noise_;
  WeightTable table_;
  Vu16 bias_;
  Vu16 scale_;
  Vu16 limit_;
  int shift_;
};

// One offset's maps of a row.
struct OffsetMap {
  uint16_t* HWY_RESTRICT column;
  uint16_t* HWY_RESTRICT capped;
  uint16_t* HWY_RESTRICT weight;
};

HWY_INLINE OffsetMap map_of(const OffsetMaps& maps, int o) {
  return {maps.column + static_cast<ptrdiff_t>(o) * maps.slots * kStrips,
          maps.capped + o % 2 * maps.capped_stride, maps.weight + o * maps.weight_stride};
}

// Where kMove, moves the vertical sums `moved` one row down; where kWeigh, sums `weighed` over a patch's
// width and gives the weights of pixels and of those `other` elements on. Both at once, for they wait for
// different things.
template <bool kMove, bool kWeigh, class S, class W>
HWY_INLINE void move_and_weigh(const S& square, const W& weigh, Vu16 cap, const GuideRows& rows,
                               const OffsetMap& moved, const OffsetMap& weighed, ptrdiff_t other, int slots,
                               int patch_radius) {
  const Du16 d;
  const ptrdiff_t reach = static_cast<ptrdiff_t>(patch_radius) * kStrips;
  const ptrdiff_t count = static_cast<ptrdiff_t>(slots) * kStrips;
  for (int lane = 0; lane < kStrips; lane += kStep) {
    Vu16 sum = hn::Zero(d);
    if constexpr (kWeigh) {
      for (ptrdiff_t i = lane - reach; i <= lane + reach; i += kStrips) {
        sum = hn::Add(sum, hn::Load(d, weighed.capped + i));
      }
    }
    for (ptrdiff_t i = lane; i < lane + count; i += kStrips) {
      if constexpr (kMove) {
        hn::Store(hn::Min(moved_down(square, rows, i, moved.column), cap), d, moved.capped + i);
      }
      if constexpr (kWeigh) {
        hn::Store(weigh(sum, i, other), d, weighed.weight + i);
        // One addition from a sum to the next, for each waits for the one before: GCC would make it two.
        const Vu16 change = settled(hn::Sub(hn::Load(d, weighed.capped + i + reach + kStrips),
                                            hn::Load(d, weighed.capped + i - reach)));
        sum = hn::Add(sum, change);
      }
    }
  }
}

// Moves the vertical sums one row down and gives the weights there.
template <SquareForm kForm, NoiseForm kNoise>
void weights_of_row(const GuideRows& rows, const NoiseRows& noise, const WeightLaw& law,
                    const OffsetMaps& maps) {
  const Square<kForm> square(law);
  const Weigh<kNoise> weigh(law, noise);
  const Vu16 cap = hn::Set(Du16(), law.column_cap);
  const int last = maps.offsets - 1;
  const auto move_other_channels = [&](int o) {
    for (int c = 1; c < rows.channels; ++c) {
      move_down(square, at_offset(rows, o, c), maps.slots * kStrips, map_of(maps, o).column);
    }
  };
  move_other_channels(0);
  move_and_weigh<true, false>(square, weigh, cap, at_offset(rows, 0, 0), map_of(maps, 0), map_of(maps, 0), 0,
                              maps.slots, maps.patch_radius);
  for (int o = 0; o < last; ++o) {
    move_other_channels(o + 1);
    extend(map_of(maps, o).capped, maps.slots, maps.patch_radius);
    move_and_weigh<true, true>(square, weigh, cap, at_offset(rows, o + 1, 0), map_of(maps, o + 1),
                               map_of(maps, o), slots(o), maps.slots, maps.patch_radius);
  }
  extend(map_of(maps, last).capped, maps.slots, maps.patch_radius);
  move_and_weigh<false, true>(square, weigh, cap, rows, map_of(maps, last), map_of(maps, last), slots(last),
                              maps.slots, maps.patch_radius);
}

// ---------------------------------------------------------------------------------------------------------------
// Averages

// A slot of (first, second) for multiplication with weights interleaved likewise: in the lanes' order within
// each block of 128 bits, its lower half and, a vector later, its upper half.
void interleave_pairs(const int16_t* HWY_RESTRICT first, const int16_t* HWY_RESTRICT second,
                      int16_t* HWY_RESTRICT pairs) {
  const Di16 d;
  for (int i = 0; i < kStrips; i += kStep) {
    const Vi16 a = hn::Load(d, first + i);
    const Vi16 b = hn::Load(d, second + i);
    hn::Store(hn::InterleaveLower(d, a, b), d, pairs + 2 * i);
    hn::Store(hn::InterleaveUpper(d, a, b), d, pairs + 2 * i + kStep);
  }
}

// Samples in the order of the sums to that of the lanes.
HWY_INLINE void in_order(const uint16_t* HWY_RESTRICT sample, int samples, uint16_t* HWY_RESTRICT ordered) {
  constexpr int kBlock = 4;
  for (int i = 0; i < samples; i += kStep) {
    for (int b = 0; b < kStep / 2; b += kBlock) {
      std::memcpy(ordered + i + 2 * b, sample + i + b, kBlock * sizeof(uint16_t));
      std::memcpy(ordered + i + 2 * b + kBlock, sample + i + kStep / 2 + b, kBlock * sizeof(uint16_t));
    }
  }
}

constexpr int kTransposed = 8;  // rows and columns at once

HWY_INLINE void transpose_block(const uint16_t* HWY_RESTRICT from, ptrdiff_t from_stride,
                                uint16_t* HWY_RESTRICT to, ptrdiff_t to_stride) {
  const hn::Full128<uint16_t> d;
  hn::Vec<decltype(d)> a[kTransposed];
  hn::Vec<decltype(d)> b[kTransposed];
  for (int i = 0; i < kTransposed; ++i) {
    a[i] = hn::LoadU(d, from + i * from_stride);
  }
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kTransposed / 2; ++i) {
      b[2 * i] = hn::InterleaveLower(d, a[i], a[i + kTransposed / 2]);
      b[2 * i + 1] = hn::InterleaveUpper(d, a[i], a[i + kTransposed / 2]);
    }
    std::copy_n(b, kTransposed, a);
  }
  for (int i = 0; i < kTransposed; ++i) {
    hn::StoreU(a[i], d, to + i * to_stride);
  }
}

// To a register: GCC would load them anew for each use.
HWY_INLINE Vi16 load_weights(const uint16_t* from) {
  return settled(hn::BitCast(Di16(), hn::Load(Du16(), from)));
}

// Adds weights times values, and (where sum_w is given) the weights, over `samples` of a row. Two vectors at
// once, for each sum waits for the one before.
template <bool kWeights>
void accumulate(const PairedWeights& w, int samples, int32_t* HWY_RESTRICT sum_v,
                int32_t* HWY_RESTRICT sum_w) {
  const ptrdiff_t weight_step = w.weight_step;
  const ptrdiff_t pairs_step = w.pairs_step;
  const int count = w.count;
  const Di16 d;
  const Vi16 one = hn::Set(d, 1);
  const Di32 d32;
  constexpr int kHalf = kStep / 2;
  for (int i = 0; i < samples; i += 2 * kStep) {
    const uint16_t* first = w.first + i;
    const uint16_t* second = w.second + i;
    const int16_t* pairs = w.pairs + 2 * i;
    Vi32 v0 = hn::Load(d32, sum_v + i);
    Vi32 v1 = hn::Load(d32, sum_v + i + kHalf);
    Vi32 v2 = hn::Load(d32, sum_v + i + 2 * kHalf);
    Vi32 v3 = hn::Load(d32, sum_v + i + 3 * kHalf);
    Vi32 w0 = v0;
    Vi32 w1 = v0;
    Vi32 w2 = v0;
    Vi32 w3 = v0;
    if constexpr (kWeights) {
      w0 = hn::Load(d32, sum_w + i);
      w1 = hn::Load(d32, sum_w + i + kHalf);
      w2 = hn::Load(d32, sum_w + i + 2 * kHalf);
      w3 = hn::Load(d32, sum_w + i + 3 * kHalf);
    }
    for (int k = 0; k < count; ++k) {
      Vi16 a = load_weights(first);
      Vi16 b = load_weights(second);
      Vi16 lower = hn::InterleaveLower(d, a, b);
      Vi16 upper = hn::InterleaveUpper(d, a, b);
      v0 = add_products(v0, lower, hn::Load(d, pairs));
      v1 = add_products(v1, upper, hn::Load(d, pairs + kStep));
      if constexpr (kWeights) {
        w0 = add_products(w0, lower, one);
        w1 = add_products(w1, upper, one);
      }
      a = load_weights(first + kStep);
      b = load_weights(second + kStep);
      lower = hn::InterleaveLower(d, a, b);
      upper = hn::InterleaveUpper(d, a, b);
      v2 = add_products(v2, lower, hn::Load(d, pairs + 2 * kStep));
      v3 = add_products(v3, upper, hn::Load(d, pairs + 3 * kStep));
      if constexpr (kWeights) {
        w2 = add_products(w2, lower, one);
        w3 = add_products(w3, upper, one);
      }
      first += weight_step;
      second += weight_step;
      pairs += pairs_step;
    }
    hn::Store(v0, d32, sum_v + i);
    hn::Store(v1, d32, sum_v + i + kHalf);
    hn::Store(v2, d32, sum_v + i + 2 * kHalf);
    hn::Store(v3, d32, sum_v + i + 3 * kHalf);
    if constexpr (kWeights) {
      hn::Store(w0, d32, sum_w + i);
      hn::Store(w1, d32, sum_w + i + kHalf);
      hn::Store(w2, d32, sum_w + i + 2 * kHalf);
      hn::Store(w3, d32, sum_w + i + 3 * kHalf);
    }
  }
}

#else  // HWY_SCALAR: a CPU without SSSE3. The same integers in plain loops.

template <SquareForm kForm>
HWY_INLINE uint16_t square(int16_t a, int16_t b, const WeightLaw& law) {
  if constexpr (kForm == SquareForm::kWhole) {
    const int difference = static_cast<uint16_t>(a) - static_cast<uint16_t>(b);
    const int d = std::min<int>(difference < 0 ? -difference : difference, law.clip);
    return static_cast<uint16_t>(d * d);
  } else {
    const int d = std::clamp(a - b, -32768, 32767);
    const int product = (d * d + (1 << 14)) >> 15;
    return static_cast<uint16_t>(kForm == SquareForm::kClipped ? std::min<int>(product, law.clip) : product);
  }
}

template <SquareForm kForm>
void move_sums_down(const GuideRows& rows, const WeightLaw& law, const OffsetMaps& maps) {
  const int count = maps.slots * kStrips;
  for (int o = 0; o < maps.offsets; ++o) {
    uint16_t* HWY_RESTRICT column = maps.column + o * count;
    for (int c = 0; c < rows.channels; ++c) {
      const ptrdiff_t at = c * rows.channel_stride;
      const ptrdiff_t other = at + static_cast<ptrdiff_t>(o) * kStrips;
      for (int i = 0; i < count; ++i) {
        column[i] = static_cast<uint16_t>(
            column[i] + square<kForm>(rows.entering[at + i], rows.entering_other[other + i], law) -
            square<kForm>(rows.leaving[at + i], rows.leaving_other[other + i], law));
      }
    }
  }
}

template <NoiseForm kNoise>
uint32_t weight_index(uint32_t sum, const WeightLaw& law, const NoiseRows& noise, ptrdiff_t i,
                      ptrdiff_t other) {
  if constexpr (kNoise == NoiseForm::kByPixel) {
    const uint32_t bias = noise.bias[i] + noise.bias_other[i + other];
    const uint32_t excess = (sum > bias ? sum - bias : 0) * noise.root[i] >> 16;
    return std::min<uint32_t>(excess * noise.root_other[i + other] >> 16, 255);
  }
  const uint32_t excess = sum > law.bias ? sum - law.bias : 0;
  if constexpr (kNoise == NoiseForm::kMagnified) {
    return (std::min<uint32_t>(excess, law.limit) << law.magnify_shift) * law.scale >> 16;
  }
  return std::min<uint32_t>(excess * law.scale >> 16, 255);
}

template <SquareForm kForm, NoiseForm kNoise>
void weights_of_row(const GuideRows& rows, const NoiseRows& noise, const WeightLaw& law,
                    const OffsetMaps& maps) {
  move_sums_down<kForm>(rows, law, maps);
  const int count = maps.slots * kStrips;
  const ptrdiff_t reach = static_cast<ptrdiff_t>(maps.patch_radius) * kStrips;
  for (int o = 0; o < maps.offsets; ++o) {
    for (int i = 0; i < count; ++i) {
      maps.capped[i] = std::min(maps.column[o * count + i], law.column_cap);
    }
    extend(maps.capped, maps.slots, maps.patch_radius);
    uint16_t* weight = maps.weight + o * maps.weight_stride;
    for (int i = 0; i < count; ++i) {
      uint32_t sum = 0;
      for (ptrdiff_t t = -reach; t <= reach; t += kStrips) {
        sum += maps.capped[i + t];
      }
      const uint32_t index = weight_index<kNoise>(sum, law, noise, i, slots(o));
      weight[i] = static_cast<uint16_t>(law.mantissa[index % 16] << law.base >> index / 16);
    }
  }
}

void interleave_pairs(const int16_t* HWY_RESTRICT first, const int16_t* HWY_RESTRICT second,
                      int16_t* HWY_RESTRICT pairs) {
  for (int i = 0; i < kStrips; ++i) {
    pairs[2 * i] = first[i];
    pairs[2 * i + 1] = second[i];
  }
}

void in_order(const uint16_t* HWY_RESTRICT sample, int samples, uint16_t* HWY_RESTRICT ordered) {
  std::memcpy(ordered, sample, samples * sizeof(uint16_t));
}

constexpr int kTransposed = 1;

HWY_INLINE void transpose_block(const uint16_t* from, ptrdiff_t, uint16_t* to, ptrdiff_t) { *to = *from; }

template <bool kWeights>
void accumulate(const PairedWeights& w, int samples, int32_t* HWY_RESTRICT sum_v,
                int32_t* HWY_RESTRICT sum_w) {
  for (int k = 0; k < w.count; ++k) {
    const uint16_t* HWY_RESTRICT first = w.first + k * w.weight_step;
    const uint16_t* HWY_RESTRICT second = w.second + k * w.weight_step;
    const int16_t* HWY_RESTRICT pairs = w.pairs + k * w.pairs_step;
    for (int i = 0; i < samples; ++i) {
      sum_v[i] += first[i] * pairs[2 * i] + second[i] * pairs[2 * i + 1];
      if constexpr (kWeights) {
        sum_w[i] += first[i] + second[i];
      }
    }
  }
}

#endif  // HWY_SCALAR

// Each sample's own part of its sum: sum = weight * v, in the order of the sums, for the first v of each
// pair.
HWY_INLINE void first_products(const int16_t* HWY_RESTRICT pairs, int samples, int weight,
                               int32_t* HWY_RESTRICT sum) {
  for (int i = 0; i < samples; ++i) {
    sum[i] = weight * pairs[2 * i];
  }
}

// Every step-th slot of `from`, `count` in all.
HWY_INLINE void every_slot(const uint16_t* HWY_RESTRICT from, int step, int count,
                           uint16_t* HWY_RESTRICT to) {
  for (int t = 0; t < count; ++t) {
    std::memcpy(to + slots(t), from + slots(t * step), kStrips * sizeof(uint16_t));
  }
}

}  // namespace nonlocal::denoise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
