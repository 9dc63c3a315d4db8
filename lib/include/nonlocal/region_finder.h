// A prompt finds the regions of a frame that answer it, with a model that its user owns.
//
//   α = C(O(f(v), q)),   v' = αᵀ g(v)
//
// v are the frame's regions (patches), q the prompt's embedding, f(v) and g(v) the patches' embeddings, O how
// much alike they are, C the softmax over the patches. Two kinds of models answer:
//
// CLIP, not trained for it (A. Radford et al., ICML 2021): O = s cos(q, f(v)), s = exp(logit_scale), 100
// where the file has none. What a patch's embedding is, is RegionFeatures' to say. The map is the relevance
// of LERF (J. Kerr et al.: LERF: Language embedded radiance fields, ICCV 2023): how much more a patch is like
// the prompt than like phrases that say nothing, "object", "things", "stuff" and "texture",
//
//   relevance = min over phrases p of exp(s cos(q, f)) / (exp(s cos(q, f)) + exp(s cos(p, f)))
//
// 0 to 1, 0.5: no more like the prompt than like anything. Its cells are the patches.
//
// CLIPSeg, whose decoder was trained for it (T. Lüddecke, A. Ecker: Image segmentation using text and image
// prompts, CVPR 2022): the map is the sigmoid of the decoder's logits, one a sample of what the model saw; O
// is a patch's mean logit, g(v) its embedding by MaskCLIP.
//
// Frames are seen whole, brought to the size that the model was trained with: by CLIP its short side, the
// other one by the frame's shape (8 times as long at the most) to whole patches; by CLIPSeg both sides. They
// are filtered down, or up, as Pillow does it: cubic convolution with a = -0.5, or linear interpolation where
// preprocessor_config.json says "resample": 2, stretched by the factor where that is above 1, borders left
// out (R. Keys: Cubic convolution interpolation for digital image processing, 1981). Chroma is resampled from
// its own plane, whose site counts; R, G and B are clamped to 0 .. 1 last.
#pragma once

#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "nonlocal/attention.h"
#include "nonlocal/colour_format.h"
#include "nonlocal/export.h"
#include "nonlocal/matrix.h"
#include "nonlocal/plane.h"
#include "nonlocal/text_encoder.h"

namespace nonlocal {

// What a patch's embedding is: see VisionOutputs. CLIPSeg's map does not depend on it.
enum class RegionFeatures {
  kGem,       // self-self attention beside the last blocks: regions that belong together agree
  kMaskClip,  // the last block without its attention: a third faster
};

struct RegionFinderParameters {
  AttentionPrecision precision = AttentionPrecision::kFloat32;  // as EncoderParameters::precision
  int threads = 0;  // 0: as many as the machine has; the output does not depend on it
  RegionFeatures features = RegionFeatures::kGem;
  // Samples on the frame's short side, or on both for CLIPSeg; a multiple of the patch's, up to 4096. 0: as
  // the model was trained. More give a finer map and take more time; positions are interpolated.
  int side = 0;
};

// Finds regions in frames one after another. Working memory is kept: from the second frame of one size and
// format on, find() allocates nothing. It takes tens of milliseconds to seconds. One object serves one thread
// at a time; different objects are independent.
class NONLOCAL_API RegionFinder {
 public:
  // `path` and `tokenizer` as TextEncoder takes them: a folder as Hugging Face's, or a safetensors file. With
  // tensors of a decoder ("decoder.film_mul.weight") it is CLIPSeg. Throws ModelError, naming file, tensor,
  // what was expected and found, if a file is missing or wrong, there is no vocabulary or one of another
  // size, or prompts and patches have embeddings of different sizes; InvalidArgument if a parameter is out of
  // range or the precision is not supported.
  explicit RegionFinder(const std::string& path, const RegionFinderParameters& parameters = {},
                        const std::string& tokenizer = "");
  ~RegionFinder();
  RegionFinder(RegionFinder&&) noexcept;
  RegionFinder& operator=(RegionFinder&&) noexcept;

  [[nodiscard]] bool has_decoder() const;              // CLIPSeg
  [[nodiscard]] int embedding_size() const;            // of prompts and patches
  [[nodiscard]] AttentionPrecision precision() const;  // never kAutomatic
  [[nodiscard]] const Tokenizer& tokenizer() const;

  // What is sought from the next find() on. Whether it was cut or had invalid bytes is in text(). An empty
  // prompt is encoded like any other; callers may want to leave it out.
  void set_text(std::string_view text);
  [[nodiscard]] const TextEmbedding& text() const;  // without ids before set_text()

  // `frame`: planes as FrameGrader's. Throws InvalidArgument if they do not fit the format, there is no text
  // yet, or there would be more than 65,535 patches; ModelError if the model gives values that are not
  // finite. Asked to stop, by any thread, it ends within a part of a layer, milliseconds, and tells false:
  // what it found before stays.
  bool find(std::span<const ConstPlane> frame, const ColourFormat& format, const std::stop_token& stop = {});

  // Of the last frame that was not stopped, valid until the next one; empty before the first.
  [[nodiscard]] ConstMatrix map() const;                // 0 to 1, over the whole frame
  [[nodiscard]] std::span<const float> pooled() const;  // v', embedding_size() floats, not normalised

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nonlocal
