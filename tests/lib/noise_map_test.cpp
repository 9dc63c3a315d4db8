#include "denoise/noise_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "image.h"

namespace nonlocal {
namespace {

using nonlocal::testing::Image;
using nonlocal::testing::Layout;

Image random_image(int width, int height, int bit_depth, int planes, const Layout& layout = {}) {
  Image image(width, height, bit_depth, planes, layout);
  std::mt19937 random(7);
  for (int c = 0; c < planes; ++c) {
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        // Places darker and brighter than the ends of the curve, too.
        const double value =
            127.5 + 120 * std::sin(0.11 * x + 0.07 * y + c) + static_cast<int>(random() % 15) - 7;
        image.set(c, x, y, static_cast<int>(std::ldexp(std::clamp(value, 0.0, 255.0), bit_depth - 8)));
      }
    }
  }
  return image;
}

// The variance of the noise of the brightness around cell (x, y), literally.
double variance_of(const Image& image, int x, int y, const NoiseCurve& noise) {
  const int cells = (image.width() + 1) / 2;
  const int rows = (image.height() + 1) / 2;
  double sum = 0;
  for (int c = 0; c < image.planes(); ++c) {
    for (int cell_y = y - 1; cell_y <= y + 1; ++cell_y) {
      for (int cell_x = x - 1; cell_x <= x + 1; ++cell_x) {
        for (int i = 0; i < 4; ++i) {
          const int px = 2 * std::clamp(cell_x, 0, cells - 1) + i % 2;
          const int py = 2 * std::clamp(cell_y, 0, rows - 1) + i / 2;
          sum += image.get(c, std::min(px, image.width() - 1), std::min(py, image.height() - 1));
        }
      }
    }
  }
  return noise.variance(std::ldexp(sum / (36 * image.planes()), 8 - image.bit_depth()));
}

void compare(const Image& image, const NoiseCurve& noise, double strength, int threads) {
  NoiseMap map;
  map.make(image.views(), noise, strength, threads);
  const ConstPlane variance = map.variance();
  const ConstPlane deviation = map.deviation();
  ASSERT_EQ(variance.width, (image.width() + 1) / 2);
  ASSERT_EQ(variance.height, (image.height() + 1) / 2);
  const double largest = noise.largest() * noise.largest();
  for (int y = 0; y < variance.height; ++y) {
    for (int x = 0; x < variance.width; ++x) {
      const double expected = variance_of(image, x, y, noise);
      const auto at = [&](const ConstPlane& p) {
        return reinterpret_cast<const std::uint16_t*>(p.row(y))[x];
      };
      ASSERT_NEAR(at(variance), 65535 * expected / largest, 1.5) << x << ", " << y;
      ASSERT_NEAR(at(deviation), 256 * strength * std::sqrt(expected), 1.5) << x << ", " << y;
    }
  }
}

TEST(NoiseMap, IsThatOfTheBrightnessAround) {
  for (const int planes : {1, 3}) {
    for (const int bit_depth : {8, 10, 16}) {
      for (const NoiseCurve& noise : {NoiseCurve(2, 20), NoiseCurve(12, 5), NoiseCurve(0, 30)}) {
        compare(random_image(83, 61, bit_depth, planes), noise, 1.5, 2);
      }
    }
  }
}

TEST(NoiseMap, OfEverySizeFromOnePixel) {
  for (int height = 1; height <= 7; ++height) {
    for (int width = 1; width <= 7; ++width) {
      compare(random_image(width, height, 8, 1), {3, 9}, 1, 1);
    }
  }
}

TEST(NoiseMap, OfEveryLayout) {
  for (const int bit_depth : {8, 12}) {
    for (const int step : {1, 2, 4}) {
      const int shift = bit_depth == 8 ? 0 : 4;
      compare(random_image(40, 33, bit_depth, 1, {step, shift, 3, 0, true}), {3, 9}, 1, 2);
    }
  }
}

TEST(NoiseMap, ThreadsDoNotMatter) {
  const Image image = random_image(121, 203, 8, 1);
  NoiseMap one;
  one.make(image.views(), {3, 9}, 1, 1);
  NoiseMap more;
  more.make(image.views(), {3, 9}, 1, 5);
  const std::size_t bytes = static_cast<std::size_t>(one.variance().stride) * one.variance().height;
  EXPECT_TRUE(std::equal(one.variance().data, one.variance().data + bytes, more.variance().data));
}

}  // namespace
}  // namespace nonlocal
