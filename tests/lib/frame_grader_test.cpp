#include "nonlocal/frame_grader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "allocations.h"
#include "grade_model.h"
#include "image.h"
#include "nonlocal/cpu.h"
#include "nonlocal/error.h"
#include "reference/cross_attention_filter.h"

namespace nonlocal {
namespace {

using testing::Image;
using testing::Layout;
using testing::like_trained;
using testing::OwnWeights;
using testing::random_weights;
using testing::RandomShape;

// A frame's planes, each an image of its own, or all in one where they lie in pixels.
class Frame {
 public:
  Frame(const ColourFormat& format, int width, int height, int bit_depth, int half_x = 0, int half_y = 0,
        const Layout& layout = {})
      : format_(format) {
    const int planes = format.model == ColourModel::kGray ? 1 : 3;
    for (int c = 0; c < planes; ++c) {
      const bool is_chroma = c > 0 && format.model == ColourModel::kYCbCr;
      images_.emplace_back(is_chroma && half_x != 0 ? (width + 1) / 2 : width,
                           is_chroma && half_y != 0 ? (height + 1) / 2 : height, bit_depth, 1, layout);
    }
  }

  [[nodiscard]] std::vector<Plane> views() {
    std::vector<Plane> all;
    for (Image& image : images_) {
      all.push_back(image.views()[0]);
    }
    return all;
  }
  [[nodiscard]] std::vector<ConstPlane> views() const {
    std::vector<ConstPlane> all;
    for (const Image& image : images_) {
      all.push_back(image.views()[0]);
    }
    return all;
  }

  // Waves of colour, and noise; extremes here and there.
  Frame& paint(unsigned seed = 1) {
    std::mt19937 random(seed);
    for (std::size_t c = 0; c < images_.size(); ++c) {
      Image& image = images_[c];
      const int most = (1 << image.bit_depth()) - 1;
      for (int y = 0; y < image.height(); ++y) {
        for (int x = 0; x < image.width(); ++x) {
          const double u = static_cast<double>(x) / image.width();
          const double v = static_cast<double>(y) / image.height();
          const double wave = std::sin(7 * u + 2.0 * c) * std::cos(5 * v - c);
          const double noise = static_cast<double>(random() % 1000) / 10000 - 0.05;
          const double value = random() % 101 == 0 ? random() % 2 : 0.5 + 0.4 * wave + noise;
          image.set(0, x, y, std::clamp(static_cast<int>(std::lround(value * most)), 0, most));
        }
      }
    }
    return *this;
  }

  [[nodiscard]] std::vector<reference::Codes> codes() const {
    std::vector<reference::Codes> all;
    for (const Image& image : images_) {
      reference::Codes& codes =
          all.emplace_back(reference::Codes{image.width(), image.height(), image.bit_depth(), {}});
      for (int y = 0; y < image.height(); ++y) {
        for (int x = 0; x < image.width(); ++x) {
          codes.values.push_back(image.get(0, x, y));
        }
      }
    }
    return all;
  }

  friend bool operator==(const Frame& a, const Frame& b) { return a.images_ == b.images_; }

  ColourFormat format_;
  std::vector<Image> images_;
};

constexpr ColourFormat kRgb = {};
constexpr ColourFormat kYCbCr = {ColourModel::kYCbCr, ColourMatrix::kBt709, ColourRange::kLimited};

reference::Filter formula(const OwnWeights& w, const std::vector<MultiHeadWeights>& layers, double strength) {
  return [&w, &layers, strength](const reference::Vector& colour, double x, double y) {
    return reference::cross_attention_filter({w.features, w.heads, layers}, w.tokens.view(), colour, x, y,
                                             strength);
  };
}

// Half a code is rounding; what floats add is a share of the codes.
void expect_near(const Frame& found, const std::vector<reference::Codes>& expected, const std::string& what,
                 double float_error = 2e-5) {
  const std::vector<reference::Codes> codes = found.codes();
  double worst = 0;
  for (std::size_t c = 0; c < codes.size(); ++c) {
    const double most = std::ldexp(1.0, codes[c].bit_depth) - 1;
    for (std::size_t i = 0; i < codes[c].values.size(); ++i) {
      const double exact = std::clamp(expected[c].values[i], 0.0, most);
      worst = std::max(worst, (std::abs(codes[c].values[i] - exact) - 0.5) / (most + 1));
    }
  }
  EXPECT_LT(worst, float_error) << what;
}

OwnWeights knows_places(unsigned seed = 1) {
  RandomShape shape;
  shape.features = {{"r", "g", "b", "luma*luma", "chroma", "cb*cr"}, 2};
  shape.layers = 2;
  shape.heads = 2;
  shape.has_bias = true;
  return random_weights(shape, seed);
}

class EveryInstructionSet : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { force_instruction_set(GetParam()); }
  void TearDown() override { force_instruction_set(""); }
};
INSTANTIATE_TEST_SUITE_P(All, EveryInstructionSet, ::testing::ValuesIn(instruction_sets()),
                         [](const auto& p) { return p.param; });

struct Case {
  const char* name;
  ColourFormat format;
  int width, height, bit_depth;
  int half_x = 0, half_y = 0;
  Layout layout = {};
};

std::vector<Case> cases() {
  const auto ycbcr = [](ColourMatrix m, ColourRange r, ChromaSite s) {
    return ColourFormat{ColourModel::kYCbCr, m, r, s};
  };
  using enum ColourMatrix;
  using enum ColourRange;
  using enum ChromaSite;
  return {{"rgb", kRgb, 67, 5, 8},
          {"rgb 10", kRgb, 33, 4, 10},
          {"rgb 16", kRgb, 70, 3, 16},
          {"rgb limited", {ColourModel::kRgb, kBt709, kLimited}, 19, 3, 8},
          {"4:4:4", ycbcr(kBt709, kLimited, kLeft), 65, 3, 8},
          {"4:2:0", kYCbCr, 150, 6, 8, 1, 1},
          {"4:2:0 odd", kYCbCr, 77, 7, 8, 1, 1},
          {"4:2:0 centre", ycbcr(kBt601, kFull, kCentre), 45, 8, 8, 1, 1},
          {"4:2:0 top left", ycbcr(kBt2020, kLimited, kTopLeft), 52, 5, 10, 1, 1},
          {"4:2:2", ycbcr(kBt601, kLimited, kLeft), 41, 5, 10, 1, 0},
          {"4:4:0", ycbcr(kBt601, kLimited, kLeft), 41, 5, 8, 0, 1},
          {"full 12", ycbcr(kBt709, kFull, kLeft), 37, 4, 12, 1, 1},
          {"p010", ycbcr(kBt2020, kLimited, kLeft), 49, 6, 10, 1, 1, {.step = 2, .shift = 6, .padding = 3}},
          {"gray", {ColourModel::kGray}, 90, 3, 8},
          {"gray 16", {ColourModel::kGray, kBt601, kFull}, 35, 3, 16},
          {"gray limited", {ColourModel::kGray, kBt709, kLimited}, 20, 2, 10},
          {"one pixel", kYCbCr, 1, 1, 8, 1, 1},
          {"one column", kYCbCr, 1, 9, 8, 1, 1},
          {"one row", kYCbCr, 23, 1, 8, 1, 1},
          {"upside down", kYCbCr, 29, 6, 8, 1, 1, {.padding = 5, .upside_down = true}},
          {"steps", kRgb, 31, 3, 16, 0, 0, {.step = 3, .padding = 2, .offset = 1}}};
}

TEST_P(EveryInstructionSet, ExactIsTheFormula) {
  const OwnWeights w = knows_places();
  const std::vector<MultiHeadWeights> layers = w.views();
  const CrossAttentionFilter filter = w.filter();
  for (const Case& c : cases()) {
    Frame in(c.format, c.width, c.height, c.bit_depth, c.half_x, c.half_y, c.layout);
    in.paint();
    Frame out(c.format, c.width, c.height, c.bit_depth, c.half_x, c.half_y, c.layout);
    FrameGrader grader;
    grader.run(std::as_const(in).views(), out.views(), c.format, filter, {.strength = 0.8, .threads = 2});
    const auto expected = reference::grade(in.codes(), c.format, formula(w, layers, 0.8));
    expect_near(out, expected, c.name);
    // In place it is the same, and what lies between the samples is left alone.
    grader.run(std::as_const(in).views(), in.views(), c.format, filter, {.strength = 0.8, .threads = 1});
    EXPECT_TRUE(in == out) << c.name;
  }
}

TEST_P(EveryInstructionSet, ExactHasAnyShape) {
  for (const RandomShape& shape :
       {RandomShape{}, RandomShape{.heads = 5, .tokens = 1},
        RandomShape{.layers = 3, .tokens = 77, .has_bias = true},
        RandomShape{.features = {{"r", "g", "b", "r*r*r*r", "luma*b", "cr", "chroma*cb"}, 8}, .sharpness = 5},
        RandomShape{.sharpness = 300}}) {
    const OwnWeights w = random_weights(shape, 3);
    const std::vector<MultiHeadWeights> layers = w.views();
    Frame in(kYCbCr, 40, 4, 10, 1, 1);
    in.paint();
    Frame out = in;
    FrameGrader().run(std::as_const(in).views(), out.views(), kYCbCr, w.filter());
    // Sharp scores are differences of large numbers.
    expect_near(out, reference::grade(in.codes(), kYCbCr, formula(w, layers, 1)),
                std::to_string(shape.tokens) + " tokens", shape.sharpness > 100 ? 2e-3 : 1e-4);
  }
}

// They are taken several at a time, what is left by fewer.
TEST_P(EveryInstructionSet, ExactHasAnyNumberOfTokens) {
  for (int tokens = 1; tokens <= 20; ++tokens) {
    const OwnWeights w = random_weights({.features = {{"r", "g", "b"}, 1}, .heads = 2, .tokens = tokens}, 5);
    const std::vector<MultiHeadWeights> layers = w.views();
    Frame in(kRgb, 37, 2, 12);
    in.paint();
    Frame out = in;
    FrameGrader().run(std::as_const(in).views(), out.views(), kRgb, w.filter());
    expect_near(out, reference::grade(in.codes(), kRgb, formula(w, layers, 1)),
                std::to_string(tokens) + " tokens");
  }
}

// The lattice as such: exact where the filter is linear in the colour, so that interpolation adds nothing.
OwnWeights nearly_linear(bool has_places) {
  RandomShape shape;
  shape.features.frequencies = has_places ? 1 : 0;
  shape.heads = 2;
  shape.sharpness = 0.02;
  return random_weights(shape, 4);
}

TEST_P(EveryInstructionSet, BakedIsTheFormulaWhereItIsLinear) {
  for (const bool has_places : {false, true}) {
    const OwnWeights w = nearly_linear(has_places);
    const std::vector<MultiHeadWeights> layers = w.views();
    const CrossAttentionFilter filter = w.filter();
    for (const Case& c : cases()) {
      Frame in(c.format, c.width, c.height, c.bit_depth, c.half_x, c.half_y, c.layout);
      in.paint();
      Frame out(c.format, c.width, c.height, c.bit_depth, c.half_x, c.half_y, c.layout);
      const auto look = GradeLook::bake(filter, c.format, {.tolerance = 0.05});
      EXPECT_EQ(look->columns(), has_places ? 9 : 1) << c.name;
      EXPECT_LT(look->error(), 0.05) << c.name;
      FrameGrader grader;
      grader.run(std::as_const(in).views(), out.views(), c.format, *look, {.strength = 1.5, .threads = 2});
      expect_near(out, reference::grade(in.codes(), c.format, formula(w, layers, 1.5)), c.name, 1e-3);
      grader.run(std::as_const(in).views(), in.views(), c.format, *look, {.strength = 1.5, .threads = 1});
      EXPECT_TRUE(in == out) << c.name;
    }
  }
}

double psnr(const Frame& a, const Frame& b) {
  const auto x = a.codes();
  const auto y = b.codes();
  double squares = 0;
  double count = 0;
  for (std::size_t c = 0; c < x.size(); ++c) {
    for (std::size_t i = 0; i < x[c].values.size(); ++i) {
      squares += std::pow((x[c].values[i] - y[c].values[i]) * std::ldexp(1.0, 8 - x[c].bit_depth), 2);
      count += 1;
    }
  }
  return 10 * std::log10(255.0 * 255 / (squares / count + 1e-12));
}

TEST(FrameGrader, BakedIsNearExact) {
  for (const bool has_places : {false, true}) {
    const CrossAttentionFilter filter = like_trained(has_places).filter();
    for (const Case& c : {Case{"4:2:0", kYCbCr, 320, 180, 8, 1, 1}, Case{"rgb", kRgb, 320, 180, 8},
                          Case{"rgb 16", kRgb, 160, 90, 16}, Case{"4:2:0 10", kYCbCr, 320, 180, 10, 1, 1}}) {
      Frame in(c.format, c.width, c.height, c.bit_depth, c.half_x, c.half_y);
      in.paint();
      Frame exact = in;
      Frame baked = in;
      const auto look = GradeLook::bake(filter, c.format);
      FrameGrader grader;
      grader.run(std::as_const(in).views(), exact.views(), c.format, filter);
      grader.run(std::as_const(in).views(), baked.views(), c.format, *look);
      EXPECT_LT(look->error(), 0.7) << c.name;
      EXPECT_GT(psnr(exact, baked), 50) << c.name << (has_places ? " with places" : "");
      EXPECT_LT(psnr(exact, in), 40) << c.name;  // there is something to be near to
    }
  }
}

// Cells of large frames are mapped in several chunks.
TEST(FrameGrader, LargeFramesAreGradedAsSmallOnes) {
  const CrossAttentionFilter filter = nearly_linear(true).filter();
  for (const Case& c :
       {Case{"4:2:0", kYCbCr, 1922, 1080, 8, 1, 1}, Case{"gray", {ColourModel::kGray}, 1922, 1080, 8}}) {
    const auto look = GradeLook::bake(filter, c.format, {.tolerance = 0.05});
    ASSERT_EQ(look->columns(), 9);  // 240 x 270 pixels a cell
    Frame in(c.format, c.width, c.height, c.bit_depth, c.half_x, c.half_y);
    in.paint();
    Frame exact = in;
    Frame baked = in;
    FrameGrader grader;
    grader.run(std::as_const(in).views(), exact.views(), c.format, filter);
    grader.run(std::as_const(in).views(), baked.views(), c.format, *look);
    EXPECT_GT(psnr(exact, baked), 55) << c.name;
    EXPECT_LT(psnr(exact, in), 40) << c.name;
  }
}

TEST(FrameGrader, ErrorIsMeasured) {
  // Sharper than any lattice: bake says so, and tries its finest.
  RandomShape shape;
  shape.features.frequencies = 4;
  shape.sharpness = 40;
  const auto look = GradeLook::bake(random_weights(shape).filter(), kRgb, {.tolerance = 0.02});
  EXPECT_GT(look->error(), 0.5);
  const auto smooth = GradeLook::bake(nearly_linear(true).filter(), kRgb, {.tolerance = 0.05});
  EXPECT_EQ(smooth->lattice_size(), 33);
  EXPECT_EQ(smooth->columns(), 9);
  EXPECT_EQ(smooth->rows(), 5);
  // What hardly depends on places has none; its error is still that of the filter, which knows them.
  const auto flat = GradeLook::bake(nearly_linear(true).filter(), kRgb, {.tolerance = 2});
  EXPECT_EQ(flat->columns() * flat->rows(), 1);
  EXPECT_GT(flat->error(), 0.05);
  EXPECT_LT(flat->error(), 1);
  const auto without = GradeLook::bake(nearly_linear(false).filter(), kRgb);
  EXPECT_EQ(without->lattice_size(), 33);
  EXPECT_EQ(without->columns() * without->rows(), 1);
}

TEST(FrameGrader, ThreadsDoNotMatter) {
  const CrossAttentionFilter filter = like_trained(true).filter();
  const auto other = GradeLook::bake(like_trained(false).filter(), kYCbCr);
  Frame in(kYCbCr, 333, 217, 8, 1, 1);
  in.paint();
  std::vector<Frame> first;
  for (const int threads : {1, 2, 3, 8}) {
    const auto look = GradeLook::bake(filter, kYCbCr, {.threads = threads});
    std::vector<Frame> out(3, in);
    FrameGrader grader;
    const GradeParameters p{1, threads};
    grader.run(std::as_const(in).views(), out[0].views(), kYCbCr, filter, p);
    grader.run(std::as_const(in).views(), out[1].views(), kYCbCr, *look, p);
    grader.run(std::as_const(in).views(), out[2].views(), kYCbCr, *look, *other, 0.3, p);
    if (first.empty()) {
      first = out;
    }
    EXPECT_TRUE(first == out) << threads << " threads";
  }
}

// Few rows are cut into bands of two, as many as there are threads for.
TEST(FrameGrader, ThreadsDoNotMatterToLowFrames) {
  const auto look = GradeLook::bake(like_trained(true).filter(), kYCbCr);
  const auto other = GradeLook::bake(nearly_linear(true).filter(), kYCbCr);
  ASSERT_GT(look->rows(), 1);
  for (const int height : {9, 12, 17, 18, 38, 64, 78}) {
    Frame in(kYCbCr, 333, height, 8, 1, 1);
    in.paint();
    std::vector<Frame> first;
    for (const int threads : {1, 16, 40, 200}) {
      std::vector<Frame> out(2, in);
      FrameGrader grader;
      grader.run(std::as_const(in).views(), out[0].views(), kYCbCr, *look, {1, threads});
      grader.run(std::as_const(in).views(), out[1].views(), kYCbCr, *look, *other, 0.3, {1, threads});
      if (first.empty()) {
        first = out;
      }
      EXPECT_TRUE(first == out) << height << " rows, " << threads << " threads";
    }
  }
}

TEST(FrameGrader, FadesFromOneLookToAnother) {
  const CrossAttentionFilter a = like_trained(true).filter();
  const auto from = GradeLook::bake(a, kYCbCr, {.tolerance = 1});
  ASSERT_GT(from->columns(), 1);
  const std::shared_ptr<const GradeLook> others[] = {
      GradeLook::bake(knows_places(9).filter(), kYCbCr, {.tolerance = 10}),     // of the same sampling
      GradeLook::bake(like_trained(false).filter(), kYCbCr),                    // without places
      GradeLook::bake(knows_places(9).filter(), kYCbCr, {.tolerance = 0.02})};  // a finer one
  EXPECT_EQ(others[0]->lattice_size(), from->lattice_size());
  EXPECT_EQ(others[0]->columns(), from->columns());
  EXPECT_NE(others[2]->lattice_size() * others[2]->columns(), from->lattice_size() * from->columns());
  // 16 bits of output, to see the change itself.
  Frame in(kYCbCr, 150, 60, 16, 1, 1);
  in.paint();
  Frame before = in;
  Frame after = in;
  Frame between = in;
  FrameGrader grader;
  for (const auto& to : others) {
    for (const auto& [f, t] : {std::pair(from, to), std::pair(to, from)}) {
      grader.run(std::as_const(in).views(), before.views(), kYCbCr, *f, {.strength = 0.5});
      grader.run(std::as_const(in).views(), after.views(), kYCbCr, *t, {.strength = 0.5});
      std::vector<reference::Codes> mean = before.codes();
      const std::vector<reference::Codes> end = after.codes();
      for (const double weight : {0.0, 0.25, 1.0}) {
        grader.run(std::as_const(in).views(), between.views(), kYCbCr, *f, *t, weight, {.strength = 0.5});
        std::vector<reference::Codes> expected = mean;
        for (std::size_t c = 0; c < 3; ++c) {
          for (std::size_t i = 0; i < expected[c].values.size(); ++i) {
            expected[c].values[i] += weight * (end[c].values[i] - expected[c].values[i]);
          }
        }
        // Both ends are rounded, and clamped.
        const auto codes = between.codes();
        double far = 0;
        for (std::size_t c = 0; c < 3; ++c) {
          for (std::size_t i = 0; i < expected[c].values.size(); ++i) {
            const bool is_clamped = mean[c].values[i] == 0 || mean[c].values[i] == 65535 ||
                                    end[c].values[i] == 0 || end[c].values[i] == 65535;
            far = std::max(far, is_clamped ? 0 : std::abs(codes[c].values[i] - expected[c].values[i]));
          }
        }
        EXPECT_LE(far, 1.3) << weight;
      }
    }
  }
}

TEST(FrameGrader, WithoutStrengthAllStaysAsItIs) {
  const CrossAttentionFilter filter = like_trained(true).filter();
  for (const Case& c : cases()) {
    Frame in(c.format, c.width, c.height, c.bit_depth, c.half_x, c.half_y, c.layout);
    in.paint();
    Frame out(c.format, c.width, c.height, c.bit_depth, c.half_x, c.half_y, c.layout);
    FrameGrader grader;
    grader.run(std::as_const(in).views(), out.views(), c.format, filter, {.strength = 0});
    EXPECT_TRUE(in == out) << c.name;
    grader.run(std::as_const(in).views(), out.views(), c.format, *GradeLook::bake(filter, c.format),
               {.strength = 0});
    EXPECT_TRUE(in == out) << c.name;
  }
}

// Pixels of bytes side by side, in any order, with and without alpha.
TEST_P(EveryInstructionSet, PackedPixelsAreThePlanes) {
  constexpr int kWidth = 71;
  constexpr int kHeight = 5;
  const CrossAttentionFilter filter = like_trained(true).filter();
  const auto look = GradeLook::bake(filter, kRgb);
  Frame planar(kRgb, kWidth, kHeight, 8);
  planar.paint();
  Frame graded = planar;
  FrameGrader grader;
  grader.run(std::as_const(planar).views(), graded.views(), kRgb, *look);
  struct Order {
    int step, r, g, b;
  };
  for (const Order& o :
       {Order{3, 0, 1, 2}, {3, 2, 1, 0}, {4, 0, 1, 2}, {4, 2, 1, 0}, {4, 1, 2, 3}, {4, 3, 2, 1}}) {
    for (const bool in_place : {true, false}) {
      const int stride = kWidth * o.step + 7;
      // Not a byte more than there is, so that sanitizers see what is beyond.
      std::vector<std::byte> from(static_cast<std::size_t>(stride) * (kHeight - 1) + kWidth * o.step,
                                  std::byte{0x5A});
      std::vector<std::byte> to = from;
      const auto views = [&](std::vector<std::byte>& memory) {
        std::vector<Plane> all;
        for (const int at : {o.r, o.g, o.b}) {
          all.push_back({memory.data() + at, kWidth, kHeight, stride, 8, o.step});
        }
        return all;
      };
      const std::vector<Plane> in = views(from);
      for (int c = 0; c < 3; ++c) {
        for (int y = 0; y < kHeight; ++y) {
          for (int x = 0; x < kWidth; ++x) {
            in[c].row(y)[x * o.step] = static_cast<std::byte>(planar.images_[c].get(0, x, y));
          }
        }
      }
      const std::vector<Plane> out = in_place ? in : views(to);
      grader.run(std::vector<ConstPlane>(in.begin(), in.end()), out, kRgb, *look);
      for (int y = 0; y < kHeight; ++y) {
        for (int x = 0; x < kWidth; ++x) {
          for (int c = 0; c < 3; ++c) {
            ASSERT_EQ(std::to_integer<int>(out[c].row(y)[x * o.step]), graded.images_[c].get(0, x, y));
          }
        }
      }
      std::vector<std::byte>& written = in_place ? from : to;
      for (std::size_t i = 0; i < written.size(); ++i) {
        const int at = static_cast<int>(i % stride);
        const int channel = at % o.step;
        if (at >= kWidth * o.step || (channel != o.r && channel != o.g && channel != o.b)) {
          ASSERT_EQ(written[i], std::byte{0x5A}) << i;
        }
      }
    }
  }
}

TEST(FrameGrader, FramesAllocateNothing) {
  const CrossAttentionFilter filter = like_trained(true).filter();
  const auto look = GradeLook::bake(filter, kYCbCr);
  const auto other = GradeLook::bake(knows_places().filter(), kYCbCr, {.tolerance = 10});
  const auto whole = GradeLook::bake(like_trained(false).filter(), kYCbCr);
  Frame frame(kYCbCr, 200, 120, 8, 1, 1);
  frame.paint();
  const std::vector<ConstPlane> in = std::as_const(frame).views();
  const std::vector<Plane> out = frame.views();
  FrameGrader exact;
  FrameGrader baked;
  FrameGrader fading;
  FrameGrader mixed;
  double weight = 0.1;
  const auto run = [&] {
    exact.run(in, out, kYCbCr, filter, {.threads = 2});
    baked.run(in, out, kYCbCr, *look, {.threads = 2});
    fading.run(in, out, kYCbCr, *look, *other, weight += 0.1, {.threads = 2});
    mixed.run(in, out, kYCbCr, *whole, *look, weight, {.threads = 2});
  };
  run();
  const int before = testing::allocations();
  run();
  run();
  EXPECT_EQ(testing::allocations(), before);
}

// A look may be baked, and end, while another thread runs frames with it.
TEST(FrameGrader, LooksAreSharedAmongThreads) {
  const CrossAttentionFilter filter = like_trained(true).filter();
  auto look = GradeLook::bake(filter, kRgb);
  Frame in(kRgb, 64, 48, 8);
  in.paint();
  Frame expected = in;
  FrameGrader().run(std::as_const(in).views(), expected.views(), kRgb, *look);
  std::vector<Frame> out(2, in);
  std::vector<std::thread> threads;
  for (Frame& frame : out) {
    threads.emplace_back([&frame, &in, &filter, look] {
      FrameGrader grader;
      for (int i = 0; i < 5; ++i) {
        grader.run(std::as_const(in).views(), frame.views(), kRgb, *look, {.threads = 2});
        static_cast<void>(GradeLook::bake(filter, kRgb, {.threads = 2}));
      }
    });
  }
  look.reset();
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_TRUE(out[0] == expected);
  EXPECT_TRUE(out[1] == expected);
}

TEST(FrameGrader, WrongArgumentsAreRefused) {
  const CrossAttentionFilter filter = like_trained(false).filter();
  const auto look = GradeLook::bake(filter, kYCbCr);
  Frame frame(kYCbCr, 40, 20, 8, 1, 1);
  frame.paint();
  const auto run = [&](const std::function<void(std::vector<ConstPlane>&, std::vector<Plane>&, ColourFormat&,
                                                GradeParameters&)>& change) -> std::string {
    std::vector<ConstPlane> in = std::as_const(frame).views();
    std::vector<Plane> out = frame.views();
    ColourFormat format = kYCbCr;
    GradeParameters p;
    change(in, out, format, p);
    try {
      FrameGrader().run(in, out, format, *look, p);
    } catch (const InvalidArgument& e) {
      return e.what();
    }
    return "";
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_EQ(run([](auto&, auto&, auto&, auto&) {}), "");
  EXPECT_TRUE(has(run([](auto& in, auto&, auto&, auto&) { in.pop_back(); }), "expected 3 planes"));
  EXPECT_TRUE(has(run([](auto& in, auto&, auto&, auto&) { in[0].data = nullptr; }), "no data"));
  EXPECT_TRUE(has(run([](auto& in, auto& out, auto&, auto&) { in[1].width = out[1].width = 19; }),
                  "chroma of half of it"));
  EXPECT_TRUE(has(run([](auto& in, auto& out, auto&, auto&) { in[2].height = out[2].height = 20; }),
                  "chroma of half of it"));
  EXPECT_TRUE(has(run([](auto&, auto& out, auto&, auto&) { out[0].width = 38; }), "the input's sizes"));
  EXPECT_TRUE(has(run([](auto&, auto& out, auto&, auto&) {
                    ++out[0].data;
                    --out[0].width;
                  }),
                  "input's sizes"));
  EXPECT_TRUE(has(run([](auto&, auto& out, auto&, auto&) { out[1].data += 1; }), "they overlap"));
  EXPECT_TRUE(has(run([](auto&, auto& out, auto&, auto&) { std::swap(out[1], out[2]); }), "they overlap"));
  EXPECT_TRUE(has(run([](auto&, auto&, auto& f, auto&) { f.matrix = ColourMatrix::kBt601; }), "another"));
  EXPECT_EQ(run([](auto&, auto&, auto& f, auto&) { f.site = ChromaSite::kCentre; }), "");
  EXPECT_TRUE(has(run([](auto&, auto&, auto&, auto& p) { p.strength = 4.1; }), "strength"));
  EXPECT_TRUE(has(run([](auto&, auto&, auto&, auto& p) { p.strength = std::nan(""); }), "strength"));
  EXPECT_TRUE(has(run([](auto&, auto&, auto&, auto& p) { p.threads = -1; }), "threads"));
  EXPECT_THROW(FrameGrader().run(std::as_const(frame).views(), frame.views(), kYCbCr, *look, *look, 1.1),
               InvalidArgument);
  EXPECT_THROW(GradeLook::bake(filter, kRgb, {.tolerance = 0}), InvalidArgument);
  EXPECT_THROW(GradeLook::bake(filter, kRgb, {.threads = 1000}), InvalidArgument);
}

}  // namespace
}  // namespace nonlocal
