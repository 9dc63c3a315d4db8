// A picture becomes vectors in the space of prompts: one for all of it, and one for each patch, by the vision
// tower of CLIP (A. Radford et al.: Learning transferable visual models from natural language supervision,
// ICML 2021), a vision transformer (A. Dosovitskiy et al.: An image is worth 16x16 words, ICLR 2021):
//
//   x = [class token, W_patch patches] + positions,  x = pre_norm(x)
//   x = x + attention(norm1(x)),  x = x + fc2(activation(fc1(norm2(x))))      in each layer
//   pooled = post_norm(x_class) W_projᵀ
//
// Patches are squares of patch_size() samples side by side, row by row. Positions of another grid than the
// model was trained with are interpolated: cubic convolution with a = -0.75 and half-pixel centres, the
// border repeated (R. Keys: Cubic convolution interpolation for digital image processing, 1981), as PyTorch
// has it.
//
// What a patch has in common with a prompt is the cosine of both embeddings, no training needed: the last
// block's attention is left out, so that a patch's vector speaks of the patch (C. Zhou et al.: Extract free
// dense labels from CLIP, ECCV 2022, "MaskCLIP"):
//
//   patches = post_norm(W_O (W_V norm1(x) + b_V) + b_O) W_projᵀ               x: the last block's input
//
// Or patches that belong together agree first: beside the last six blocks (all, where there are fewer) runs a
// path of self-self attention, without fc1 and fc2 (W. Bousselham et al.: Grounding everything: emerging
// localization properties in vision-language transformers, CVPR 2024, "GEM"):
//
//   y = x before the first of these blocks
//   y = y + W_O ⅓ Σ S(û_p) v + b_O           p: query, key, value of norm1(x), v: value, per head, each block
//   û_p: S(ũ_p) ũ_p of unit length,  ũ_p: p of unit length
//   S(u) = softmax(τ u uᵀ),  τ = mean length of the tokens norm1(x) / sqrt(channels of a head)
//   grounded = post_norm(y) W_projᵀ
#pragma once

#include <array>
#include <memory>
#include <span>
#include <stop_token>
#include <string>

#include "nonlocal/export.h"
#include "nonlocal/matrix.h"
#include "nonlocal/network.h"
#include "nonlocal/text_encoder.h"

namespace nonlocal {

// How pictures were brought to the model in training; preprocessor_config.json where there is one, else
// CLIP's own. A value v of 0 .. 1 of channel c became (v - mean[c]) / deviation[c].
struct VisionNormalisation {
  std::array<float, 3> mean = {0.48145466F, 0.4578275F, 0.40821073F};
  std::array<float, 3> deviation = {0.26862954F, 0.26130258F, 0.27577711F};
};

// Class token and patches x width(), as block number `block` (from 0 on) leaves them.
struct BlockTokens {
  int block = 0;
  Matrix tokens = {};
};

// What is wanted of a picture; a matrix without data is not.
struct VisionOutputs {
  Matrix pooled = {};    // 1 x embedding_size(), not normalised
  Matrix patches = {};   // as many patches x embedding_size(), not normalised: see above
  Matrix tokens = {};    // class token and patches x width(), after the last block, before post_norm
  Matrix grounded = {};  // as many patches x embedding_size(), not normalised: GEM's
  std::span<const BlockTokens> blocks = {};
};

// Runs pictures one after another. Weights are laid out once, and working memory and positions are kept
// between pictures of one size, of all of which `grounded` is wanted, or of none: such a picture allocates
// nothing. One object serves one thread at a time; different objects are independent.
//
// Models are as TextEncoder takes them: of config.json, or "vision_config" in it, count num_attention_heads
// (12), hidden_act (quick_gelu, or gelu) and layer_norm_eps (1e-5); hidden_size, intermediate_size,
// num_hidden_layers, patch_size and image_size may be left out. Without a tensor visual_projection.weight,
// embeddings are of width() channels, not projected.
class NONLOCAL_API VisionEncoder {
 public:
  // Throws ModelError, naming file, tensor and shapes, and InvalidArgument if the precision is not supported
  // or `threads` is negative.
  explicit VisionEncoder(const std::string& path, const EncoderParameters& parameters = {});
  ~VisionEncoder();
  VisionEncoder(VisionEncoder&&) noexcept;
  VisionEncoder& operator=(VisionEncoder&&) noexcept;

  [[nodiscard]] int width() const;           // channels of a token
  [[nodiscard]] int embedding_size() const;  // the prompts', too
  [[nodiscard]] int patch_size() const;      // samples on a side
  [[nodiscard]] int image_size() const;      // samples on a side of the pictures that it was trained with
  [[nodiscard]] int layers() const;
  [[nodiscard]] AttentionPrecision precision() const;  // never kAutomatic
  [[nodiscard]] const VisionNormalisation& normalisation() const;

  // R, G and B of 0 .. 1, of one size, a multiple of patch_size() on each side; normalised here. Throws
  // InvalidArgument, naming the matrix, if something does not fit, or there are more than 65,535 patches.
  // Asked to stop, by any thread, it ends within a part of a layer and tells false: `out` is not to be read.
  bool encode(std::span<const ConstFloatPlane> rgb, const VisionOutputs& out,
              const std::stop_token& stop = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nonlocal
