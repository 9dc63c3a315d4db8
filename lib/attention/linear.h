// A linear layer on the rows of a matrix, by the products that attention has.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/aligned_buffer.h"
#include "nonlocal/multi_head_attention.h"

namespace nonlocal::attention {

// What a thread's task is made of; cells are floats, or pairs of bfloat16.
struct LinearPass {
  const float* weight;  // outputs x cells
  const float* bias;
  int inputs;
  int outputs;
  int cells;
  bool is_bfloat16;
  bool has_tiles;  // the products are made in tiles
  ConstMatrix in;
  Matrix out;
};

struct LinearKernels {
  int block;  // rows that one task takes, at most
  bool has_tiles;
  void (*pack)(const float* row, int inputs, float* cells);
  void (*run)(const LinearPass& pass, int first_row, float* in_lanes, float* out_lanes);
};

LinearKernels linear_kernels();

class Linear {
 public:
  // Throws InvalidArgument, with `name`, unless the layer is sound.
  Linear(const std::string& name, const LinearLayer& layer, bool is_bfloat16, int threads);

  [[nodiscard]] int inputs() const { return inputs_; }
  [[nodiscard]] int outputs() const { return outputs_; }

  // out = in Wᵀ + b; they share no memory.
  void run(const ConstMatrix& in, const Matrix& out);

 private:
  LinearKernels kernels_;
  int inputs_;
  int outputs_;
  int cells_;
  bool is_bfloat16_;
  bool has_tiles_;
  AlignedBuffer<float> weight_;
  AlignedBuffer<float> bias_;
  struct Lanes {
    AlignedBuffer<float> in;
    AlignedBuffer<float> out;
  };
  std::vector<Lanes> lanes_;  // of each thread
};

}  // namespace nonlocal::attention
