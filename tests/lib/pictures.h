// Pictures for tests of averages: flat, regular, random, textured, with noise; and as the reference takes
// them.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "image.h"
#include "reference/non_local_means.h"

namespace nonlocal::testing {

// What a picture may be like. Each gives a sample in 0 .. 1 for a place.
using Content = std::function<double(int x, int y, std::mt19937& random)>;

inline const std::vector<std::pair<std::string, Content>>& contents() {
  static const std::vector<std::pair<std::string, Content>> all = {
      {"Black", [](int, int, std::mt19937&) { return 0.0; }},
      {"White", [](int, int, std::mt19937&) { return 1.0; }},
      {"Grey", [](int, int, std::mt19937&) { return 0.5; }},
      {"Ramp", [](int x, int y, std::mt19937&) { return std::fmod((x * 3 + y) / 255.0, 1.0); }},
      {"Random", [](int, int, std::mt19937& r) { return std::uniform_real_distribution<>(0, 1)(r); }},
      {"Extremes", [](int, int, std::mt19937& r) { return r() % 2 ? 1.0 : 0.0; }},
      {"HotPixels", [](int x, int y, std::mt19937&) { return x % 11 == 5 && y % 7 == 3 ? 1.0 : 0.3; }},
      {"Texture",
       [](int x, int y, std::mt19937&) {
         return 0.5 + 0.25 * std::sin(x * 0.4) * std::cos(y * 0.3) + (x + y > 60 ? 0.2 : 0.0);
       }},
  };
  return all;
}

inline Image make(const Content& content, double noise, int width, int height, int bit_depth, int planes,
                  unsigned seed, const Layout& layout = {}) {
  std::mt19937 random(seed);
  std::normal_distribution<double> gauss(0, 1);
  Image image(width, height, bit_depth, planes, layout);
  const int most = (1 << bit_depth) - 1;
  for (int c = 0; c < planes; ++c) {
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        const double value = content(x + 13 * c, y, random) * 255 + noise * gauss(random);
        image.set(c, x, y, std::clamp(static_cast<int>(std::lround(value / 255 * most)), 0, most));
      }
    }
  }
  return image;
}

inline std::vector<reference::Picture> as_pictures(const Image& image) {
  std::vector<reference::Picture> pictures;
  const double scale = std::ldexp(1.0, 8 - image.bit_depth());
  for (int c = 0; c < image.planes(); ++c) {
    reference::Picture p(image.width(), image.height());
    for (int y = 0; y < image.height(); ++y) {
      for (int x = 0; x < image.width(); ++x) {
        p.at(x, y) = image.get(c, x, y) * scale;
      }
    }
    pictures.push_back(std::move(p));
  }
  return pictures;
}

}  // namespace nonlocal::testing
