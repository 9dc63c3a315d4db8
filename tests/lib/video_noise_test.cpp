// A video's noise by group of planes: of luma by brightness, of R, G and B together, of chroma where luma has
// most; and what the denoiser is told of it. NoiseEstimator's own figures are tested in noise_estimate_test.
#include "nonlocal/video_noise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "image.h"
#include "nonlocal/error.h"

namespace nonlocal::testing {
namespace {

constexpr int kWidth = 480;
constexpr int kHeight = 320;
constexpr double kTolerance = 0.15;  // of the true sigma, as noise_estimate.h promises

double brightness_at(int x, int width) { return 20.0 + 210.0 * x / width; }

using Sigma = double (*)(double brightness);

double rising(double brightness) { return std::sqrt(0.5 * brightness + 4); }
double falling(double brightness) { return std::sqrt(130 - 0.5 * brightness); }

// Luma that goes from dark to bright with noise of its own law, and two planes of half its size, gray with
// noise that goes with luma's brightness.
struct Video {
  Image luma{kWidth, kHeight, 8, 1};
  Image chroma{kWidth / 2, kHeight / 2, 8, 2};

  Video(Sigma luma_sigma, Sigma chroma_sigma, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    const auto fill = [&](Image& image, int plane, auto mean, Sigma sigma) {
      for (int y = 0; y < image.height(); ++y) {
        for (int x = 0; x < image.width(); ++x) {
          const double brightness = brightness_at(x, image.width());
          const double value = mean(brightness) + sigma(brightness) * normal(random);
          image.set(plane, x, y, std::clamp(static_cast<int>(std::lround(value)), 0, 255));
        }
      }
    };
    fill(
        luma, 0, [](double brightness) { return brightness; }, luma_sigma);
    for (const int plane : {0, 1})
      fill(
          chroma, plane, [](double) { return 128.0; }, chroma_sigma);
  }
};

VideoNoise noise_of(Sigma luma, Sigma chroma) {
  Video video(luma, chroma, 1);
  return VideoNoiseEstimator().update(video.luma.views(), video.chroma.views());
}

TEST(VideoNoise, OfLumaGoesByItsBrightness) {
  const VideoNoise noise = noise_of(rising, [](double) { return 5.0; });
  EXPECT_NEAR(noise.sigma.dark, rising(16), kTolerance * rising(16));
  EXPECT_NEAR(noise.sigma.bright, rising(235), kTolerance * rising(235));
  EXPECT_GT(noise.level, noise.sigma.dark);
  EXPECT_LT(noise.level, noise.sigma.bright);
}

TEST(VideoNoise, OfChromaIsThatWhereLumaHasMost) {
  const auto half_of_rising = [](double brightness) { return rising(brightness) / 2; };
  const VideoNoise bright = noise_of(rising, half_of_rising);
  EXPECT_NEAR(bright.chroma_sigma, rising(235) / 2, kTolerance * rising(235) / 2);
  EXPECT_LT(bright.chroma_level, 0.9 * bright.chroma_sigma);
  const VideoNoise dark = noise_of(falling, [](double brightness) { return falling(brightness) / 2; });
  EXPECT_NEAR(dark.chroma_sigma, falling(16) / 2, kTolerance * falling(16) / 2);
  EXPECT_LT(dark.chroma_level, 0.9 * dark.chroma_sigma);
}

TEST(VideoNoise, OfChromaIsThatOverTheFrameWhereLumasIsLevel) {
  const VideoNoise noise = noise_of([](double) { return 8.0; }, [](double) { return 12.0; });
  EXPECT_TRUE(noise.sigma.is_level());
  EXPECT_NEAR(noise.level, 8, kTolerance * 8);
  EXPECT_NEAR(noise.chroma_level, 12, kTolerance * 12);
  EXPECT_EQ(noise.chroma_sigma, noise.chroma_level);
}

Image gray_with_noise(const std::vector<double>& sigmas) {
  std::mt19937 random(2);
  std::normal_distribution<double> normal;
  Image image(kWidth, kHeight, 8, static_cast<int>(sigmas.size()));
  for (int plane = 0; plane < image.planes(); ++plane) {
    for (int y = 0; y < kHeight; ++y) {
      for (int x = 0; x < kWidth; ++x) {
        image.set(plane, x, y, static_cast<int>(std::lround(128 + sigmas[plane] * normal(random))));
      }
    }
  }
  return image;
}

TEST(VideoNoise, OfRgbIsTheRootOfTheMeanVariance) {
  Image rgb = gray_with_noise({4, 8, 12});
  const double sigma = std::sqrt((16.0 + 64 + 144) / 3);
  const VideoNoise noise = VideoNoiseEstimator().update(rgb.views());
  EXPECT_NEAR(noise.level, sigma, 0.08 * sigma);
  EXPECT_EQ(noise.chroma_level, 0);
  EXPECT_EQ(noise.chroma_sigma, 0);
}

TEST(VideoNoise, IsNeverMoreThanTheDenoiserTakes) {
  Image checks(64, 64, 8, 1);
  std::mt19937 random(3);
  for (int y = 0; y < 64; ++y) {
    for (int x = 0; x < 64; ++x) checks.set(0, x, y, static_cast<int>(random() % 256));
  }
  VideoDenoiserParameters parameters;
  set_noise(parameters, VideoNoiseEstimator().update(checks.views()));
  EXPECT_LE(parameters.sigma.largest(), 100);
  EXPECT_NO_THROW(VideoDenoiser().filter(checks.views(), {}, parameters));
}

TEST(VideoNoise, ThreadsChangeNothing) {
  Video video(rising, rising, 4);
  const VideoNoise one = VideoNoiseEstimator().update(video.luma.views(), video.chroma.views(), 1);
  const VideoNoise three = VideoNoiseEstimator().update(video.luma.views(), video.chroma.views(), 3);
  EXPECT_EQ(one.sigma, three.sigma);
  EXPECT_EQ(one.chroma_sigma, three.chroma_sigma);
}

TEST(VideoNoise, ResetForgetsWhatWas) {
  Image noisy = gray_with_noise({20});
  Image cleaner = gray_with_noise({5});
  VideoNoiseEstimator estimator;
  estimator.update(noisy.views());
  EXPECT_GT(estimator.update(cleaner.views()).level, 7) << "it still knows the noisy one";
  estimator.reset();
  EXPECT_EQ(estimator.update(cleaner.views()).level, VideoNoiseEstimator().update(cleaner.views()).level);
}

TEST(VideoNoise, OtherNumbersOfPlanesAreRefused) {
  Image image = gray_with_noise({1, 1, 1, 1});
  const std::vector<Plane> planes = image.views();
  const auto first = [&](std::size_t count) { return std::span(planes).first(count); };
  for (const auto& [luma, chroma] : {std::pair(0, 0), {0, 2}, {2, 0}, {4, 0}, {1, 1}, {1, 3}}) {
    EXPECT_THROW(VideoNoiseEstimator().update(first(luma), first(chroma)), InvalidArgument) << luma << chroma;
  }
  std::vector<Plane> broken = planes;
  broken[1].width = 0;
  EXPECT_THROW(VideoNoiseEstimator().update(std::span(broken).first(3)), InvalidArgument);
  EXPECT_THROW(VideoNoiseEstimator().update(first(1), first(2), -1), InvalidArgument);
}

VideoNoise uneven() {
  VideoNoise noise = 7;
  noise.sigma = NoiseCurve(2, 9);
  noise.chroma_level = 3;
  noise.chroma_sigma = 4;
  noise.grain = 5;
  noise.chroma_grain = 6;
  return noise;
}

TEST(SetNoise, TellsTheDenoiserAndChangesNothingElse) {
  VideoDenoiserParameters parameters;
  parameters.strength = 0.5;
  set_noise(parameters, uneven());
  EXPECT_EQ(parameters.sigma, NoiseCurve(2, 9));
  EXPECT_EQ(parameters.chroma_sigma, 4);
  EXPECT_EQ(parameters.grain, 5);
  EXPECT_EQ(parameters.chroma_grain, 6);
  EXPECT_EQ(parameters.strength, 0.5);
  EXPECT_TRUE(parameters.temporal);
}

TEST(SetNoise, TellsAttentionOneSigma) {
  VideoDenoiserParameters parameters;
  parameters.method = NonLocalMeansMethod::kAttention;
  set_noise(parameters, uneven());
  EXPECT_EQ(parameters.sigma, NoiseCurve(7));
  EXPECT_EQ(parameters.chroma_sigma, 3);
}

TEST(SetNoise, OfOneSigmaIsWhiteInEveryPlane) {
  VideoDenoiserParameters parameters;
  parameters.grain = 3;
  set_noise(parameters, 12);
  EXPECT_EQ(parameters.sigma, NoiseCurve(12));
  EXPECT_EQ(parameters.chroma_sigma, 12);
  EXPECT_EQ(parameters.grain, 1);
  EXPECT_EQ(parameters.chroma_grain, 1);
}

}  // namespace
}  // namespace nonlocal::testing
