// A prompt as a colour filter: each pixel's colour and place ask the prompt's tokens what to change.
//
//   out = x + strength W_out softmax(Q Kᵀ / √d) V,     Q = Ξ(colour, place) W_Q,   K = E W_K,   V = E W_V
//
// x is the pixel's colour (R, G, B in 0 .. 1), E [T, d_e] the embeddings of the prompt's tokens; biases where
// there are any; in each head separately, heads side by side before W_out (A. Vaswani et al.: Attention is
// all you need, NIPS 2017, as cross-attention). With several layers the colour that a layer asks with is what
// came out of the one before; between layers nothing is clamped, and `strength` multiplies the change of all
// of them together: with one layer that is the line above.
//
// Given E, the filter is a function of colour and place: CrossAttentionFilter multiplies W_Q into the keys
// and W_out into the values, once a prompt. frame_grader.h runs it on frames, exactly or baked into lattices;
// relevance.h shows where each token acts.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nonlocal/export.h"
#include "nonlocal/matrix.h"
#include "nonlocal/multi_head_attention.h"

namespace nonlocal {

// A prompt's tokens as a text encoder embeds them.
struct TokenEmbeddings {
  std::vector<float> values;  // count x dim
  int count = 0;              // T
  int dim = 0;                // d_e
  std::vector<float> pooled;  // the whole prompt as one vector, where the file has it

  [[nodiscard]] ConstMatrix tokens() const { return {values.data(), count, dim, dim}; }
};

// Reads a safetensors file with the tensor "tokens" [T, d_e], T up to 1024, and perhaps "pooled" [d]. Throws
// ModelError, naming the tensor, if it is no such file or one of the values is not finite.
NONLOCAL_API TokenEmbeddings read_token_embeddings(const std::string& path);

// Ξ: first the features of the colour, then those of the place, the columns of W_Q in this order.
//
// A feature of the colour is the product of up to 4 of these, joined by '*', as "r" or "luma*luma*chroma":
//
//   r, g, b
//   luma    0.2126 r + 0.7152 g + 0.0722 b, whatever matrix the frame has
//   cb, cr  (b - luma) / 1.8556, (r - luma) / 1.5748
//   chroma  sqrt(cb² + cr² + 0.01²), which lattices can follow at grey, too
//
// Those of the place, with F frequencies, are sin(πx/2), cos(πx/2), sin(πx), cos(πx), ... sin(2^(F-1) πx/2),
// cos(2^(F-1) πx/2), and the same of y; x and y are those of the pixel's middle, -1 at the left and upper
// border and 1 at the right and lower one. sin(πx/2) tells left from right, cos(πx/2) the middle from the
// sides.
struct GradeFeatures {
  std::vector<std::string> colour = {"r", "g", "b"};
  int frequencies = 0;  // F, 0 to 8; 0: the filter does not know places

  [[nodiscard]] int count() const { return static_cast<int>(colour.size()) + 4 * frequencies; }
};

// The weights of a model. In each layer `query` is heads * d x features, `key` heads * d x d_e, `value` heads
// * d_v x d_e, `output` 3 x heads * d_v; d and d_v may differ from layer to layer.
struct CrossAttentionWeights {
  GradeFeatures features;
  int heads = 1;
  std::span<const MultiHeadWeights> layers;
};

// Immutable; copies share the weights and may be used by any thread.
//
// A model file is a safetensors file with the tensors "layers.0.query.weight" [heads d, features],
// "layers.0.key.weight" [heads d, d_e], "layers.0.value.weight" [heads d_v, d_e], "layers.0.output.weight"
// [3, heads d_v] (rows are outputs, as PyTorch's Linear has them), and the same of layers 1, 2 ...; each may
// have a ".bias" of as many values as its weight has rows. Its metadata hold "format":
// "nonlocal.cross_attention_filter", "version": "1", "layers" (1 to 8), "heads" (1 to 64),
// "colour_features" (their names with spaces between them, up to 64: "r g b") and "frequencies" (F);
// tools/train/cross_attention_filter.py writes it from PyTorch. The file may hold the text encoder as well,
// so that one file is all that a prompt needs: tensors "text_model.*" and "text_projection.weight" are that
// encoder's, which TextEncoder reads from the same file (text_encoder.h).
class NONLOCAL_API CrossAttentionModel {
 public:
  // Throws ModelError if the file cannot be read or is no such model, naming the tensor, the shape expected
  // and the one found.
  explicit CrossAttentionModel(const std::string& path);
  // Copies the weights. Throws InvalidArgument, naming the layer's matrix, if one does not fit or a value is
  // not finite.
  explicit CrossAttentionModel(const CrossAttentionWeights& weights);

  [[nodiscard]] const GradeFeatures& features() const;
  [[nodiscard]] int layers() const;
  [[nodiscard]] int heads() const;
  [[nodiscard]] int embedding_dim() const;  // d_e

 private:
  friend struct GradeAccess;
  struct State;
  std::shared_ptr<const State> state_;
};

// A model that has read its prompt. Immutable; copies share what they hold and may be used by any thread.
class NONLOCAL_API CrossAttentionFilter {
 public:
  // `tokens` is T x d_e, T from 1 to 1024, and T times heads times layers at most 65536. Throws
  // InvalidArgument if it is not, or a value is not finite.
  CrossAttentionFilter(const CrossAttentionModel& model, const ConstMatrix& tokens);

  [[nodiscard]] int tokens() const;       // T
  [[nodiscard]] bool has_places() const;  // does the place of a pixel matter?

  // One colour at one place, x and y in -1 .. 1, in double precision: what any other path is compared with.
  [[nodiscard]] std::array<double, 3> apply(const std::array<double, 3>& colour, double x, double y,
                                            double strength = 1) const;

  // How much each token does to that colour: `effect` has T values, the sum over layers and heads of the
  // token's attention weight times the length of its change, |W_out v|, in units of the colour. Throws
  // InvalidArgument if it has not.
  void token_effects(const std::array<double, 3>& colour, double x, double y, std::span<double> effect) const;

 private:
  friend struct GradeAccess;
  struct State;
  std::shared_ptr<const State> state_;
};

}  // namespace nonlocal
