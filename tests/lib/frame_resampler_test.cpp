// Frames resampled, compared with the formula: each new sample is the weighted mean of all samples within
// reach, in two dimensions at a time, of R, G and B that are made of the codes where they lie.
#include "text/frame_resampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "grade/colour_space.h"
#include "image.h"

namespace nonlocal::text {
namespace {

using nonlocal::testing::Image;

struct Kind {
  std::string name;
  ColourFormat format;
  int bit_depth;
  bool is_half_x, is_half_y;
  testing::Layout layout = {};
};

double kernel(PictureFilter filter, double d) {
  d = std::abs(d);
  if (filter == PictureFilter::kLinear) return d < 1 ? 1 - d : 0;
  if (d < 1) return 1.5 * d * d * d - 2.5 * d * d + 1;
  return d < 2 ? -0.5 * d * d * d + 2.5 * d * d - 4 * d + 2 : 0;
}

// A plane of which sample (i, j) lies at (origin_x + i step_x, origin_y + j step_y) of a frame, whose own
// samples lie at halves.
struct Lattice {
  double origin_x, step_x, origin_y, step_y;
};

// The mean of the samples around a place, by how far they are in units of the new samples' distance, or their
// own where that is larger.
double sample(PictureFilter filter, const Image& image, const Lattice& l, double x, double y, double step_x,
              double step_y) {
  const auto weights = [&](double at, double origin, double own, double step, int count) {
    const double place = (at - origin) / own;
    const double stretch = std::max(step / own, 1.0);
    std::vector<double> w;
    for (int i = 0; i < count; ++i) {
      w.push_back(kernel(filter, (i - place) / stretch));
    }
    return w;
  };
  const std::vector<double> across = weights(x, l.origin_x, l.step_x, step_x, image.width());
  const std::vector<double> down = weights(y, l.origin_y, l.step_y, step_y, image.height());
  double sum = 0;
  double all = 0;
  for (int j = 0; j < image.height(); ++j) {
    for (int i = 0; i < image.width(); ++i) {
      const double weight = across[static_cast<std::size_t>(i)] * down[static_cast<std::size_t>(j)];
      if (weight != 0) sum += weight * image.get(0, i, j);
      all += weight;
    }
  }
  return sum / all;
}

class Frame {
 public:
  Frame(const Kind& kind, int width, int height) : kind_(kind) {
    const int planes = kind.format.model == ColourModel::kGray ? 1 : 3;
    std::mt19937 random(7);
    std::uniform_int_distribution<int> code(0, (1 << kind.bit_depth) - 1);
    for (int c = 0; c < planes; ++c) {
      const bool is_chroma = c > 0 && kind.format.model == ColourModel::kYCbCr;
      const int w = is_chroma && kind.is_half_x ? (width + 1) / 2 : width;
      const int h = is_chroma && kind.is_half_y ? (height + 1) / 2 : height;
      Image image(w, h, kind.bit_depth, 1, kind.layout);
      for (int i = 0; i < w * h; ++i) image.set(0, i % w, i / w, code(random));
      images_.push_back(image);
    }
  }
  [[nodiscard]] std::vector<ConstPlane> views() const {
    std::vector<ConstPlane> all;
    for (const Image& image : images_) all.push_back(image.views()[0]);
    return all;
  }
  [[nodiscard]] std::array<double, 3> colour(PictureFilter filter, double x, double y, double step_x,
                                             double step_y) const {
    const grade::ColourSpace space = grade::colour_space(kind_.format);
    std::array<double, 3> levels{};
    for (std::size_t c = 0; c < 3; ++c) {
      const Image& image = images_[std::min(c, images_.size() - 1)];
      const double code = sample(filter, image, lattice(c), x, y, step_x, step_y);
      const grade::LevelScale scale = grade::level_scale(kind_.format, static_cast<int>(c), kind_.bit_depth);
      levels[c] = code * scale.by + scale.plus;
    }
    std::array<double, 3> rgb = space.offset;
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t c = 0; c < 3; ++c) rgb[i] += space.to_rgb[i][c] * levels[c];
      rgb[i] = std::clamp(rgb[i], 0.0, 1.0);
    }
    return rgb;
  }

 private:
  [[nodiscard]] Lattice lattice(std::size_t channel) const {
    const bool is_chroma = channel > 0 && kind_.format.model == ColourModel::kYCbCr;
    const bool half_x = is_chroma && kind_.is_half_x;
    const bool half_y = is_chroma && kind_.is_half_y;
    const ChromaSite site = kind_.format.site;
    return {half_x && site == ChromaSite::kCentre ? 1.0 : 0.5, half_x ? 2.0 : 1.0,
            half_y && site != ChromaSite::kTopLeft ? 1.0 : 0.5, half_y ? 2.0 : 1.0};
  }

  Kind kind_;
  std::vector<Image> images_;
};

void expect_formula(const Kind& kind, PictureFilter filter, int width, int height, int columns, int rows) {
  const Frame frame(kind, width, height);
  FrameResampler resampler(filter, 3);
  resampler.run(frame.views(), kind.format, 7, 3);  // what it keeps must not matter
  resampler.run(frame.views(), kind.format, columns, rows);
  double worst = 0;
  for (int i = 0; i < columns * rows; ++i) {
    const double step_x = static_cast<double>(width) / columns;
    const double step_y = static_cast<double>(height) / rows;
    const auto expected =
        frame.colour(filter, (i % columns + 0.5) * step_x, (i / columns + 0.5) * step_y, step_x, step_y);
    for (std::size_t c = 0; c < 3; ++c) {
      const ConstFloatPlane& plane = resampler.rgb()[c];
      ASSERT_EQ(plane.width, columns);
      ASSERT_EQ(plane.height, rows);
      worst = std::max(worst, std::abs(plane.data[i / columns * plane.stride + i % columns] - expected[c]));
    }
  }
  EXPECT_LT(worst, 3e-6) << kind.name << " " << width << "x" << height << " to " << columns << "x" << rows;
}

TEST(FrameResampler, IsTheFormula) {
  const ColourFormat limited{ColourModel::kYCbCr, ColourMatrix::kBt601, ColourRange::kLimited,
                             ChromaSite::kLeft};
  ColourFormat centre = limited;
  centre.site = ChromaSite::kCentre;
  ColourFormat top_left = limited;
  top_left.site = ChromaSite::kTopLeft;
  top_left.range = ColourRange::kFull;
  ColourFormat gray{ColourModel::kGray, ColourMatrix::kBt709, ColourRange::kLimited, ChromaSite::kLeft};
  const Kind kinds[] = {{"RGB", {}, 8, false, false},
                        {"packed RGB", {}, 8, false, false, {.step = 3, .padding = 2, .upside_down = true}},
                        {"gray", gray, 8, false, false},
                        {"I420", limited, 8, true, true},
                        {"I420 centre", centre, 8, true, true},
                        {"Y42B, 10 bits, top left", top_left, 10, true, false},
                        {"P010", limited, 10, true, true, {.step = 2, .shift = 6, .padding = 1}},
                        {"Y444, 16 bits", limited, 16, false, false}};
  for (const Kind& kind : kinds) {
    for (const PictureFilter filter : {PictureFilter::kCubic, PictureFilter::kLinear}) {
      expect_formula(kind, filter, 40, 31, 12, 8);
      expect_formula(kind, filter, 9, 7, 16, 20);  // up
      expect_formula(kind, filter, 33, 5, 4, 12);  // down and up
      expect_formula(kind, filter, 1, 1, 4, 4);
    }
  }
}

TEST(FrameResampler, ThreadsDoNotChangeTheOutput) {
  const Frame frame({"RGB", {}, 8, false, false}, 64, 48);
  FrameResampler one(PictureFilter::kCubic, 1);
  FrameResampler many(PictureFilter::kCubic, 5);
  one.run(frame.views(), {}, 24, 16);
  many.run(frame.views(), {}, 24, 16);
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_TRUE(std::equal(one.rgb()[c].data, one.rgb()[c].data + 24 * 16, many.rgb()[c].data));
  }
}

}  // namespace
}  // namespace nonlocal::text
