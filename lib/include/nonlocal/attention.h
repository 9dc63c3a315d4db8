// Attention: each output is an average of values, weighted by how relevant their keys are to a query.
//
//   y_i = (1 / C_i) sum_j f(q_i, k_j) v_j
//
// The sum is over the keys that the mask leaves to query i. No matrix of queries x keys is ever held: queries
// and keys meet in tiles, and the largest score and the sum of the weights so far are kept for each query
// (M. Milakov, N. Gimelshein: Online normalizer calculation for softmax, 2018; M. Rabe, C. Staats:
// Self-attention does not need O(n²) memory, 2021; T. Dao et al.: FlashAttention, NeurIPS 2022).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "nonlocal/export.h"
#include "nonlocal/matrix.h"

namespace nonlocal {

// The relevance f of key k to query q, and what the sum is divided by. s is AttentionParameters::scale, b_ij
// an element of AttentionInput::bias, N the number of keys that the mask leaves to the query.
enum class Relevance {
  kScaledDotProduct,  // f = exp(s q·k + b_ij), s = 1 / sqrt(dim) by default; C = sum of f: the softmax
                      // (A. Vaswani et al.: Attention is all you need, NIPS 2017)
  kGaussian,    // f = exp(s q·k + b_ij), s = 1 by default; C = sum of f. Of features themselves it is the
                // Gaussian, of their projections the embedded Gaussian of X. Wang et al.: Non-local
                // neural networks, CVPR 2018, as are the next two
  kDotProduct,  // f = s q·k, s = 1 by default; C = N. Without a mask it costs no more than N dim value_dim
  kConcatenation,  // f = max(0, w·[q, k] + w_0), w = relevance_weight, first the part of q; C = N
  kAdditive,       // f = exp(w·tanh(q + k) + b_ij), w = relevance_weight; C = sum of f (D. Bahdanau et al.:
                   // Neural machine translation by jointly learning to align and translate, ICLR 2015)
};

// Which keys a query is left with. Windows and causal masks know positions: query i and key i are the same
// one.
enum class AttentionMask {
  kNone,    // all
  kCausal,  // key j <= query i
  kWindow,  // keys in a box around the query's place on the grid
};

// Where positions lie: number (t * height + y) * width + x. A sequence is `width` positions in a row.
struct AttentionGrid {
  int width = 0;
  int height = 1;
  int frames = 1;
};

// What is multiplied; sums are always of 32 bits.
enum class AttentionPrecision {
  kAutomatic,  // kBfloat16 where it is supported and the faster one, else kFloat32
  kFloat32,
  // About twice as fast, with Intel's AMX more; slower on Intel's CPUs without it. Queries, keys, values and
  // weights are rounded to 8 significant bits: the exponent is off by up to 0.4 % of the sum of |s q_c k_c|.
  // CPUs with AVX512_BF16. kDotProduct without a mask takes kFloat32 all the same.
  kBfloat16,
};

// Whether this CPU, with the instruction set in use, multiplies in this precision.
NONLOCAL_API bool is_supported(AttentionPrecision precision);

struct AttentionParameters {
  int queries = 0;
  int keys = 0;       // as many values
  int dim = 0;        // channels of a query and of a key, in each head
  int value_dim = 0;  // channels of a value and of an output, in each head; 0: dim
  int heads = 1;

  Relevance relevance = Relevance::kScaledDotProduct;
  std::optional<double> scale = std::nullopt;  // s, -1e30 to 1e30. Not for kConcatenation and kAdditive
  // kConcatenation: 2 dim weights; kAdditive: dim. The same for every head, copied. Else none.
  std::span<const float> relevance_weight = {};
  double relevance_bias = 0;  // w_0 of kConcatenation, -1e30 to 1e30
  // The largest exponent: f = exp(min(s q·k + b_ij, ceiling)), so that all keys from some likeness on count
  // the same. -1e30 to 1e30; only for relevances that are exponentials.
  std::optional<double> ceiling = std::nullopt;

  AttentionMask mask = AttentionMask::kNone;
  // kWindow: the key is at most `radius` columns and rows and `frame_radius` frames from the query, on this
  // grid of `queries` = `keys` positions.
  AttentionGrid grid = {};
  int radius = 0;
  int frame_radius = 0;

  AttentionPrecision precision = AttentionPrecision::kAutomatic;
  bool has_bfloat16_input = false;  // calls take Bfloat16AttentionInput: room for it as floats is made
  int threads = 0;                  // 0: as many as the machine has
};

// Matrices of one call. Head h has the columns from h * dim on (of `value` and the output h * value_dim).
struct AttentionInput {
  ConstMatrix query;  // queries x heads * dim
  ConstMatrix key;    // keys x heads * dim
  ConstMatrix value;  // keys x heads * value_dim
  // b, where there is one: queries x keys for all heads, or heads * queries x keys, a head after another. May
  // hold -infinity: no weight. Only for relevances that are exponentials.
  ConstMatrix bias = {};
  // Which keys are but padding (not 0): `keys` of them, or none.
  std::span<const std::uint8_t> padding = {};
};

// The same with features of bfloat16, as networks calculate them.
struct Bfloat16AttentionInput {
  ConstBfloat16Matrix query;
  ConstBfloat16Matrix key;
  ConstBfloat16Matrix value;
  ConstMatrix bias = {};
  std::span<const std::uint8_t> padding = {};
};

// Ready for calls of one shape. A call allocates nothing. One object serves one thread at a time; different
// objects are independent.
//
// Inputs must be finite (but for `bias`). A query that no key is left to has the output 0. The output does
// not depend on `threads`.
class NONLOCAL_API Attention {
 public:
  // Throws InvalidArgument if a parameter is out of range or the precision is not supported.
  explicit Attention(const AttentionParameters& parameters);
  ~Attention();
  Attention(Attention&&) noexcept;
  Attention& operator=(Attention&&) noexcept;

  // `out` is queries x heads * value_dim, and shares no memory with the inputs. Throws InvalidArgument,
  // naming the matrix, if one does not fit.
  void run(const AttentionInput& input, const Matrix& out);

  // Also throws InvalidArgument unless the parameters said has_bfloat16_input.
  void run(const Bfloat16AttentionInput& input, const Matrix& out);

  // The one in use: never kAutomatic.
  [[nodiscard]] AttentionPrecision precision() const;

  // Floating-point operations a call, two a multiplication with its addition, of the products of queries and
  // keys and of weights and values, for the keys that a mask other than padding leaves.
  [[nodiscard]] double operations() const;

  // Bytes of working memory, all threads together.
  [[nodiscard]] std::size_t working_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nonlocal
