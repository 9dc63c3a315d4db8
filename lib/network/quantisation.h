// Tensors of 8 bits: which of a network's may be bytes, what a byte of theirs is worth, and the weights of
// convolutions that read them.
//
// value = scale[channel] (byte - zero), the quantisation of B. Jacob et al.: Quantization and Training of
// Neural Networks for Efficient Integer-Arithmetic-Only Inference, CVPR 2018, with a scale for each channel:
// relu and leaky relu are homogeneous, so that the next layer's weights take the scales up.
#pragma once

#include <memory>
#include <vector>

#include "network/graph.h"

namespace nonlocal::network {

struct NetworkModel;

struct Quantisation {
  float zero;                // the byte of 0; whole, but for a frame's that is not padded
  std::vector<float> scale;  // [channels], above 0

  [[nodiscard]] int whole_zero() const;
};

// What each operation's output is as bytes; null where it stays in floating point.
using Quantisations = std::vector<std::shared_ptr<const Quantisation>>;

// For the operations whose range the file tells ("NAME.range") and those that only rearrange such, as far as
// what writes and reads them can do so in bytes.
Quantisations quantise(const NetworkModel& model);

// A convolution of bytes: out = scale (sum of weight (byte - the input's whole zero), + bias), in units of
// the output's bytes where it has such, less their zero.
struct ByteWeights {
  std::vector<float> weight;  // whole numbers from -127 to 127, [out][in][kernel][kernel]
  std::vector<float> bias;    // [out]
  std::vector<float> scale;   // [out]
};

// `out` is null where floating point is written. Each weight takes up what rounding left of those before it,
// so that their sum stays: neighbours are nearly equal, and what is flat keeps its value.
ByteWeights byte_weights(const Op& op, const Quantisation& in, const Quantisation* out);

}  // namespace nonlocal::network
