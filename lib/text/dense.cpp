#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "text/dense.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.
#include <algorithm>
#include <cmath>
#include <vector>

#include "attention/attention_kernels-inl.h"
#include "core/amx-inl.h"
#include "core/cpu_features.h"
#include "core/rounding.h"
#include "hwy/highway.h"
#include "text/dense.h"

HWY_BEFORE_NAMESPACE();
namespace nonlocal::text::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace kernels = nonlocal::attention::HWY_NAMESPACE;

using kernels::kFloats;
using kernels::kLanes;
using kernels::Vec;

// Outputs of a panel: two vectors. kRows x 2 sums stay in registers, of which there are 32 or 16. So many
// rows make the most of each row of lanes as it comes from memory: for a prompt it is needed only once.
constexpr int kVectors = 2;
constexpr int kBlock = kVectors * kLanes;
constexpr int kRows = kernels::kVectors == 4 ? 12 : 6;
// Rows of lanes that stay in the first cache where there are more rows than that.
constexpr int kDepth = 96;

HWY_INLINE Vec number(float value) { return hn::Set(kFloats, value); }

HWY_INLINE Vec exp_of_negative(Vec x) {
  constexpr float kLog2E = 1.4426950408889634f;
  return kernels::exp2_of_negative(hn::Mul(x, number(kLog2E)));
}

// 1 / (1 + e^-x), without an exponential that overflows.
HWY_INLINE Vec logistic(Vec x) {
  const Vec small = exp_of_negative(hn::Neg(hn::Abs(x)));
  const Vec top = hn::IfThenElse(hn::Lt(x, hn::Zero(kFloats)), small, number(1.0f));
  return hn::Div(top, hn::Add(number(1.0f), small));
}

// erf(x) within 1.5e-7 (M. Abramowitz, I. Stegun: Handbook of mathematical functions, 7.1.26).
HWY_INLINE Vec erf_of(Vec x) {
  const Vec size = hn::Abs(x);
  const Vec t = hn::Div(number(1.0f), hn::MulAdd(size, number(0.3275911f), number(1.0f)));
  Vec p = hn::MulAdd(t, number(1.061405429f), number(-1.453152027f));
  p = hn::MulAdd(p, t, number(1.421413741f));
  p = hn::MulAdd(p, t, number(-0.284496736f));
  p = hn::MulAdd(p, t, number(0.254829592f));
  const Vec left = hn::Mul(hn::Mul(p, t), exp_of_negative(hn::Neg(hn::Mul(x, x))));
  return hn::CopySignToAbs(hn::Sub(number(1.0f), left), x);
}

HWY_INLINE Vec activated(Activation activation, Vec x) {
  switch (activation) {
    case Activation::kQuickGelu:
      return hn::Mul(x, logistic(hn::Mul(x, number(1.702f))));
    case Activation::kGelu: {
      const Vec half = hn::Mul(x, number(0.5f));
      return hn::MulAdd(half, erf_of(hn::Mul(x, number(0.70710678f))), half);
    }
    case Activation::kRelu:
      return hn::Max(x, hn::Zero(kFloats));
    default:
      return x;
  }
}

// Sums of one row become outputs.
void finish_row(const DensePass& p, const float* sums, float* out) {
  float row[kBlock];
  const bool is_whole = p.outputs == kBlock;
  float* to = is_whole ? out : row;
  if (!is_whole && p.is_added) {
    std::copy_n(out, p.outputs, row);
  }
  for (int v = 0; v < kVectors; ++v) {
    const Vec sum = hn::Add(hn::Load(kFloats, sums + v * kLanes), hn::Load(kFloats, p.bias + v * kLanes));
    Vec y = activated(p.activation, sum);
    if (p.is_added) {
      y = hn::Add(y, hn::LoadU(kFloats, to + v * kLanes));
    }
    hn::StoreU(y, kFloats, to + v * kLanes);
  }
  if (!is_whole) {
    std::copy_n(row, p.outputs, out);
  }
}

// Memory that is wanted soon begins to come. Alone, a core's own prefetching reaches 24 of 41 GB/s here, as
// so many products lie between its loads.
HWY_INLINE void fetch(const float* at) { __builtin_prefetch(at, 0, 3); }

// c[r][lanes] = from[r][lanes] + sum_k a[r][k] b[k][lanes] for kCount rows; without `from` sums begin with 0.
// Meanwhile as many rows of lanes are fetched from `next` on, or half of them.
template <class Product, int kCount>
void multiply_rows(const float* HWY_RESTRICT a, ptrdiff_t stride, const float* HWY_RESTRICT b, int depth,
                   const float* from, float* c, const float* next, bool fetches_all) {
  Vec sum[kCount][kVectors];
  HWY_UNROLL(12)
  for (int r = 0; r < kCount; ++r) {
    HWY_UNROLL(2)
    for (int v = 0; v < kVectors; ++v) {
      sum[r][v] = from == nullptr ? hn::Zero(kFloats) : hn::Load(kFloats, from + r * kBlock + v * kLanes);
    }
  }
  const int step = fetches_all ? kBlock : kLanes;
  for (int k = 0; k < depth; ++k) {
    fetch(next);
    fetch(next + step - kLanes);
    next += step;
    const Vec first = hn::Load(kFloats, b + k * kBlock);
    const Vec second = hn::Load(kFloats, b + k * kBlock + kLanes);
    HWY_UNROLL(12)
    for (int r = 0; r < kCount; ++r) {
      const Vec cell = hn::Set(kFloats, a[r * stride + k]);
      sum[r][0] = Product::add(cell, first, sum[r][0]);
      sum[r][1] = Product::add(cell, second, sum[r][1]);
    }
  }
  HWY_UNROLL(12)
  for (int r = 0; r < kCount; ++r) {
    HWY_UNROLL(2)
    for (int v = 0; v < kVectors; ++v) {
      hn::Store(sum[r][v], kFloats, c + r * kBlock + v * kLanes);
    }
  }
}

template <class Product, int kCount = kRows>
void multiply(int count, const float* a, ptrdiff_t stride, const float* b, int depth, const float* from,
              float* c, const float* next, bool fetches_all) {
  if constexpr (kCount > 1) {
    if (count < kCount) {
      multiply<Product, kCount - 1>(count, a, stride, b, depth, from, c, next, fetches_all);
      return;
    }
  }
  multiply_rows<Product, kCount>(a, stride, b, depth, from, c, next, fetches_all);
}

// Few rows go through all weights at once, which are fetched some steps ahead. More rows take their turns at
// a part of them that stays in the first cache; the first two fetch half of the next part each.
template <class Product>
void multiply_all(const DensePass& p, float* sums) {
  constexpr int kAhead = 96;
  const int groups = ceil_divide(p.in.rows, kRows);
  const int most = groups == 1 ? p.cells : kDepth;
  for (int first = 0; first < p.cells; first += most) {
    const int depth = std::min(most, p.cells - first);
    const float* panel = p.panel + static_cast<ptrdiff_t>(first) * kBlock;
    const float* next = panel + static_cast<ptrdiff_t>(groups == 1 ? kAhead : depth) * kBlock;
    for (int g = 0; g < groups; ++g) {
      const int row = p.in.rows * g / groups;
      float* to = sums + static_cast<ptrdiff_t>(row) * kBlock;
      multiply<Product>(p.in.rows * (g + 1) / groups - row, p.in.row(row) + first, p.in.stride, panel, depth,
                        first == 0 ? nullptr : to, to,
                        g < 2 ? next + static_cast<ptrdiff_t>(g * depth) * kLanes : panel, groups == 1);
    }
  }
}

void multiply_all(const DensePass& p, float* sums) {
#if NONLOCAL_ATTENTION_BFLOAT16
  if (p.is_bfloat16) {
    multiply_all<kernels::PairProduct>(p, sums);
    return;
  }
#endif
  multiply_all<kernels::FloatProduct>(p, sums);
}

// Rows that are whole tiles, all of their cells; returns how many.
int multiply_in_tiles(const DensePass& p, float* sums) {
#if NONLOCAL_AMX
  namespace amx = nonlocal::amx::HWY_NAMESPACE;
  const int rows = p.in.rows / kTile * kTile;
  if (p.has_tiles && rows > 0) {
    const amx::Shapes shapes;
    const ptrdiff_t row_bytes = p.in.stride * static_cast<ptrdiff_t>(sizeof(float));
    amx::multiply({p.in.row(0), row_bytes, kTile, p.panel, kBlock, p.cells / kTile}, nullptr, sums, rows);
    return rows;
  }
#endif
  static_cast<void>(p);
  static_cast<void>(sums);
  return 0;
}

void run_dense(const DensePass& p, float* sums) {
  const int in_tiles = multiply_in_tiles(p, sums);
  if (in_tiles < p.in.rows) {
    DensePass rest = p;
    rest.in = {p.in.row(in_tiles), p.in.rows - in_tiles, p.in.columns, p.in.stride};
    multiply_all(rest, sums + static_cast<ptrdiff_t>(in_tiles) * kBlock);
  }
  for (int r = 0; r < p.in.rows; ++r) {
    finish_row(p, sums + static_cast<ptrdiff_t>(r) * kBlock, p.out.row(r));
  }
}

// The sum over a row of f(x) for whole vectors and of the rest one by one.
template <class Function>
HWY_INLINE float sum_of(const float* row, int columns, const Function& f) {
  Vec sums = hn::Zero(kFloats);
  int c = 0;
  for (; c + kLanes <= columns; c += kLanes) {
    sums = hn::Add(sums, f(hn::LoadU(kFloats, row + c)));
  }
  float sum = hn::GetLane(hn::SumOfLanes(kFloats, sums));
  for (; c < columns; ++c) {
    sum += hn::GetLane(f(number(row[c])));
  }
  return sum;
}

void normalise_row(const float* in, int columns, const float* weight, const float* bias, float epsilon,
                   float* out) {
  const auto n = static_cast<float>(columns);
  const float mean = sum_of(in, columns, [](Vec x) { return x; }) / n;
  const Vec middle = number(mean);
  const float squares = sum_of(in, columns, [middle](Vec x) {
    const Vec d = hn::Sub(x, middle);
    return hn::Mul(d, d);
  });
  const float scale = 1.0f / std::sqrt(squares / n + epsilon);
  int c = 0;
  for (; c + kLanes <= columns; c += kLanes) {
    const Vec x = hn::Mul(hn::Sub(hn::LoadU(kFloats, in + c), middle), number(scale));
    hn::StoreU(hn::MulAdd(x, hn::LoadU(kFloats, weight + c), hn::LoadU(kFloats, bias + c)), kFloats, out + c);
  }
  for (; c < columns; ++c) {
    out[c] = (in[c] - mean) * scale * weight[c] + bias[c];
  }
}

RowKernels instruction_set_row_kernels() {
  return {kBlock, has_tiles(), &run_dense, &normalise_row, &kernels::pack_pairs};
}

}  // namespace nonlocal::text::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nonlocal::text {
namespace {

constexpr int kMostRows = 64;  // of one task: their sums stay in the first cache, too
constexpr int kWidestBlock = 32;

// Rows of one task, all alike.
int rows_a_task(int rows) { return ceil_divide(rows, ceil_divide(rows, kMostRows)); }

}  // namespace

HWY_EXPORT(instruction_set_row_kernels);

RowKernels row_kernels() { return HWY_DYNAMIC_DISPATCH(instruction_set_row_kernels)(); }

Dense::Dense(const LinearLayer& layer, bool is_bfloat16, Activation activation)
    : kernels_(row_kernels()),
      inputs_(layer.weight.columns),
      outputs_(layer.weight.rows),
      cells_(is_bfloat16 ? ceil_divide(inputs_, 2) : inputs_),
      panels_(ceil_divide(outputs_, kernels_.block)),
      is_bfloat16_(is_bfloat16),
      has_tiles_(kernels_.has_tiles && is_bfloat16 && cells_ % kTile == 0),
      activation_(activation) {
  const auto block = static_cast<std::size_t>(kernels_.block);
  weight_.allocate(static_cast<std::size_t>(panels_) * static_cast<std::size_t>(cells_) * block);
  bias_.allocate(static_cast<std::size_t>(panels_) * block);
  std::copy(layer.bias.begin(), layer.bias.end(), bias_.data());
  std::vector<float> cells(static_cast<std::size_t>(cells_));
  for (int o = 0; o < outputs_; ++o) {
    const float* row = layer.weight.row(o);
    if (is_bfloat16) {
      kernels_.pack(row, inputs_, cells.data());
      row = cells.data();
    }
    float* to = weight_.data() + static_cast<std::ptrdiff_t>(o / kernels_.block) * cells_ * kernels_.block +
                o % kernels_.block;
    for (int c = 0; c < cells_; ++c) {
      to[static_cast<std::ptrdiff_t>(c) * kernels_.block] = row[c];
    }
  }
}

int Dense::tasks(int rows) const { return panels_ * ceil_divide(rows, rows_a_task(rows)); }

void Dense::run(int task, const ConstMatrix& in, const Matrix& out, bool is_added, float* scratch) const {
  const int step = rows_a_task(in.rows);
  const int slabs = ceil_divide(in.rows, step);
  const int panel = task / slabs;
  const int first = task % slabs * step;
  const int rows = std::min(step, in.rows - first);
  const int column = panel * kernels_.block;
  const int outputs = std::min(kernels_.block, outputs_ - column);
  kernels_.dense({.panel = weight_.data() + static_cast<std::ptrdiff_t>(column) * cells_,
                  .bias = bias_.data() + column,
                  .cells = cells_,
                  .outputs = outputs,
                  .is_bfloat16 = is_bfloat16_,
                  .has_tiles = has_tiles_,
                  .activation = activation_,
                  .is_added = is_added,
                  .in = {in.row(first), rows, in.columns, in.stride},
                  .out = {out.row(first) + column, rows, outputs, out.stride}},
                 scratch);
}

std::size_t Dense::scratch_floats() {
  return static_cast<std::size_t>(kMostRows) * static_cast<std::size_t>(kWidestBlock);
}

Norm::Norm(std::span<const float> weight, std::span<const float> bias, float epsilon)
    : kernels_(row_kernels()), columns_(static_cast<int>(weight.size())), epsilon_(epsilon) {
  weight_.allocate(weight.size());
  bias_.allocate(bias.size());
  std::copy(weight.begin(), weight.end(), weight_.data());
  std::copy(bias.begin(), bias.end(), bias_.data());
}

void Norm::run(const float* in, float* out) const {
  kernels_.normalise(in, columns_, weight_.data(), bias_.data(), epsilon_, out);
}

}  // namespace nonlocal::text
#endif
