// The refinement network as its formula reads: double precision, one output value after another, no tiles.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "reference/non_local_means.h"

namespace nonlocal::reference {

// [out][in][3][3]
struct Convolution {
  int in;
  int out;
  std::vector<double> weight;
  std::vector<double> bias;
};

struct RefinementLayers {
  int unshuffle;
  std::vector<Convolution> layers;
};

// [channel][y][x]
struct Channels {
  int count;
  int width;
  int height;
  std::vector<double> value;

  Channels(int c, int w, int h) : count(c), width(w), height(h), value(static_cast<std::size_t>(c) * w * h) {}
  double& at(int c, int x, int y) { return value[(static_cast<std::size_t>(c) * height + y) * width + x]; }
  double at(int c, int x, int y) const {
    return value[(static_cast<std::size_t>(c) * height + y) * width + x];
  }
};

// "Valid": the output is smaller by the taps' border.
inline Channels convolve(const Channels& in, const Convolution& layer) {
  Channels out(layer.out, in.width - 2, in.height - 2);
  for (int o = 0; o < layer.out; ++o) {
    for (int y = 0; y < out.height; ++y) {
      for (int x = 0; x < out.width; ++x) {
        double sum = layer.bias[o];
        for (int i = 0; i < layer.in; ++i) {
          for (int t = 0; t < 9; ++t) {
            sum += layer.weight[(static_cast<std::size_t>(o) * layer.in + i) * 9 + t] *
                   in.at(i, x + t % 3, y + t / 3);
          }
        }
        out.at(o, x, y) = sum;
      }
    }
  }
  return out;
}

// The channels of blocks from -border on, as many as a frame of this size and the border on each side take.
inline Channels network_input(const Picture& f, const Picture& g, const Picture& s, int r, int border) {
  const int width = (f.width + r - 1) / r + 2 * border;
  const int height = (f.height + r - 1) / r + 2 * border;
  Channels in(2 * r * r + 1, width, height);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      double mean = 0;
      for (int dy = 0; dy < r; ++dy) {
        for (int dx = 0; dx < r; ++dx) {
          const int sample_x = (x - border) * r + dx;
          const int sample_y = (y - border) * r + dy;
          in.at(dy * r + dx, x, y) = f.mirrored(sample_x, sample_y) / 255 - 0.5;
          in.at(r * r + dy * r + dx, x, y) = g.mirrored(sample_x, sample_y) / 255 - 0.5;
          mean += s.mirrored(sample_x, sample_y) / (r * r);
        }
      }
      in.at(2 * r * r, x, y) = mean / 255 * 4;
    }
  }
  return in;
}

// A map of half the size at the size of the frame: each value for 2 x 2 samples.
inline Picture doubled(const Picture& half, int width, int height) {
  Picture full(width, height);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      full.at(x, y) = half.at(x / 2, y / 2);
    }
  }
  return full;
}

// Planes of one size; not rounded, not clamped.
inline Picture refined(const Picture& f, const Picture& g, const Picture& s,
                       const RefinementLayers& network) {
  const int r = network.unshuffle;
  Channels value = network_input(f, g, s, r, static_cast<int>(network.layers.size()));
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    value = convolve(value, network.layers[i]);
    if (i + 1 < network.layers.size()) {
      std::transform(value.value.begin(), value.value.end(), value.value.begin(),
                     [](double v) { return std::max(v, 0.0); });
    }
  }
  Picture out(f.width, f.height);
  for (int y = 0; y < f.height; ++y) {
    for (int x = 0; x < f.width; ++x) {
      out.at(x, y) = g.at(x, y) + 255 * value.at(y % r * r + x % r, x / r, y / r);
    }
  }
  return out;
}

}  // namespace nonlocal::reference
