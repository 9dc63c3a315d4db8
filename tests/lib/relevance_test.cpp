#include "nonlocal/relevance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "allocations.h"
#include "grade_model.h"
#include "image.h"
#include "nonlocal/cpu.h"
#include "nonlocal/error.h"
#include "reference/attention.h"
#include "reference/cross_attention_filter.h"

namespace nonlocal {
namespace {

using testing::Image;
using testing::OwnMatrix;
using testing::OwnWeights;
using testing::random_weights;

// The reference has one query, and as values what picks a region's weight out.
std::vector<double> expected_weights(const OwnMatrix& query, const OwnMatrix& keys,
                                     const RegionRelevanceParameters& p) {
  const int regions = keys.view().rows;
  AttentionParameters a;
  a.queries = 1;
  a.keys = regions;
  a.dim = keys.view().columns;
  a.value_dim = regions;
  a.relevance = p.relevance;
  a.scale = p.scale;
  a.relevance_weight = p.relevance_weight;
  OwnMatrix identity(regions, regions);
  for (int i = 0; i < regions; ++i) {
    for (int j = 0; j < regions; ++j) {
      identity.at(i, j) = i == j ? 1 : 0;
    }
  }
  return reference::attention(a, {query.view(), keys.view(), identity.view()});
}

TEST(RegionRelevance, IsOneQueryOfAttention) {
  const OwnMatrix query = OwnMatrix::random(1, 12, 1, 1);
  const OwnMatrix keys = OwnMatrix::random(30, 12, 1, 2, 5);
  const std::vector<float> weight = OwnMatrix::random(1, 12, 1, 3).values();
  const std::vector<float> q = query.values();
  RegionRelevanceParameters additive;
  additive.relevance = Relevance::kAdditive;
  additive.relevance_weight = weight;
  RegionRelevanceParameters scaled;
  scaled.scale = 20.0;
  for (const RegionRelevanceParameters& p : {RegionRelevanceParameters{}, scaled, additive}) {
    std::vector<float> found(30);
    region_relevance(q, keys.view(), p, found);
    EXPECT_LT(testing::relative_error(found, expected_weights(query, keys, p)), 1e-5);
    const OwnMatrix values = OwnMatrix::random(30, 7, 1, 4, 2);
    std::vector<float> pooled(7);
    pool_regions(found, values.view(), pooled);
    for (int c = 0; c < 7; ++c) {
      double sum = 0;
      for (int i = 0; i < 30; ++i) {
        sum += static_cast<double>(found[i]) * values.at(i, c);
      }
      EXPECT_NEAR(pooled[c], sum, 1e-6);
    }
  }
}

TEST(RegionRelevance, WrongArgumentsAreRefused) {
  const OwnMatrix keys = OwnMatrix::random(5, 3);
  std::vector<float> q(3);
  std::vector<float> weights(5);
  EXPECT_THROW(region_relevance({q.data(), 2}, keys.view(), {}, weights), InvalidArgument);
  EXPECT_THROW(region_relevance(q, keys.view(), {}, {weights.data(), 4}), InvalidArgument);
  EXPECT_THROW(region_relevance(q, keys.view(), {.relevance = Relevance::kGaussian}, weights),
               InvalidArgument);
  EXPECT_THROW(region_relevance(q, keys.view(), {.relevance = Relevance::kAdditive}, weights),
               InvalidArgument);
  EXPECT_THROW(region_relevance(q, keys.view(), {.relevance_weight = q}, weights), InvalidArgument);
  EXPECT_THROW(region_relevance(q, keys.view(), {.scale = std::nan("")}, weights), InvalidArgument);
  EXPECT_THROW(region_relevance(q, keys.view(), {.scale = -1e31}, weights), InvalidArgument);
  EXPECT_THROW(pool_regions(weights, keys.view(), {q.data(), 2}), InvalidArgument);
  EXPECT_THROW(pool_regions({weights.data(), 4}, keys.view(), q), InvalidArgument);
}

// ---------------------------------------------------------------------------------------------- token maps

constexpr ColourFormat kYCbCr = {ColourModel::kYCbCr, ColourMatrix::kBt709, ColourRange::kLimited};

Image painted(int width, int height, int bit_depth, unsigned seed) {
  Image image(width, height, bit_depth, 1);
  std::mt19937 random(seed);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      image.set(0, x, y, static_cast<int>(random() % (1u << bit_depth)));
    }
  }
  return image;
}

std::vector<ConstPlane> views(const std::vector<Image>& images) {
  std::vector<ConstPlane> all;
  for (const Image& image : images) {
    all.push_back(image.views()[0]);
  }
  return all;
}

std::vector<Plane> views(std::vector<Image>& images) {
  std::vector<Plane> all;
  for (Image& image : images) {
    all.push_back(image.views()[0]);
  }
  return all;
}

// A cell's pixels, where every pixel of it counts: cells of 4 x 4.
double expected_effect(const std::vector<Image>& images, const ColourFormat& format, const OwnWeights& w,
                       int token, int column, int row) {
  const CrossAttentionFilter filter = w.filter();
  const reference::Colours colours(format, images[0].bit_depth());
  double sum = 0;
  for (int y = 4 * row; y < 4 * row + 4; ++y) {
    for (int x = 4 * column; x < 4 * column + 4; ++x) {
      reference::Vector codes;
      for (int c = 0; c < 3; ++c) {
        const Image& image = images[images.size() == 1 ? 0 : c];
        const int half = image.width() < images[0].width() ? 1 : 0;
        codes.push_back(image.get(0, x >> half, y >> half));
      }
      const auto rgb = colours.rgb(codes);
      // Each layer's attention and lengths of changes, by the reference's own arithmetic.
      reference::Vector now = rgb;
      const std::vector<MultiHeadWeights> layers = w.views();
      const double px = (2.0 * x + 1) / images[0].width() - 1;
      const double py = (2.0 * y + 1) / images[0].height() - 1;
      for (const MultiHeadWeights& layer : layers) {
        const auto features = reference::features(w.features, now, px, py);
        std::vector<reference::Vector> keys;
        std::vector<reference::Vector> values;
        for (int t = 0; t < w.tokens.view().rows; ++t) {
          const float* at = w.tokens.view().row(t);
          const reference::Vector embedding(at, at + w.tokens.view().columns);
          keys.push_back(reference::linear(layer.key, embedding));
          values.push_back(reference::linear(layer.value, embedding));
        }
        const auto weights =
            reference::attention_weights(reference::linear(layer.query, features), keys, w.heads);
        const int dim = layer.output.weight.columns / w.heads;
        for (int h = 0; h < w.heads; ++h) {
          double squares = 0;
          for (int c = 0; c < 3; ++c) {
            double change = 0;
            for (int i = h * dim; i < (h + 1) * dim; ++i) {
              change += layer.output.weight.row(c)[i] * values[token][i];
            }
            squares += change * change;
          }
          sum += weights[h][token] * std::sqrt(squares);
        }
        const auto change = reference::layer_change(layer, w.heads, w.tokens.view(), features);
        for (int c = 0; c < 3; ++c) {
          now[c] += change[c];
        }
      }
    }
  }
  return sum / 16;
}

OwnWeights knows_places() {
  testing::RandomShape shape;
  shape.features = {{"r", "g", "b", "luma*chroma"}, 1};
  shape.layers = 2;
  shape.heads = 3;
  shape.has_bias = true;
  return random_weights(shape);
}

TEST(TokenMaps, AreTheFormulaOnEveryInstructionSet) {
  const OwnWeights w = knows_places();
  const CrossAttentionFilter filter = w.filter();
  const std::pair<ColourFormat, std::vector<Image>> frames[] = {
      {kYCbCr, {painted(40, 12, 8, 1), painted(20, 6, 8, 2), painted(20, 6, 8, 3)}},
      {{}, {painted(40, 12, 10, 1), painted(40, 12, 10, 2), painted(40, 12, 10, 3)}},
      {{ColourModel::kGray}, {painted(40, 12, 16, 1)}}};
  for (const std::string& set : instruction_sets()) {
    force_instruction_set(set);
    for (const auto& [format, images] : frames) {
      TokenMaps maps;
      EXPECT_EQ(maps.tokens(), 0);
      maps.run(views(images), format, filter, {.columns = 10, .rows = 3, .threads = 2});
      ASSERT_EQ(maps.tokens(), 5);
      for (int t = 0; t < 5; ++t) {
        const ConstMatrix map = maps.map(t);
        ASSERT_EQ(map.rows, 3);
        ASSERT_EQ(map.columns, 10);
        for (const auto& [column, row] : {std::pair(0, 0), {9, 2}, {4, 1}}) {
          const double expected = expected_effect(images, format, w, t, column, row);
          EXPECT_NEAR(map.row(row)[column], expected, 1e-5 + 1e-4 * expected) << set;
        }
      }
    }
  }
  force_instruction_set("");
}

TEST(TokenMaps, ThreadsAndRepetitionDoNotMatter) {
  const CrossAttentionFilter filter = knows_places().filter();
  const std::vector<Image> images = {painted(333, 117, 8, 1), painted(167, 59, 8, 2), painted(167, 59, 8, 3)};
  const std::vector<ConstPlane> planes = views(images);
  TokenMaps one;
  one.run(planes, kYCbCr, filter, {.threads = 1});
  TokenMaps other;
  other.run(planes, kYCbCr, filter, {.threads = 3});
  const int before = testing::allocations();
  other.run(planes, kYCbCr, filter, {.threads = 3});
  EXPECT_EQ(testing::allocations(), before);
  for (int t = 0; t < 5; ++t) {
    const ConstMatrix a = one.map(t);
    EXPECT_TRUE(std::equal(a.data, a.data + a.rows * a.columns, other.map(t).data));
  }
}

TEST(TokenMaps, WrongArgumentsAreRefused) {
  const CrossAttentionFilter filter = knows_places().filter();
  const std::vector<Image> images = {painted(30, 20, 8, 1)};
  TokenMaps maps;
  EXPECT_THROW(maps.run(views(images), {}, filter, {.columns = 4, .rows = 4}), InvalidArgument);
  const ColourFormat gray = {ColourModel::kGray};
  EXPECT_THROW(maps.run(views(images), gray, filter, {.columns = 31, .rows = 4}), InvalidArgument);
  EXPECT_THROW(maps.run(views(images), gray, filter, {.columns = 4, .rows = 0}), InvalidArgument);
  maps.run(views(images), gray, filter, {.columns = 30, .rows = 20});
  EXPECT_THROW(static_cast<void>(maps.map(5)), InvalidArgument);
  EXPECT_THROW(static_cast<void>(maps.map(-1)), InvalidArgument);
}

// ----------------------------------------------------------------------------------------------- heat maps

// CIELAB of an sRGB colour, the forward way.
std::array<double, 3> lab_of(const std::array<double, 3>& colour) {
  std::array<double, 3> linear{};
  for (int c = 0; c < 3; ++c) {
    linear[c] = colour[c] <= 0.04045 ? colour[c] / 12.92 : std::pow((colour[c] + 0.055) / 1.055, 2.4);
  }
  const double xyz[3] = {(0.4124564 * linear[0] + 0.3575761 * linear[1] + 0.1804375 * linear[2]) / 0.95047,
                         0.2126729 * linear[0] + 0.7151522 * linear[1] + 0.0721750 * linear[2],
                         (0.0193339 * linear[0] + 0.1191920 * linear[1] + 0.9503041 * linear[2]) / 1.08883};
  double f[3];
  for (int i = 0; i < 3; ++i) {
    f[i] = xyz[i] > std::pow(6.0 / 29, 3) ? std::cbrt(xyz[i]) : xyz[i] * 841 / 108 + 4.0 / 29;
  }
  return {116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])};
}

TEST(HeatColour, StepsAreEvenAndLightnessRises) {
  constexpr int kSteps = 100;
  std::vector<double> steps;
  auto before = lab_of(heat_colour(0));
  EXPECT_NEAR(before[0], 10, 0.1);
  for (int i = 1; i <= kSteps; ++i) {
    const auto now = lab_of(heat_colour(static_cast<double>(i) / kSteps));
    steps.push_back(std::hypot(now[0] - before[0], now[1] - before[1], now[2] - before[2]));
    EXPECT_GT(now[0], before[0]);
    before = now;
  }
  EXPECT_NEAR(before[0], 88, 0.1);
  const auto [least, most] = std::minmax_element(steps.begin(), steps.end());
  EXPECT_LT(*most / *least, 1.01) << *least << " to " << *most;
  EXPECT_GT(*least, 2);
  EXPECT_EQ(heat_colour(-1), heat_colour(0));
  EXPECT_EQ(heat_colour(2), heat_colour(1));
  EXPECT_EQ(heat_colour(std::nan("")), heat_colour(0));
}

// The map's value at a sample of an image, between the middles of its cells.
double value_at(const OwnMatrix& map, const Image& image, int x, int y) {
  const int rows = map.view().rows;
  const int columns = map.view().columns;
  const auto along = [](int i, int size, int cells) {
    return std::clamp((i + 0.5) * cells / size - 0.5, 0.0, cells - 1.0);
  };
  const double u = along(x, image.width(), columns);
  const double v = along(y, image.height(), rows);
  double value = 0;
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      value += std::max(0.0, 1 - std::abs(u - column)) * std::max(0.0, 1 - std::abs(v - row)) *
               map.at(row, column);
    }
  }
  return value;
}

struct PaintedFrame {
  ColourFormat format;
  std::vector<Image> images;
};

std::vector<PaintedFrame> painted_frames() {
  return {{{}, {painted(31, 17, 8, 1), painted(31, 17, 8, 2), painted(31, 17, 8, 3)}},
          {kYCbCr, {painted(31, 17, 10, 1), painted(16, 9, 10, 2), painted(16, 9, 10, 3)}},
          {{ColourModel::kGray, ColourMatrix::kBt601}, {painted(31, 17, 16, 1)}}};
}

TEST(HeatMap, IsBlendedOverFramesOfAnyFormat) {
  const OwnMatrix map = OwnMatrix::random(4, 6, 1, 3, 2);
  for (const PaintedFrame& c : painted_frames()) {
    std::vector<Image> out = c.images;
    const std::vector<ConstPlane> in = views(c.images);
    blend_heat_map(map.view(), in, views(out), c.format, {.most = 2, .opacity = 0.7, .threads = 2});
    const int depth = c.images[0].bit_depth();
    const reference::Colours colours(c.format, depth);
    for (std::size_t p = 0; p < out.size(); ++p) {
      double far = 0;
      for (int y = 0; y < out[p].height(); ++y) {
        for (int x = 0; x < out[p].width(); ++x) {
          const auto heat = heat_colour(value_at(map, out[p], x, y) / 2);
          const double code = colours.codes({heat[0], heat[1], heat[2]})[p];
          far = std::max(far, std::abs(0.3 * c.images[p].get(0, x, y) + 0.7 * code - out[p].get(0, x, y)));
        }
      }
      EXPECT_LT(far, 0.5 + std::ldexp(0.002, depth)) << depth;
    }
    // In place, with another number of threads.
    std::vector<Image> same = c.images;
    const std::vector<Plane> planes = views(same);
    blend_heat_map(map.view(), std::vector<ConstPlane>(planes.begin(), planes.end()), planes, c.format,
                   {.most = 2, .opacity = 0.7, .threads = 1});
    EXPECT_TRUE(same == out);
    blend_heat_map(map.view(), in, planes, c.format, {.opacity = 0});
    EXPECT_TRUE(same == c.images);
  }
}

TEST(HeatMap, WrongArgumentsAreRefused) {
  const OwnMatrix map = OwnMatrix::random(4, 6);
  std::vector<Image> images = {painted(10, 10, 8, 1)};
  const std::vector<Plane> out = views(images);
  const std::vector<ConstPlane> in(out.begin(), out.end());
  const ColourFormat gray = {ColourModel::kGray};
  blend_heat_map(map.view(), in, out, gray);
  blend_heat_map(OwnMatrix::random(2, 4096).view(), in, out, gray);  // as RegionFinder's largest
  EXPECT_THROW(blend_heat_map(OwnMatrix::random(2, 4097).view(), in, out, gray), InvalidArgument);
  EXPECT_THROW(blend_heat_map({}, in, out, gray), InvalidArgument);
  EXPECT_THROW(blend_heat_map(map.view(), in, out, {}), InvalidArgument);
  EXPECT_THROW(blend_heat_map(map.view(), in, out, gray, {.most = 0}), InvalidArgument);
  EXPECT_THROW(blend_heat_map(map.view(), in, out, gray, {.opacity = 1.1}), InvalidArgument);
  EXPECT_THROW(blend_heat_map(map.view(), in, out, gray, {.threads = -2}), InvalidArgument);
}

TEST(Mask, IsTheMapInBlackAndWhiteOnFramesOfAnyFormat) {
  const OwnMatrix map = OwnMatrix::random(4, 6, 1, 3, 2);
  for (PaintedFrame& c : painted_frames()) {
    const std::vector<Plane> planes = views(c.images);
    paint_mask(map.view(), planes, c.format, {.most = 1.5, .threads = 2});
    const int depth = c.images[0].bit_depth();
    const reference::Colours colours(c.format, depth);
    for (std::size_t p = 0; p < planes.size(); ++p) {
      double far = 0;
      for (int y = 0; y < planes[p].height; ++y) {
        for (int x = 0; x < planes[p].width; ++x) {
          const double share = std::clamp(value_at(map, c.images[p], x, y) / 1.5, 0.0, 1.0);
          const double code = colours.codes({share, share, share})[p];
          far = std::max(far, std::abs(code - c.images[p].get(0, x, y)));
        }
      }
      EXPECT_LT(far, 0.5 + std::ldexp(1e-4, depth)) << depth << " bits, plane " << p;
    }
    std::vector<Image> other = c.images;
    paint_mask(map.view(), views(other), c.format, {.most = 1.5, .threads = 1});
    EXPECT_TRUE(other == c.images) << "threads do not matter";
  }
}

TEST(Mask, ItsEndsAreBlackAndWhiteExactly) {
  const float nan = std::nanf("");
  const float values[] = {-3, nan, 7, 1};
  const ConstMatrix map = {values, 1, 4, 4};
  for (const int depth : {8, 10, 16}) {
    std::vector<Image> luma = {painted(4, 2, depth, 1)};
    const int unit = 1 << (depth - 8);
    paint_mask(map, views(luma), {ColourModel::kGray, ColourMatrix::kBt709, ColourRange::kLimited});
    EXPECT_EQ(luma[0].get(0, 0, 0), 16 * unit);
    EXPECT_EQ(luma[0].get(0, 1, 1), 16 * unit) << "what is not a number";
    EXPECT_EQ(luma[0].get(0, 2, 1), 235 * unit);
    paint_mask(map, views(luma), {ColourModel::kGray, ColourMatrix::kBt2020});
    EXPECT_EQ(luma[0].get(0, 0, 0), 0);
    EXPECT_EQ(luma[0].get(0, 2, 0), (1 << depth) - 1);
  }
}

TEST(Mask, WrongArgumentsAreRefused) {
  const OwnMatrix map = OwnMatrix::random(4, 6);
  std::vector<Image> images(5, painted(10, 10, 8, 1));
  const std::vector<Plane> out = views(images);
  const std::span<const Plane> all(out);
  const ColourFormat gray = {ColourModel::kGray};
  paint_mask(map.view(), all.first(1), gray);
  const std::vector<Image> before = images;
  EXPECT_THROW(paint_mask(map.view(), {}, gray), InvalidArgument);
  EXPECT_THROW(paint_mask(map.view(), all.first(1), {}), InvalidArgument);
  EXPECT_THROW(paint_mask(map.view(), all, {}), InvalidArgument);
  EXPECT_THROW(paint_mask({}, all.first(1), gray), InvalidArgument);
  EXPECT_THROW(paint_mask(map.view(), all.first(1), gray, {.most = 0}), InvalidArgument);
  EXPECT_THROW(paint_mask(map.view(), all.first(1), gray, {.most = std::nan("")}), InvalidArgument);
  EXPECT_THROW(paint_mask(map.view(), all.first(1), gray, {.threads = -2}), InvalidArgument);
  EXPECT_TRUE(images == before);
}

}  // namespace
}  // namespace nonlocal
