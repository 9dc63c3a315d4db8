// Operations bound to their memory: all that a frame does is run them.
#pragma once

#include <cstddef>
#include <dnnl.hpp>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "network/graph.h"
#include "network/quantisation.h"

namespace nonlocal::network {

enum class Element { kFloat32, kBfloat16, kByte };

// Where the values of a tensor lie: rows of positions, the channels of each side by side. `pitch` of them lie
// there, those beyond `channels` of them zero, or in bytes anything.
struct TensorView {
  std::byte* data = nullptr;
  Rect rect{};  // the part of the plane that is stored
  int channels = 0;
  int pitch = 0;
  Element element = Element::kFloat32;
  int frames = 1;                              // stored one after another
  const Quantisation* quantisation = nullptr;  // of bytes

  [[nodiscard]] bool is_wide() const { return element == Element::kFloat32; }
  [[nodiscard]] int value_bytes() const {
    return element == Element::kFloat32 ? 4 : element == Element::kBfloat16 ? 2 : 1;
  }
  [[nodiscard]] std::size_t position_bytes() const { return static_cast<std::size_t>(pitch) * value_bytes(); }
  [[nodiscard]] std::size_t row_bytes() const { return position_bytes() * rect.width(); }
  [[nodiscard]] std::size_t frame_bytes() const { return row_bytes() * rect.height(); }
  [[nodiscard]] std::byte* at(int x, int y) const {
    return data + static_cast<std::size_t>(y - rect.y0) * row_bytes() +
           static_cast<std::size_t>(x - rect.x0) * position_bytes();
  }
};

// A piece of an operation. Run by one thread at a time, with memory of its own beside.
struct Step {
  std::size_t scratch_bytes = 0;
  std::function<bool(std::byte* scratch)> run;  // false if oneDNN fails
};

// Steps that may run at the same time, after all of the stage before.
using Stage = std::vector<Step>;

struct TileWeights;  // tile_convolution.h

// A convolution's weights as the file has them, or as bytes are multiplied by them, and in each order that
// oneDNN prefers.
class ConvolutionWeights {
 public:
  // For inputs and outputs of so many channels side by side, those that fill up included; for bytes with the
  // output's `scale`, else none.
  ConvolutionWeights(const Op& op, int in_channels, int in_pitch, int out_pitch,
                     const std::vector<float>& scale = {});

  [[nodiscard]] const dnnl::memory::dims& dims() const { return dims_; }
  [[nodiscard]] const dnnl::memory& bias() const { return bias_; }
  [[nodiscard]] const std::vector<float>& scale() const { return scale_; }
  dnnl::memory in_order(const dnnl::memory::desc& wanted);
  // Of so many pixels at once (see side_by_side.h), of one group. Always as many as at first.
  ConvolutionWeights& of_pixels(int pixels);
  const TileWeights& in_tiles(const Op& op);

 private:
  ConvolutionWeights(const ConvolutionWeights& each, int pixels);

  dnnl::memory::dims dims_;
  dnnl::memory plain_;
  dnnl::memory bias_;
  std::vector<float> scale_;
  std::vector<dnnl::memory> reordered_;
  std::shared_ptr<const TileWeights> in_tiles_;
  std::unique_ptr<ConvolutionWeights> of_pixels_;
};

// What a step calculates: the part `part` of the output, as wide as what is stored of it. The inputs' planes
// have the sizes `planes`, {0, 0, width, height} each.
struct StepPlace {
  std::vector<TensorView> inputs;
  std::vector<Rect> planes;
  TensorView out;
  Rect part{};
};

// A convolution whose sum already lies where it writes (`sum_is_there`), or is copied there first.
Step convolution_step(const Op& op, ConvolutionWeights& weights, const StepPlace& place, bool sum_is_there);

// Each operation that is no convolution, attention, group norm or history. `condition` is where its value is
// when the step runs.
Step simple_step(const Op& op, const StepPlace& place, const float* condition);

// Group norm in two stages over `parts` of the plane: sums of each part, then what they make of it.
std::vector<Stage> group_norm_stages(const Op& op, const StepPlace& place, const std::vector<Rect>& parts);

// Keeps its input in frame `*frame` modulo the number of frames, in all of them where `*frame` is 0.
Step history_step(const StepPlace& place, const int* frame);

// Whether `view` holds no columns beside those of `part`.
bool is_dense(const TensorView& view, const Rect& part);

// Copies `part` to rows without gaps.
void copy_part(const TensorView& from, const Rect& part, std::byte* to);

}  // namespace nonlocal::network
