#include "nonlocal/multi_head_attention.h"

#include <string>

#include "attention/linear.h"
#include "attention/matrix_check.h"
#include "core/aligned_buffer.h"
#include "core/workers.h"

namespace nonlocal {
namespace {

using attention::check_matrix;
using attention::Linear;

constexpr const char* kName = "MultiHeadAttention";

// A matrix of its own. Rows that lie a power of two apart share few places of the caches: some floats more.
class Projection {
 public:
  Projection(int rows, int columns) : rows_(rows), columns_(columns), stride_(columns + 16) {
    values_.allocate(static_cast<std::size_t>(rows) * static_cast<std::size_t>(stride_));
  }
  [[nodiscard]] Matrix view() { return {values_.data(), rows_, columns_, stride_}; }

 private:
  int rows_;
  int columns_;
  int stride_;
  AlignedBuffer<float> values_;
};

int value_dim(const AttentionParameters& p) { return p.value_dim == 0 ? p.dim : p.value_dim; }

// The layer, once its weight is known to have so many outputs and, unless 0, so many inputs.
const LinearLayer& checked(const LinearLayer& layer, const char* name, int outputs, int inputs) {
  const ConstMatrix& w = layer.weight;
  check_matrix(kName, std::string("the weight of ") + name, w, outputs == 0 ? w.rows : outputs,
               inputs == 0 ? w.columns : inputs);
  if (w.rows < 1 || w.columns < 1) {
    throw InvalidArgument(std::string(kName) + ": expected the weight of " + name +
                          " with rows and columns, got " + std::to_string(w.rows) + "x" +
                          std::to_string(w.columns));
  }
  return layer;
}

}  // namespace

struct MultiHeadAttention::State {
  State(const AttentionParameters& p, const MultiHeadWeights& w)
      : attention(p),
        queries(p.queries),
        keys(p.keys),
        query(p.queries, p.heads * p.dim),
        key(p.keys, p.heads * p.dim),
        value(p.keys, p.heads * value_dim(p)),
        average(p.queries, p.heads * value_dim(p)),
        to_query(linear(w.query, "query", p.heads * p.dim, 0, p)),
        to_key(linear(w.key, "key", p.heads * p.dim, 0, p)),
        to_value(linear(w.value, "value", p.heads * value_dim(p), 0, p)),
        to_output(linear(w.output, "output", 0, p.heads * value_dim(p), p)) {}

  [[nodiscard]] Linear linear(const LinearLayer& layer, const char* name, int outputs, int inputs,
                              const AttentionParameters& p) const {
    const bool is_bfloat16 = attention.precision() == AttentionPrecision::kBfloat16;
    return {std::string(kName) + ": " + name, checked(layer, name, outputs, inputs), is_bfloat16,
            thread_count(p.threads)};
  }

  void run(const AttentionInput& in, const Matrix& out) {
    check_matrix(kName, "query", in.query, queries, to_query.inputs());
    check_matrix(kName, "key", in.key, keys, to_key.inputs());
    check_matrix(kName, "value", in.value, keys, to_value.inputs());
    check_matrix(kName, "out", out, queries, to_output.outputs());
    to_query.run(in.query, query.view());
    to_key.run(in.key, key.view());
    to_value.run(in.value, value.view());
    attention.run({query.view(), key.view(), value.view(), in.bias, in.padding}, average.view());
    to_output.run(average.view(), out);
  }

  Attention attention;
  int queries;
  int keys;
  Projection query, key, value, average;
  Linear to_query, to_key, to_value, to_output;
};

MultiHeadAttention::MultiHeadAttention(const AttentionParameters& parameters, const MultiHeadWeights& weights)
    : state_(std::make_unique<State>(parameters, weights)) {}
MultiHeadAttention::~MultiHeadAttention() = default;
MultiHeadAttention::MultiHeadAttention(MultiHeadAttention&&) noexcept = default;
MultiHeadAttention& MultiHeadAttention::operator=(MultiHeadAttention&&) noexcept = default;

void MultiHeadAttention::run(const AttentionInput& input, const Matrix& out) { state_->run(input, out); }
AttentionPrecision MultiHeadAttention::precision() const { return state_->attention.precision(); }

}  // namespace nonlocal
