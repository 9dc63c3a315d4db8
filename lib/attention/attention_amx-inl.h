// The kernels' products in tiles: Intel's AMX multiplies 16 rows of 16 pairs of bfloat16 by 16 x 16 pairs at
// once. Included once for every instruction set.
#if defined(NONLOCAL_ATTENTION_AMX_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef NONLOCAL_ATTENTION_AMX_INL_H
#undef NONLOCAL_ATTENTION_AMX_INL_H
#else
#define NONLOCAL_ATTENTION_AMX_INL_H
#endif

#include <cstddef>
#include <cstdint>

#include "attention/attention_kernels-inl.h"
#include "attention/attention_plan.h"
#include "core/amx-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace nonlocal::attention::HWY_NAMESPACE {

#if NONLOCAL_AMX
namespace amx = nonlocal::amx::HWY_NAMESPACE;
using TileShapes = amx::Shapes;

constexpr ptrdiff_t kLaneRowBytes = kBlock * sizeof(float);

// Rows of cells times rows of lanes, in steps of 16 cells.
struct TileProduct {
  const float* a;
  ptrdiff_t a_row_bytes;
  ptrdiff_t a_step;  // floats from a step's cells to the next one's
  const float* b;    // a row of lanes for each cell
  int steps;
};

// c = from, or 0, + a b, for one or two tiles of rows and two of lanes: sums are in tiles 0 to 3.
template <int kRowTiles>
HWY_INLINE void multiply_rows_in_tiles(const TileProduct& p, const float* from, float* c) {
  constexpr ptrdiff_t kNext = static_cast<ptrdiff_t>(kTile) * kBlock;
  if (from == nullptr) {
    amx::clear<0>();
    amx::clear<1>();
    if constexpr (kRowTiles == 2) {
      amx::clear<2>();
      amx::clear<3>();
    }
  } else {
    amx::load<0>(from, kLaneRowBytes);
    amx::load<1>(from + kLanes, kLaneRowBytes);
    if constexpr (kRowTiles == 2) {
      amx::load<2>(from + kNext, kLaneRowBytes);
      amx::load<3>(from + kNext + kLanes, kLaneRowBytes);
    }
  }
  const float* a = p.a;
  const float* b = p.b;
  for (int step = 0; step < p.steps; ++step) {
    amx::load<4>(a, p.a_row_bytes);
    amx::load<6>(b, kLaneRowBytes);
    amx::load<7>(b + kLanes, kLaneRowBytes);
    amx::multiply<0, 4, 6>();
    amx::multiply<1, 4, 7>();
    if constexpr (kRowTiles == 2) {
      amx::load<5>(a + kTile * p.a_row_bytes / static_cast<ptrdiff_t>(sizeof(float)), p.a_row_bytes);
      amx::multiply<2, 5, 6>();
      amx::multiply<3, 5, 7>();
    }
    a += p.a_step;
    b += kNext;
  }
  amx::store<0>(c, kLaneRowBytes);
  amx::store<1>(c + kLanes, kLaneRowBytes);
  if constexpr (kRowTiles == 2) {
    amx::store<2>(c + kNext, kLaneRowBytes);
    amx::store<3>(c + kNext + kLanes, kLaneRowBytes);
  }
}

// The same for `rows` of them, a multiple of 16, and all lanes.
inline void multiply_in_tiles(TileProduct p, const float* from, float* c, int rows) {
  const float* const b = p.b;
  const auto place = [](auto* first, int r, int v) {
    return first == nullptr ? nullptr : first + r * kBlock + v * kLanes;
  };
  for (int r = 0; r < rows; r += 2 * kTile) {
    for (int v = 0; v < kVectors; v += 2) {
      p.b = b + v * kLanes;
      if (r + kTile < rows) {
        multiply_rows_in_tiles<2>(p, place(from, r, v), place(c, r, v));
      } else {
        multiply_rows_in_tiles<1>(p, place(from, r, v), place(c, r, v));
      }
    }
    p.a += 2 * kTile * p.a_row_bytes / static_cast<ptrdiff_t>(sizeof(float));
  }
}

// Scores of `rows` keys, a multiple of 16, that are `stride` cells apart; they begin with `from`, or 0.
inline void multiply_scores(const float* key, ptrdiff_t stride, const float* query, int score_depth,
                            const float* from, float* scores, int rows) {
  multiply_in_tiles({key, stride * static_cast<ptrdiff_t>(sizeof(float)), kTile, query, score_depth / kTile},
                    from, scores, rows);
}

// Adds values (`rows` channels, a multiple of 16, in tiles of 16 pairs of keys) times weights to `out`, which
// gets `factor` first.
inline void multiply_averages(const float* value, const float* weight, int tiles, const float* factor,
                              float* out, int rows) {
  for (int v = 0; v < kVectors; ++v) {
    const Vec by = hn::Load(kFloats, factor + v * kLanes);
    if (hn::AllTrue(kFloats, hn::Eq(by, hn::Set(kFloats, 1.0f)))) {
      continue;
    }
    for (int r = 0; r < rows; ++r) {
      float* at = out + r * kBlock + v * kLanes;
      hn::Store(hn::Mul(hn::Load(kFloats, at), by), kFloats, at);
    }
  }
  multiply_in_tiles({value, kTile * sizeof(float), static_cast<ptrdiff_t>(rows) * kTile, weight, tiles}, out,
                    out, rows);
}

#else

// Plans have no tiles here.
struct TileShapes {
  TileShapes() {}
};
inline void multiply_scores(const float*, ptrdiff_t, const float*, int, const float*, float*, int) {}
inline void multiply_averages(const float*, const float*, int, const float*, float*, int) {}

#endif

}  // namespace nonlocal::attention::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
