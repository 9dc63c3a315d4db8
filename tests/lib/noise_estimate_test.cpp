#include "nonlocal/noise_estimate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "nonlocal/error.h"

namespace nonlocal {
namespace {

// A grey picture in 8-bit code values, not rounded and not clipped.
struct Picture {
  int width = 0;
  int height = 0;
  std::vector<double> values;

  double& at(int x, int y) { return values[static_cast<std::size_t>(y) * width + x]; }
};

Picture draw(int width, int height, const std::function<double(int, int)>& value) {
  Picture picture{width, height, {}};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      picture.values.push_back(value(x, y));
    }
  }
  return picture;
}

Picture flat(double value, int width = 320, int height = 240) {
  return draw(width, height, [&](int, int) { return value; });
}

Picture add_noise(Picture picture, double sigma, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  for (double& value : picture.values) {
    value += sigma * normal(random);
  }
  return picture;
}

// Smooth shading, discs and bars with hard edges, patches of waves and of random texture, some of it plain.
Picture textured(unsigned seed, int width = 480, int height = 360) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform;
  const double slope_x = 60 * uniform(random) - 30;
  const double slope_y = 60 * uniform(random) - 30;
  Picture picture = draw(width, height, [&](int x, int y) {
    return 120 + slope_x * x / width + slope_y * y / height + 10 * std::sin(x * 0.011 + y * 0.017);
  });
  for (int i = 0; i < 40; ++i) {
    const double centre_x = width * uniform(random);
    const double centre_y = height * uniform(random);
    const double radius = 10 + 40 * uniform(random);
    const double offset = 80 * uniform(random) - 40;
    const double wave = 25 * uniform(random);
    const double frequency_x = 1.5 * uniform(random);
    const double frequency_y = 1.5 * uniform(random);
    const bool rough = uniform(random) < 0.3;
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        if (std::hypot(x - centre_x, y - centre_y) < radius) {
          const double texture = std::sin(frequency_x * x + frequency_y * y);
          picture.at(x, y) += offset + (rough ? 2 * wave * (uniform(random) - 0.5) : wave * texture);
        }
      }
    }
  }
  for (double& value : picture.values) {
    value = std::clamp(value, 20.0, 235.0);
  }
  return picture;
}

struct Layout {
  int bit_depth = 8;
  int step = 1;
  int shift = 0;
  int padding = 0;  // bytes after a row
  bool upside_down = false;
};

// A picture rounded and clipped to a plane; what lies between and beyond its samples is never to be read as
// one.
class Frame {
 public:
  explicit Frame(const Picture& picture, const Layout& layout = {}) {
    plane_.width = picture.width;
    plane_.height = picture.height;
    plane_.bit_depth = layout.bit_depth;
    plane_.step = layout.step;
    plane_.shift = layout.shift;
    const auto stride =
        static_cast<std::ptrdiff_t>(picture.width) * layout.step * plane_.bytes_per_sample() + layout.padding;
    bytes_.resize(static_cast<std::size_t>(stride * picture.height));
    std::mt19937 random(99);
    std::generate(bytes_.begin(), bytes_.end(), [&] { return static_cast<std::byte>(random()); });
    plane_.data = bytes_.data() + (layout.upside_down ? stride * (picture.height - 1) : 0);
    plane_.stride = layout.upside_down ? -stride : stride;
    for (int y = 0; y < picture.height; ++y) {
      for (int x = 0; x < picture.width; ++x) {
        store(x, y, picture.values[static_cast<std::size_t>(y) * picture.width + x]);
      }
    }
  }

  [[nodiscard]] const ConstPlane& plane() const { return plane_; }

 private:
  void store(int x, int y, double value) {
    const int most = (1 << plane_.bit_depth) - 1;
    const double scaled = value * (1 << (plane_.bit_depth - 8));
    const auto code = static_cast<unsigned>(std::clamp<long>(std::lround(scaled), 0, most));
    std::byte* at = bytes_.data() + (plane_.data - bytes_.data()) + y * plane_.stride +
                    static_cast<std::ptrdiff_t>(x) * plane_.step * plane_.bytes_per_sample();
    if (plane_.bit_depth == 8) {
      *at = static_cast<std::byte>(code);
    } else {
      const unsigned unused = (1U << plane_.shift) - 1;  // the low bits may hold anything
      const auto stored = static_cast<uint16_t>((code << plane_.shift) | (unused & 0x2A));
      std::memcpy(at, &stored, sizeof(stored));
    }
  }

  std::vector<std::byte> bytes_;
  ConstPlane plane_;
};

double estimate(const Picture& picture, const Layout& layout = {}, int threads = 0) {
  return NoiseEstimator().estimate(Frame(picture, layout).plane(), threads);
}

constexpr double tolerance = 0.15;  // of the true sigma

// --- The figure that the header promises ---

class NoiseEstimateTruth : public testing::TestWithParam<std::tuple<unsigned, double>> {};

TEST_P(NoiseEstimateTruth, TexturedPictureWithin15Percent) {
  const auto [seed, sigma] = GetParam();
  EXPECT_NEAR(estimate(add_noise(textured(seed), sigma, seed + 100)), sigma, tolerance * sigma);
}

INSTANTIATE_TEST_SUITE_P(Pictures, NoiseEstimateTruth,
                         testing::Combine(testing::Values(1U, 2U, 3U, 4U),
                                          testing::Values(3.0, 5.0, 10.0, 20.0, 35.0, 50.0)));

TEST(NoiseEstimate, FlatFrame) {
  for (const double sigma : {3.0, 10.0, 30.0}) {
    EXPECT_NEAR(estimate(add_noise(flat(128), sigma, 1)), sigma, 0.08 * sigma);
  }
}

TEST(NoiseEstimate, EveryFrameSizeFromSmallToLarge) {
  for (const auto& [width, height] : {std::pair(48, 48), {65, 43}, {17, 400}, {1280, 720}, {1921, 1083}}) {
    EXPECT_NEAR(estimate(add_noise(flat(120, width, height), 10, 5)), 10, 1.5) << width << "x" << height;
  }
}

TEST(NoiseEstimate, TooSmallFramesGiveZeroAndReadNothingBeyondThem) {
  for (int height = 1; height <= 9; ++height) {
    for (int width = 1; width <= 9; ++width) {
      // Its own allocation of exactly this size, so that the address sanitizer sees a sample too many.
      const double sigma = estimate(add_noise(flat(128, width, height), 20, 1));
      if (width < 8 || height < 8) {
        EXPECT_EQ(sigma, 0) << width << "x" << height;
      } else {
        EXPECT_GT(sigma, 4) << width << "x" << height;
        EXPECT_LT(sigma, 60) << width << "x" << height;
      }
    }
  }
}

// --- Layouts ---

TEST(NoiseEstimate, EveryBitDepthSpeaksIn8BitCodeValues) {
  for (int bit_depth = 8; bit_depth <= 16; ++bit_depth) {
    const Layout layout{.bit_depth = bit_depth};
    for (const double sigma : {3.0, 12.0}) {
      EXPECT_NEAR(estimate(add_noise(textured(6), sigma, 2), layout), sigma, tolerance * sigma) << bit_depth;
    }
  }
}

// 10 bits at the top of a word, taken for such at its bottom: no figure is right, but none is out of bounds.
TEST(NoiseEstimate, SamplesAboveTheirRangeDoNoHarm) {
  std::mt19937 random(1);
  std::vector<std::uint16_t> samples(176 * 144);
  std::generate(samples.begin(), samples.end(), [&] { return static_cast<std::uint16_t>(random()); });
  for (const int bit_depth : {9, 10, 15}) {
    const ConstPlane plane{reinterpret_cast<const std::byte*>(samples.data()), 176, 144, 2 * 176, bit_depth};
    EXPECT_GE(NoiseEstimator().estimate(plane), 0) << bit_depth;
  }
}

TEST(NoiseEstimate, SubCodeValueNoiseOfDeepPlanes) {
  for (const int bit_depth : {10, 12, 16}) {
    const Layout layout{.bit_depth = bit_depth};
    for (const double sigma : {0.5, 1.0}) {
      EXPECT_NEAR(estimate(add_noise(flat(90), sigma, 3), layout), sigma, 0.2 * sigma) << bit_depth;
    }
  }
}

TEST(NoiseEstimate, LayoutDoesNotMatter) {
  const Picture picture = add_noise(textured(7, 161, 123), 8, 4);
  for (const int bit_depth : {8, 10, 12, 16}) {
    const double plain = estimate(picture, {.bit_depth = bit_depth});
    ASSERT_GT(plain, 6);
    for (const int step : {1, 2, 3, 4}) {
      for (const int shift : {0, 16 - bit_depth}) {
        for (const int padding : {0, 2, 30}) {
          for (const bool upside_down : {false, true}) {
            const Layout layout{bit_depth, step, bit_depth == 8 ? 0 : shift, padding, upside_down};
            EXPECT_EQ(estimate(picture, layout), plain)
                << bit_depth << " bits, step " << step << ", shift " << shift << ", padding " << padding;
          }
        }
      }
    }
  }
}

TEST(NoiseEstimate, OddStrideOf8BitSamples) {
  const Picture picture = add_noise(textured(7, 161, 123), 8, 4);
  EXPECT_EQ(estimate(picture, {.padding = 7}), estimate(picture));
}

TEST(NoiseEstimate, ThreadCountDoesNotMatter) {
  const Frame frame(add_noise(textured(8), 15, 5));
  NoiseEstimator estimator;
  const double one = estimator.estimate(frame.plane(), 1);
  for (const int threads : {0, 2, 3, 4, 7}) {
    EXPECT_EQ(estimator.estimate(frame.plane(), threads), one) << threads;
  }
}

TEST(NoiseEstimate, EarlierFramesDoNotMatter) {
  const Frame frame(add_noise(textured(9), 15, 6));
  NoiseEstimator estimator;
  const double first = estimator.estimate(frame.plane());
  estimator.estimate(Frame(add_noise(flat(20, 1000, 50), 40, 6)).plane());
  estimator.estimate(Frame(flat(20, 3, 3)).plane());
  EXPECT_EQ(estimator.estimate(frame.plane()), first);
}

// --- Noise that depends on brightness ---

// Of variance a I + b.
Picture add_sloped_noise(Picture picture, double a, double b, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  for (double& value : picture.values) {
    value += std::sqrt(std::max(a * value + b, 0.0)) * normal(random);
  }
  return picture;
}

// A picture from dark to bright, with texture.
Picture shaded(unsigned seed, int width = 640, int height = 400) {
  Picture picture = textured(seed, width, height);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      double& value = picture.at(x, y);
      value = std::clamp((value - 120) / 2 + 30 + 190.0 * x / width, 15.0, 240.0);
    }
  }
  return picture;
}

class NoiseCurveTruth : public testing::TestWithParam<std::tuple<unsigned, std::pair<double, double>>> {};

TEST_P(NoiseCurveTruth, Within15PercentAtEveryBrightness) {
  const auto [seed, line] = GetParam();
  const auto [a, b] = line;
  for (const int bit_depth : {8, 10, 16}) {
    const Frame frame(add_sloped_noise(shaded(seed), a, b, seed + 100), {.bit_depth = bit_depth});
    NoiseEstimator estimator;
    estimator.estimate(frame.plane());
    for (const double brightness : {40.0, 120.0, 200.0}) {
      const double sigma = std::sqrt(a * brightness + b);
      EXPECT_NEAR(std::sqrt(estimator.curve().variance(brightness)), sigma, tolerance * sigma)
          << bit_depth << " bits, brightness " << brightness;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Pictures, NoiseCurveTruth,
                         testing::Combine(testing::Values(1U, 2U, 3U),
                                          testing::Values(std::pair(0.2, 4.0), std::pair(1.0, 0.0),
                                                          std::pair(3.0, 20.0), std::pair(-0.3, 100.0))));

TEST(NoiseCurve, SigmaIsTheRootOfTheMeanVariance) {
  const Picture picture = shaded(4);
  double sum = 0;
  for (const double value : picture.values) {
    sum += 1.5 * value + 10;
  }
  const double sigma = std::sqrt(sum / static_cast<double>(picture.values.size()));
  EXPECT_NEAR(estimate(add_sloped_noise(picture, 1.5, 10, 4)), sigma, 0.1 * sigma);
}

TEST(NoiseCurve, WhiteNoiseIsTheSameAtEveryBrightness) {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    for (const double sigma : {3.0, 10.0, 30.0}) {
      NoiseEstimator estimator;
      const double found = estimator.estimate(Frame(add_noise(shaded(seed), sigma, seed)).plane());
      EXPECT_NEAR(estimator.curve().dark, found, 0.1 * sigma) << seed << ", " << sigma;
      EXPECT_NEAR(estimator.curve().bright, found, 0.1 * sigma) << seed << ", " << sigma;
    }
  }
}

TEST(NoiseCurve, IsALineBetweenItsEndsAndLevelBeyond) {
  const NoiseCurve curve(4, 10);
  EXPECT_DOUBLE_EQ(curve.variance(16), 16);
  EXPECT_DOUBLE_EQ(curve.variance(235), 100);
  EXPECT_DOUBLE_EQ(curve.variance((16 + 235) / 2.0), (16 + 100) / 2.0);
  EXPECT_DOUBLE_EQ(curve.variance(0), 16);
  EXPECT_DOUBLE_EQ(curve.variance(255), 100);
  EXPECT_EQ(curve.largest(), 10);
  EXPECT_EQ(curve.least(), 4);
}

// --- Smooth noise, which only time tells ---

// The mean of size x size values of white noise around each pixel, of standard deviation sigma.
Picture add_smooth_noise(Picture picture, int size, double sigma, unsigned seed) {
  const int width = picture.width + size;
  const Picture white = add_noise(flat(0, width, picture.height + size), sigma, seed);
  for (int y = 0; y < picture.height; ++y) {
    for (int x = 0; x < picture.width; ++x) {
      double sum = 0;
      for (int i = 0; i < size * size; ++i) {
        sum += white.values[static_cast<std::size_t>(y + i / size) * width + x + i % size];
      }
      picture.at(x, y) += sum / size;
    }
  }
  return picture;
}

TEST(NoiseEstimateInTime, TellsSmoothNoiseAndItsGrain) {
  for (const int size : {2, 3}) {
    for (const double sigma : {5.0, 15.0}) {
      NoiseEstimator estimator;
      double found = 0;
      for (unsigned t = 0; t < 8; ++t) {
        found = estimator.update(Frame(add_smooth_noise(textured(5), size, sigma, t)).plane());
        if (t > 0) {
          EXPECT_NEAR(found, sigma, 0.2 * sigma) << size << ", frame " << t;
        }
      }
      EXPECT_LT(NoiseEstimator().estimate(Frame(add_smooth_noise(textured(5), size, sigma, 9)).plane()),
                0.75 * sigma);
      EXPECT_GT(estimator.grain(), 0.65 * size * size);
      EXPECT_LT(estimator.grain(), 1.2 * size * size);
    }
  }
}

TEST(NoiseEstimateInTime, WhiteNoiseStaysWhatOneFrameTells) {
  NoiseEstimator estimator;
  for (unsigned t = 0; t < 8; ++t) {
    estimator.update(Frame(add_noise(textured(6), 10, t)).plane());
    EXPECT_EQ(estimator.grain(), 1) << t;
  }
}

TEST(NoiseEstimateInTime, WhatMovesOrIsCutIsNoNoise) {
  NoiseEstimator estimator;
  const Picture wide = textured(7, 800, 360);
  for (int t = 0; t < 10; ++t) {
    const Picture seen = draw(480, 360, [&](int x, int y) {
      return wide.values[static_cast<std::size_t>(y) * wide.width + x + 7 * t];
    });
    EXPECT_LT(estimator.update(Frame(seen).plane()), 1.2) << t;
  }
  for (unsigned scene = 20; scene < 26; ++scene) {
    EXPECT_LT(estimator.update(Frame(textured(scene)).plane()), 1.2) << scene;
  }
}

TEST(NoiseEstimateInTime, CopiesOfAFrameTellNothingNew) {
  NoiseEstimator estimator;
  double found = 0;
  for (unsigned t = 0; t < 12; ++t) {
    found = estimator.update(Frame(add_smooth_noise(textured(8), 3, 10, t / 2)).plane());
  }
  EXPECT_NEAR(found, 10, 2);
}

// --- Frames that mislead ---

TEST(NoiseEstimate, ConstantFramesHaveNone) {
  for (const double value : {0.0, 16.0, 128.0, 255.0}) {
    EXPECT_EQ(estimate(flat(value)), 0) << value;
    EXPECT_EQ(estimate(flat(value), {.bit_depth = 10}), 0) << value;
  }
}

TEST(NoiseEstimate, GradientsHaveNone) {
  for (const double slope : {0.01, 0.1, 0.37, 1.0}) {
    const Picture gradient =
        draw(320, 240, [&](int x, int y) { return std::fmod(10 + slope * (x + 0.3 * y), 230); });
    EXPECT_LT(estimate(gradient), 0.5) << slope;
    EXPECT_LT(estimate(gradient, {.bit_depth = 10}), 0.5) << slope;
  }
}

TEST(NoiseEstimate, CleanTexturedPicturesHaveLittle) {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    EXPECT_LT(estimate(textured(seed)), 1) << seed;
  }
}

// As videotestsrc draws them: seven bars, a row of castellations, and at the bottom a patch of snow.
TEST(NoiseEstimate, TestBarsHaveNone) {
  std::mt19937 random(3);
  const Picture bars = draw(640, 480, [&](int x, int y) {
    constexpr double luma[] = {180, 168, 145, 133, 63, 51, 28};
    if (y < 320) {
      return luma[x * 7 / 640];
    }
    if (y < 360) {
      return x * 7 / 640 % 2 == 0 ? luma[6 - x * 7 / 640] : 16.0;
    }
    return x < 480 ? 16.0 + x / 120 * 60 : static_cast<double>(random() % 256);
  });
  EXPECT_LT(estimate(bars), 0.5);
}

TEST(NoiseEstimate, DrawingsHaveLittle) {
  const Picture ball =
      draw(320, 240, [](int x, int y) { return std::hypot(x - 100, y - 90) < 20 ? 255.0 : 0.0; });
  EXPECT_LT(estimate(ball), 0.5);
  const Picture checkers =
      draw(320, 240, [](int x, int y) { return (x / 16 + y / 16) % 2 == 0 ? 40.0 : 200.0; });
  EXPECT_LT(estimate(checkers), 0.5);
  const Picture stripes = draw(320, 240, [](int x, int) { return x % 2 == 0 ? 40.0 : 200.0; });
  EXPECT_LT(estimate(stripes), 0.5);
  const Picture waves = draw(320, 240, [](int x, int y) { return 128 + 60 * std::sin(0.9 * x + 0.4 * y); });
  EXPECT_LT(estimate(waves), 0.5);
}

// Lines of strokes of random length and slope, their edges smoothed, on plain paper or screen.
TEST(NoiseEstimate, WritingHasNone) {
  for (const auto& [ink, paper] : {std::pair(20.0, 235.0), {220.0, 30.0}}) {
    std::mt19937 random(4);
    Picture page = flat(paper, 640, 480);
    for (int line = 20; line < 460; line += 18) {
      for (int x = 20; x < 600; x += 3 + static_cast<int>(random() % 9)) {
        const double slope = 0.25 * static_cast<double>(random() % 9) - 1;
        const int height = 4 + static_cast<int>(random() % 9);
        for (int y = 0; y < height; ++y) {
          const double left = x + slope * y;
          const auto column = static_cast<int>(std::floor(left));
          page.at(column, line - y) += (ink - paper) * (1 - left + column);
          page.at(column + 1, line - y) += (ink - paper) * (left - column);
        }
      }
    }
    EXPECT_LT(estimate(page), 0.5) << ink;
  }
}

TEST(NoiseEstimate, DarkFrameWhoseNoiseIsClipped) {
  for (const double mean : {0.0, 5.0, 15.0}) {
    EXPECT_NEAR(estimate(add_noise(flat(mean), 10, 7)), 10, 2) << mean;
  }
}

TEST(NoiseEstimate, OverexposedFrame) {
  for (const double mean : {240.0, 255.0}) {
    EXPECT_NEAR(estimate(add_noise(flat(mean), 10, 8)), 10, 2) << mean;
    EXPECT_NEAR(estimate(add_noise(flat(mean), 10, 8), {.bit_depth = 10}), 10, 2) << mean;
  }
}

// Video's nominal range: a camera or a mixer clips to it as well.
TEST(NoiseEstimate, ClippedToVideoRange) {
  Picture picture = add_noise(flat(20), 10, 9);
  for (double& value : picture.values) {
    value = std::clamp(value, 16.0, 235.0);
  }
  EXPECT_NEAR(estimate(picture), 10, 2);
}

TEST(NoiseEstimate, HalfTheFrameClipped) {
  for (const double limit : {-200.0, 500.0}) {
    Picture picture = textured(10);
    for (int y = 0; y < picture.height; ++y) {
      std::fill_n(&picture.at(0, y), picture.width / 2, limit);
    }
    EXPECT_NEAR(estimate(add_noise(picture, 10, 10)), 10, 1.5) << limit;
  }
}

TEST(NoiseEstimate, LetterboxBarsCarryNone) {
  for (const bool pillars : {false, true}) {
    for (const double sigma : {3.0, 10.0, 30.0}) {
      Picture picture = add_noise(textured(11), sigma, 11);
      for (int y = 0; y < picture.height; ++y) {
        for (int x = 0; x < picture.width; ++x) {
          if (pillars ? std::abs(2 * x - picture.width) > 270 : std::abs(2 * y - picture.height) > 240) {
            picture.at(x, y) = 16;
          }
        }
      }
      EXPECT_NEAR(estimate(picture), sigma, tolerance * sigma) << (pillars ? "pillars" : "letterbox");
    }
  }
}

// --- Over time ---

TEST(NoiseEstimateOverTime, SteadierThanSingleFrames) {
  const Picture picture = textured(12, 320, 240);
  NoiseEstimator estimator;
  double least = 1e9;
  double most = 0;
  for (unsigned frame = 0; frame < 40; ++frame) {
    const double sigma = estimator.update(Frame(add_noise(picture, 10, 1000 + frame)).plane());
    EXPECT_NEAR(sigma, 10, 1.5);
    if (frame >= 10) {
      least = std::min(least, sigma);
      most = std::max(most, sigma);
    }
  }
  EXPECT_LT(most - least, 0.3);
}

TEST(NoiseEstimateOverTime, FollowsASuddenChangeWithinFewFrames) {
  const Picture picture = textured(13, 320, 240);
  NoiseEstimator estimator;
  unsigned seed = 2000;
  const auto show = [&](double sigma, int frames) {
    double estimated = 0;
    for (int i = 0; i < frames; ++i) {
      estimated = estimator.update(Frame(add_noise(picture, sigma, ++seed)).plane());
    }
    return estimated;
  };
  EXPECT_NEAR(show(5, 20), 5, 0.75);
  EXPECT_NEAR(show(25, 4), 25, 3.75);
  EXPECT_NEAR(show(3, 4), 3, 0.45);
}

TEST(NoiseEstimateOverTime, HoldsThroughFlashesAndBlackFrames) {
  const Picture picture = textured(14, 320, 240);
  NoiseEstimator estimator;
  unsigned seed = 3000;
  for (int i = 0; i < 10; ++i) {
    estimator.update(Frame(add_noise(picture, 10, ++seed)).plane());
  }
  EXPECT_NEAR(estimator.update(Frame(add_noise(picture, 45, ++seed)).plane()), 10, 1.5);
  EXPECT_NEAR(estimator.update(Frame(add_noise(picture, 10, ++seed)).plane()), 10, 1.5);
  for (const double value : {0.0, 255.0, 100.0}) {
    for (int i = 0; i < 30; ++i) {
      EXPECT_NEAR(estimator.update(Frame(flat(value)).plane()), 10, 1.5) << value;
    }
  }
  EXPECT_NEAR(estimator.update(Frame(add_noise(picture, 10, ++seed)).plane()), 10, 1.5);
}

TEST(NoiseEstimateOverTime, BlackBeginningDoesNotDelayTheFirstEstimate) {
  NoiseEstimator estimator;
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(estimator.update(Frame(flat(16)).plane()), 0);
  }
  EXPECT_NEAR(estimator.update(Frame(add_noise(textured(15), 10, 1)).plane()), 10, 1.5);
}

TEST(NoiseEstimateOverTime, ResetForgets) {
  const Frame noisy(add_noise(textured(16), 30, 1));
  const Frame other(add_noise(textured(16), 4, 2));
  NoiseEstimator estimator;
  for (int i = 0; i < 10; ++i) {
    estimator.update(noisy.plane());
  }
  estimator.reset();
  EXPECT_EQ(estimator.update(other.plane()), NoiseEstimator().update(other.plane()));
}

TEST(NoiseEstimateOverTime, EstimateLeavesTheStateAlone) {
  const Frame frame(add_noise(textured(17), 5, 1));
  NoiseEstimator estimator;
  const double before = estimator.update(frame.plane());
  for (int i = 0; i < 10; ++i) {
    estimator.estimate(Frame(add_noise(flat(128), 40, 2)).plane());
  }
  EXPECT_EQ(estimator.update(frame.plane()), before);
}

TEST(NoiseEstimateOverTime, StateMovesWithTheObject) {
  const Frame frame(add_noise(textured(18), 5, 1));
  NoiseEstimator estimator;
  const double before = estimator.update(frame.plane());
  NoiseEstimator moved = std::move(estimator);
  EXPECT_EQ(moved.update(Frame(flat(0)).plane()), before);
}

// --- Wrong use ---

TEST(NoiseEstimate, InvalidPlanesThrow) {
  const Frame frame(flat(128));
  const auto expect_throw = [&](const std::function<void(ConstPlane&)>& spoil) {
    ConstPlane plane = frame.plane();
    spoil(plane);
    NoiseEstimator estimator;
    EXPECT_THROW(estimator.estimate(plane), InvalidArgument);
    EXPECT_THROW(estimator.update(plane), InvalidArgument);
  };
  expect_throw([](ConstPlane& plane) { plane.data = nullptr; });
  expect_throw([](ConstPlane& plane) { plane.width = 0; });
  expect_throw([](ConstPlane& plane) { plane.height = -1; });
  expect_throw([](ConstPlane& plane) { plane.bit_depth = 7; });
  expect_throw([](ConstPlane& plane) { plane.bit_depth = 17; });
  expect_throw([](ConstPlane& plane) { plane.shift = 1; });
  expect_throw([](ConstPlane& plane) { plane.step = 0; });
  NoiseEstimator estimator;
  EXPECT_THROW(estimator.estimate(frame.plane(), -1), InvalidArgument);
}

}  // namespace
}  // namespace nonlocal
