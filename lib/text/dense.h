// Linear layers and normalisation of few rows, as prompts and patches have: a dozen to some hundred tokens.
//
// Attention's own linear layer has rows in lanes, which suits thousands of them. Here outputs lie in lanes,
// by the same kernel with its sides exchanged: weights are laid out once in panels of a block of outputs, and
// each number of a row is multiplied with a row of lanes. Reading the weights is then most of the work, and
// they lie as they are read.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "core/aligned_buffer.h"
#include "nonlocal/multi_head_attention.h"

namespace nonlocal::text {

enum class Activation {
  kNone,
  kQuickGelu,  // x / (1 + exp(-1.702 x))
  kGelu,       // x (1 + erf(x / sqrt 2)) / 2
  kRelu,       // max(0, x)
};

// One task: a panel's outputs of some rows. Cells are floats, or pairs of bfloat16.
struct DensePass {
  const float* panel;  // cells x a block of lanes
  const float* bias;   // of the panel
  int cells;           // of a row of the input
  int outputs;         // of the panel, at most a block
  bool is_bfloat16;
  bool has_tiles;  // the products of whole tiles of rows are made in tiles
  Activation activation;
  bool is_added;  // to what the output has
  ConstMatrix in;
  Matrix out;  // the panel's columns
};

struct RowKernels {
  int block;  // outputs of a panel
  bool has_tiles;
  void (*dense)(const DensePass& pass, float* scratch);
  // out = (in - mean) / sqrt(variance + epsilon) * weight + bias; it may be in.
  void (*normalise)(const float* in, int columns, const float* weight, const float* bias, float epsilon,
                    float* out);
  // Neighbours rounded to bfloat16 become pairs.
  void (*pack)(const float* row, int columns, float* cells);
};

RowKernels row_kernels();

class Dense {
 public:
  // Weights are copied. The layer is sound: the caller has checked it.
  Dense(const LinearLayer& layer, bool is_bfloat16, Activation activation = Activation::kNone);

  [[nodiscard]] int inputs() const { return inputs_; }
  [[nodiscard]] int outputs() const { return outputs_; }
  [[nodiscard]] bool is_bfloat16() const { return is_bfloat16_; }
  // Floats that a row takes as cells.
  [[nodiscard]] int cells() const { return cells_; }

  // Tasks for so many rows; they may run at the same time.
  [[nodiscard]] int tasks(int rows) const;
  // out = activation(in Wᵀ + b), and what `out` had where `is_added`. `in` has cells, of any stride; they
  // share no memory. `scratch` is the thread's, of scratch_floats().
  void run(int task, const ConstMatrix& in, const Matrix& out, bool is_added, float* scratch) const;

  static std::size_t scratch_floats();

 private:
  RowKernels kernels_;
  int inputs_, outputs_, cells_, panels_;
  bool is_bfloat16_;
  bool has_tiles_;
  Activation activation_;
  AlignedBuffer<float> weight_;  // [panels][cells][block]
  AlignedBuffer<float> bias_;    // [panels][block]
};

// Layer normalisation's weights (J. L. Ba et al.: Layer normalization, 2016).
class Norm {
 public:
  Norm(std::span<const float> weight, std::span<const float> bias, float epsilon);
  void run(const float* in, float* out) const;

 private:
  RowKernels kernels_;
  int columns_;
  float epsilon_;
  AlignedBuffer<float> weight_, bias_;
};

}  // namespace nonlocal::text
