// Frames of float planes, for tests of networks.
#pragma once

#include <cstddef>
#include <vector>

namespace nonlocal::testing {

// Planes of floats, one after another.
struct Floats {
  Floats(int channels, int width, int height)
      : channels(channels),
        width(width),
        height(height),
        values(static_cast<std::size_t>(channels) * width * height) {}

  template <typename PlaneType>
  [[nodiscard]] std::vector<PlaneType> planes() {
    std::vector<PlaneType> all;
    for (int c = 0; c < channels; ++c) {
      all.push_back({values.data() + static_cast<std::size_t>(c) * width * height, width, height, width});
    }
    return all;
  }

  [[nodiscard]] float at(int c, int x, int y) const {
    return values[(static_cast<std::size_t>(c) * height + y) * width + x];
  }

  int channels, width, height;
  std::vector<float> values;
};

}  // namespace nonlocal::testing
