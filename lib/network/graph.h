// A network as operations on planes of features: what the layers of a file come down to.
#pragma once

#include <string>
#include <vector>

namespace nonlocal::network {

// Columns x0 .. x1 - 1 of rows y0 .. y1 - 1.
struct Rect {
  int x0, y0, x1, y1;

  [[nodiscard]] int width() const { return x1 - x0; }
  [[nodiscard]] int height() const { return y1 - y0; }
  friend bool operator==(const Rect&, const Rect&) = default;
};

// A side of the frame times this is a side of the plane; in lowest terms.
struct Scale {
  int numerator = 1;
  int denominator = 1;

  [[nodiscard]] int of(int side) const { return side / denominator * numerator; }
  [[nodiscard]] Scale times(int by, int divided_by) const;
  friend bool operator==(const Scale&, const Scale&) = default;
};

enum class OpKind {
  kInput,
  kCondition,  // one value everywhere; only kConcatenate reads it
  kConvolution,
  kBatchNorm,  // only before fuse()
  kActivation,
  kPrelu,
  kMaxPool,
  kAveragePool,
  kNearest,
  kBilinear,
  kShuffle,
  kUnshuffle,
  kAdd,
  kMultiply,
  kConcatenate,
  kLayerNorm,
  kGroupNorm,
  kHistory,    // its input in this frame and those before
  kAttention,  // of queries, keys, values
};

enum class ActivationKind { kRelu, kLeakyRelu, kGelu, kSilu, kSigmoid, kTanh };

struct Activation {
  ActivationKind kind = ActivationKind::kRelu;
  float slope = 0;  // of kLeakyRelu below zero
};

// What a convolution does with its sums before it writes them, in this order.
struct PostOp {
  bool is_sum;  // adds the tensor that is the convolution's second input
  Activation activation;
};

enum class AttentionFunction {
  kSoftmax,     // exp(scale q.k) / sum of them
  kDotProduct,  // q.k / number of keys
  kSumRelu,     // max(0, q + k) / number of keys; q and k have one channel
};

// Where a query's keys are.
enum class AttentionReach {
  kFrame,     // everywhere, in all frames that the keys' history has
  kWindow,    // in its window
  kPosition,  // where it is, in all frames
};

// Writes one tensor. Which fields count depends on the kind.
struct Op {
  OpKind kind{};
  std::string layer;        // the file's name for the layer that it belongs to
  std::vector<int> inputs;  // the operations that wrote them, all before this one
  int channels = 0;
  Scale scale;
  int margin = 0;  // positions of the plane beyond each side of the frame: kInput, and kUnshuffle of it

  int kernel = 1, stride = 1, padding = 0, dilation = 1;  // convolution and pooling
  int groups = 1;                                         // of channels: convolution, group norm
  bool counts_padding = true;                             // kAveragePool
  int factor = 1;                                         // kNearest to kUnshuffle
  Activation activation;                                  // kActivation
  std::vector<PostOp> posts;                              // kConvolution
  // Convolution [out][in / groups][kernel][kernel] and [out]; norms [channels] both; kPrelu [channels].
  std::vector<float> weight, bias;
  float epsilon = 0;             // kLayerNorm, kGroupNorm
  std::vector<float> low, high;  // [channels]: what the output's values are, where the file says so

  AttentionFunction function = AttentionFunction::kSoftmax;
  AttentionReach reach = AttentionReach::kFrame;
  int heads = 1;
  float score_scale = 1;
  int window = 1;                    // kWindow: its side
  std::vector<float> position_bias;  // kWindow: [heads][window²][window²], added to scores; or empty
  int frames = 1;                    // kHistory

  // Whether each value of the output depends on the whole plane, or on other frames.
  [[nodiscard]] bool is_global() const;
  [[nodiscard]] bool has_sum() const;
  // Whether values go through it as they are, to other places.
  [[nodiscard]] bool is_rearrangement() const {
    return kind == OpKind::kShuffle || kind == OpKind::kUnshuffle;
  }
};

// The part of its input `index` that an operation needs for the part `out` of its output; `whole` is the
// input's plane.
Rect needed(const Op& op, std::size_t index, const Rect& out, const Rect& whole);

// The smallest that holds both; one without area counts for nothing.
Rect hull(const Rect& a, const Rect& b);

// Operations a value of the output's plane, all channels, two a multiplication with its addition. Attention
// over the whole frame is not counted.
double operations(const Op& op, const std::vector<Op>& all);

// The graph with less to do: batch norms become part of the convolution before, or a convolution of their
// own; activations and sums that follow a convolution its post-ops. `output` is the operation that writes the
// output, before and after. What nothing reads is gone.
std::vector<Op> fuse(std::vector<Op> ops, int& output);

}  // namespace nonlocal::network
