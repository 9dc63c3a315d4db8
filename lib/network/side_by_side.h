// Pixels of few channels, several of which are calculated as one of many.
//
// A convolution of 4 output channels fills a quarter of a vector of 16 lanes. The 4 channels of 4 pixels,
// side by side in memory as they are, are one pixel of 16 channels: of a convolution with a stride of 4 whose
// taps are the layer's, moved by a pixel for each. What the moved taps leave out has weights of zero, so that
// sums of finite values stay what they are, to the last bit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace nonlocal::network {

// How many pixels of a row of `width` fill a vector; 1: no more than one.
inline int pixels_at_once(int out_channels, int width) {
  constexpr int kLanes = 16;
  const int pixels = kLanes / std::min(out_channels, kLanes);
  return pixels * out_channels == kLanes && width % pixels == 0 ? pixels : 1;
}

// `weight` is [out][in][kernel][kernel]; what comes out, [pixels * out][in][kernel][kernel + pixels - 1].
inline std::vector<float> side_by_side(const std::vector<float>& weight, int out, int in, int kernel,
                                       int pixels) {
  const std::ptrdiff_t columns = kernel + pixels - 1;
  const std::ptrdiff_t rows = static_cast<std::ptrdiff_t>(in) * kernel;  // of an output channel
  std::vector<float> wide(static_cast<std::size_t>(rows * columns * out * pixels));
  for (int pixel = 0; pixel < pixels; ++pixel) {
    for (int channel = 0; channel < out; ++channel) {
      const float* from = weight.data() + channel * rows * kernel;
      float* to = wide.data() + (pixel * out + channel) * rows * columns + pixel;
      for (std::ptrdiff_t row = 0; row < rows; ++row) {
        std::copy_n(from + row * kernel, kernel, to + row * columns);
      }
    }
  }
  return wide;
}

// A value a channel, for each pixel.
inline std::vector<float> repeated(const std::vector<float>& values, int pixels) {
  std::vector<float> all;
  for (int pixel = 0; pixel < pixels; ++pixel) {
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

}  // namespace nonlocal::network
