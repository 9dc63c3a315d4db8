// Multi-head attention: attention between learned projections of its inputs.
//
//   out = [y_1, ..., y_heads] W_Oᵀ + b_O,  y_h = attention of X W_Qᵀ + b_Q, Y W_Kᵀ + b_K, Z W_Vᵀ + b_V in
//   head h
//
// (A. Vaswani et al.: Attention is all you need, NIPS 2017).
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "nonlocal/attention.h"
#include "nonlocal/export.h"
#include "nonlocal/matrix.h"

namespace nonlocal {

// y = W x + b.
struct LinearLayer {
  ConstMatrix weight;                // outputs x inputs: a row an output, as PyTorch's Linear has it
  std::span<const float> bias = {};  // of each output, or none
};

struct MultiHeadWeights {
  LinearLayer query;   // heads * dim outputs
  LinearLayer key;     // heads * dim outputs
  LinearLayer value;   // heads * value_dim outputs
  LinearLayer output;  // heads * value_dim inputs
};

// Ready for calls of one shape. A call allocates nothing. One object serves one thread at a time; different
// objects are independent. The output does not depend on the number of threads.
class NONLOCAL_API MultiHeadAttention {
 public:
  // The projections calculate in the precision of the attention. Weights are copied. Throws InvalidArgument
  // if a parameter is out of range, the precision is not supported, or a weight does not fit.
  MultiHeadAttention(const AttentionParameters& parameters, const MultiHeadWeights& weights);
  ~MultiHeadAttention();
  MultiHeadAttention(MultiHeadAttention&&) noexcept;
  MultiHeadAttention& operator=(MultiHeadAttention&&) noexcept;

  // `query`, `key` and `value` have as many columns as their weights have inputs, `out` as many as W_O has
  // outputs; `bias` and `padding` are as Attention takes them. `out` may be an input's memory, unless that is
  // `bias`. Throws InvalidArgument, naming the matrix, if one does not fit.
  void run(const AttentionInput& input, const Matrix& out);

  // The one in use: never kAutomatic.
  [[nodiscard]] AttentionPrecision precision() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nonlocal
