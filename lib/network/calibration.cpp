#include "network/calibration.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "network/convolution.h"
#include "network/tile.h"

namespace nonlocal::network {
namespace {

constexpr float kMargin = 1.25F;
constexpr int kPixels = 48;  // the width and the height of the picture, in blocks of r x r samples
constexpr float kSigmas[] = {0, 3, 10, 25, 50};
constexpr float kLeft = 0.2F;  // of the noise, in the estimate

// 16 bits a sample, so that noise has its fractions.
struct Picture {
  explicit Picture(int size) : size(size), sample(static_cast<std::size_t>(size) * size) {}
  void set(int x, int y, float code) {
    sample[static_cast<std::size_t>(y) * size + x] =
        static_cast<std::uint16_t>(std::clamp(std::lround(code * 256), 0L, 65535L));
  }
  [[nodiscard]] ConstPlane view() const {
    return {reinterpret_cast<const std::byte*>(sample.data()), size, size,
            2 * static_cast<std::ptrdiff_t>(size), 16};
  }

  int size;
  std::vector<std::uint16_t> sample;
};

// Waves from slow to as fast as samples allow, black and white checks of several sizes, ramps.
float clean(int x, int y, int size) {
  const int half = size / 2;
  if (y < half && x < half) {
    const auto t = static_cast<float>(x);
    return 127.5F +
           127.5F * std::sin(3.14F * t * t / static_cast<float>(size) + 0.2F * static_cast<float>(y));
  }
  if (y < half) {
    const int check = 1 << (4 * (x - half) / half);
    return ((x / check + y / check) & 1) != 0 ? 255.0F : 0.0F;
  }
  return 255.0F * static_cast<float>(x) / static_cast<float>(size);
}

void take_maxima(const std::vector<float>& values, std::vector<float>& maxima) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    float& maximum = maxima[i % maxima.size()];
    maximum = std::max(maximum, values[i]);
  }
}

void run_layers(const std::vector<Convolution>& convolutions, std::vector<float> in,
                std::vector<std::vector<float>>& maxima) {
  for (std::size_t i = 0; i + 1 < convolutions.size(); ++i) {
    std::vector<float> out(convolutions[i].out_bytes() / sizeof(float));
    std::vector<std::byte> scratch(convolutions[i].scratch_bytes() + 1);
    BoundConvolution(convolutions[i], in.data(), out.data(), scratch.data()).run();
    take_maxima(out, maxima[i]);
    in = std::move(out);
  }
}

}  // namespace

void complete_maxima(RefinementModel& model) {
  const int layer_count = static_cast<int>(model.layers.size());
  const TileShape tile{model.unshuffle, layer_count, kPixels, kPixels};
  const std::vector<PreparedLayer> layers = prepare_layers(model, NetworkPrecision::kFloat32);
  std::vector<Convolution> convolutions;
  std::vector<std::vector<float>> maxima;
  for (int i = 0; i < layer_count; ++i) {
    const int size = kPixels + 2 * (layer_count - 1 - i);
    convolutions.emplace_back(layers[static_cast<std::size_t>(i)], NetworkPrecision::kFloat32, size, size,
                              i + 1 == layer_count);
    maxima.emplace_back(static_cast<std::size_t>(layers[static_cast<std::size_t>(i)].out_channels));
  }

  const int size = kPixels * model.unshuffle;
  const TileColumn column(tile, 0, size);
  TileRows rows(tile, NetworkPrecision::kFloat32);
  std::mt19937 random(1);
  for (const float sigma : kSigmas) {
    Picture noisy(size);
    Picture estimate(size);
    for (int y = 0; y < size; ++y) {
      for (int x = 0; x < size; ++x) {
        // The sum of twelve even ones is nearly normal, and the same with every standard library.
        float noise = -6;
        for (int i = 0; i < 12; ++i) {
          noise += static_cast<float>(random()) / 4294967296.0F;
        }
        noisy.set(x, y, clean(x, y, size) + sigma * noise);
        estimate.set(x, y, clean(x, y, size) + kLeft * sigma * noise);
      }
    }
    std::vector<float> in(convolutions[0].in_bytes() / sizeof(float));
    rows.load({noisy.view(), estimate.view(), {}, sigma, {}}, column, 0, in.data());
    run_layers(convolutions, std::move(in), maxima);
  }
  for (std::size_t i = 0; i + 1 < model.layers.size(); ++i) {
    if (model.layers[i].maximum.empty()) {
      std::for_each(maxima[i].begin(), maxima[i].end(), [](float& m) { m *= kMargin; });
      model.layers[i].maximum = maxima[i];
    }
  }
}

}  // namespace nonlocal::network
