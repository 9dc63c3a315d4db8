// The refinement network as its file has it, and the convolutions that calculate it.
#pragma once

#include <string>
#include <vector>

#include "nonlocal/refinement.h"

namespace nonlocal::network {

// A convolution of 3 x 3.
struct Layer {
  int in_channels;
  int out_channels;
  std::vector<float> weight;   // [out][in][3][3]
  std::vector<float> bias;     // [out]
  std::vector<float> maximum;  // [out] of what ReLU makes of it; empty where the file has none
};

struct RefinementModel {
  // Throws ModelError.
  explicit RefinementModel(const std::string& path);

  [[nodiscard]] int in_channels() const { return 2 * unshuffle * unshuffle + 1; }
  [[nodiscard]] int out_channels() const { return unshuffle * unshuffle; }

  int unshuffle;
  int channels;
  std::vector<Layer> layers;
};

// What a convolution of one precision reads: input in code values (see InputScale), the weights rounded to
// the precision, and the bias to match.
//
//   kFloat32, kBfloat16: out = sum of weight * in, + bias
//   kInt8:               out = scale (sum of weight * in, + bias), weights whole numbers from -127 to 127
struct PreparedLayer {
  int in_channels;
  int out_channels;
  std::vector<float> weight;
  std::vector<float> bias;
  std::vector<float> scale;  // [out], of kInt8 alone
};

// What the first convolution reads is (value - offset) * scale, of f and g in code values and of s.
struct InputScale {
  float offset;  // of f and g
  float sigma_scale;
};

InputScale input_scale(NetworkPrecision precision);

// The layers for input of input_scale(precision). For kInt8 every layer must have its maxima.
std::vector<PreparedLayer> prepare_layers(const RefinementModel& model, NetworkPrecision precision);

}  // namespace nonlocal::network
