// Attention's arithmetic on rows of lanes, a query in each lane. Included once for every instruction set.
#if defined(NONLOCAL_ATTENTION_KERNELS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef NONLOCAL_ATTENTION_KERNELS_INL_H
#undef NONLOCAL_ATTENTION_KERNELS_INL_H
#else
#define NONLOCAL_ATTENTION_KERNELS_INL_H
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace nonlocal::attention::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Vec = hn::Vec<Floats>;
using Words = hn::ScalableTag<uint32_t>;

// A block is kVectors vectors of queries; kRows x kVectors sums stay in registers, of which there are 32
// or 16. With vectors of 16 lanes a block is a window of 8 x 8.
constexpr Floats kFloats;
constexpr int kLanes = static_cast<int>(HWY_LANES(float));
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
constexpr int kVectors = 4;
constexpr int kRows = 6;
#else
constexpr int kVectors = 3;
constexpr int kRows = 4;
#endif
constexpr int kBlock = kVectors * kLanes;

// Highway 1.0.3 has no bfloat16 products, and compilers ask for a target that its classes do not have.
#undef NONLOCAL_ATTENTION_BFLOAT16
#if HWY_ARCH_X86_64 && HWY_TARGET <= HWY_AVX3
#define NONLOCAL_ATTENTION_BFLOAT16 1
#else
#define NONLOCAL_ATTENTION_BFLOAT16 0
#endif

struct FloatProduct {
  static HWY_INLINE Vec add(Vec a, Vec b, Vec sum) { return hn::MulAdd(a, b, sum); }
};

#if NONLOCAL_ATTENTION_BFLOAT16
// Of two products each lane.
struct PairProduct {
  static HWY_INLINE Vec add(Vec a, Vec b, Vec sum) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
    return sum;
  }
};
#endif

// c[r][lanes] = scale[lanes] from[r][lanes] + sum_k a[r][k] b[k][lanes] for kCount rows. Without `from` sums
// begin with 0, without `scale` with what `from` has; it may be c. a[r][k] lies at a[r * stride + k], or
// where kSideBySide at a[k * stride + r].
template <class Product, int kCount, bool kSideBySide>
HWY_INLINE void multiply_rows(const float* HWY_RESTRICT a, ptrdiff_t stride, const float* HWY_RESTRICT b,
                              int depth, const float* from, const float* scale, float* c) {
  Vec sum[kCount][kVectors];
  HWY_UNROLL(8)
  for (int r = 0; r < kCount; ++r) {
    HWY_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) {
      sum[r][v] = from == nullptr ? hn::Zero(kFloats) : hn::Load(kFloats, from + r * kBlock + v * kLanes);
      if (scale != nullptr) {
        sum[r][v] = hn::Mul(hn::Load(kFloats, scale + v * kLanes), sum[r][v]);
      }
    }
  }
  for (int k = 0; k < depth; ++k) {
    Vec lanes[kVectors];
    HWY_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) {
      lanes[v] = hn::Load(kFloats, b + k * kBlock + v * kLanes);
    }
    HWY_UNROLL(8)
    for (int r = 0; r < kCount; ++r) {
      const Vec cell = hn::Set(kFloats, kSideBySide ? a[r] : a[r * stride]);
      HWY_UNROLL(4)
      for (int v = 0; v < kVectors; ++v) {
        sum[r][v] = Product::add(cell, lanes[v], sum[r][v]);
      }
    }
    a += kSideBySide ? stride : 1;
  }
  HWY_UNROLL(8)
  for (int r = 0; r < kCount; ++r) {
    HWY_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) {
      hn::Store(sum[r][v], kFloats, c + r * kBlock + v * kLanes);
    }
  }
}

// The same for any number of rows.
template <class Product, bool kSideBySide>
void multiply(const float* a, ptrdiff_t stride, const float* b, int depth, const float* from,
              const float* scale, float* c, int rows) {
  const ptrdiff_t step = kSideBySide ? 1 : stride;
  const auto begin = [from](int r) { return from == nullptr ? nullptr : from + r * kBlock; };
  int r = 0;
  for (; r + kRows <= rows; r += kRows) {
    multiply_rows<Product, kRows, kSideBySide>(a + r * step, stride, b, depth, begin(r), scale,
                                               c + r * kBlock);
  }
  if (kRows > 4 && r + 4 <= rows) {
    multiply_rows<Product, 4, kSideBySide>(a + r * step, stride, b, depth, begin(r), scale, c + r * kBlock);
    r += 4;
  }
  for (; r + 2 <= rows; r += 2) {
    multiply_rows<Product, 2, kSideBySide>(a + r * step, stride, b, depth, begin(r), scale, c + r * kBlock);
  }
  if (r < rows) {
    multiply_rows<Product, 1, kSideBySide>(a + r * step, stride, b, depth, begin(r), scale, c + r * kBlock);
  }
}

// In either precision.
template <bool kSideBySide>
void multiply(bool is_bfloat16, const float* a, ptrdiff_t stride, const float* b, int depth,
              const float* from, const float* scale, float* c, int rows) {
#if NONLOCAL_ATTENTION_BFLOAT16
  if (is_bfloat16) {
    multiply<PairProduct, kSideBySide>(a, stride, b, depth, from, scale, c, rows);
    return;
  }
#endif
  static_cast<void>(is_bfloat16);
  multiply<FloatProduct, kSideBySide>(a, stride, b, depth, from, scale, c, rows);
}

// 2^x for x <= 0, 0 below -126. The polynomials are those whose largest relative error over half an octave to
// both sides is least (Remez): 1.6e-7 with the coefficients in float; coarse, 7.5e-5, a fiftieth of what
// rounding to bfloat16 takes.
template <bool kCoarse = false>
HWY_INLINE Vec exp2_of_negative(Vec x) {
  const Floats d;
#if NONLOCAL_ATTENTION_BFLOAT16
  if constexpr (kCoarse) {
    // x - floor(x), and a product with 2^floor(x), have instructions of their own.
    const Vec f{_mm512_reduce_ps(x.raw, 0x09)};
    Vec p = hn::MulAdd(hn::Set(d, 0.07802452147006989f), f, hn::Set(d, 0.22606715559959412f));
    p = hn::MulAdd(p, f, hn::Set(d, 0.6958335041999817f));
    p = hn::MulAdd(p, f, hn::Set(d, 0.9999251961708069f));
    // Below -126 it would be subnormal: hundreds of cycles of Intel's.
    const auto counts = hn::Ge(x, hn::Set(d, -126.0f));
    return Vec{_mm512_maskz_scalef_ps(counts.raw, p.raw, x.raw)};
  }
#endif
  // What is added leaves the nearest integer in the low bits.
  const Vec shifter = hn::Set(d, 12582912.0f);  // 1.5 * 2^23
  const Vec shifted = hn::Add(x, shifter);
  const Vec f = hn::Sub(x, hn::Sub(shifted, shifter));
  Vec p;
  if constexpr (kCoarse) {
    p = hn::MulAdd(hn::Set(d, 0.0551716685295105f), f, hn::Set(d, 0.2426111251115799f));
    p = hn::MulAdd(p, f, hn::Set(d, 0.6932609677314758f));
    p = hn::MulAdd(p, f, hn::Set(d, 0.9999280571937561f));
  } else {
    p = hn::MulAdd(hn::Set(d, 0.0013276472454890609f), f, hn::Set(d, 0.009675540961325169f));
    p = hn::MulAdd(p, f, hn::Set(d, 0.05550713092088699f));
    p = hn::MulAdd(p, f, hn::Set(d, 0.24022120237350464f));
    p = hn::MulAdd(p, f, hn::Set(d, 0.6931469440460205f));
    p = hn::MulAdd(p, f, hn::Set(d, 1.0000001192092896f));
  }
  const Words w;
  const auto power = hn::ShiftLeft<23>(hn::BitCast(w, shifted));
  const Vec scaled = hn::BitCast(d, hn::Add(hn::BitCast(w, p), power));
  return hn::IfThenElseZero(hn::Ge(x, hn::Set(d, -126.0f)), scaled);
}

// 2^x for any x, within 2.7e-6 (a polynomial as above): what is too small for a float becomes at most 2^-126,
// what is too large at least 2^126.
HWY_INLINE Vec exp2_of(Vec x) {
  const Floats d;
  const auto polynomial = [&](Vec f) HWY_ATTR {
    Vec p = hn::MulAdd(hn::Set(d, 0.0095701022073626518f), f, hn::Set(d, 0.055917859077453613f));
    p = hn::MulAdd(p, f, hn::Set(d, 0.240247443318367f));
    p = hn::MulAdd(p, f, hn::Set(d, 0.69312179088592529f));
    return hn::MulAdd(p, f, hn::Set(d, 0.99999928474426270f));
  };
#if HWY_ARCH_X86_64 && HWY_TARGET <= HWY_AVX3
  const Vec rounded{_mm512_roundscale_ps(x.raw, 0x08)};
  return Vec{_mm512_scalef_ps(polynomial(hn::Sub(x, rounded)).raw, rounded.raw)};
#else
  const Words w;
  const Vec shifter = hn::Set(d, 12582912.0f);  // as above
  x = hn::Min(hn::Max(x, hn::Set(d, -126.0f)), hn::Set(d, 126.0f));
  const Vec shifted = hn::Add(x, shifter);
  const Vec p = polynomial(hn::Sub(x, hn::Sub(shifted, shifter)));
  return hn::BitCast(d, hn::Add(hn::BitCast(w, p), hn::ShiftLeft<23>(hn::BitCast(w, shifted))));
#endif
}

// (1 - e^-2|x|) / (1 + e^-2|x|), with x's sign: within 3e-7.
HWY_INLINE Vec tanh_of(Vec x) {
  const Floats d;
  const Vec one = hn::Set(d, 1.0f);
  const Vec small = exp2_of_negative(hn::Mul(hn::Abs(x), hn::Set(d, -2.8853900817779268f)));
  return hn::CopySignToAbs(hn::Div(hn::Sub(one, small), hn::Add(one, small)), x);
}

// Two floats each lane, rounded to bfloat16, the first in the lower half.
HWY_INLINE Vec bfloat16_pair(Vec first, Vec second) {
  const Words w;
  const auto half = hn::Set(w, 0x8000u);
  const auto low = hn::ShiftRight<16>(hn::Add(hn::BitCast(w, first), half));
  const auto high = hn::And(hn::Add(hn::BitCast(w, second), half), hn::Set(w, 0xFFFF0000u));
  return hn::BitCast(Floats(), hn::Or(low, high));
}

HWY_INLINE uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

HWY_INLINE uint32_t bfloat16_pair(float first, float second) {
  return (bits_of(first) + 0x8000u) >> 16 | ((bits_of(second) + 0x8000u) & 0xFFFF0000u);
}

// Transposes 4 x 4 floats: from[i][j] becomes to[j][i].
HWY_INLINE void transpose_4x4(const float* const* from, ptrdiff_t at, float* const* to, ptrdiff_t to_at) {
#if HWY_TARGET == HWY_SCALAR
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      to[j][to_at + i] = from[i][at + j];
    }
  }
#else
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<double, 2> dd;
  const auto r0 = hn::LoadU(d, from[0] + at);
  const auto r1 = hn::LoadU(d, from[1] + at);
  const auto r2 = hn::LoadU(d, from[2] + at);
  const auto r3 = hn::LoadU(d, from[3] + at);
  const auto a = hn::BitCast(dd, hn::InterleaveLower(d, r0, r1));
  const auto b = hn::BitCast(dd, hn::InterleaveLower(d, r2, r3));
  const auto e = hn::BitCast(dd, hn::InterleaveUpper(d, r0, r1));
  const auto g = hn::BitCast(dd, hn::InterleaveUpper(d, r2, r3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dd, a, b)), d, to[0] + to_at);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dd, a, b)), d, to[1] + to_at);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dd, e, g)), d, to[2] + to_at);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dd, e, g)), d, to[3] + to_at);
#endif
}

// 16 rows of 16.
HWY_INLINE void transpose_tile(const float* from, float* to) {
  for (int i = 0; i < 16; i += 4) {
    const float* const rows[4] = {from + i * 16, from + (i + 1) * 16, from + (i + 2) * 16,
                                  from + (i + 3) * 16};
    for (int j = 0; j < 16; j += 4) {
      float* const columns[4] = {to + j * 16, to + (j + 1) * 16, to + (j + 2) * 16, to + (j + 3) * 16};
      transpose_4x4(rows, j, columns, i);
    }
  }
}

// Floats of `columns` columns, a row for each lane, become a row of lanes for each column.
HWY_INLINE void rows_to_lanes(const float* const* rows, int columns, float* lanes) {
  int lane = 0;
  for (; lane + 4 <= kBlock; lane += 4) {
    int c = 0;
    for (; c + 4 <= columns; c += 4) {
      float* const to[4] = {lanes + c * kBlock, lanes + (c + 1) * kBlock, lanes + (c + 2) * kBlock,
                            lanes + (c + 3) * kBlock};
      transpose_4x4(rows + lane, c, to, lane);
    }
    for (; c < columns; ++c) {
      for (int i = lane; i < lane + 4; ++i) {
        lanes[c * kBlock + i] = rows[i][c];
      }
    }
  }
  if constexpr (kBlock % 4 != 0) {
    for (; lane < kBlock; ++lane) {
      for (int c = 0; c < columns; ++c) {
        lanes[c * kBlock + lane] = rows[lane][c];
      }
    }
  }
}

HWY_INLINE void lanes_to_rows(const float* lanes, int columns, float* const* rows) {
  int lane = 0;
  for (; lane + 4 <= kBlock; lane += 4) {
    int c = 0;
    for (; c + 4 <= columns; c += 4) {
      const float* const from[4] = {lanes + c * kBlock, lanes + (c + 1) * kBlock, lanes + (c + 2) * kBlock,
                                    lanes + (c + 3) * kBlock};
      transpose_4x4(from, lane, rows + lane, c);
    }
    for (; c < columns; ++c) {
      for (int i = lane; i < lane + 4; ++i) {
        rows[i][c] = lanes[c * kBlock + i];
      }
    }
  }
  if constexpr (kBlock % 4 != 0) {
    for (; lane < kBlock; ++lane) {
      for (int c = 0; c < columns; ++c) {
        rows[lane][c] = lanes[c * kBlock + lane];
      }
    }
  }
}

// Rows of lanes, of `columns` columns, become half as many of pairs, in place; there is room for an even
// number.
HWY_INLINE void lanes_to_pairs(float* lanes, int columns) {
  for (int c = 0; c < columns; c += 2) {
    for (int v = 0; v < kVectors; ++v) {
      const float* first = lanes + c * kBlock + v * kLanes;
      const Vec second = c + 1 < columns ? hn::Load(kFloats, first + kBlock) : hn::Zero(kFloats);
      hn::Store(bfloat16_pair(hn::Load(kFloats, first), second), kFloats,
                lanes + c / 2 * kBlock + v * kLanes);
    }
  }
}

// Pairs become themselves times `scale`.
HWY_INLINE void scale_pairs(float* lanes, int rows, float scale) {
  const Words w;
  const Vec factor = hn::Set(kFloats, scale);
  for (int i = 0; i < rows * kBlock; i += kLanes) {
    const auto both = hn::BitCast(w, hn::Load(kFloats, lanes + i));
    const Vec first = hn::BitCast(kFloats, hn::ShiftLeft<16>(both));
    const Vec second = hn::BitCast(kFloats, hn::And(both, hn::Set(w, 0xFFFF0000u)));
    hn::Store(bfloat16_pair(hn::Mul(first, factor), hn::Mul(second, factor)), kFloats, lanes + i);
  }
}

// Neighbours become pairs, with a zero where there is no second one.
HWY_INLINE void pack_pairs(const float* row, int columns, float* cells) {
  for (int c = 0; c + 2 <= columns; c += 2) {
    const uint32_t bits = bfloat16_pair(row[c], row[c + 1]);
    std::memcpy(cells + c / 2, &bits, sizeof bits);
  }
  if (columns % 2 != 0) {
    const uint32_t bits = bfloat16_pair(row[columns - 1], 0.0f);
    std::memcpy(cells + columns / 2, &bits, sizeof bits);
  }
}

}  // namespace nonlocal::attention::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
