// CLIPSeg's decoder: from tokens of some of the vision tower's blocks to a logit a sample (T. Lüddecke, A.
// Ecker: Image segmentation using text and image prompts, CVPR 2022):
//
//   x = reduce_0(deepest),  x = film_mul(text) x + film_add(text),  x = block_0(x)
//   x = block_i(reduce_i(next deepest) + x)                         i = 1, 2, ...
//   logits = transposed convolution of the patches' x, its stride its kernel
//
// FiLM is that of E. Perez et al.: FiLM: visual reasoning with a general conditioning layer, AAAI 2018.
// Refined decoders have a 3 x 3 convolution and two transposed ones in place of the last step, ReLU between
// them.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "nonlocal/vision_encoder.h"
#include "text/tower.h"

namespace nonlocal::text {

struct DecoderShape {
  int tokens;     // channels of the vision tower's tokens
  int embedding;  // of prompts
  int blocks;     // of the vision tower
};

class MaskDecoder {
 public:
  [[nodiscard]] static bool is_in(const Checkpoint& file);

  // Of config.json count extract_layers ([3, 6, 9]), decoder_num_attention_heads (4), conditional_layer (0).
  // Throws ModelError.
  MaskDecoder(const Checkpoint& file, const DecoderShape& shape, int threads);
  ~MaskDecoder();
  MaskDecoder(const MaskDecoder&) = delete;  // stages refer to it
  MaskDecoder& operator=(const MaskDecoder&) = delete;

  // Throws ModelError, naming the tensor, where pictures of so many patches a side would give more than
  // kMostMapColumns samples a side, or the steps before the last more values than are sensible.
  void check_side(const Checkpoint& file, int patches) const;

  // `embedding` as the text encoder gives it, not normalised.
  void set_text(std::span<const float> embedding);

  // Where the tokens of the blocks belong that run() takes, for pictures of columns x rows patches; valid
  // until the grid changes. The same grid again allocates nothing.
  std::span<const BlockTokens> prepare(int columns, int rows);
  // False if it was asked to stop: there are no logits.
  bool run(const std::stop_token& stop);

  // Valid until the grid changes: a logit a sample, from the last run().
  [[nodiscard]] ConstMatrix logits() const;

 private:
  // Transposed convolution whose stride is its kernel: a linear layer with side x side outputs a channel.
  struct Spread {
    Dense dense;
    int side;
  };
  struct Run;

  void read_last_steps(const Checkpoint& file);
  static Spread read_spread(const Checkpoint& file, const std::string& name, int inputs, int outputs,
                            Activation activation);
  void add_blocks(StageBuilder& stages, Run& run) const;
  void add_logits(StageBuilder& stages, Run& run) const;

  int threads_;
  std::vector<int> blocks_;  // of the vision tower, deepest first
  int conditional_;          // the decoder's block before which FiLM comes
  Tower tower_;
  std::vector<Dense> reduces_;
  Dense film_mul_, film_add_;
  std::optional<Dense> smooth_;  // of refined decoders, the first two of three steps
  std::optional<Spread> first_;
  std::optional<Spread> last_;
  std::vector<float> multiplier_, addend_;
  std::unique_ptr<Run> run_;
};

}  // namespace nonlocal::text
