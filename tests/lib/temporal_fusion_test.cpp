// Temporal fusion against what it is for: noise falls where nothing changes, follows motion, and nothing that
// is gone stays; on every instruction set, depth and layout.
#include "nonlocal/temporal_fusion.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "allocations.h"
#include "image.h"
#include "nonlocal/cpu.h"
#include "nonlocal/error.h"
#include "nonlocal/video_denoiser.h"

namespace nonlocal {
namespace {

using testing::Image;
using testing::Layout;

// A picture of edges and waves that goes on for ever, in 8-bit code values.
double scene(double x, double y, unsigned which = 0) {
  const double waves =
      40 * std::sin(x * 0.21 + which) * std::cos(y * 0.17) + 20 * std::sin((x + 2 * y) * 0.05);
  const bool light =
      (static_cast<int>(std::floor(x / 23)) + static_cast<int>(std::floor(y / 19 + which))) % 2 == 0;
  return 120 + waves + (light ? 25 : -25);
}

// What the camera sees at time t: the scene moved by (dx, dy) a frame, with noise.
struct Camera {
  int width = 192;
  int height = 112;
  double dx = 0;
  double dy = 0;
  double sigma = 15;
  unsigned which = 0;

  [[nodiscard]] double clean(int x, int y, int t) const { return scene(x + dx * t, y + dy * t, which); }
  [[nodiscard]] Image frame(int t, int bit_depth = 8, const Layout& layout = {}) const {
    Image image(width, height, bit_depth, 1, layout);
    std::mt19937 random(1000 * which + static_cast<unsigned>(t));
    std::normal_distribution<double> noise(0, sigma);
    const int most = (1 << bit_depth) - 1;
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        const double value = std::ldexp(clean(x, y, t) + noise(random), bit_depth - 8);
        image.set(0, x, y, std::clamp(static_cast<int>(std::lround(value)), 0, most));
      }
    }
    return image;
  }
};

int sample_of(const ConstPlane& p, int x, int y) {
  return reinterpret_cast<const std::uint16_t*>(p.row(y))[x] >> p.shift;
}

// The root of the mean squared error of the fused frame, away from the borders.
double error_of(const TemporalFusion& fusion, const Camera& camera, int t) {
  const ConstPlane fused = fusion.guides()[0];
  double sum = 0;
  int count = 0;
  for (int y = 16; y < camera.height - 16; ++y) {
    for (int x = 16; x < camera.width - 16; ++x, ++count) {
      const double d = std::ldexp(sample_of(fused, x, y), 8 - fused.bit_depth) - camera.clean(x, y, t);
      sum += d * d;
    }
  }
  return std::sqrt(sum / count);
}

void fuse(TemporalFusion& fusion, const Image& frame, double sigma, int threads = 1) {
  TemporalFusionParameters p;
  p.sigma = sigma;
  p.threads = threads;
  fusion.fuse(frame.views(), {}, p);
}

class EveryTarget : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { force_instruction_set(GetParam()); }
  void TearDown() override { force_instruction_set(""); }
};

TEST_P(EveryTarget, NoiseFallsWhereNothingMoves) {
  const Camera camera;
  TemporalFusion fusion;
  for (int t = 0; t < 12; ++t) {
    fuse(fusion, camera.frame(t), camera.sigma);
    if (t == 0) {
      EXPECT_NEAR(error_of(fusion, camera, t), camera.sigma, 1);
    }
  }
  // The mean of 12 frames has 0.29 of the noise of one.
  EXPECT_LT(error_of(fusion, camera, 11), 0.45 * camera.sigma);
}

TEST_P(EveryTarget, VarianceIsWhatIsLeftOfTheNoise) {
  const Camera camera;
  TemporalFusion fusion;
  for (int t = 0; t < 8; ++t) {
    fuse(fusion, camera.frame(t), camera.sigma);
    const ConstPlane v = fusion.variance();
    ASSERT_EQ(v.width, camera.width / 2);
    ASSERT_EQ(v.height, camera.height / 2);
    double sum = 0;
    for (int y = 8; y < v.height - 8; ++y) {
      for (int x = 8; x < v.width - 8; ++x) {
        sum += sample_of(v, x, y) / 65535.0;
      }
    }
    const double share = sum / ((v.width - 16) * (v.height - 16));
    const double error = error_of(fusion, camera, t) / camera.sigma;
    EXPECT_NEAR(std::sqrt(share), error, 0.12) << "frame " << t;
  }
}

TEST_P(EveryTarget, FollowsMotion) {
  for (const auto& [dx, dy] : {std::pair{3.0, 0.0}, std::pair{-2.0, 5.0}, std::pair{6.0, -4.0}}) {
    Camera camera;
    camera.dx = dx;
    camera.dy = dy;
    TemporalFusion fusion;
    for (int t = 0; t < 10; ++t) {
      fuse(fusion, camera.frame(t), camera.sigma);
    }
    EXPECT_LT(error_of(fusion, camera, 9), 0.6 * camera.sigma) << dx << ", " << dy;
  }
}

// What the law says for a pixel that never changes, in double precision: v falls as 1, 1/2, 1/3, ...
TEST_P(EveryTarget, AStillConstantIsAveragedAsTheFormulaSays) {
  for (const int bit_depth : {8, 10, 16}) {
    TemporalFusion fusion;
    Image frame(40, 24, bit_depth, 1);
    double mean = 0;
    for (int t = 0; t < 6; ++t) {
      const int value = 100 + (t % 2 == 0 ? 2 : -2);  // far below what noise of 15 explains
      for (int i = 0; i < 40 * 24; ++i) {
        frame.set(0, i % 40, i / 40, value << (bit_depth - 8));
      }
      mean += (value - mean) / (t + 1);
      fuse(fusion, frame, 15);
      EXPECT_NEAR(sample_of(fusion.guides()[0], 20, 12) / 16.0, mean, 0.1) << "frame " << t;
      EXPECT_NEAR(sample_of(fusion.variance(), 10, 6) / 65535.0, 1.0 / (t + 1), 1e-3) << "frame " << t;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(TemporalFusion, EveryTarget, ::testing::ValuesIn(instruction_sets()),
                         [](const auto& target) { return target.param; });

std::vector<int> samples_of(std::span<const ConstPlane> planes) {
  std::vector<int> all;
  for (const ConstPlane& p : planes) {
    for (int y = 0; y < p.height; ++y) {
      for (int x = 0; x < p.width; ++x) {
        all.push_back(sample_of(p, x, y));
      }
    }
  }
  return all;
}

TEST(TemporalFusion, EveryInstructionSetAndThreadCountGivesTheSame) {
  Camera camera;
  camera.dx = 2;
  camera.width = 203;  // nothing divides it
  camera.height = 117;
  const auto run = [&](const std::string& target, int threads) {
    force_instruction_set(target);
    TemporalFusion fusion;
    for (int t = 0; t < 4; ++t) {
      fuse(fusion, camera.frame(t), camera.sigma, threads);
    }
    force_instruction_set("");
    std::vector<int> all = samples_of(fusion.guides());
    const ConstPlane variance = fusion.variance();
    const std::vector<int> shares = samples_of({&variance, 1});
    all.insert(all.end(), shares.begin(), shares.end());
    return all;
  };
  const std::vector<int> expected = run("", 1);
  for (const int threads : {2, 5, 0}) {
    EXPECT_EQ(run("", threads), expected) << threads << " threads";
  }
  for (const std::string& target : instruction_sets()) {
    EXPECT_EQ(run(target, 2), expected) << target;
  }
}

TEST(TemporalFusion, LayoutsAndDepthsGiveTheSame) {
  Camera camera;
  camera.width = 75;
  camera.height = 53;
  camera.sigma = 0;  // so that all depths have the same samples
  const auto run = [&](int bit_depth, const Layout& layout) {
    TemporalFusion fusion;
    for (int t = 0; t < 3; ++t) {
      Image frame(camera.width, camera.height, bit_depth, 1, layout);
      const Image plain = camera.frame(t);
      for (int i = 0; i < camera.width * camera.height; ++i) {
        frame.set(0, i % camera.width, i / camera.width,
                  plain.get(0, i % camera.width, i / camera.width) << (bit_depth - 8));
      }
      fuse(fusion, frame, 10);
    }
    return samples_of(fusion.guides());
  };
  const std::vector<int> expected = run(8, {});
  EXPECT_EQ(run(8, {.step = 3, .padding = 5, .offset = 1}), expected);
  EXPECT_EQ(run(8, {.upside_down = true}), expected);
  EXPECT_EQ(run(10, {}), expected);
  EXPECT_EQ(run(10, {.step = 2, .shift = 6}), expected);
  EXPECT_EQ(run(16, {}), expected);
}

TEST(TemporalFusion, ACutLeavesNoTrace) {
  const Camera before;
  Camera after;
  after.which = 3;
  TemporalFusion fusion;
  for (int t = 0; t < 6; ++t) {
    fuse(fusion, before.frame(t), before.sigma);
  }
  fuse(fusion, after.frame(6), after.sigma);
  TemporalFusion fresh;
  fuse(fresh, after.frame(6), after.sigma);
  EXPECT_EQ(samples_of(fusion.guides()), samples_of(fresh.guides()));
}

// A square that goes away leaves no ghost, though all else stays.
TEST(TemporalFusion, WhatIsGoneIsGone) {
  const Camera camera;
  TemporalFusion fusion;
  for (int t = 0; t < 8; ++t) {
    Image frame = camera.frame(t);
    for (int y = 40; t < 7 && y < 72; ++y) {
      for (int x = 80; x < 112; ++x) {
        frame.set(0, x, y, std::min(255, frame.get(0, x, y) + 60));
      }
    }
    fuse(fusion, frame, camera.sigma);
  }
  double sum = 0;
  for (int y = 42; y < 70; ++y) {
    for (int x = 82; x < 110; ++x) {
      sum += sample_of(fusion.guides()[0], x, y) / 16.0 - camera.clean(x, y, 7);
    }
  }
  EXPECT_NEAR(sum / (28 * 28), 0, 2);
}

TEST(TemporalFusion, ResetAndAnotherGeometryForget) {
  const Camera camera;
  TemporalFusion fresh;
  fuse(fresh, camera.frame(3), camera.sigma);
  TemporalFusion fusion;
  fuse(fusion, camera.frame(0), camera.sigma);
  fusion.reset();
  fuse(fusion, camera.frame(3), camera.sigma);
  EXPECT_EQ(samples_of(fusion.guides()), samples_of(fresh.guides()));
  Camera smaller = camera;
  smaller.width = 64;
  fuse(fusion, smaller.frame(1), camera.sigma);
  fuse(fusion, camera.frame(3), camera.sigma);
  EXPECT_EQ(samples_of(fusion.guides()), samples_of(fresh.guides()));
}

TEST(TemporalFusion, AnySizeServesAndOthersFollow) {
  for (const auto& [width, height] :
       {std::pair{1, 1}, std::pair{2, 3}, std::pair{17, 5}, std::pair{33, 70}}) {
    for (const int half : {1, 2}) {
      Camera camera;
      camera.width = width;
      camera.height = height;
      Camera chroma = camera;
      chroma.width = (width + half - 1) / half;
      chroma.height = (height + half - 1) / half;
      TemporalFusion fusion;
      for (int t = 0; t < 4; ++t) {
        const Image luma = camera.frame(t);
        const Image other = chroma.frame(t);
        fusion.fuse(luma.views(), other.views(), {15, 15, {}, 1, 1});
        fusion.remember(fusion.guides());
      }
      ASSERT_EQ(fusion.others().size(), 1U);
      EXPECT_EQ(fusion.others()[0].width, chroma.width);
      EXPECT_EQ(fusion.others()[0].height, chroma.height);
    }
  }
}

// Of 2 x 17 interlaced rows the second field has 17 of luma and 8 of chroma: the ninth row of cells, the
// first of a row of blocks, has none of its own.
TEST(TemporalFusion, ARowOfCellsWithoutChromaLeavesThatOfOthersAlone) {
  Camera luma;
  luma.width = 400;
  luma.height = 17;
  Camera chroma = luma;
  chroma.width = 200;
  chroma.height = 8;
  const auto run = [&](int threads) {
    TemporalFusion fusion;
    for (int t = 0; t < 4; ++t) {
      Image frame = luma.frame(t);
      // Row 16 moves, so that its block has another motion than those above.
      for (int x = 0; x < luma.width; ++x) {
        frame.set(0, x, 16, frame.get(0, std::min(x + 3 * t, luma.width - 1), 16));
      }
      const Image& still = frame;
      const Image other = chroma.frame(t);
      TemporalFusionParameters p;
      p.sigma = p.other_sigma = 15;
      p.threads = threads;
      fusion.fuse(still.views(), other.views(), p);
    }
    return samples_of(fusion.others());
  };
  const std::vector<int> expected = run(1);
  for (const int threads : {2, 3, 8}) {
    EXPECT_EQ(run(threads), expected) << threads << " threads";
  }
}

TEST(TemporalFusion, RefusesWhatDoesNotFit) {
  const Image luma(20, 10, 8, 1);
  const Image quarter(5, 5, 8, 1);
  const auto message = [&](std::span<const ConstPlane> others,
                           const TemporalFusionParameters& p) -> std::string {
    try {
      TemporalFusion().fuse(luma.views(), others, p);
    } catch (const InvalidArgument& e) {
      return e.what();
    }
    return "";
  };
  const auto with = [](double sigma, double other_sigma, int threads) {
    TemporalFusionParameters p;
    p.sigma = sigma;
    p.other_sigma = other_sigma;
    p.threads = threads;
    return p;
  };
  EXPECT_EQ(message({}, {}), "");
  EXPECT_NE(message({}, with(0, 10, 0)).find("a sigma above 0"), std::string::npos);
  EXPECT_NE(message({}, with(10, 101, 0)).find("other_sigma above 0 and up to 100, got 101"),
            std::string::npos);
  EXPECT_NE(message({}, with(10, 10, -1)).find("threads, got -1"), std::string::npos);
  EXPECT_NE(message(quarter.views(), {}).find("or half, of 20x10, got 5x5"), std::string::npos);
  EXPECT_THROW(TemporalFusion().fuse({}, {}, {}), InvalidArgument);
  TemporalFusion fusion;
  fusion.remember(luma.views());  // before any frame: nothing to remember
  fusion.fuse(luma.views(), {}, {});
  EXPECT_THROW(fusion.remember(quarter.views()), InvalidArgument);
  EXPECT_THROW(fusion.remember({}), InvalidArgument);
  // Refused whole: the frame before is still there.
  TemporalFusionParameters p;
  p.variance = luma.views()[0];
  EXPECT_THROW(fusion.fuse(quarter.views(), {}, p), InvalidArgument);
  ASSERT_EQ(fusion.guides().size(), 1U);
  EXPECT_EQ(fusion.guides()[0].width, luma.width());
}

// Of the first frame it is sigma everywhere; then it follows the variance.
TEST(TemporalFusion, DeviationIsTheRootOfTheVariance) {
  const Camera camera;
  TemporalFusion fusion;
  TemporalFusionParameters p;
  p.sigma = camera.sigma;
  p.deviation_scale = 1.5;
  for (int t = 0; t < 3; ++t) {
    const Image frame = camera.frame(t);
    fusion.fuse(frame.views(), {}, p);
    for (const int x : {5, 40, 90}) {
      const double v = sample_of(fusion.variance(), x, 20) / 65535.0;
      EXPECT_NEAR(sample_of(fusion.deviation(), x, 20) / 256.0, 1.5 * camera.sigma * std::sqrt(v), 0.02) << t;
    }
  }
}

// Where there is no noise at all nothing is averaged, and a cut is still a cut: all of it is new.
TEST(TemporalFusion, SomeOfTheFrameMayHaveNoNoise) {
  const Camera camera{.width = 128, .height = 128};
  Camera other = camera;
  other.which = 3;
  for (const int corner : {5, 6, 7}) {  // cells; an odd number of them, too
    Image variance(64, 64, 16, 1);
    Image before = camera.frame(0);
    Image after = other.frame(1);
    for (int i = 0; i < 64 * 64; ++i) {
      const bool is_still = i % 64 < corner && i / 64 < corner;
      variance.set(0, i % 64, i / 64, is_still ? 0 : 65535);
      for (const int k : {0, 1, 2, 3}) {
        if (is_still) {
          before.set(0, i % 64 * 2 + k % 2, i / 64 * 2 + k / 2, 90);
          after.set(0, i % 64 * 2 + k % 2, i / 64 * 2 + k / 2, 90);
        }
      }
    }
    TemporalFusionParameters p;
    p.sigma = camera.sigma;
    p.variance = std::as_const(variance).views()[0];
    TemporalFusion fusion;
    fusion.fuse(std::as_const(before).views(), {}, p);
    fusion.fuse(std::as_const(after).views(), {}, p);
    int changed = 0;
    for (int i = 0; i < 128 * 128; ++i) {
      changed += sample_of(fusion.guides()[0], i % 128, i / 128) != 16 * after.get(0, i % 128, i / 128);
    }
    EXPECT_EQ(changed, 0) << corner;
  }
}

TEST(TemporalFusion, LessNoisyFramesWeighMore) {
  // A constant of 100 fused with one of 104 whose noise has a quarter of the variance.
  Image first(40, 24, 8, 1);
  Image second(40, 24, 8, 1);
  Image quarter(20, 12, 16, 1);
  for (int i = 0; i < 40 * 24; ++i) {
    first.set(0, i % 40, i / 40, 100);
    second.set(0, i % 40, i / 40, 104);
  }
  for (int i = 0; i < 20 * 12; ++i) {
    quarter.set(0, i % 20, i / 20, 16384);
  }
  TemporalFusion fusion;
  fuse(fusion, first, 30);
  TemporalFusionParameters p;
  p.sigma = 30;
  p.variance = std::as_const(quarter).views()[0];
  fusion.fuse(std::as_const(second).views(), {}, p);
  EXPECT_NEAR(sample_of(fusion.guides()[0], 20, 12) / 16.0, (100 * 1 + 104 * 4) / 5.0, 0.1);
  EXPECT_NEAR(sample_of(fusion.variance(), 10, 6) / 65535.0, 1 / 5.0, 1e-3);
  const Image wrong(20, 11, 16, 1);
  p.variance = wrong.views()[0];
  EXPECT_THROW(fusion.fuse(std::as_const(second).views(), {}, p), InvalidArgument);
}

// ---------------------------------------------------------------------------------------------------------------

double difference(const Image& a, const Image& b) {
  double sum = 0;
  for (int y = 0; y < a.height(); ++y) {
    for (int x = 0; x < a.width(); ++x) {
      sum += std::abs(a.get(0, x, y) - b.get(0, x, y));
    }
  }
  return sum / (a.width() * a.height());
}

TEST(VideoDenoiser, FusedFramesAreBetterThanEachByItself) {
  const Camera camera;
  VideoDenoiserParameters p;
  p.sigma = camera.sigma;
  double errors[2] = {};
  for (const bool temporal : {false, true}) {
    p.temporal = temporal;
    VideoDenoiser denoiser;
    Image frame(1, 1, 8, 1);
    for (int t = 0; t < 8; ++t) {
      frame = camera.frame(t);
      denoiser.filter(frame.views(), {}, p);
    }
    Image clean = frame;
    for (int i = 0; i < camera.width * camera.height; ++i) {
      const int x = i % camera.width;
      const int y = i / camera.width;
      clean.set(0, x, y, static_cast<int>(std::lround(std::clamp(camera.clean(x, y, 7), 0.0, 255.0))));
    }
    errors[temporal ? 1 : 0] = difference(frame, clean);
  }
  EXPECT_LT(errors[1], 0.8 * errors[0]);
}

TEST(VideoDenoiser, AfterResetACutOrAFrameByItselfThereIsNoTrace) {
  const Camera before;
  Camera after;
  after.which = 3;
  VideoDenoiserParameters p;
  p.sigma = before.sigma;
  Image expected = after.frame(9);
  VideoDenoiser().filter(expected.views(), {}, p);
  for (const int how : {0, 1, 2}) {
    VideoDenoiser denoiser;
    for (int t = 0; t < 5; ++t) {
      Image frame = before.frame(t);
      denoiser.filter(frame.views(), {}, p);
    }
    if (how == 1) {
      denoiser.reset();
    } else if (how == 2) {
      VideoDenoiserParameters alone = p;
      alone.temporal = false;
      Image frame = before.frame(5);
      denoiser.filter(frame.views(), {}, alone);
    }
    Image frame = after.frame(9);
    denoiser.filter(frame.views(), {}, p);
    EXPECT_EQ(frame, expected) << how;
  }
}

// As an estimate says of chroma without noise.
TEST(VideoDenoiser, LumaDoesNotForgetWhereChromaHasNoNoiseForAFrame) {
  const Camera camera;
  const auto last_luma = [&camera](double sigma_of_last_chroma) {
    VideoDenoiserParameters p;
    p.sigma = camera.sigma;
    VideoDenoiser denoiser;
    Image luma(1, 1, 8, 1);
    Image chroma(camera.width, camera.height, 8, 2);
    for (int t = 0; t < 6; ++t) {
      luma = camera.frame(t);
      p.chroma_sigma = t == 5 ? sigma_of_last_chroma : 4;
      denoiser.filter(luma.views(), chroma.views(), p);
    }
    return luma;
  };
  EXPECT_EQ(last_luma(0), last_luma(4));
}

// Frames to come halve the noise of the first frame, which has none before it.
TEST(VideoDenoiser, FramesAheadHelp) {
  Camera camera;
  camera.dx = 2;
  const Image second = camera.frame(1);
  const Image third = camera.frame(2);
  const std::vector<ConstPlane> planes[] = {second.views(), third.views()};
  const std::vector<VideoFrame> ahead = {{planes[0], {}}, {planes[1], {}}};
  VideoDenoiserParameters p;
  p.sigma = camera.sigma;
  double errors[3] = {};
  for (std::size_t count = 0; count <= ahead.size(); ++count) {
    Image frame = camera.frame(0);
    VideoDenoiser().filter(frame.views(), {}, p, std::span(ahead).first(count));
    for (int y = 16; y < camera.height - 16; ++y) {
      for (int x = 16; x < camera.width - 16; ++x) {
        errors[count] += std::fabs(frame.get(0, x, y) - camera.clean(x, y, 0));
      }
    }
  }
  EXPECT_LT(errors[1], 0.9 * errors[0]);
  EXPECT_LT(errors[2], errors[1]);
}

// With frames ahead, too, whatever they cost the first time.
TEST(VideoDenoiser, AFrameAllocatesNothing) {
#ifdef NONLOCAL_SANITIZED
  GTEST_SKIP() << "sanitizers have a new of their own";
#endif
  const Camera camera;
  const Image later = camera.frame(1);
  const std::vector<ConstPlane> planes = later.views();
  const VideoFrame ahead = {planes, {}};
  VideoDenoiserParameters p;
  p.sigma = camera.sigma;
  p.threads = 2;
  for (const std::size_t count : {0U, 1U}) {
    VideoDenoiser denoiser;
    Image frame = camera.frame(0);
    const std::vector<Plane> views = frame.views();
    int before = 0;
    for (int t = 0; t < 4; ++t) {
      before = t == 2 ? testing::allocations() : before;
      denoiser.filter(views, {}, p, {&ahead, count});
    }
    EXPECT_EQ(testing::allocations() - before, 0) << count << " frames ahead";
  }
}

// The sides of chroma may be rounded down: every sample is filtered as if there were one more.
TEST(VideoDenoiser, ChromaIsRoundedEitherWay) {
  const Camera luma{.width = 33, .height = 31};
  for (const bool temporal : {false, true}) {
    for (const int width : {16, 17}) {
      for (const int height : {15, 16}) {
        const Camera half{.width = width, .height = height, .which = 2};
        Image frame = luma.frame(0);
        Image blue = half.frame(1);
        Image red = half.frame(2);
        const Image before[] = {frame, blue, red};
        VideoDenoiserParameters p;
        p.sigma = {12, 18};
        p.chroma_sigma = 15;
        p.temporal = temporal;
        VideoDenoiser().filter(frame.views(), std::vector{blue.views()[0], red.views()[0]}, p);
        EXPECT_NE(frame, before[0]);
        EXPECT_NE(blue, before[1]) << width << "x" << height;
        EXPECT_NE(red, before[2]);
      }
    }
  }
}

// Whatever is wrong is said, and the frame is then as it was.
TEST(VideoDenoiser, WhatDoesNotFitIsRefused) {
  const Camera camera;
  const Camera small{.width = 64, .height = 48};
  const Image other = small.frame(1);
  const Image deep = camera.frame(1, 10);
  const Image same = camera.frame(1);
  const std::vector<ConstPlane> of_other = other.views();
  const std::vector<ConstPlane> of_deep = deep.views();
  const std::vector<ConstPlane> of_same = same.views();
  ConstPlane nothing = of_same[0];
  nothing.data = nullptr;
  const Image original = camera.frame(0);
  const auto message = [&](const VideoFrame& ahead, const VideoDenoiserParameters& p) -> std::string {
    Image frame = original;
    try {
      VideoDenoiser().filter(frame.views(), {}, p, {&ahead, 1});
    } catch (const InvalidArgument& error) {
      EXPECT_EQ(frame, original);
      return error.what();
    }
    return "";
  };
  for (const bool temporal : {false, true}) {
    VideoDenoiserParameters p;
    p.sigma = {5, 10};
    p.temporal = temporal;
    EXPECT_EQ(message({of_same, {}}, p), "");
    EXPECT_EQ(
        message({of_other, {}}, p),
        "VideoDenoiser: expected planes of luma or RGB of a frame ahead to be 192x112 of 8 bits as of this "
        "one, got 64x48 of 8 bits");
    EXPECT_NE(message({of_deep, {}}, p).find("got 192x112 of 10 bits"), std::string::npos);
    EXPECT_EQ(message({{}, {}}, p),
              "VideoDenoiser: expected 1 planes of luma or RGB of a frame ahead, as of this one, got 0");
    EXPECT_NE(message({of_same, of_same}, p).find("expected 0 planes of chroma"), std::string::npos);
    EXPECT_NE(message({{&nothing, 1}, {}}, p), "");
    p.grain = -5;
    EXPECT_NE(message({of_same, {}}, p).find("expected a grain of 1 to 64, got -5"), std::string::npos);
    p.grain = 1;
    p.chroma_grain = 65;
    EXPECT_NE(message({of_same, {}}, p).find("expected a chroma_grain of 1 to 64, got 65"),
              std::string::npos);
  }
}

// Frames to come that show something else do nothing.
TEST(VideoDenoiser, ACutAheadLeavesNoTrace) {
  const Camera camera;
  Camera after;
  after.which = 3;
  const Image other = after.frame(1);
  const std::vector<ConstPlane> planes = other.views();
  const VideoFrame ahead = {planes, {}};
  VideoDenoiserParameters p;
  p.sigma = camera.sigma;
  Image expected = camera.frame(0);
  VideoDenoiser().filter(expected.views(), {}, p);
  Image frame = camera.frame(0);
  VideoDenoiser().filter(frame.views(), {}, p, {&ahead, 1});
  EXPECT_LT(difference(frame, expected), 0.5);
}

// The mean error of the last of some frames with the noise that `add` adds to one, denoised as p says.
template <typename Add>
double error_after(const Camera& camera, const VideoDenoiserParameters& p, Add&& add) {
  VideoDenoiser denoiser;
  constexpr int kFrames = 8;
  double error = 0;
  for (int t = 0; t < kFrames; ++t) {
    Image frame(camera.width, camera.height, 8, 1);
    add(frame, t);
    denoiser.filter(frame.views(), {}, p);
    for (int y = 0; t == kFrames - 1 && y < camera.height; ++y) {
      for (int x = 0; x < camera.width; ++x) {
        error += std::abs(frame.get(0, x, y) - std::clamp(camera.clean(x, y, t), 0.0, 255.0));
      }
    }
  }
  return error / (camera.width * camera.height);
}

void set_clipped(Image& frame, int x, int y, double value) {
  frame.set(0, x, y, static_cast<int>(std::lround(std::clamp(value, 0.0, 255.0))));
}

// Where the noise of dark places is less than that of bright ones, to know it is better than one sigma: that
// in the dark, in the middle, or of bright places.
TEST(VideoDenoiser, NoiseByBrightnessBeatsOneSigma) {
  const Camera camera;
  const auto variance = [](double brightness) { return 2.5 * std::max(brightness - 60, 4.0); };
  const auto add = [&](Image& frame, int t) {
    std::mt19937 random(static_cast<unsigned>(t));
    std::normal_distribution<double> normal;
    for (int y = 0; y < camera.height; ++y) {
      for (int x = 0; x < camera.width; ++x) {
        const double clean = camera.clean(x, y, t);
        set_clipped(frame, x, y, clean + std::sqrt(variance(clean)) * normal(random));
      }
    }
  };
  VideoDenoiserParameters p;
  for (const bool temporal : {false, true}) {
    p.temporal = temporal;
    p.sigma = {std::sqrt(variance(16)), std::sqrt(variance(235))};
    const double by_brightness = error_after(camera, p, add);
    for (const double sigma : {std::sqrt(variance(16)), std::sqrt(variance(120)), std::sqrt(variance(235))}) {
      p.sigma = sigma;
      EXPECT_LT(by_brightness, error_after(camera, p, add)) << sigma << ", temporal " << temporal;
    }
  }
}

// Smooth noise looks like something new, unless the fusion knows it.
TEST(VideoDenoiser, KnowingTheGrainFusesSmoothNoise) {
  const Camera camera;
  const auto add = [&](Image& frame, int t) {
    std::mt19937 random(static_cast<unsigned>(t));
    std::normal_distribution<double> normal;
    std::vector<double> white(static_cast<std::size_t>(camera.width + 2) * (camera.height + 2));
    std::generate(white.begin(), white.end(), [&] { return 10 * normal(random); });
    for (int y = 0; y < camera.height; ++y) {
      for (int x = 0; x < camera.width; ++x) {
        double sum = 0;  // of 3 x 3: a sigma of 10, a grain of 9
        for (int i = 0; i < 9; ++i) {
          sum += white[static_cast<std::size_t>(y + i / 3) * (camera.width + 2) + x + i % 3];
        }
        set_clipped(frame, x, y, camera.clean(x, y, t) + sum / 3);
      }
    }
  };
  VideoDenoiserParameters p;
  p.sigma = 10;
  const double unknown = error_after(camera, p, add);
  p.grain = 9;
  EXPECT_LT(error_after(camera, p, add), 0.8 * unknown);
}

TEST(VideoDenoiser, RefusesOtherNumbersOfPlanes) {
  Image one(8, 8, 8, 1);
  Image three(8, 8, 8, 3);
  EXPECT_THROW(VideoDenoiser().filter({}, {}, {}), InvalidArgument);
  EXPECT_THROW(VideoDenoiser().filter(one.views(), one.views(), {}), InvalidArgument);
  EXPECT_THROW(VideoDenoiser().filter(one.views(), three.views(), {}), InvalidArgument);
}

}  // namespace
}  // namespace nonlocal
