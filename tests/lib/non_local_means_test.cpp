// The kernel against the literal reference, on every instruction set, bit depth and layout.
#include "nonlocal/non_local_means.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <utility>

#include "image.h"
#include "nonlocal/cpu.h"
#include "nonlocal/error.h"
#include "pictures.h"
#include "reference/non_local_means.h"

namespace nonlocal {
namespace {

using testing::as_pictures;
using testing::contents;
using testing::Image;
using testing::Layout;
using testing::make;

Image filtered(const Image& in, const NonLocalMeansParameters& p, const Layout& layout = {}) {
  Image out(in.width(), in.height(), in.bit_depth(), in.planes(), layout);
  NonLocalMeans filter;
  filter.filter(in.views(), out.views(), p);
  return out;
}

// A picture and others that are averaged with its weights.
struct Joint {
  Image own;
  Image joint;
};

Joint filtered(const Joint& in, const NonLocalMeansParameters& p) {
  Joint out = in;
  NonLocalMeans filter;
  filter.filter({in.own.views(), out.own.views(), in.joint.views(), out.joint.views(), {}}, p);
  return out;
}

// The steps of joint planes: pixels a sample across and down.
struct Steps {
  int column;
  int row;
};

const std::vector<Steps>& all_steps() {
  static const std::vector<Steps> all = {{2, 2}, {2, 1}, {1, 2}, {1, 1}};
  return all;
}

int half(int size, int step) { return (size + step - 1) / step; }

struct Difference {
  double psnr;
  double largest;  // in 8-bit code values, like the peak of 255
  int count;
};

class Differences {
 public:
  void add(double d) {
    squares_ += d * d;
    largest_ = std::max(largest_, std::fabs(d));
    ++count_;
  }
  [[nodiscard]] Difference result() const {
    return {10 * std::log10(255 * 255 / std::max(squares_ / count_, 1e-9)), largest_, count_};
  }

 private:
  double squares_ = 0;
  double largest_ = 0;
  int count_ = 0;
};

// Every `stride`-th pixel against the reference.
Difference compare(const Image& in, const Image& out, const NonLocalMeansParameters& p, int stride) {
  const auto pictures = as_pictures(in);
  const reference::Parameters q = {p.patch_size, p.search_size, p.sigma, filter_h(p, in.planes())};
  const double scale = std::ldexp(1.0, 8 - in.bit_depth());
  Differences differences;
  for (int i = 0; i < in.width() * in.height(); i += stride) {
    const int x = i % in.width();
    const int y = i / in.width();
    const auto expected = reference::non_local_mean(pictures, x, y, q);
    for (int c = 0; c < in.planes(); ++c) {
      differences.add(expected[c] - out.get(c, x, y) * scale);
    }
  }
  return differences.result();
}

Difference compare_joint(const Joint& in, const Image& out, const Steps& steps,
                         const NonLocalMeansParameters& p, int stride) {
  const auto pictures = as_pictures(in.own);
  const auto joint = as_pictures(in.joint);
  const reference::Parameters q = {p.patch_size, p.search_size, p.sigma, filter_h(p, in.own.planes())};
  const double scale = std::ldexp(1.0, 8 - in.joint.bit_depth());
  Differences differences;
  for (int i = 0; i < out.width() * out.height(); i += stride) {
    const int x = i % out.width();
    const int y = i / out.width();
    const auto expected = reference::joint_mean(pictures, joint, x, y, steps.column, steps.row, q);
    for (int c = 0; c < out.planes(); ++c) {
      differences.add(expected[c] - out.get(c, x, y) * scale);
    }
  }
  return differences.result();
}

void expect_close(const Difference& d, const std::string& what) {
  EXPECT_LT(d.largest, 3) << what;
  if (d.count >= 100) {  // a few pixels make no PSNR
    EXPECT_GT(d.psnr, 54) << what;
  }
}

void expect_close(const Image& in, const NonLocalMeansParameters& p, int stride, const std::string& what) {
  expect_close(compare(in, filtered(in, p), p, stride), what);
}

Joint make_joint(int width, int height, int bit_depth, const Steps& steps, double noise, unsigned seed) {
  return {make(contents().back().second, noise, width, height, bit_depth, 1, seed),
          make(contents().back().second, noise, half(width, steps.column), half(height, steps.row), bit_depth,
               2, seed + 1)};
}

std::string describe(const NonLocalMeansParameters& p) {
  return "patch " + std::to_string(p.patch_size) + ", search " + std::to_string(p.search_size) + ", sigma " +
         std::to_string(p.sigma);
}

// --- every instruction set
// -------------------------------------------------------------------------------------

class EveryInstructionSet : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { force_instruction_set(GetParam()); }
  void TearDown() override { force_instruction_set(""); }
};

INSTANTIATE_TEST_SUITE_P(NonLocalMeans, EveryInstructionSet, ::testing::ValuesIn(instruction_sets()),
                         [](const auto& info) { return info.param; });

TEST_P(EveryInstructionSet, AgreesWithTheReferenceOnEveryContent) {
  for (const auto& [name, content] : contents()) {
    for (const double sigma : {5.0, 25.0}) {
      const Image in = make(content, name == "Texture" ? sigma : 0, 61, 47, 8, 1, 1);
      expect_close(in, {7, 11, sigma, 1, 1}, 7, name + " at sigma " + std::to_string(sigma));
    }
  }
}

TEST_P(EveryInstructionSet, AgreesWithTheReferenceAtEveryPatchAndSearchSize) {
  for (const int patch : {1, 3, 5, 7, 9, 11, 13, 15}) {
    for (const int search : {3, 5, 13, 21}) {
      for (const double sigma : {5.0, 15.0, 50.0}) {
        const NonLocalMeansParameters p = {patch, search, sigma, 1, 1};
        const Image in = make(contents().back().second, sigma, 53, 39, 8, 1, 2);
        expect_close(in, p, 19, describe(p));
      }
    }
  }
}

TEST_P(EveryInstructionSet, AgreesWithTheReferenceAtEveryBitDepth) {
  for (const int bit_depth : {8, 9, 10, 12, 14, 16}) {
    for (const int patch : {1, 3, 7}) {
      for (const double sigma : {5.0, 25.0, 50.0}) {
        const NonLocalMeansParameters p = {patch, 13, sigma, 1, 1};
        const Image in = make(contents().back().second, sigma, 53, 39, bit_depth, 1, 3);
        expect_close(in, p, 19, std::to_string(bit_depth) + " bits, " + describe(p));
      }
    }
  }
}

TEST_P(EveryInstructionSet, AgreesWithTheReferenceOnSeveralPlanesAtOnce) {
  for (const int planes : {2, 3, 4}) {
    for (const int bit_depth : {8, 10, 16}) {
      const NonLocalMeansParameters p = {5, 11, 12, 1, 1};
      const Image in = make(contents().back().second, 12, 45, 33, bit_depth, planes, 4);
      expect_close(in, p, 11, std::to_string(planes) + " planes of " + std::to_string(bit_depth) + " bits");
    }
  }
}

TEST_P(EveryInstructionSet, AgreesWithTheReferenceAcrossTiles) {
  // Wider and higher than a tile; the largest window too.
  for (const int search : {9, 63}) {
    const NonLocalMeansParameters p = {3, search, 20, 1, 1};
    const Image in = make(contents().back().second, 20, 1031, 223, 8, 1, 5);
    expect_close(in, p, search == 63 ? 1999 : 997, describe(p));
  }
}

TEST_P(EveryInstructionSet, AgreesWithTheReferenceForSmallAndLargeStrength) {
  for (const double sigma : {0.3, 1.0, 2.0, 100.0}) {
    for (const double strength : {0.2, 3.0}) {
      for (const int patch : {1, 3, 7}) {
        const NonLocalMeansParameters p = {patch, 9, sigma, strength, 1};
        const Image in = make(contents().back().second, sigma, 41, 31, 8, 1, 6);
        expect_close(in, p, 11, describe(p) + ", strength " + std::to_string(strength));
      }
    }
  }
}

TEST_P(EveryInstructionSet, GivesTheSameBytesAsTheOthers) {
  for (const int bit_depth : {8, 10, 16}) {
    for (const int patch : {1, 5, 15}) {
      for (const double sigma : {3.0, 30.0}) {
        const NonLocalMeansParameters p = {patch, 13, sigma, 1, 1};
        const Image in = make(contents().back().second, sigma, 131, 37, bit_depth, 2, 7);
        const Image here = filtered(in, p);
        force_instruction_set("");
        EXPECT_EQ(here, filtered(in, p)) << bit_depth << " bits, " << describe(p);
        force_instruction_set(GetParam());
      }
    }
  }
}

TEST_P(EveryInstructionSet, TakesAnySize) {
  for (const int width : {1, 2, 3, 17, 64, 65}) {
    for (const int height : {1, 2, 5, 33}) {
      for (const int bit_depth : {8, 10}) {
        const Image in = make(contents().back().second, 15, width, height, bit_depth, 1, 8);
        expect_close(in, {7, 21, 15, 1, 1}, 5, std::to_string(width) + "x" + std::to_string(height));
      }
    }
  }
}

TEST_P(EveryInstructionSet, AveragesJointPlanesWithTheSameWeights) {
  for (const Steps& steps : all_steps()) {
    for (const int bit_depth : {8, 10, 16}) {
      for (const int search : {3, 5, 13}) {
        const NonLocalMeansParameters p = {5, search, 15, 1, 1};
        const Joint in = make_joint(67, 51, bit_depth, steps, 15, 21);
        const Joint out = filtered(in, p);
        const std::string what = std::to_string(steps.column) + "x" + std::to_string(steps.row) + ", " +
                                 std::to_string(bit_depth) + " bits, " + describe(p);
        EXPECT_EQ(filtered(in.own, p), out.own) << what;
        expect_close(compare_joint(in, out.joint, steps, p, 13), what);
      }
    }
  }
}

TEST_P(EveryInstructionSet, AveragesJointPlanesAcrossTilesAndOfAnySize) {
  const Joint wide = make_joint(1031, 223, 8, {2, 2}, 20, 22);
  const NonLocalMeansParameters p = {3, 9, 20, 1, 2};
  expect_close(compare_joint(wide, filtered(wide, p).joint, {2, 2}, p, 997), "1031x223");
  for (const int width : {1, 2, 3, 17}) {
    for (const int height : {1, 2, 5}) {
      const Joint in = make_joint(width, height, 8, {2, 2}, 15, 23);
      expect_close(compare_joint(in, filtered(in, {7, 21, 15, 1, 1}).joint, {2, 2}, {7, 21, 15, 1, 1}, 1),
                   std::to_string(width) + "x" + std::to_string(height));
    }
  }
}

TEST_P(EveryInstructionSet, LayoutDoesNotMatter) {
  const NonLocalMeansParameters p = {5, 9, 10, 1, 1};
  const std::vector<Layout> layouts = {
      {.step = 2}, {.step = 4, .padding = 7}, {.padding = 13}, {.offset = 3}, {.upside_down = true}};
  for (const int bit_depth : {8, 10}) {
    const Image packed = make(contents().back().second, 10, 37, 29, bit_depth, 2, 9);
    const Image expected = filtered(packed, p);
    for (const Layout& layout : layouts) {
      const Image in = make(contents().back().second, 10, 37, 29, bit_depth, 2, 9, layout);
      EXPECT_EQ(expected, filtered(in, p)) << "layout of the input";
      EXPECT_EQ(expected, filtered(packed, p, layout)) << "layout of the output";
    }
  }
  const Image packed = make(contents().back().second, 10, 37, 29, 10, 1, 10);
  const Image upper_bits = make(contents().back().second, 10, 37, 29, 10, 1, 10, {.shift = 6});
  EXPECT_EQ(filtered(packed, p), filtered(upper_bits, p, {.shift = 6}));
}

// --- properties
// ------------------------------------------------------------------------------------------------

TEST(NonLocalMeans, ThreadsDoNotMatter) {
  const Image in = make(contents().back().second, 20, 700, 301, 8, 1, 11);
  const Image one = filtered(in, {5, 13, 20, 1, 1});
  for (const int threads : {2, 3, 4, 0}) {
    EXPECT_EQ(one, filtered(in, {5, 13, 20, 1, threads})) << threads << " threads";
  }
}

TEST(NonLocalMeans, FramesDoNotInfluenceEachOther) {
  const Image a = make(contents().back().second, 20, 90, 61, 8, 1, 12);
  const Image b = make(contents()[4].second, 0, 130, 40, 10, 2, 13);
  const NonLocalMeansParameters p = {5, 13, 20, 1, 2};
  const Image alone = filtered(a, p);
  NonLocalMeans filter;
  Image first(90, 61, 8, 1);
  Image other(130, 40, 10, 2);
  Image again(90, 61, 8, 1);
  filter.filter(a.views(), first.views(), p);
  filter.filter(b.views(), other.views(), {7, 9, 5, 1, 2});
  filter.filter(a.views(), again.views(), p);
  EXPECT_EQ(alone, first);
  EXPECT_EQ(alone, again);
}

TEST(NonLocalMeans, FiltersInPlace) {
  const Image in = make(contents().back().second, 20, 190, 77, 8, 2, 14);
  for (const double strength : {0.0, 1.0}) {
    const NonLocalMeansParameters p = {5, 13, 20, strength, 2};
    Image in_place = in;
    NonLocalMeans filter;
    const Image& source = in_place;
    filter.filter(source.views(), in_place.views(), p);
    EXPECT_EQ(filtered(in, p), in_place);
  }
}

TEST(NonLocalMeans, FiltersJointPlanesInPlaceOnAnyNumberOfThreads) {
  for (const double strength : {0.0, 1.0}) {
    const Joint in = make_joint(701, 301, 8, {2, 2}, 20, 24);
    const Joint expected = filtered(in, {5, 13, 20, strength, 1});
    for (const int threads : {2, 3, 8, 0}) {
      Joint in_place = in;
      const Joint& source = in_place;
      NonLocalMeans().filter(
          {source.own.views(), in_place.own.views(), source.joint.views(), in_place.joint.views(), {}},
          {5, 13, 20, strength, threads});
      EXPECT_EQ(expected.own, in_place.own) << threads << " threads";
      EXPECT_EQ(expected.joint, in_place.joint) << threads << " threads";
    }
  }
}

TEST(NonLocalMeans, JointPlanesMayLackTheLastRowOfAField) {
  // The second field of 2 x 7 rows of luma and 7 of chroma has 7 and 3.
  const Joint whole = make_joint(40, 7, 8, {2, 2}, 10, 25);
  Joint in = {whole.own, Image(20, 3, 8, 2)};
  for (int c = 0; c < 2; ++c) {
    for (int i = 0; i < 60; ++i) {
      in.joint.set(c, i % 20, i / 20, whole.joint.get(c, i % 20, i / 20));
    }
  }
  const NonLocalMeansParameters p = {3, 5, 10, 1, 1};
  expect_close(compare_joint(in, filtered(in, p).joint, {2, 2}, p, 1), "3 of 4 rows");
}

TEST(NonLocalMeans, RefusesJointPlanesThatDoNotFit) {
  const auto message = [](const Image& own, const Image& joint) -> std::string {
    try {
      filtered(Joint{own, joint}, {});
    } catch (const InvalidArgument& e) {
      return e.what();
    }
    return "";
  };
  const Image own(20, 10, 8, 1);
  EXPECT_EQ(message(own, Image(10, 5, 8, 2)), "");
  EXPECT_NE(message(own, Image(9, 5, 8, 2))
                .find("20x10 of 8 bits, and of its width and height or half of each, "
                      "got 9x5 of 8 bits"),
            std::string::npos);
  EXPECT_NE(message(own, Image(10, 4, 8, 2)).find("got 10x4"), std::string::npos);
  EXPECT_NE(message(own, Image(10, 5, 10, 2)).find("got 10x5 of 10 bits"), std::string::npos);
  Image out(20, 10, 8, 1);
  EXPECT_THROW(NonLocalMeans().filter({own.views(), out.views(), own.views(), {}, {}}, {}), InvalidArgument);
}

// Noise whose variance falls from sigma² to v sigma² from the left to the right, and in a square at once.
Image make_variance(int width, int height, double v) {
  Image variance(width, height, 16, 1);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const bool in_square = x > width / 3 && x < width / 2 && y > height / 3;
      const double share = in_square ? v : 1 + (v - 1) * x / width;
      variance.set(0, x, y, static_cast<int>(std::lround(65535 * share)));
    }
  }
  return variance;
}

// A picture with that noise.
Image with_variance(const Image& clean, const Image& variance, double sigma, unsigned seed) {
  Image noisy = clean;
  std::mt19937 random(seed);
  std::normal_distribution<double> noise;
  const int most = (1 << clean.bit_depth()) - 1;
  const double scale = std::ldexp(sigma, clean.bit_depth() - 8);
  for (int y = 0; y < clean.height(); ++y) {
    for (int x = 0; x < clean.width(); ++x) {
      const double v =
          variance.get(0, x * variance.width() / clean.width(), y * variance.height() / clean.height()) /
          65535.0;
      const double sample = clean.get(0, x, y) + scale * std::sqrt(v) * noise(random);
      noisy.set(0, x, y, std::clamp(static_cast<int>(std::lround(sample)), 0, most));
    }
  }
  return noisy;
}

Difference compare_by_variance(const Image& in, const Image& variance, const Image& out,
                               const NonLocalMeansParameters& p, int every) {
  reference::Picture v(variance.width(), variance.height());
  for (int y = 0; y < v.height; ++y) {
    for (int x = 0; x < v.width; ++x) {
      v.at(x, y) = variance.get(0, x, y) / 65535.0;
    }
  }
  const reference::Parameters parameters = {p.patch_size, p.search_size, p.sigma, filter_h(p)};
  const reference::Picture picture = as_pictures(in)[0];
  Differences differences;
  for (int y = 0; y < in.height(); y += every) {
    for (int x = y % every; x < in.width(); x += every) {
      differences.add(out.get(0, x, y) * std::ldexp(1.0, 8 - out.bit_depth()) -
                      reference::non_local_mean(picture, v, x, y, parameters));
    }
  }
  return differences.result();
}

TEST_P(EveryInstructionSet, AgreesWithTheReferenceWhereNoiseDiffers) {
  struct Case {
    int bit_depth;
    double sigma;
    double least;  // variance
    int step;      // pixels a value of it
    int patch;
    int search;
  };
  for (const Case& c :
       {Case{8, 25, 0.04, 2, 5, 11}, Case{8, 5, 0.1, 1, 3, 9}, Case{12, 20, 0.02, 2, 5, 11},
        Case{12, 50, 0.06, 2, 7, 13}, Case{15, 20, 0.04, 2, 5, 11}, Case{16, 3, 0.2, 1, 1, 7}}) {
    const Image clean = make(contents().back().second, 0, 173, 91, c.bit_depth, 1, 31);
    const Image variance = make_variance(half(173, c.step), half(91, c.step), c.least);
    const Image in = with_variance(clean, variance, c.sigma, 32);
    const NonLocalMeansParameters p = {c.patch, c.search, c.sigma, 1, 2};
    Image out = in;
    NonLocalMeans().filter({in.views(), out.views(), {}, {}, std::as_const(variance).views()[0]}, p);
    expect_close(compare_by_variance(in, variance, out, p, 3),
                 std::to_string(c.bit_depth) + " bits, sigma " + std::to_string(c.sigma));
  }
}

TEST(NonLocalMeans, VarianceOfOneEverywhereIsNoVariance) {
  const Image in = make(contents().back().second, 20, 150, 77, 8, 1, 33);
  Image variance(75, 39, 16, 1);
  for (int i = 0; i < 75 * 39; ++i) {
    variance.set(0, i % 75, i / 75, 65535);
  }
  Image out = in;
  const NonLocalMeansParameters p = {5, 13, 20, 1, 1};
  NonLocalMeans().filter({in.views(), out.views(), {}, {}, std::as_const(variance).views()[0]}, p);
  const Image expected = filtered(in, p);
  for (int y = 0; y < 77; ++y) {
    for (int x = 0; x < 150; ++x) {
      EXPECT_NEAR(out.get(0, x, y), expected.get(0, x, y), 1);
    }
  }
}

TEST(NonLocalMeans, RefusesAVarianceThatDoesNotFit) {
  const Image in(20, 11, 8, 1);
  Image out = in;
  const auto message = [&](const Image& variance) -> std::string {
    try {
      NonLocalMeans().filter({in.views(), out.views(), {}, {}, std::as_const(variance).views()[0]}, {});
    } catch (const InvalidArgument& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(message(Image(20, 11, 16, 1)), "");
  EXPECT_EQ(message(Image(10, 6, 16, 1)), "");
  EXPECT_NE(
      message(Image(10, 5, 16, 1)).find("20x11 samples, or half of each, of 16 bits side by side, got 10x5"),
      std::string::npos);
  EXPECT_NE(message(Image(10, 6, 8, 1)).find("got 10x6 of 8 bits"), std::string::npos);
}

TEST(NonLocalMeans, GivesAnyDepth) {
  const Image in = make(contents().back().second, 15, 61, 37, 12, 1, 34);
  for (const double strength : {0.0, 1.0}) {
    const NonLocalMeansParameters p = {5, 9, 15, strength, 1};
    const Image expected = filtered(in, p);
    for (const int depth : {8, 10, 15}) {
      Image out(61, 37, depth, 1);
      NonLocalMeans().filter(in.views(), out.views(), p);
      for (int i = 0; i < 61 * 37; ++i) {
        // Both are rounded to their own steps, and cannot be more than their own white.
        const double most = (1 << depth) - 1;
        const double wanted = std::min(std::ldexp(expected.get(0, i % 61, i / 61), depth - 12), most);
        EXPECT_NEAR(out.get(0, i % 61, i / 61), wanted, 0.5 + std::ldexp(0.5, depth - 12)) << depth;
      }
    }
  }
}

TEST(NonLocalMeans, ChromaGetsASmallerWindowWhereItIsSubsampled) {
  const NonLocalMeansParameters luma = {5, 15, 12, 1, 2};
  EXPECT_EQ(chroma_parameters(luma, true).search_size, 11);
  EXPECT_EQ(chroma_parameters(luma, false).search_size, 15);
  EXPECT_EQ(chroma_parameters({5, 3, 12, 1, 2}, true).search_size, 3);
  EXPECT_NEAR(chroma_parameters(luma, true).strength, 0.65 + 0.0225 * 12, 1e-9);
  EXPECT_DOUBLE_EQ(chroma_parameters({5, 15, 0, 1, 2}, true).strength, 0.65);
  EXPECT_DOUBLE_EQ(chroma_parameters({5, 15, 100, 10, 2}, true).strength, 10);
  EXPECT_DOUBLE_EQ(chroma_parameters({5, 15, 100, 0, 2}, true).strength, 0);
}

TEST(NonLocalMeans, ZeroStrengthOrSigmaCopies) {
  const Image in = make(contents()[4].second, 0, 77, 31, 10, 1, 15);
  EXPECT_EQ(in, filtered(in, {5, 13, 20, 0, 1}));
  EXPECT_EQ(in, filtered(in, {5, 13, 0, 1, 1}));
}

TEST(NonLocalMeans, KeepsTheMeanOfFlatNoise) {
  // No colour shift: rounding and clipping of sums must not pull the level.
  for (const double level : {0.1, 0.5, 0.9}) {
    const Image in = make([level](int, int, std::mt19937&) { return level; }, 6, 320, 200, 8, 1, 16);
    const Image out = filtered(in, {5, 21, 6, 1, 0});
    double before = 0;
    double after = 0;
    for (int y = 0; y < 200; ++y) {
      for (int x = 0; x < 320; ++x) {
        before += in.get(0, x, y);
        after += out.get(0, x, y);
      }
    }
    EXPECT_NEAR(before / 64000, after / 64000, 0.1) << level;
  }
}

TEST(NonLocalMeans, RemovesNoiseAndKeepsEdges) {
  const auto step = [](int x, int, std::mt19937&) { return x < 80 ? 0.3 : 0.7; };
  const Image clean = make(step, 0, 160, 90, 8, 1, 17);
  const Image noisy = make(step, 15, 160, 90, 8, 1, 17);
  const Image out = filtered(noisy, {5, 21, 15, 1, 0});
  const auto rms = [&](const Image& image, int x0, int x1) {
    double sum = 0;
    for (int y = 0; y < 90; ++y) {
      for (int x = x0; x < x1; ++x) {
        const double d = image.get(0, x, y) - clean.get(0, x, y);
        sum += d * d;
      }
    }
    return std::sqrt(sum / (90.0 * (x1 - x0)));
  };
  EXPECT_LT(rms(out, 0, 160), 0.25 * rms(noisy, 0, 160));
  EXPECT_LT(rms(out, 78, 82), 0.5 * rms(noisy, 78, 82));  // at the edge
  EXPECT_LT(rms(out, 0, 2), 0.5 * rms(noisy, 0, 2));      // at the border
}

TEST(NonLocalMeans, SaysWhatIsWrong) {
  Image image = make(contents()[4].second, 0, 20, 10, 8, 1, 18);
  Image smaller(19, 10, 8, 1);
  NonLocalMeans filter;
  const Image& in = image;
  const auto message = [&](NonLocalMeansParameters p, Image& out) -> std::string {
    try {
      filter.filter(in.views(), out.views(), p);
    } catch (const InvalidArgument& e) {
      return e.what();
    }
    return "";
  };
  Image out(20, 10, 8, 1);
  EXPECT_EQ(message({}, out), "");
  EXPECT_NE(message({.patch_size = 4}, out).find("patch_size of 1 to 15, got 4"), std::string::npos);
  EXPECT_NE(message({.patch_size = 17}, out).find("got 17"), std::string::npos);
  EXPECT_NE(message({.patch_size = -1}, out).find("got -1"), std::string::npos);
  EXPECT_NE(message({.search_size = 65}, out).find("search_size of 3 to 63, got 65"), std::string::npos);
  EXPECT_NE(message({.search_size = 1}, out).find("got 1"), std::string::npos);
  EXPECT_NE(message({.sigma = -2}, out).find("sigma of 0 to 100"), std::string::npos);
  EXPECT_NE(message({.sigma = std::nan("")}, out).find("sigma"), std::string::npos);
  EXPECT_NE(message({.strength = 11}, out).find("strength of 0 to 10"), std::string::npos);
  EXPECT_NE(message({.threads = -1}, out).find("threads, got -1"), std::string::npos);
  EXPECT_NE(message({}, smaller).find("got 19x10"), std::string::npos);
  EXPECT_THROW(filter.filter({}, {}, {}), InvalidArgument);
  ConstPlane broken = in.views()[0];
  broken.data = nullptr;
  EXPECT_THROW(filter.filter({&broken, 1}, out.views(), {}), InvalidArgument);
}

TEST(InstructionSets, UnknownNamesAreRefused) {
  EXPECT_THROW(force_instruction_set("MMX"), InvalidArgument);
  ASSERT_FALSE(instruction_sets().empty());
  EXPECT_EQ(instruction_set(), instruction_sets().front());
}

}  // namespace
}  // namespace nonlocal
