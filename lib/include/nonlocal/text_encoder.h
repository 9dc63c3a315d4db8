// A prompt becomes vectors: one for each of its tokens, and one for all of it, by the text tower of CLIP or
// of a model built like it.
//
//   x = token embedding + position embedding
//   x = x + attention(norm1(x)),  x = x + fc2(activation(fc1(norm2(x))))      in each layer
//   tokens = final norm of x,  pooled = (tokens at the first end token) W_projᵀ
//
// (A. Radford et al.: Learning transferable visual models from natural language supervision, ICML 2021). As
// many tokens are run as the prompt has, not as many as the context has room for: CLIP's mask is causal, so
// that what would follow the end token reaches neither it nor the tokens before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nonlocal/attention.h"
#include "nonlocal/export.h"
#include "nonlocal/matrix.h"
#include "nonlocal/tokenizer.h"

namespace nonlocal {

struct EncoderParameters {
  // kBfloat16 is about twice as fast (see AttentionPrecision), and within some per cent of kFloat32.
  AttentionPrecision precision = AttentionPrecision::kFloat32;
  int threads = 0;  // 0: as many as the machine has; the output does not depend on it
};

// A prompt's embedding.
struct TextEmbedding {
  std::vector<std::int32_t> ids;  // its tokens, with start and end
  std::size_t cut = 0;            // tokens that the context had no room for: worth a warning
  std::size_t invalid = 0;        // places that were not UTF-8: worth a warning
  int width = 0;                  // channels of a token
  std::vector<float> tokens;      // ids.size() x width
  std::vector<float> pooled;      // embedding_size(), not normalised
};

// Runs prompts one after another. Weights are laid out once, and working memory is kept between prompts of as
// many tokens: such a prompt allocates nothing. One object serves one thread at a time; different objects are
// independent.
//
// Where a model is, and what it may hold:
//
//   a folder as Hugging Face's: config.json, model.safetensors (or model.safetensors.index.json and the files
//   that it names), and the tokenizer's files; CLIPModel, CLIPTextModel and CLIPSeg's (prefix "clip.") alike;
//   a safetensors file, whose metadata may have the text of a config.json under "config" and of a
//   tokenizer.json under "tokenizer"; else config.json and the tokenizer's files are sought beside it;
//   OpenAI's layout of tensors (in_proj_weight, text_projection as inputs x outputs) in either, which needs
//   no config.json: it has heads of 64 channels and quick_gelu.
//
// Of config.json, or "text_config" in it, count num_attention_heads (8), hidden_act (quick_gelu, or gelu),
// layer_norm_eps (1e-5), and our own causal (true; false: each token sees all others). hidden_size,
// intermediate_size, num_hidden_layers, vocab_size and max_position_embeddings may be left out; where they
// are there, tensors must agree. eos_token_id is not read: old files have a wrong one. Without a tensor
// text_projection.weight, pooled is the end token itself. Weights are F32, F16 or BF16.
class NONLOCAL_API TextEncoder {
 public:
  // `path` is such a folder or file, `tokenizer` what Tokenizer takes; "" is what lies in the model or beside
  // it, if anything. Throws ModelError, naming file, tensor and shapes, or if the vocabulary and the token
  // embedding differ in size, and InvalidArgument if the precision is not supported or `threads` is negative.
  explicit TextEncoder(const std::string& path, const EncoderParameters& parameters = {},
                       const std::string& tokenizer = "");
  ~TextEncoder();
  TextEncoder(TextEncoder&&) noexcept;
  TextEncoder& operator=(TextEncoder&&) noexcept;

  [[nodiscard]] int width() const;           // channels of a token
  [[nodiscard]] int embedding_size() const;  // of `pooled`
  [[nodiscard]] int context() const;         // tokens at the most, start and end included
  [[nodiscard]] int vocabulary_size() const;
  [[nodiscard]] int layers() const;
  [[nodiscard]] AttentionPrecision precision() const;  // never kAutomatic

  // Null where the model has none.
  [[nodiscard]] const Tokenizer* tokenizer() const;

  // A prompt's last tokens are cut where the context has no room for them. An empty prompt is the start and
  // the end token. Throws ModelError if there is no tokenizer.
  [[nodiscard]] TextEmbedding encode(std::string_view prompt);

  // 1 to context() tokens from 0 to vocabulary_size() - 1, start and end included: what Tokenizer gives.
  // `tokens` is ids.size() x width(), `pooled` has embedding_size() floats; either may be empty. The end
  // token is the tokenizer's, or, where there is none, the largest of `ids`, as OpenAI finds it. Throws
  // InvalidArgument if something does not fit, or there is no end token.
  void encode(std::span<const std::int32_t> ids, const Matrix& tokens, std::span<float> pooled);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nonlocal
