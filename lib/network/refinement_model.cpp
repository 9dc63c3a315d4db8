#include "network/refinement_model.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "model/safetensors.h"
#include "nonlocal/error.h"

namespace nonlocal::network {
namespace {

constexpr int kTaps = 9;
constexpr float kWhite = 255.0F;

void expect_metadata(const model::Safetensors& file, const std::string& key, const std::string& expected) {
  const auto found = file.metadata(key);
  if (found != expected) {
    throw ModelError(file.path(), "expected metadata \"" + key + "\" to be \"" + expected + "\"" +
                                      (found ? ", found another" : ", found none"));
  }
}

int number(const model::Safetensors& file, const std::string& key, int least, int most) {
  const std::string text = file.metadata(key).value_or("");
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    throw ModelError(file.path(), "expected metadata \"" + key + "\" to be a number from " +
                                      std::to_string(least) + " to " + std::to_string(most));
  }
  return value;
}

Layer read_layer(const model::Safetensors& file, const std::string& name, int in, int out) {
  const auto in_channels = static_cast<std::uint64_t>(in);
  const auto out_channels = static_cast<std::uint64_t>(out);
  Layer layer{in,
              out,
              file.floats(name + ".weight", {out_channels, in_channels, 3, 3}),
              file.floats(name + ".bias", {out_channels}),
              {}};
  if (file.has(name + ".maximum")) {
    layer.maximum = file.floats(name + ".maximum", {out_channels});
  }
  return layer;
}

float largest(const float* first, std::size_t count) {
  return std::abs(
      *std::max_element(first, first + count, [](float a, float b) { return std::abs(a) < std::abs(b); }));
}

// The channels of `layer` in units of their maxima: ReLU(a x) = a ReLU(x) for a > 0, so that what is divided
// by here is multiplied by in the next layer. A channel that hardly ever is above 0 is not blown up without
// end.
void equalise(Layer& layer, Layer& next) {
  const float least = std::max(1e-3F * largest(layer.maximum.data(), layer.maximum.size()), 1e-20F);
  for (int c = 0; c < layer.out_channels; ++c) {
    const float maximum = std::max(layer.maximum[c], least);
    layer.bias[c] /= maximum;
    const std::size_t taps = static_cast<std::size_t>(layer.in_channels) * kTaps;
    std::for_each_n(layer.weight.begin() + c * taps, taps, [=](float& w) { w /= maximum; });
    for (int o = 0; o < next.out_channels; ++o) {
      std::for_each_n(next.weight.begin() + (static_cast<std::size_t>(o) * next.in_channels + c) * kTaps,
                      kTaps, [=](float& w) { w *= maximum; });
    }
  }
}

// Everything in 255 steps: input code values, as they are, and what ReLU leaves of channels from 0 to 1.
PreparedLayer quantised(const Layer& layer, bool is_last) {
  PreparedLayer out{layer.in_channels, layer.out_channels, layer.weight, layer.bias, {}};
  const std::size_t taps = static_cast<std::size_t>(layer.in_channels) * kTaps;
  for (int c = 0; c < layer.out_channels; ++c) {
    float* weight = out.weight.data() + c * taps;
    const float most = largest(weight, taps);
    const float step = most > 0 ? most / 127 : 1;
    std::for_each_n(weight, taps, [=](float& w) { w = std::nearbyint(w / step); });
    out.bias[c] *= kWhite / step;
    out.scale.push_back(is_last ? step / kWhite : step);
  }
  return out;
}

float sum_of(const std::vector<float>& values, std::size_t first, std::size_t count) {
  double sum = 0;
  for (std::size_t i = first; i < first + count; ++i) {
    sum += values[i];
  }
  return static_cast<float>(sum);
}

// f / 255 - 1/2 is (f - offset) / 255 and a constant, which goes into the bias with the weights as they are
// rounded.
void move_offset_to_bias(PreparedLayer& first, int pixels, float offset, float unit) {
  const std::size_t taps = static_cast<std::size_t>(first.in_channels) * kTaps;
  for (int c = 0; c < first.out_channels; ++c) {
    first.bias[c] += (offset - kWhite / 2) * unit * sum_of(first.weight, c * taps, 2 * pixels * kTaps);
  }
}

void scale_weights(Layer& layer, int first_channel, int last_channel, float by) {
  for (int o = 0; o < layer.out_channels; ++o) {
    for (int i = first_channel; i < last_channel; ++i) {
      std::for_each_n(layer.weight.begin() + (static_cast<std::size_t>(o) * layer.in_channels + i) * kTaps,
                      kTaps, [=](float& w) { w *= by; });
    }
  }
}

}  // namespace

RefinementModel::RefinementModel(const std::string& path) {
  const model::Safetensors file(path);
  expect_metadata(file, "format", "nonlocal.refinement");
  expect_metadata(file, "version", "1");
  unshuffle = number(file, "unshuffle", 2, 4);
  if (unshuffle == 3) {
    throw ModelError(path, "expected metadata \"unshuffle\" to be 2 or 4, found 3");
  }
  channels = number(file, "channels", 1, 512);
  const int count = number(file, "layers", 1, 32);
  for (int i = 0; i < count; ++i) {
    layers.push_back(read_layer(file, "conv" + std::to_string(i), i == 0 ? in_channels() : channels,
                                i == count - 1 ? out_channels() : channels));
  }
}

InputScale input_scale(NetworkPrecision precision) {
  switch (precision) {
    case NetworkPrecision::kInt8:
      return {0, 4};
    default:
      // Whole code values less 128 are exact in bfloat16, their fractions are finest about the middle.
      return {128, 1};
  }
}

std::vector<PreparedLayer> prepare_layers(const RefinementModel& model, NetworkPrecision precision) {
  std::vector<Layer> layers = model.layers;
  std::vector<PreparedLayer> prepared;
  const int pixels = model.out_channels();
  const float offset = input_scale(precision).offset;
  if (precision == NetworkPrecision::kInt8) {
    for (std::size_t i = 0; i + 1 < layers.size(); ++i) {
      equalise(layers[i], layers[i + 1]);
    }
    for (std::size_t i = 0; i < layers.size(); ++i) {
      prepared.push_back(quantised(layers[i], i + 1 == layers.size()));
    }
    // Biases are in units of the sums, which count code values.
    move_offset_to_bias(prepared[0], pixels, offset, 1);
    return prepared;
  }
  scale_weights(layers[0], 0, 2 * pixels, 1 / kWhite);
  scale_weights(layers[0], 2 * pixels, 2 * pixels + 1, 4 / kWhite);
  for (const Layer& layer : layers) {
    prepared.push_back({layer.in_channels, layer.out_channels, layer.weight, layer.bias, {}});
  }
  move_offset_to_bias(prepared[0], pixels, offset, 1);
  return prepared;
}

}  // namespace nonlocal::network
