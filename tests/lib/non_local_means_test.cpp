// The kernel against the literal reference, on every instruction set, bit depth and layout.
#include "nonlocal/non_local_means.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>

#include "image.h"
#include "nonlocal/cpu.h"
#include "nonlocal/error.h"
#include "reference/non_local_means.h"

namespace nonlocal {
namespace {

using testing::Image;
using testing::Layout;

// What a picture may be like. Each gives a sample in 0 .. 1 for a place.
using Content = std::function<double(int x, int y, std::mt19937& random)>;

const std::vector<std::pair<std::string, Content>>& contents() {
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

Image make(const Content& content, double noise, int width, int height, int bit_depth, int planes,
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

std::vector<reference::Picture> as_pictures(const Image& image) {
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

Image filtered(const Image& in, const NonLocalMeansParameters& p, const Layout& layout = {}) {
  Image out(in.width(), in.height(), in.bit_depth(), in.planes(), layout);
  NonLocalMeans filter;
  filter.filter(in.views(), out.views(), p);
  return out;
}

struct Difference {
  double psnr;
  double largest;  // in 8-bit code values, like the peak of 255
  int count;
};

// Every `stride`-th pixel against the reference.
Difference compare(const Image& in, const Image& out, const NonLocalMeansParameters& p, int stride) {
  const auto pictures = as_pictures(in);
  const reference::Parameters q = {p.patch_size, p.search_size, p.sigma, filter_h(p, in.planes())};
  const double scale = std::ldexp(1.0, 8 - in.bit_depth());
  double squares = 0;
  double largest = 0;
  int count = 0;
  for (int i = 0; i < in.width() * in.height(); i += stride) {
    const int x = i % in.width();
    const int y = i / in.width();
    const auto expected = reference::non_local_mean(pictures, x, y, q);
    for (int c = 0; c < in.planes(); ++c) {
      const double d = expected[c] - out.get(c, x, y) * scale;
      squares += d * d;
      largest = std::max(largest, std::fabs(d));
      ++count;
    }
  }
  return {10 * std::log10(255 * 255 / std::max(squares / count, 1e-9)), largest, count};
}

void expect_close(const Image& in, const NonLocalMeansParameters& p, int stride, const std::string& what) {
  const Difference d = compare(in, filtered(in, p), p, stride);
  EXPECT_LT(d.largest, 3) << what;
  if (d.count >= 100) {  // a few pixels make no PSNR
    EXPECT_GT(d.psnr, 54) << what;
  }
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
  Image deeper(20, 10, 10, 1);
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
  EXPECT_NE(message({}, deeper).find("expected every plane to be 20x10 of 8 bits"), std::string::npos);
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
