#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/linear.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.
#include <algorithm>

#include "attention/attention_amx-inl.h"
#include "attention/attention_kernels-inl.h"
#include "attention/linear.h"
#include "attention/matrix_check.h"
#include "core/cpu_features.h"
#include "core/rounding.h"
#include "core/workers.h"
#include "hwy/highway.h"
#include "nonlocal/error.h"

HWY_BEFORE_NAMESPACE();
namespace nonlocal::attention::HWY_NAMESPACE {

void run_linear(const LinearPass& p, int first_row, float* in_lanes, float* out_lanes) {
  const float* in_rows[kBlock];
  float* out_rows[kBlock];
  for (int lane = 0; lane < kBlock; ++lane) {
    const int row = std::min(first_row + lane, p.in.rows - 1);
    in_rows[lane] = p.in.row(row);
    out_rows[lane] = p.out.row(row);
  }
  rows_to_lanes(in_rows, p.inputs, in_lanes);
  if (p.is_bfloat16) {
    lanes_to_pairs(in_lanes, p.inputs);
  }
  int in_tiles = 0;
  if (p.has_tiles) {
    in_tiles = p.outputs / kTile * kTile;
    const TileShapes shapes;
    multiply_scores(p.weight, p.cells, in_lanes, p.cells, nullptr, out_lanes, in_tiles);
  }
  multiply<false>(p.is_bfloat16, p.weight + static_cast<ptrdiff_t>(in_tiles) * p.cells, p.cells, in_lanes,
                  p.cells, nullptr, nullptr, out_lanes + static_cast<ptrdiff_t>(in_tiles) * kBlock,
                  p.outputs - in_tiles);
  for (int c = 0; c < p.outputs; ++c) {
    for (int v = 0; v < kVectors; ++v) {
      float* at = out_lanes + c * kBlock + v * kLanes;
      hn::Store(hn::Add(hn::Load(kFloats, at), hn::Set(kFloats, p.bias[c])), kFloats, at);
    }
  }
  lanes_to_rows(out_lanes, p.outputs, out_rows);
}

LinearKernels instruction_set_linear_kernels() { return {kBlock, has_tiles(), &pack_pairs, &run_linear}; }

}  // namespace nonlocal::attention::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nonlocal::attention {

HWY_EXPORT(instruction_set_linear_kernels);

LinearKernels linear_kernels() { return HWY_DYNAMIC_DISPATCH(instruction_set_linear_kernels)(); }

Linear::Linear(const std::string& name, const LinearLayer& layer, bool is_bfloat16, int threads)
    : kernels_(linear_kernels()),
      inputs_(layer.weight.columns),
      outputs_(layer.weight.rows),
      cells_(is_bfloat16 ? ceil_divide(inputs_, 2) : inputs_),
      is_bfloat16_(is_bfloat16),
      has_tiles_(kernels_.has_tiles && is_bfloat16 && cells_ % kTile == 0),
      lanes_(static_cast<std::size_t>(threads)) {
  weight_.allocate(static_cast<std::size_t>(outputs_) * static_cast<std::size_t>(cells_));
  bias_.allocate(static_cast<std::size_t>(outputs_));
  for (int o = 0; o < outputs_; ++o) {
    float* to = weight_.data() + static_cast<std::ptrdiff_t>(o) * cells_;
    if (is_bfloat16) {
      kernels_.pack(layer.weight.row(o), inputs_, to);
    } else {
      std::copy_n(layer.weight.row(o), inputs_, to);
    }
  }
  if (!layer.bias.empty() && layer.bias.size() != bias_.size()) {
    throw InvalidArgument(name + ": expected a bias of " + std::to_string(outputs_) +
                          " values, or none, got " + std::to_string(layer.bias.size()));
  }
  std::copy(layer.bias.begin(), layer.bias.end(), bias_.data());
  for (Lanes& lanes : lanes_) {
    lanes.in.allocate(static_cast<std::size_t>(round_up(inputs_, 2)) *
                      static_cast<std::size_t>(kernels_.block));
    lanes.out.allocate(static_cast<std::size_t>(outputs_) * static_cast<std::size_t>(kernels_.block));
  }
}

void Linear::run(const ConstMatrix& in, const Matrix& out) {
  const LinearPass pass{weight_.data(), bias_.data(), inputs_, outputs_, cells_,
                        is_bfloat16_,   has_tiles_,   in,      out};
  const int tasks = ceil_divide(in.rows, kernels_.block);
  Workers::shared().run(tasks, static_cast<int>(lanes_.size()), [&](int task, int slot) {
    Lanes& lanes = lanes_[static_cast<std::size_t>(slot)];
    kernels_.run(pass, task * kernels_.block, lanes.in.data(), lanes.out.data());
  });
}

}  // namespace nonlocal::attention
#endif
