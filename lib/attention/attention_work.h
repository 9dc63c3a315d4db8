// Attention without threads: stages of tasks, for callers that bring threads and each thread's working
// memory.
#pragma once

#include <cstddef>

#include "attention/attention_tile.h"
#include "core/aligned_buffer.h"
#include "nonlocal/attention.h"

namespace nonlocal::attention {

// A bias that is the same at each call, laid out once; objects of one shape share it.
class LaneBias {
 public:
  // For queries and keys of the shape that `parameters` have, `bias` as in AttentionInput.
  LaneBias(const AttentionParameters& parameters, const ConstMatrix& bias);
  [[nodiscard]] const float* data() const { return lanes_.data(); }
  [[nodiscard]] int block() const { return block_; }

 private:
  int block_;
  AlignedBuffer<float> lanes_;
};

class Work {
 public:
  // Throws InvalidArgument as Attention's constructor does.
  explicit Work(const AttentionParameters& parameters);
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  [[nodiscard]] const Plan& plan() const { return plan_; }

  // Whether inputs may be matrices of cells, pairs of bfloat16 (see Call); outputs may be so where value_dim
  // is even.
  [[nodiscard]] bool takes_pairs() const;

  // The matrices are not checked. Throws InvalidArgument if `bias` was made for another instruction set.
  Call call(const AttentionInput& input, bool has_pairs_in, const Matrix& out, bool has_pairs_out,
            const LaneBias* bias = nullptr);

  static constexpr int kStages = 3;
  // Those of a stage may run at the same time, after all of the stage before.
  [[nodiscard]] int tasks(int stage) const;
  void run(int stage, int task, const Call& call, Scratch& scratch) const;

  // All stages on this thread.
  void run(const Call& call, Scratch& scratch) const;

  [[nodiscard]] std::size_t bytes() const;

 private:
  [[nodiscard]] bool prepares_keys() const;

  Kernels kernels_;
  Plan plan_;
  AlignedBuffer<float> packed_key_;
  AlignedBuffer<float> packed_value_;
  AlignedBuffer<float> key_score_;
  AlignedBuffer<float> key_value_;
};

}  // namespace nonlocal::attention
