#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "denoise/nlm_tile.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.
#include <algorithm>
#include <cmath>

#include "core/mirror.h"
#include "denoise/nlm_tile.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace nonlocal::denoise::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// ---------------------------------------------------------------------------------------------------------------
// What the inner loops work on

// The four rows of guide samples that move vertical sums of squares one row down, for the offsets first_dx to
// last_dx: those compared with are given for dx = 0.
template <typename T>
struct GuideRows {
  const T* entering;
  const T* entering_other;
  const T* leaving;
  const T* leaving_other;
  ptrdiff_t channel_stride;
  int channels;
  int first_dx;
  int last_dx;
};

// Vertical sums and weights of a row, a map of each for every dx.
struct OffsetMaps {
  int columns;
  uint16_t* HWY_RESTRICT column;
  ptrdiff_t column_stride;
  uint16_t* HWY_RESTRICT weight;
  ptrdiff_t weight_stride;
};

// Neighbours side by side, two at a time, of a row of pixels: pair k adds
//   first[x + k * weight_step] * v(x) + second[x + k * weight_step] * v(x + 1)
// to each pixel x, where (v(x), v(x + 1)) are the two samples at pairs[2x + k * pairs_step].
struct PairedWeights {
  const uint16_t* first;
  const uint16_t* second;
  ptrdiff_t weight_step;
  const int16_t* pairs;
  ptrdiff_t pairs_step;
  int count;
};

#if HWY_TARGET != HWY_SCALAR

using Du8 = hn::ScalableTag<uint8_t>;
using Du16 = hn::ScalableTag<uint16_t>;
using Di16 = hn::ScalableTag<int16_t>;
using Di32 = hn::ScalableTag<int32_t>;
using Df32 = hn::ScalableTag<float>;
using Vu8 = hn::Vec<Du8>;
using Vu16 = hn::Vec<Du16>;
using Vi16 = hn::Vec<Di16>;
using Vi32 = hn::Vec<Di32>;

constexpr int kColumnStep = static_cast<int>(hn::MaxLanes(Du8()));

// ---------------------------------------------------------------------------------------------------------------
// What instruction sets do differently

// Two vectors of 16-bit lanes, made by unpacking 8-bit ones: within each block of 128 bits, `lower` has the
// columns 0 to 7 and `upper` 8 to 15 of 16.
struct Columns {
  Vu16 lower;
  Vu16 upper;
};

// The sequence of 128-bit blocks prev, next, less its first block: what follows each block of prev.
HWY_INLINE Vu16 following_blocks(Vu16 prev, Vu16 next) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  return Vu16{_mm512_alignr_epi64(next.raw, prev.raw, 2)};
#elif HWY_TARGET == HWY_AVX2
  return hn::ConcatLowerUpper(Du16(), next, prev);
#else
  static_cast<void>(prev);
  return next;
#endif
}

template <class V>
HWY_INLINE V absolute_difference(V a, V b) {
  return hn::Sub(hn::Max(a, b), hn::Min(a, b));
}

// sums + n² - o², for n, o in 0 .. 127.
HWY_INLINE Columns add_squares(Columns sums, Vu8 n, Vu8 o) {
  const Du8 d8;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX2 || \
    HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSSE3
  const Vu8 minus_o = hn::Sub(hn::Zero(d8), o);
  const Vu8 a = hn::InterleaveLower(d8, n, o);
  const Vu8 b = hn::InterleaveUpper(d8, n, o);
  const Vu8 c = hn::InterleaveLower(d8, n, minus_o);
  const Vu8 d = hn::InterleaveUpper(d8, n, minus_o);
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  sums.lower = hn::Add(sums.lower, Vu16{_mm512_maddubs_epi16(a.raw, c.raw)});
  sums.upper = hn::Add(sums.upper, Vu16{_mm512_maddubs_epi16(b.raw, d.raw)});
#elif HWY_TARGET == HWY_AVX2
  sums.lower = hn::Add(sums.lower, Vu16{_mm256_maddubs_epi16(a.raw, c.raw)});
  sums.upper = hn::Add(sums.upper, Vu16{_mm256_maddubs_epi16(b.raw, d.raw)});
#else
  sums.lower = hn::Add(sums.lower, Vu16{_mm_maddubs_epi16(a.raw, c.raw)});
  sums.upper = hn::Add(sums.upper, Vu16{_mm_maddubs_epi16(b.raw, d.raw)});
#endif
#else
  const Du16 d16;
  const Vu8 zero = hn::Zero(d8);
  const auto square = [&](Vu8 v) { return hn::Mul(hn::BitCast(d16, v), hn::BitCast(d16, v)); };
  sums.lower = hn::Sub(hn::Add(sums.lower, square(hn::InterleaveLower(d8, n, zero))),
                       square(hn::InterleaveLower(d8, o, zero)));
  sums.upper = hn::Sub(hn::Add(sums.upper, square(hn::InterleaveUpper(d8, n, zero))),
                       square(hn::InterleaveUpper(d8, o, zero)));
#endif
  return sums;
}

// Columns from two vectors that have them in their order.
HWY_INLINE Columns arrange(Vu16 first, Vu16 second) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  const __m512i even = _mm512_setr_epi64(0, 1, 4, 5, 8, 9, 12, 13);
  const __m512i odd = _mm512_setr_epi64(2, 3, 6, 7, 10, 11, 14, 15);
  return {Vu16{_mm512_permutex2var_epi64(first.raw, even, second.raw)},
          Vu16{_mm512_permutex2var_epi64(first.raw, odd, second.raw)}};
#elif HWY_TARGET == HWY_AVX2
  const Du16 d;
  return {hn::ConcatLowerLower(d, second, first), hn::ConcatUpperUpper(d, second, first)};
#else
  return {first, second};
#endif
}

// Stores columns in their order.
HWY_INLINE void store_in_order(Columns c, uint16_t* to) {
  const Du16 d;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
  const __m512i second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
  hn::StoreU(Vu16{_mm512_permutex2var_epi64(c.lower.raw, first, c.upper.raw)}, d, to);
  hn::StoreU(Vu16{_mm512_permutex2var_epi64(c.lower.raw, second, c.upper.raw)}, d, to + hn::Lanes(d));
#elif HWY_TARGET == HWY_AVX2
  hn::StoreU(hn::ConcatLowerLower(d, c.upper, c.lower), d, to);
  hn::StoreU(hn::ConcatUpperUpper(d, c.upper, c.lower), d, to + hn::Lanes(d));
#else
  hn::StoreU(c.lower, d, to);
  hn::StoreU(c.upper, d, to + hn::Lanes(d));
#endif
}

// Lanes of a and b in turn: a0 b0 a1 b1 ... in order through `lower`, then `upper`.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void interleave(D d, V a, V b, V& lower, V& upper) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  static_assert(sizeof(hn::TFromD<D>) == 2);
  alignas(64) static constexpr int16_t kFirst[32] = {0,  32, 1,  33, 2,  34, 3,  35, 4,  36, 5,
                                                     37, 6,  38, 7,  39, 8,  40, 9,  41, 10, 42,
                                                     11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
  alignas(64) static constexpr int16_t kSecond[32] = {16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21,
                                                      53, 22, 54, 23, 55, 24, 56, 25, 57, 26, 58,
                                                      27, 59, 28, 60, 29, 61, 30, 62, 31, 63};
  static_cast<void>(d);
  lower = V{_mm512_permutex2var_epi16(a.raw, _mm512_load_si512(kFirst), b.raw)};
  upper = V{_mm512_permutex2var_epi16(a.raw, _mm512_load_si512(kSecond), b.raw)};
#elif HWY_TARGET == HWY_AVX2
  const V l = hn::InterleaveLower(d, a, b);
  const V u = hn::InterleaveUpper(d, a, b);
  lower = hn::ConcatLowerLower(d, u, l);
  upper = hn::ConcatUpperUpper(d, u, l);
#else
  lower = hn::InterleaveLower(d, a, b);
  upper = hn::InterleaveUpper(d, a, b);
#endif
}

// sum[i] += a[2i] * b[2i] + a[2i + 1] * b[2i + 1]
HWY_INLINE void add_products(Vi32& sum, Vi16 a, Vi16 b) {
#if HWY_TARGET == HWY_AVX3_DL
  // In assembly because Highway 1.0.3 checks for AVX512_VNNI at run time, but does not tell the compiler.
  __asm__("vpdpwssd %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "vm"(b.raw));
#elif HWY_TARGET == HWY_AVX3
  sum = hn::Add(sum, Vi32{_mm512_madd_epi16(a.raw, b.raw)});
#elif HWY_TARGET == HWY_AVX2
  sum = hn::Add(sum, Vi32{_mm256_madd_epi16(a.raw, b.raw)});
#elif HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSSE3
  sum = hn::Add(sum, Vi32{_mm_madd_epi16(a.raw, b.raw)});
#else
  const Di32 d;
  const auto even = [&](Vi16 v) { return hn::ShiftRight<16>(hn::ShiftLeft<16>(hn::BitCast(d, v))); };
  const auto odd = [&](Vi16 v) { return hn::ShiftRight<16>(hn::BitCast(d, v)); };
  sum = hn::Add(sum, hn::Add(hn::Mul(even(a), even(b)), hn::Mul(odd(a), odd(b))));
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
// Horizontal sums

// Lanes `kBy` further right in a sequence of blocks.
template <int kBy>
HWY_INLINE Vu16 shifted(const Vu16* block) {
  static_assert(kBy >= 0);
  constexpr int kSkip = kBy / 8;
  constexpr int kLanes = kBy % 8;
  if constexpr (kLanes == 0) {
    return block[kSkip];
  } else {
    return hn::CombineShiftRightBytes<2 * kLanes>(Du16(), block[kSkip + 1], block[kSkip]);
  }
}

// Column c of the result: the sum of the kTaps columns from c on, saturated. By doubling: sums of 2, 4, 8
// columns, of which the bits of kTaps pick.
template <int kTaps>
HWY_INLINE Columns horizontal_sums(Columns now, Columns next) {
  if constexpr (kTaps == 1) {
    return now;
  } else {
    const Vu16 follow = following_blocks(now.lower, next.lower);
    const Vu16 s1[4] = {now.lower, now.upper, follow,
                        kTaps > 8 ? following_blocks(now.upper, next.upper) : follow};
    Vu16 s2[4];
    Vu16 s4[3];
    Vu16 s8[2];
    for (int i = 0; i < (kTaps > 8 ? 4 : kTaps > 3 ? 3 : 2); ++i) {
      const Vu16 pair[2] = {s1[i], s1[i < 3 ? i + 1 : 3]};  // past the end lanes are wrong that nobody takes
      s2[i] = hn::SaturatedAdd(s1[i], shifted<1>(pair));
    }
    if constexpr (kTaps >= 4) {
      for (int i = 0; i < (kTaps > 8 ? 3 : 2); ++i) {
        s4[i] = hn::SaturatedAdd(s2[i], shifted<2>(s2 + i));
      }
    }
    if constexpr (kTaps >= 8) {
      for (int i = 0; i < 2; ++i) {
        s8[i] = hn::SaturatedAdd(s4[i], shifted<4>(s4 + i));
      }
    }
    Vu16 sum[2];
    for (int i = 0; i < 2; ++i) {
      constexpr int kAfter8 = kTaps & 8;
      constexpr int kAfter4 = kTaps & 12;
      constexpr int kAfter2 = kTaps & 14;
      if constexpr (kTaps & 8) {
        sum[i] = s8[i];
        if constexpr (kTaps & 4) {
          sum[i] = hn::SaturatedAdd(sum[i], shifted<kAfter8>(s4 + i));
        }
        if constexpr (kTaps & 2) {
          sum[i] = hn::SaturatedAdd(sum[i], shifted<kAfter4>(s2 + i));
        }
      } else if constexpr (kTaps & 4) {
        sum[i] = s4[i];
        if constexpr (kTaps & 2) {
          sum[i] = hn::SaturatedAdd(sum[i], shifted<kAfter4>(s2 + i));
        }
      } else {
        sum[i] = s2[i];
      }
      sum[i] = hn::SaturatedAdd(sum[i], shifted<kAfter2>(s1 + i));
    }
    return {sum[0], sum[1]};
  }
}

// ---------------------------------------------------------------------------------------------------------------
// Distances and weights

// Moves vertical sums of squares one row down: adds the entering row's, subtracts the leaving row's.

// Bytes, squares not shifted.
class MoveBytes {
 public:
  using Sample = uint8_t;
  static constexpr bool kInOrder = false;
  HWY_INLINE explicit MoveBytes(const WeightLaw& law) : clip_(hn::Set(Du8(), law.clip)) {}
  HWY_INLINE Columns operator()(Columns sums, const GuideRows<uint8_t>& rows, ptrdiff_t x,
                                ptrdiff_t dx) const {
    return add_squares(sums, difference(rows.entering + x, rows.entering_other + x + dx),
                       difference(rows.leaving + x, rows.leaving_other + x + dx));
  }

 private:
  HWY_INLINE Vu8 difference(const uint8_t* a, const uint8_t* b) const {
    return hn::Min(absolute_difference(hn::LoadU(Du8(), a), hn::LoadU(Du8(), b)), clip_);
  }
  Vu8 clip_;
};

// Bytes, not clipped, squares shifted.
class MoveBytesShifted {
 public:
  using Sample = uint8_t;
  static constexpr bool kInOrder = false;
  HWY_INLINE explicit MoveBytesShifted(const WeightLaw& law) : shift_(law.square_shift) {}
  HWY_INLINE Columns operator()(Columns sums, const GuideRows<uint8_t>& rows, ptrdiff_t x,
                                ptrdiff_t dx) const {
    const Columns in = squares(rows.entering + x, rows.entering_other + x + dx);
    const Columns out = squares(rows.leaving + x, rows.leaving_other + x + dx);
    return {hn::Add(sums.lower, hn::Sub(in.lower, out.lower)),
            hn::Add(sums.upper, hn::Sub(in.upper, out.upper))};
  }

 private:
  HWY_INLINE Columns squares(const uint8_t* a, const uint8_t* b) const {
    const Du8 d8;
    const Du16 d16;
    const Vu8 e = absolute_difference(hn::LoadU(d8, a), hn::LoadU(d8, b));
    const Vu16 lower = hn::BitCast(d16, hn::InterleaveLower(d8, e, hn::Zero(d8)));
    const Vu16 upper = hn::BitCast(d16, hn::InterleaveUpper(d8, e, hn::Zero(d8)));
    return {hn::ShiftRightSame(hn::Mul(lower, lower), shift_),
            hn::ShiftRightSame(hn::Mul(upper, upper), shift_)};
  }
  int shift_;
};

// 16-bit samples.
class MoveWords {
 public:
  using Sample = uint16_t;
  static constexpr bool kInOrder = true;
  HWY_INLINE explicit MoveWords(const WeightLaw& law)
      : clip_(hn::Set(Du16(), law.clip)), shift_(law.square_shift) {}
  HWY_INLINE Columns operator()(Columns sums, const GuideRows<uint16_t>& rows, ptrdiff_t x,
                                ptrdiff_t dx) const {
    const ptrdiff_t next = x + static_cast<ptrdiff_t>(hn::Lanes(Du16()));
    return {moved(sums.lower, rows, x, dx), moved(sums.upper, rows, next, dx)};
  }

 private:
  HWY_INLINE Vu16 moved(Vu16 sum, const GuideRows<uint16_t>& rows, ptrdiff_t x, ptrdiff_t dx) const {
    return hn::Add(sum, hn::Sub(square(rows.entering + x, rows.entering_other + x + dx),
                                square(rows.leaving + x, rows.leaving_other + x + dx)));
  }
  HWY_INLINE Vu16 square(const uint16_t* a, const uint16_t* b) const {
    const Vu16 e = hn::Min(absolute_difference(hn::LoadU(Du16(), a), hn::LoadU(Du16(), b)), clip_);
    return hn::ShiftRightSame(hn::Mul(e, e), shift_);
  }
  Vu16 clip_;
  int shift_;
};

template <class Move>
HWY_INLINE Columns advance(const Move& move, const GuideRows<typename Move::Sample>& rows, int dx, int x,
                           uint16_t* HWY_RESTRICT column) {
  const Du16 d;
  constexpr int half = kColumnStep / 2;
  Columns sums = {hn::Load(d, column + x), hn::Load(d, column + x + half)};
  sums = move(sums, rows, x, dx);
  for (int c = 1; c < rows.channels; ++c) {
    sums = move(sums, rows, c * rows.channel_stride + x, dx);
  }
  hn::Store(sums.lower, d, column + x);
  hn::Store(sums.upper, d, column + x + half);
  return Move::kInOrder ? arrange(sums.lower, sums.upper) : sums;
}

// Moves the sums alone, for the rows before the first that has a whole patch.
template <class Move>
void move_sums_down(GuideRows<typename Move::Sample> rows, const WeightLaw& law, OffsetMaps maps) {
  const Move move(law);
  for (int dx = rows.first_dx; dx <= rows.last_dx; ++dx, maps.column += maps.column_stride) {
    for (int x = 0; x < maps.columns; x += kColumnStep) {
      advance(move, rows, dx, x, maps.column);
    }
  }
}

template <bool kMagnify>
class Weigh {
 public:
  HWY_INLINE explicit Weigh(const WeightLaw& law)
      : table_(law),
        bias_(hn::Set(Du16(), law.bias)),
        scale_(hn::Set(Du16(), law.scale)),
        limit_(hn::Set(Du16(), law.limit)),
        shift_(law.magnify_shift) {}

  HWY_INLINE Vu16 operator()(Vu16 sum) const {
    const Vu16 excess = hn::SaturatedSub(sum, bias_);
    if constexpr (kMagnify) {
      return table_(hn::MulHigh(hn::ShiftLeftSame(hn::Min(excess, limit_), shift_), scale_));
    } else {
      return table_(WeightTable::saturated(hn::MulHigh(excess, scale_)));
    }
  }

 private:
  WeightTable table_;
  Vu16 bias_;
  Vu16 scale_;
  Vu16 limit_;
  int shift_;
};

// Moves the vertical sums one row down and gives the weights there.
template <class Move, int kTaps, bool kMagnify>
void weights_of_row(GuideRows<typename Move::Sample> rows, const WeightLaw& law, OffsetMaps maps) {
  const Move move(law);
  const Weigh<kMagnify> weigh(law);
  for (int dx = rows.first_dx; dx <= rows.last_dx; ++dx) {
    Columns now = advance(move, rows, dx, 0, maps.column);
    for (int x = 0; x < maps.columns; x += kColumnStep) {
      Columns next = {hn::Zero(Du16()), hn::Zero(Du16())};
      if (x + kColumnStep < maps.columns) {
        next = advance(move, rows, dx, x + kColumnStep, maps.column);
      }
      const Columns sum = horizontal_sums<kTaps>(now, next);
      store_in_order({weigh(sum.lower), weigh(sum.upper)}, maps.weight + x);
      now = next;
    }
    maps.column += maps.column_stride;
    maps.weight += maps.weight_stride;
  }
}

// ---------------------------------------------------------------------------------------------------------------
// Averages

// (v[x], v[x + 1]) for each x.
void make_pairs(const int16_t* HWY_RESTRICT value, int columns, int16_t* HWY_RESTRICT pairs) {
  const Di16 d;
  const int step = static_cast<int>(hn::Lanes(d));
  for (int x = 0; x < columns; x += step) {
    Vi16 lower;
    Vi16 upper;
    interleave(d, hn::Load(d, value + x), hn::LoadU(d, value + x + 1), lower, upper);
    hn::Store(lower, d, pairs + 2 * x);
    hn::Store(upper, d, pairs + 2 * x + step);
  }
}

// Loads into a register: GCC would load anew for each use, and unaligned loads are what this loop waits for.
HWY_INLINE Vi16 load_once(const uint16_t* from) {
  Vi16 v = hn::BitCast(Di16(), hn::LoadU(Du16(), from));
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  __asm__("" : "+v"(v.raw));
#endif
  return v;
}

// Adds weights times values, and (where sum_w is given) the weights, over a row of the tile.
template <bool kWeights>
void accumulate(const PairedWeights& w, int width, int32_t* HWY_RESTRICT sum_v, int32_t* HWY_RESTRICT sum_w) {
  const Di16 d16;
  const Di32 d32;
  const int step = static_cast<int>(hn::Lanes(d16));
  const int half = step / 2;
  const Vi16 one = hn::Set(d16, 1);
  for (int x = 0; x < width; x += step) {
    Vi32 v0 = hn::Load(d32, sum_v + x);
    Vi32 v1 = hn::Load(d32, sum_v + x + half);
    Vi32 w0 = hn::Zero(d32);
    Vi32 w1 = hn::Zero(d32);
    if constexpr (kWeights) {
      w0 = hn::Load(d32, sum_w + x);
      w1 = hn::Load(d32, sum_w + x + half);
    }
    const uint16_t* first = w.first + x;
    const uint16_t* second = w.second + x;
    const int16_t* pairs = w.pairs + 2 * x;
    for (int k = 0; k < w.count; ++k) {
      Vi16 lower;
      Vi16 upper;
      interleave(d16, load_once(first), load_once(second), lower, upper);
      add_products(v0, lower, hn::LoadU(d16, pairs));
      add_products(v1, upper, hn::LoadU(d16, pairs + step));
      if constexpr (kWeights) {
        add_products(w0, lower, one);
        add_products(w1, upper, one);
      }
      first += w.weight_step;
      second += w.weight_step;
      pairs += w.pairs_step;
    }
    hn::Store(v0, d32, sum_v + x);
    hn::Store(v1, d32, sum_v + x + half);
    if constexpr (kWeights) {
      hn::Store(w0, d32, sum_w + x);
      hn::Store(w1, d32, sum_w + x + half);
    }
  }
}

// sum_v / sum_w for a row, as floating-point sample values.
void divide_row(const int32_t* HWY_RESTRICT sum_v, const int32_t* HWY_RESTRICT sum_w, int width, float middle,
                float* HWY_RESTRICT out) {
  const Di32 d32;
  const Df32 df;
  for (int x = 0; x < width; x += static_cast<int>(hn::Lanes(d32))) {
    const auto v = hn::ConvertTo(df, hn::Load(d32, sum_v + x));
    const auto w = hn::ConvertTo(df, hn::Load(d32, sum_w + x));
    hn::StoreU(hn::Add(hn::Div(v, w), hn::Set(df, middle)), df, out + x);
  }
}

#else  // HWY_SCALAR: a CPU without SSSE3. The same integers in plain loops.

constexpr int kColumnStep = 1;

template <typename T>
struct Move {
  using Sample = T;
};
using MoveBytes = Move<uint8_t>;
using MoveBytesShifted = Move<uint8_t>;
using MoveWords = Move<uint16_t>;

template <typename T>
void move_map_down(const GuideRows<T>& rows, int dx, const WeightLaw& law, int columns,
                   uint16_t* HWY_RESTRICT column) {
  const auto square = [&law](int a, int b) {
    const int d = std::min<int>(a > b ? a - b : b - a, law.clip);
    return d * d >> law.square_shift;
  };
  for (int c = 0; c < rows.channels; ++c) {
    const ptrdiff_t at = c * rows.channel_stride;
    for (int x = 0; x < columns; ++x) {
      const int entering = square(rows.entering[at + x], rows.entering_other[at + x + dx]);
      const int leaving = square(rows.leaving[at + x], rows.leaving_other[at + x + dx]);
      column[x] = static_cast<uint16_t>(column[x] + entering - leaving);
    }
  }
}

template <class Move>
void move_sums_down(GuideRows<typename Move::Sample> rows, const WeightLaw& law, OffsetMaps maps) {
  for (int dx = rows.first_dx; dx <= rows.last_dx; ++dx, maps.column += maps.column_stride) {
    move_map_down(rows, dx, law, maps.columns, maps.column);
  }
}

uint32_t weight_index(uint32_t sum, const WeightLaw& law, bool magnify) {
  const uint32_t excess = sum > law.bias ? sum - law.bias : 0;
  if (magnify) {
    return (std::min<uint32_t>(excess, law.limit) << law.magnify_shift) * law.scale >> 16;
  }
  return std::min<uint32_t>(excess * law.scale >> 16, 255);
}

template <class Move, int kTaps, bool kMagnify>
void weights_of_row(GuideRows<typename Move::Sample> rows, const WeightLaw& law, OffsetMaps maps) {
  for (int dx = rows.first_dx; dx <= rows.last_dx; ++dx) {
    move_map_down(rows, dx, law, maps.columns, maps.column);
    for (int x = 0; x <= maps.columns - kTaps; ++x) {
      uint32_t sum = 0;
      for (int i = 0; i < kTaps; ++i) {
        sum += maps.column[x + i];
      }
      const uint32_t index = weight_index(std::min<uint32_t>(sum, 65535), law, kMagnify);
      maps.weight[x] = static_cast<uint16_t>(law.mantissa[index % 16] << law.base >> index / 16);
    }
    maps.column += maps.column_stride;
    maps.weight += maps.weight_stride;
  }
}

void make_pairs(const int16_t* HWY_RESTRICT value, int columns, int16_t* HWY_RESTRICT pairs) {
  for (int x = 0; x < columns; ++x) {
    pairs[2 * x] = value[x];
    pairs[2 * x + 1] = value[x + 1];
  }
}

template <bool kWeights>
void accumulate(const PairedWeights& w, int width, int32_t* HWY_RESTRICT sum_v, int32_t* HWY_RESTRICT sum_w) {
  for (int k = 0; k < w.count; ++k) {
    const uint16_t* HWY_RESTRICT first = w.first + k * w.weight_step;
    const uint16_t* HWY_RESTRICT second = w.second + k * w.weight_step;
    const int16_t* HWY_RESTRICT pairs = w.pairs + k * w.pairs_step;
    for (int x = 0; x < width; ++x) {
      sum_v[x] += first[x] * pairs[2 * x] + second[x] * pairs[2 * x + 1];
      if constexpr (kWeights) {
        sum_w[x] += first[x] + second[x];
      }
    }
  }
}

void divide_row(const int32_t* HWY_RESTRICT sum_v, const int32_t* HWY_RESTRICT sum_w, int width, float middle,
                float* HWY_RESTRICT out) {
  for (int x = 0; x < width; ++x) {
    out[x] = static_cast<float>(sum_v[x]) / static_cast<float>(sum_w[x]) + middle;
  }
}

#endif  // HWY_SCALAR

// ---------------------------------------------------------------------------------------------------------------
// In and out of the planes

template <typename T>
void read_row(const T* row, int step, int shift, int plane_width, int x, int count, int32_t* line) {
  const int left = std::clamp(-x, 0, count);
  const int right = std::clamp(plane_width - x, left, count);
  for (int i = 0; i < left; ++i) {
    line[i] = row[mirror(x + i, plane_width) * step] >> shift;
  }
  const T* from = row + static_cast<ptrdiff_t>(x) * step;
  if (step == 1) {
    for (int i = left; i < right; ++i) {
      line[i] = from[i] >> shift;
    }
  } else {
    for (int i = left; i < right; ++i) {
      line[i] = from[static_cast<ptrdiff_t>(i) * step] >> shift;
    }
  }
  for (int i = right; i < count; ++i) {
    line[i] = row[mirror(x + i, plane_width) * step] >> shift;
  }
}

template <typename T>
void guide_row(const int32_t* HWY_RESTRICT line, int count, float scale, T* HWY_RESTRICT guide) {
  for (int i = 0; i < count; ++i) {
    guide[i] = static_cast<T>(static_cast<int>(static_cast<float>(line[i]) * scale + 0.5F));
  }
}

void value_row(const int32_t* HWY_RESTRICT line, int count, int shift, int mask, int middle,
               int16_t* HWY_RESTRICT value) {
  for (int i = 0; i < count; ++i) {
    value[i] = static_cast<int16_t>(((line[i] >> shift) & mask) - middle);
  }
}

// A sample as the sums' integers: whole, or its upper and lower byte.
struct SampleForm {
  explicit SampleForm(const WeightLaw& law, int bit_depth)
      : split(law.split_values), low_bits(split ? 8 : 0), middle(split ? 128 : 1 << (bit_depth - 1)) {}
  bool split;
  int low_bits;
  int middle;  // subtracted
  // Upper bytes of less than 8 bits are off-centre, which costs nothing.
};

void load_tile(const NlmFrame& frame, const Tile& tile, const TileLayout& l, TileScratch& s) {
  const int halo = frame.patch_radius + frame.search_radius;
  const int columns = tile.width + 2 * halo;
  const int rows = tile.height + 2 * halo;
  const int bit_depth = frame.in[0].bit_depth;
  const float scale = std::ldexp(frame.law.guide_scale, 8 - bit_depth);
  const SampleForm form(frame.law, bit_depth);
  for (int c = 0; c < l.channels; ++c) {
    const ConstPlane& p = frame.in[c];
    for (int r = 0; r < rows; ++r) {
      const std::byte* row = p.row(mirror(tile.y - halo + r, p.height));
      int32_t* line = s.line.data();
      if (bit_depth > 8) {
        read_row(reinterpret_cast<const uint16_t*>(row), p.step, p.shift, p.width, tile.x - halo, columns,
                 line);
      } else {
        read_row(reinterpret_cast<const uint8_t*>(row), p.step, p.shift, p.width, tile.x - halo, columns,
                 line);
      }
      const ptrdiff_t at = static_cast<ptrdiff_t>(c) * (l.rows + 1) + r;
      if (l.deep) {
        guide_row(line, columns, scale, s.guide16.data() + at * l.guide_stride + l.margin);
      } else {
        guide_row(line, columns, scale, s.guide.data() + at * l.guide_stride + l.margin);
      }
      // Values are counted from x - search_radius on, like weights.
      line += frame.patch_radius;
      const int count = columns - 2 * frame.patch_radius;
      const auto store_pairs = [&](int value, int low_bits, int mask) {
        value_row(line, count, low_bits, mask, form.middle, s.value.data());
        int16_t* pairs =
            s.pairs.data() + (static_cast<ptrdiff_t>(value) * l.rows + r) * l.pair_stride + l.pair_lead;
        make_pairs(s.value.data(), l.value_columns, pairs);
        pairs[-1] = s.value.data()[0];  // an odd offset's partner reaches the pair before the first
      };
      store_pairs(c, form.low_bits, 0xFFFF);
      if (form.split) {
        store_pairs(l.channels + c, 0, 0xFF);
      }
    }
  }
}

template <typename T>
void write_row(const float* HWY_RESTRICT line, int width, int most, int step, int shift, T* row) {
  for (int x = 0; x < width; ++x) {
    const int value = std::clamp(static_cast<int>(line[x] + 0.5F), 0, most);
    row[static_cast<ptrdiff_t>(x) * step] = static_cast<T>(value << shift);
  }
}

void store_tile(const NlmFrame& frame, const Tile& tile, const TileLayout& l, TileScratch& s) {
  const int bit_depth = frame.in[0].bit_depth;
  const SampleForm form(frame.law, bit_depth);
  const int most = (1 << bit_depth) - 1;
  const ptrdiff_t plane_sums = static_cast<ptrdiff_t>(l.tile_height) * l.sum_stride;
  auto* line = reinterpret_cast<float*>(s.line.data());
  float* low_line = line + l.sum_stride;
  for (int c = 0; c < l.channels; ++c) {
    const Plane& p = frame.out[c];
    for (int r = 0; r < tile.height; ++r) {
      const int32_t* sum_w = s.sum.data() + static_cast<ptrdiff_t>(r) * l.sum_stride;
      divide_row(sum_w + (1 + c) * plane_sums, sum_w, tile.width, static_cast<float>(form.middle), line);
      if (form.split) {
        divide_row(sum_w + (1 + l.channels + c) * plane_sums, sum_w, tile.width,
                   static_cast<float>(form.middle), low_line);
        for (int x = 0; x < tile.width; ++x) {
          line[x] = line[x] * 256 + low_line[x];
        }
      }
      std::byte* row = p.row(tile.y + r) + static_cast<ptrdiff_t>(tile.x) * p.step * p.bytes_per_sample();
      if (bit_depth > 8) {
        write_row(line, tile.width, most, p.step, p.shift, reinterpret_cast<uint16_t*>(row));
      } else {
        write_row(line, tile.width, most, p.step, p.shift, reinterpret_cast<uint8_t*>(row));
      }
    }
  }
}

// ---------------------------------------------------------------------------------------------------------------
// The tile

template <class Move>
using WeightsOfRow = void (*)(GuideRows<typename Move::Sample>, const WeightLaw&, OffsetMaps);

template <class Move, bool kMagnify>
WeightsOfRow<Move> weights_of_row_for(int patch_radius) {
  switch (patch_radius) {
    case 0:
      return &weights_of_row<Move, 1, kMagnify>;
    case 1:
      return &weights_of_row<Move, 3, kMagnify>;
    case 2:
      return &weights_of_row<Move, 5, kMagnify>;
    case 3:
      return &weights_of_row<Move, 7, kMagnify>;
    case 4:
      return &weights_of_row<Move, 9, kMagnify>;
    case 5:
      return &weights_of_row<Move, 11, kMagnify>;
    case 6:
      return &weights_of_row<Move, 13, kMagnify>;
    default:
      return &weights_of_row<Move, 15, kMagnify>;
  }
}

template <class Move>
class TileFilter {
 public:
  using Sample = typename Move::Sample;

  TileFilter(const NlmFrame& frame, const Tile& tile, const TileLayout& layout, TileScratch& scratch)
      : frame_(frame),
        tile_(tile),
        l_(layout),
        s_(scratch),
        radius_(frame.search_radius),
        halo_(frame.search_radius + frame.patch_radius),
        weights_of_row_(frame.law.magnify ? weights_of_row_for<Move, true>(frame.patch_radius)
                                          : weights_of_row_for<Move, false>(frame.patch_radius)) {
    columns_ = (tile.width + 2 * halo_ + kColumnStep - 1) / kColumnStep * kColumnStep;
  }

  void run() {
    load_tile(frame_, tile_, l_, s_);
    start_with_centre();
    for (int dy = 0; dy <= radius_; ++dy) {
      filter_offset_row(dy);
    }
    store_tile(frame_, tile_, l_, s_);
  }

 private:
  int32_t* sums(int which, int y) {
    return s_.sum.data() + (static_cast<ptrdiff_t>(which) * l_.tile_height + y) * l_.sum_stride;
  }
  const int16_t* pairs(int value, int y) {  // y in the tile, or up to search_radius above and below
    return s_.pairs.data() + (static_cast<ptrdiff_t>(value) * l_.rows + y + halo_) * l_.pair_stride +
           l_.pair_lead;
  }
  const Sample* guide(int y) { return guide_row_at(y + halo_); }
  const Sample* blank() { return guide_row_at(l_.rows); }
  const Sample* guide_row_at(int row) {
    const ptrdiff_t at = static_cast<ptrdiff_t>(row) * l_.guide_stride + l_.margin;
    if constexpr (sizeof(Sample) == 2) {
      return s_.guide16.data() + at;
    } else {
      return s_.guide.data() + at;
    }
  }

  void start_with_centre() {
    const int centre = frame_.law.centre_weight();
    for (int y = 0; y < tile_.height; ++y) {
      std::fill_n(sums(0, y), l_.sum_stride, centre);
      for (int v = 0; v < l_.values; ++v) {
        const int16_t* value = pairs(v, y) + 2 * static_cast<ptrdiff_t>(radius_);
        int32_t* sum = sums(1 + v, y);
        for (int x = 0; x < tile_.width; ++x) {
          sum[x] = centre * value[2 * x];
        }
      }
    }
  }

  // The offsets (dx, dy) of one dy: all dx for dy > 0, dx > 0 for dy = 0. w(x, x + o) is made once and serves
  // both pixels: that at x for its neighbour below, and the one below for its neighbour above.
  void filter_offset_row(int dy) {
    const int first_dx = dy > 0 ? -radius_ : 1;
    const int p = frame_.patch_radius;
    const int first = -dy;
    std::fill_n(s_.column.data(), static_cast<size_t>(l_.offsets) * l_.columns, 0);
    const OffsetMaps maps = {columns_, s_.column.data(), l_.columns, weight(0), l_.weight_stride};
    for (int y = first - 2 * p; y < tile_.height; ++y) {
      // Row y + p enters the patches around row y; none leaves while the first of them fills.
      const bool leaves = y > first;
      const GuideRows<Sample> rows = {guide(y + p),
                                      guide(y + p + dy),
                                      leaves ? guide(y - p - 1) : blank(),
                                      leaves ? guide(y - p - 1 + dy) : blank(),
                                      static_cast<ptrdiff_t>(l_.rows + 1) * l_.guide_stride,
                                      l_.channels,
                                      first_dx,
                                      radius_};
      if (y < first) {
        move_sums_down<Move>(rows, frame_.law, maps);
      } else {
        weights_of_row_(rows, frame_.law, maps);
        average_row(y, dy, first_dx);
      }
    }
  }

  uint16_t* weight(int i) {
    return s_.weight.data() + l_.weight_lead + static_cast<ptrdiff_t>(i) * l_.weight_stride;
  }

  void average_row(int y, int dy, int first_dx) {
    const int offsets = radius_ - first_dx + 1;
    const int count = (offsets + 1) / 2;
    if (offsets % 2 != 0) {  // the last one's partner has no weight
      std::fill_n(weight(offsets), l_.weight_stride, 0);
    }
    for (int v = 0; v < l_.values; ++v) {
      if (y >= 0) {
        const PairedWeights below = {weight(0) + radius_,
                                     weight(1) + radius_,
                                     2 * static_cast<ptrdiff_t>(l_.weight_stride),
                                     pairs(v, y + dy) + 2 * (radius_ + first_dx),
                                     4,
                                     count};
        add(below, v, y);
      }
      if (y + dy < tile_.height) {
        const PairedWeights above = {weight(1) + radius_ - first_dx - 1,
                                     weight(0) + radius_ - first_dx,
                                     2 * static_cast<ptrdiff_t>(l_.weight_stride) - 2,
                                     pairs(v, y) + 2 * (radius_ - first_dx - 1),
                                     -4,
                                     count};
        add(above, v, y + dy);
      }
    }
  }

  void add(const PairedWeights& w, int v, int y) {
    if (v == 0) {
      accumulate<true>(w, tile_.width, sums(1, y), sums(0, y));
    } else {
      accumulate<false>(w, tile_.width, sums(1 + v, y), nullptr);
    }
  }

  const NlmFrame& frame_;
  const Tile& tile_;
  const TileLayout& l_;
  TileScratch& s_;
  int radius_;
  int halo_;
  int columns_;
  WeightsOfRow<Move> weights_of_row_;
};

void filter_tile(const NlmFrame& frame, const Tile& tile, const TileLayout& layout, TileScratch& scratch) {
  if (layout.deep) {
    TileFilter<MoveWords>(frame, tile, layout, scratch).run();
  } else if (frame.law.square_shift > 0) {
    TileFilter<MoveBytesShifted>(frame, tile, layout, scratch).run();
  } else {
    TileFilter<MoveBytes>(frame, tile, layout, scratch).run();
  }
}

}  // namespace nonlocal::denoise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nonlocal::denoise {
namespace {

constexpr int kWidestVector = 64;  // bytes

int round_up(int n) { return (n + kWidestVector - 1) / kWidestVector * kWidestVector; }

}  // namespace

TileLayout::TileLayout(const NlmFrame& frame, int width, int height)
    : tile_width(width), tile_height(height), channels(static_cast<int>(frame.in.size())) {
  const int radius = frame.search_radius;
  const int halo = radius + frame.patch_radius;
  deep = frame.in[0].bit_depth > 8;
  values = frame.law.split_values ? 2 * channels : channels;
  columns = round_up(width + 2 * halo);
  rows = height + 2 * halo;
  margin = round_up(radius);
  guide_stride = margin + columns + margin;
  // The last vector of a row, at the furthest offset, reads past what counts. The end of a row of weights
  // stays zero: an odd offset's partner is read from there.
  value_columns = round_up(width) + round_up(2 * radius + 2);
  pair_lead = kWidestVector;
  pair_stride = pair_lead + 2 * value_columns;
  weight_stride = std::max(columns, round_up(width) + round_up(2 * radius + 2)) + kWidestVector;
  weight_lead = kWidestVector - radius % kWidestVector;  // the tile's first column is aligned
  sum_stride = round_up(width);
  offsets = 2 * radius + 1;
}

void TileScratch::allocate(const TileLayout& l) {
  const auto n = [](int a, int b, int c) { return static_cast<size_t>(a) * b * c; };
  if (l.deep) {
    guide16.allocate(n(l.channels, l.rows + 1, l.guide_stride));
  } else {
    guide.allocate(n(l.channels, l.rows + 1, l.guide_stride));
  }
  value.allocate(n(1, 1, l.value_columns + kWidestVector));
  column.allocate(n(l.offsets, l.columns, 1));
  weight.allocate(n(l.offsets + 2, l.weight_stride, 1));
  pairs.allocate(n(l.values, l.rows, l.pair_stride));
  sum.allocate(n(1 + l.values, l.tile_height, l.sum_stride));
  line.allocate(n(2, l.columns, 1));
}

HWY_EXPORT(filter_tile);

void filter_tile(const NlmFrame& frame, const Tile& tile, const TileLayout& layout, TileScratch& scratch) {
  HWY_DYNAMIC_DISPATCH(filter_tile)(frame, tile, layout, scratch);
}

}  // namespace nonlocal::denoise
#endif
