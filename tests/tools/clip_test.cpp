// nonlocal clip: the clip is the same for the same seed, and its noise is what it is said to be.
#include <cmath>
#include <functional>

#include "support.h"

namespace {

using ClipTest = ToolTest;

constexpr int kWidth = 320;
constexpr int kHeight = 180;
constexpr int kLuma = kWidth * kHeight;
constexpr int kFrame = kLuma * 3 / 2;

struct Moments {
  double count = 0;
  double sum = 0;
  double squares = 0;

  void add(double value) {
    ++count;
    sum += value;
    squares += value * value;
  }
  [[nodiscard]] double mean() const { return sum / count; }
  [[nodiscard]] double deviation() const { return std::sqrt(squares / count - mean() * mean()); }
};

// Of noisy - clean, over the samples (counted in a frame) that `wanted` names and whose noise is not clipped.
Moments noise_of(const std::vector<uint8_t>& noisy, const std::vector<uint8_t>& clean,
                 const std::function<bool(int)>& wanted) {
  Moments moments;
  for (size_t i = 0; i < clean.size(); ++i)
    if (clean[i] >= 60 && clean[i] <= 195 && wanted(static_cast<int>(i % kFrame)))
      moments.add(noisy[i] - clean[i]);
  return moments;
}

TEST_F(ClipTest, SameSeedGivesTheSameFrames) {
  must("$TOOL clip a.mkv --clean a0.mkv --size 160x90 --frames 4 --seed 5");
  must("$TOOL clip b.mkv --clean b0.mkv --size 160x90 --frames 4 --seed 5");
  must("$TOOL clip c.mkv --clean c0.mkv --size 160x90 --frames 4 --seed 6");
  EXPECT_EQ(frames_md5("a.mkv"), frames_md5("b.mkv"));
  EXPECT_EQ(frames_md5("a0.mkv"), frames_md5("b0.mkv"));
  EXPECT_NE(frames_md5("a.mkv"), frames_md5("c.mkv"));
  EXPECT_NE(frames_md5("a0.mkv"), frames_md5("c0.mkv"));
}

TEST_F(ClipTest, ShorterClipIsTheBeginningOfALongerOne) {
  must("$TOOL clip short.mkv --size 160x90 --frames 2");
  must("$TOOL clip long.mkv --size 160x90 --frames 5");
  const auto start = decoded("short.mkv");
  const auto whole = decoded("long.mkv");
  ASSERT_LT(start.size(), whole.size());
  EXPECT_TRUE(std::equal(start.begin(), start.end(), whole.begin()));
}

TEST_F(ClipTest, NoiseHasTheStatedSigma) {
  for (const double sigma : {4.0, 12.0}) {
    must("$TOOL clip noisy.mkv --clean clean.mkv --size 320x180 --frames 8 --sigma " + std::to_string(sigma) +
         (sigma < 10 ? " --chroma-sigma 6" : ""));
    const auto noisy = decoded("noisy.mkv");
    const auto clean = decoded("clean.mkv");
    ASSERT_EQ(noisy.size(), size_t{kFrame} * 8);
    ASSERT_EQ(clean.size(), noisy.size());
    const Moments luma = noise_of(noisy, clean, [](int i) { return i < kLuma; });
    const Moments chroma = noise_of(noisy, clean, [](int i) { return i >= kLuma; });
    for (const auto& [plane, stated] : {std::pair{luma, sigma}, std::pair{chroma, 6.0}}) {
      // Rounding to whole code values adds a twelfth to the variance.
      const double expected = std::sqrt(stated * stated + 1 / 12.0);
      ASSERT_GT(plane.count, 20000);
      EXPECT_NEAR(plane.deviation(), expected, 0.02 * expected);
      EXPECT_NEAR(plane.mean(), 0, 0.03 * stated);
    }
  }
}

TEST_F(ClipTest, NoiseIsIndependentFromFrameToFrame) {
  must("$TOOL clip noisy.mkv --clean clean.mkv --size 320x180 --frames 2 --sigma 10");
  const auto noisy = decoded("noisy.mkv");
  const auto clean = decoded("clean.mkv");
  ASSERT_EQ(noisy.size(), size_t{kFrame} * 2);
  double product = 0;
  double count = 0;
  for (int i = kLuma; i < kFrame; ++i) {  // chroma is far from clipping
    product += (noisy[i] - clean[i]) * (noisy[kFrame + i] - clean[kFrame + i]);
    ++count;
  }
  EXPECT_NEAR(product / count / (5 * 5), 0, 5 / std::sqrt(count));
}

TEST_F(ClipTest, WithoutNoiseBothAreTheSame) {
  must("$TOOL clip noisy.mkv --clean clean.mkv --size 64x64 --frames 2 --sigma 0");
  EXPECT_EQ(frames_md5("noisy.mkv"), frames_md5("clean.mkv"));
}

TEST_F(ClipTest, PictureMovesAndIsDark) {
  must("$TOOL clip noisy.mkv --clean clean.mkv --size 320x180 --frames 2 --fps 5");
  const auto clean = decoded("clean.mkv");
  ASSERT_EQ(clean.size(), size_t{kFrame} * 2);
  int changed = 0;
  Moments luma;
  for (int i = 0; i < kLuma; ++i) {
    changed += std::abs(clean[i] - clean[kFrame + i]) > 2;
    luma.add(clean[i]);
  }
  EXPECT_GT(changed, kLuma / 10);
  EXPECT_LT(luma.mean(), 90);
  EXPECT_GT(luma.deviation(), 10);
}

TEST_F(ClipTest, HasTheAskedSizeRateAndColours) {
  must("$TOOL clip a.mkv --size 98x66 --frames 3 --fps 30");
  EXPECT_EQ(probe("a.mkv", "width,height"), "98,66");
  EXPECT_EQ(probe("a.mkv", "r_frame_rate"), "30/1");
  EXPECT_EQ(probe("a.mkv", "color_space"), "bt709");
  EXPECT_EQ(count_frames("a.mkv"), 3);
}

}  // namespace
