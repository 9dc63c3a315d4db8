// Files of networks with random weights, for what needs one of any shape.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "model/safetensors.h"

namespace nonlocal::testing {

inline void write_network(const std::string& path, const nlohmann::json& description,
                          const std::vector<model::NamedTensor>& tensors) {
  model::write_safetensors(
      path, {{"format", "nonlocal.network"}, {"version", "2"}, {"network", description.dump()}}, tensors);
}

// A convolution with its tensors: weights that keep the size of what goes through (He et al., ICCV 2015).
inline nlohmann::json add_convolution(const std::string& name, int in, int out, int kernel,
                                      std::vector<model::NamedTensor>& tensors) {
  std::mt19937 random(static_cast<unsigned>(tensors.size()) + 1);
  std::normal_distribution<float> weight(0, std::sqrt(2.0F / static_cast<float>(kernel * kernel * in)));
  const auto size = [](int n) { return static_cast<std::uint64_t>(n); };
  tensors.push_back({name + ".weight", {size(out), size(in), size(kernel), size(kernel)}, {}});
  for (std::uint64_t i = 0; i < size(out) * size(in) * size(kernel * kernel); ++i) {
    tensors.back().values.push_back(weight(random));
  }
  tensors.push_back({name + ".bias", {size(out)}, std::vector<float>(size(out), 0.01F)});
  return {{"name", name}, {"type", "convolution"}, {"channels", out}, {"kernel", kernel}};
}

// Gray, unshuffled by r, `layers` convolutions of 3 x 3 with ReLU between them, shuffled, added to the frame.
inline void write_plain_network(const std::string& path, int r, int channels, int layers) {
  nlohmann::json description = {{"input", {{"channels", 1}}}, {"residual", true}};
  nlohmann::json& all = description["layers"];
  std::vector<model::NamedTensor> tensors;
  all.push_back({{"name", "unshuffle"}, {"type", "pixel_unshuffle"}, {"factor", r}});
  for (int i = 0; i < layers; ++i) {
    const bool is_last = i + 1 == layers;
    all.push_back(add_convolution("conv" + std::to_string(i), i == 0 ? r * r : channels,
                                  is_last ? r * r : channels, 3, tensors));
    if (!is_last) {
      all.push_back({{"name", "relu" + std::to_string(i)}, {"type", "relu"}});
    }
  }
  all.push_back({{"name", "shuffle"}, {"type", "pixel_shuffle"}, {"factor", r}});
  write_network(path, description, tensors);
}

}  // namespace nonlocal::testing
