// Non-local means as attention: the same averages as those of the kernel, and the formula's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "allocations.h"
#include "image.h"
#include "nonlocal/cpu.h"
#include "nonlocal/error.h"
#include "nonlocal/non_local_means.h"
#include "nonlocal/video_denoiser.h"
#include "pictures.h"
#include "reference/non_local_means.h"

namespace nonlocal {
namespace {

using testing::as_pictures;
using testing::contents;
using testing::Image;
using testing::Layout;
using testing::make;

NonLocalMeansParameters by(NonLocalMeansMethod method, NonLocalMeansParameters p) {
  p.method = method;
  return p;
}

Image filtered(const Image& in, const NonLocalMeansParameters& p, NonLocalMeansMethod method,
               const Layout& layout = {}) {
  Image out(in.width(), in.height(), in.bit_depth(), in.planes(), layout);
  NonLocalMeans().filter(in.views(), out.views(), by(method, p));
  return out;
}

Image by_attention(const Image& in, const NonLocalMeansParameters& p) {
  return filtered(in, p, NonLocalMeansMethod::kAttention);
}

// The largest difference, in 8-bit code values.
double largest_difference(const Image& a, const Image& b) {
  int largest = 0;
  for (int c = 0; c < a.planes(); ++c) {
    for (int y = 0; y < a.height(); ++y) {
      for (int x = 0; x < a.width(); ++x) {
        largest = std::max(largest, std::abs(a.get(c, x, y) - b.get(c, x, y)));
      }
    }
  }
  return std::ldexp(largest, 8 - a.bit_depth());
}

// A frame filtered in both ways.
struct Both {
  Both(const Image& frame, const NonLocalMeansParameters& parameters)
      : in(frame),
        p(parameters),
        attention(by_attention(in, p)),
        direct(filtered(in, p, NonLocalMeansMethod::kDirect)),
        pictures(as_pictures(in)) {}

  [[nodiscard]] double value(const Image& image, int plane, int x, int y) const {
    return std::ldexp(image.get(plane, x, y), 8 - in.bit_depth());
  }
  // The formula's, not rounded.
  [[nodiscard]] std::vector<double> exact(int x, int y) const {
    return reference::non_local_mean(pictures, x, y,
                                     {p.patch_size, p.search_size, p.sigma, filter_h(p, in.planes())});
  }

  // Of attention to the formula, at every `stride`-th pixel.
  [[nodiscard]] double largest_error(int stride) const {
    double largest = 0;
    for (int i = 0; i < in.width() * in.height(); i += stride) {
      const int x = i % in.width();
      const int y = i / in.width();
      const std::vector<double> expected = exact(x, y);
      for (int c = 0; c < in.planes(); ++c) {
        largest = std::max(largest, std::abs(value(attention, c, x, y) - expected[c]));
      }
    }
    return largest;
  }

  // Pixels where they are more than a code value apart, but for those where the kernel is that far from the
  // formula.
  [[nodiscard]] int count_apart() const {
    int count = 0;
    for (int i = 0; i < in.width() * in.height(); ++i) {
      const int x = i % in.width();
      const int y = i / in.width();
      for (int c = 0; c < in.planes(); ++c) {
        if (std::abs(value(attention, c, x, y) - value(direct, c, x, y)) > 1 &&
            std::abs(value(direct, c, x, y) - exact(x, y)[c]) <= 1) {
          ++count;
        }
      }
    }
    return count;
  }

  const Image& in;
  NonLocalMeansParameters p;
  Image attention;
  Image direct;
  std::vector<reference::Picture> pictures;
};

std::string describe(const Image& in, const NonLocalMeansParameters& p) {
  return std::to_string(in.width()) + "x" + std::to_string(in.height()) + "x" + std::to_string(in.planes()) +
         " of " + std::to_string(in.bit_depth()) + " bits, patch " + std::to_string(p.patch_size) +
         ", search " + std::to_string(p.search_size) + ", sigma " + std::to_string(p.sigma) + ", strength " +
         std::to_string(p.strength);
}

// Of the formula it is off by no more than rounding to the frame's own steps; of the kernel by a code value,
// or by two, where those of the second are the kernel's: its weights are right within 2.2 %.
void expect_same(const Image& in, const NonLocalMeansParameters& p, const std::string& what, int stride = 7) {
  const Both both(in, p);
  EXPECT_LE(largest_difference(both.attention, both.direct), 2) << what << ", " << describe(in, p);
  EXPECT_EQ(both.count_apart(), 0) << what << ", " << describe(in, p);
  EXPECT_LE(both.largest_error(stride), std::ldexp(0.5, 8 - in.bit_depth()) + 0.01)
      << what << ", " << describe(in, p);
}

Image textured(double noise, int width, int height, int bit_depth = 8, int planes = 1) {
  return make(contents().back().second, noise, width, height, bit_depth, planes, 1);
}

class EveryInstructionSet : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { force_instruction_set(GetParam()); }
  void TearDown() override { force_instruction_set(""); }
};
INSTANTIATE_TEST_SUITE_P(AttentionMeans, EveryInstructionSet, ::testing::ValuesIn(instruction_sets()),
                         [](const auto& info) { return info.param; });

TEST_P(EveryInstructionSet, EqualsTheKernelOnEveryContent) {
  for (const auto& [name, content] : contents()) {
    for (const double sigma : {5.0, 25.0}) {
      for (const double noise : {0.0, sigma}) {
        expect_same(make(content, noise, 61, 47, 8, 1, 1), {5, 11, sigma, 1, 2}, name);
      }
    }
  }
}

TEST_P(EveryInstructionSet, EqualsTheKernelAtEveryBitDepth) {
  for (const int bit_depth : {8, 10, 12, 16}) {
    for (const int planes : {1, 3}) {
      expect_same(textured(15, 45, 33, bit_depth, planes), {5, 11, 15, 1, 2}, "depth", 11);
    }
  }
}

TEST(AttentionMeans, EqualsTheKernelAtEveryPatchAndSearchSize) {
  for (const int patch : {1, 3, 5, 7, 9, 15}) {
    for (const int search : {3, 5, 13, 21}) {
      for (const double sigma : {5.0, 15.0, 50.0}) {
        expect_same(textured(sigma, 53, 39), {patch, search, sigma, 1, 2}, "size", 19);
      }
    }
  }
  expect_same(textured(20, 90, 80), {3, 63, 20, 1, 2}, "largest window", 97);
}

TEST(AttentionMeans, EqualsTheKernelAtEveryStrength) {
  for (const double sigma : {0.3, 1.0, 3.0, 30.0, 100.0}) {
    for (const double strength : {0.2, 0.7, 3.0, 10.0}) {
      for (const int patch : {1, 3, 7}) {
        expect_same(textured(sigma, 41, 31), {patch, 9, sigma, strength, 2}, "strength");
      }
    }
  }
}

TEST(AttentionMeans, EqualsTheKernelOnPlanesThatShareWeights) {
  for (const int planes : {2, 3, 4}) {
    for (const int bit_depth : {8, 10, 16}) {
      expect_same(textured(12, 45, 33, bit_depth, planes), {5, 11, 12, 1, 2}, "planes", 11);
    }
  }
}

TEST(AttentionMeans, EqualsTheKernelOnChroma) {
  for (const double sigma : {4.0, 15.0, 40.0}) {
    expect_same(textured(sigma, 61, 37, 8, 2), chroma_parameters({5, 15, sigma, 1, 2}, true),
                "I420's chroma");
  }
}

TEST(AttentionMeans, EqualsTheKernelAtAnySize) {
  for (const int width : {1, 2, 3, 17, 64, 65}) {
    for (const int height : {1, 2, 5, 33}) {
      expect_same(textured(15, width, height), {7, 21, 15, 1, 2}, "any size", 5);
    }
  }
}

// Tiles of 268 x 268 and of 55 x 55 pixels at the most.
TEST(AttentionMeans, EqualsTheKernelAcrossTiles) {
  expect_same(textured(20, 601, 277), {5, 11, 20, 1, 2}, "tiles", 997);
  expect_same(textured(20, 131, 99, 8, 3), {11, 21, 20, 1, 2}, "small tiles", 997);
}

TEST(AttentionMeans, ThreadsDoNotMatter) {
  const Image in = textured(20, 301, 290);
  const Image one = by_attention(in, {5, 13, 20, 1, 1});
  for (const int threads : {2, 3, 8, 0}) {
    EXPECT_EQ(one, by_attention(in, {5, 13, 20, 1, threads})) << threads << " threads";
  }
}

TEST(AttentionMeans, LayoutDoesNotMatter) {
  const NonLocalMeansParameters p = {5, 9, 10, 1, 1};
  const Image packed = textured(10, 37, 29, 10, 2);
  const Image expected = by_attention(packed, p);
  for (const Layout& layout : {Layout{.step = 2}, Layout{.step = 4, .padding = 7}, Layout{.offset = 3},
                               Layout{.upside_down = true}, Layout{.shift = 6}}) {
    const Image in = make(contents().back().second, 10, 37, 29, 10, 2, 1, layout);
    EXPECT_EQ(expected, by_attention(in, p));
    EXPECT_EQ(expected, filtered(packed, p, NonLocalMeansMethod::kAttention, layout));
  }
}

TEST(AttentionMeans, FiltersInPlaceAndToOtherDepths) {
  const NonLocalMeansParameters p = by(NonLocalMeansMethod::kAttention, {5, 9, 15, 1, 2});
  const Image in = textured(15, 61, 37, 12);
  const Image expected = by_attention(in, p);
  Image in_place = in;
  NonLocalMeans().filter(std::as_const(in_place).views(), in_place.views(), p);
  EXPECT_EQ(expected, in_place);
  Image out(61, 37, 8, 1);
  NonLocalMeans().filter(in.views(), out.views(), p);
  for (int i = 0; i < 61 * 37; ++i) {
    EXPECT_NEAR(out.get(0, i % 61, i / 61), std::min(expected.get(0, i % 61, i / 61) / 16.0, 255.0),
                0.5 + 1 / 32.0);
  }
}

TEST(AttentionMeans, FramesDoNotInfluenceEachOtherAndAllocateNothing) {
  const Image a = textured(20, 90, 61);
  const Image b = textured(10, 130, 40, 10, 2);
  const NonLocalMeansParameters p = by(NonLocalMeansMethod::kAttention, {5, 13, 20, 1, 2});
  const Image alone = by_attention(a, p);
  NonLocalMeans filter;
  Image other(130, 40, 10, 2);
  Image again(90, 61, 8, 1);
  filter.filter(b.views(), other.views(), p);
  filter.filter(a.views(), again.views(), p);
  EXPECT_EQ(alone, again);
  const std::vector<ConstPlane> in = a.views();
  const std::vector<Plane> out = again.views();
  const int before = testing::allocations();
  for (const double sigma : {20.0, 7.0, 20.0}) {  // an estimate differs from frame to frame
    NonLocalMeansParameters q = p;
    q.sigma = sigma;
    filter.filter(in, out, q);
  }
  EXPECT_EQ(testing::allocations() - before, 0);
  EXPECT_EQ(alone, again);
}

// As small as a setting that fades in may be.
TEST(AttentionMeans, NextToNoStrengthIsTheKernels) {
  for (const double strength : {1e-6, 1e-19, 1e-300}) {
    expect_same(textured(9, 41, 31), {5, 13, 10, strength, 2}, "next to no strength");
  }
}

TEST(AttentionMeans, ZeroStrengthOrSigmaCopies) {
  const Image in = textured(9, 77, 31, 10);
  EXPECT_EQ(in, by_attention(in, {5, 13, 20, 0, 1}));
  EXPECT_EQ(in, by_attention(in, {5, 13, 0, 1, 1}));
}

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const InvalidArgument& e) {
    return e.what();
  }
  return "nothing was thrown";
}

TEST(AttentionMeans, RefusesWhatIsNoInnerProduct) {
  const NonLocalMeansParameters p = by(NonLocalMeansMethod::kAttention, {});
  Image image(20, 10, 8, 1);
  Image joint(10, 5, 8, 2);
  Image variance(10, 5, 16, 1);
  const auto filter = [&](const Image& joint_in, Image& joint_out, const ConstPlane& v) {
    return message_of([&] {
      NonLocalMeans().filter(
          {std::as_const(image).views(), image.views(), joint_in.views(), joint_out.views(), v}, p);
    });
  };
  EXPECT_EQ(filter(joint, joint, {}),
            "NonLocalMeans: expected no joint planes and no variance of the noise with kAttention, got joint "
            "planes");
  EXPECT_EQ(message_of([&] {
              NonLocalMeans().filter(
                  {std::as_const(image).views(), image.views(), {}, {}, std::as_const(variance).views()[0]},
                  p);
            }),
            "NonLocalMeans: expected no joint planes and no variance of the noise with kAttention, got a "
            "variance");
}

// The whole denoiser: luma and chroma of I420 each by its own parameters.
TEST(AttentionMeans, DenoisersFramesAreThoseOfTheKernel) {
  VideoDenoiserParameters p;
  p.temporal = false;
  p.sigma = p.chroma_sigma = 12;
  const Image luma = textured(12, 101, 67);
  const Image chroma = textured(12, 51, 34, 8, 2);
  Image own[2] = {luma, luma};
  Image others[2] = {chroma, chroma};
  for (const NonLocalMeansMethod method : {NonLocalMeansMethod::kDirect, NonLocalMeansMethod::kAttention}) {
    p.method = method;
    const int i = method == NonLocalMeansMethod::kAttention ? 1 : 0;
    VideoDenoiser().filter(own[i].views(), others[i].views(), p);
  }
  EXPECT_LE(largest_difference(own[0], own[1]), 1);
  EXPECT_LE(largest_difference(others[0], others[1]), 1);
  EXPECT_GT(largest_difference(luma, own[1]), 1);
  EXPECT_GT(largest_difference(chroma, others[1]), 1);
  const auto message = [&](const std::function<void(VideoDenoiserParameters&)>& spoil) {
    VideoDenoiserParameters q = p;
    spoil(q);
    return message_of([&] { VideoDenoiser().filter(own[0].views(), others[0].views(), q); });
  };
  using P = VideoDenoiserParameters;
  const std::string expected =
      "VideoDenoiser: expected one sigma, without temporal and joint_chroma, for kAttention, got ";
  EXPECT_EQ(message([](P&) {}), "nothing was thrown");
  EXPECT_EQ(message([](P& q) { q.temporal = true; }), expected + "temporal");
  EXPECT_EQ(message([](P& q) { q.joint_chroma = true; }), expected + "joint_chroma");
  EXPECT_EQ(message([](P& q) { q.sigma = {5, 10}; }), expected + "a sigma by brightness");
}

}  // namespace
}  // namespace nonlocal
