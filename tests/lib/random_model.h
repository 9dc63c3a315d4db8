// Model files of the refinement network with random weights, for what needs one of any shape.
#pragma once

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "model/safetensors.h"

namespace nonlocal::testing {

struct ModelShape {
  int unshuffle;
  int channels;
  int layers;
};

// Weights that keep the size of what goes through (He et al., ICCV 2015), the last ones less.
inline std::vector<model::NamedTensor> random_tensors(const ModelShape& shape, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::vector<model::NamedTensor> tensors;
  for (int i = 0; i < shape.layers; ++i) {
    const bool is_last = i + 1 == shape.layers;
    const auto in =
        static_cast<std::uint64_t>(i == 0 ? 2 * shape.unshuffle * shape.unshuffle + 1 : shape.channels);
    const auto out = static_cast<std::uint64_t>(is_last ? shape.unshuffle * shape.unshuffle : shape.channels);
    const float deviation = std::sqrt(2.0F / static_cast<float>(9 * in)) * (is_last ? 0.1F : 1.0F);
    std::normal_distribution<float> weight(0, deviation);
    std::normal_distribution<float> bias(0, is_last ? 0.005F : 0.05F);
    model::NamedTensor weights{"conv" + std::to_string(i) + ".weight", {out, in, 3, 3}, {}};
    model::NamedTensor biases{"conv" + std::to_string(i) + ".bias", {out}, {}};
    for (std::uint64_t n = 0; n < out * in * 9; ++n) {
      weights.values.push_back(weight(random));
    }
    for (std::uint64_t n = 0; n < out; ++n) {
      biases.values.push_back(bias(random));
    }
    tensors.push_back(weights);
    tensors.push_back(biases);
  }
  return tensors;
}

inline std::map<std::string, std::string> model_metadata(const ModelShape& shape) {
  return {{"format", "nonlocal.refinement"},
          {"version", "1"},
          {"unshuffle", std::to_string(shape.unshuffle)},
          {"layers", std::to_string(shape.layers)},
          {"channels", std::to_string(shape.channels)}};
}

inline void write_random_model(const std::string& path, const ModelShape& shape, unsigned seed = 1) {
  model::write_safetensors(path, model_metadata(shape), random_tensors(shape, seed));
}

}  // namespace nonlocal::testing
