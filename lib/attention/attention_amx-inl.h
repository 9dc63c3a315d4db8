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

// Scores of `rows` keys, a multiple of 16, that are `stride` cells apart; they begin with `from`, or 0.
inline void multiply_scores(const float* key, ptrdiff_t stride, const float* query, int score_depth,
                            const float* from, float* scores, int rows) {
  const ptrdiff_t row_bytes = stride * static_cast<ptrdiff_t>(sizeof(float));
  amx::multiply({key, row_bytes, kTile, query, kBlock, score_depth / kTile}, from, scores, rows);
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
  amx::multiply({value, kTile * sizeof(float), static_cast<ptrdiff_t>(rows) * kTile, weight, kBlock, tiles},
                out, out, rows);
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
