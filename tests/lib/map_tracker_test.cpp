#include "nonlocal/map_tracker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "allocations.h"
#include "image.h"
#include "nonlocal/error.h"
#include "nonlocal/relevance.h"

namespace nonlocal {
namespace {

using testing::Image;
using testing::Layout;

constexpr ColourFormat kGray = {ColourModel::kGray, ColourMatrix::kBt709, ColourRange::kFull};

// A map of cells; where the box lies, in parts of the frame, it is 1.
struct Map {
  Map(int rows_, int columns_) : rows(rows_), columns(columns_), values(rows_ * columns_, 0.0F) {}

  static Map of_box(int rows, int columns, double left, double top, double width, double height) {
    Map map(rows, columns);
    for (int y = 0; y < rows; ++y) {
      for (int x = 0; x < columns; ++x) {
        const double across = (x + 0.5) / columns;
        const double down = (y + 0.5) / rows;
        const bool is_in = across > left && across < left + width && down > top && down < top + height;
        map.values[y * columns + x] = is_in ? 1 : 0;
      }
    }
    return map;
  }

  [[nodiscard]] ConstMatrix view() const { return {values.data(), rows, columns, columns}; }

  int rows, columns;
  std::vector<float> values;
};

// The middle of what the map holds, in parts of the frame.
struct Middle {
  double x = 0, y = 0, sum = 0;
};

Middle middle_of(const ConstMatrix& map) {
  Middle m;
  for (int y = 0; y < map.rows; ++y) {
    for (int x = 0; x < map.columns; ++x) {
      m.sum += map.row(y)[x];
      m.x += map.row(y)[x] * (x + 0.5) / map.columns;
      m.y += map.row(y)[x] * (y + 0.5) / map.rows;
    }
  }
  m.x /= m.sum;
  m.y /= m.sum;
  return m;
}

// A scene of blobs that stands still, before which a square of other blobs lies at (left, top).
Image scene(int width, int height, int left, int top, int side, unsigned seed = 1) {
  const auto texture = [seed](int x, int y, unsigned which) {
    std::uint32_t h = seed * 7919U + which * 104729U + static_cast<unsigned>((y / 20) * 4096 + x / 20);
    for (const std::uint32_t factor : {0x85ebca6bU, 0xc2b2ae35U}) {
      h = (h ^ (h >> 15)) * factor;
    }
    return 40 + static_cast<int>((h >> 8) % 176);
  };
  Image image(width, height, 8, 1);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const bool is_square = x >= left && x < left + side && y >= top && y < top + side;
      image.set(0, x, y, is_square ? texture(x - left, y - top, 1) : texture(x, y, 0));
    }
  }
  return image;
}

void follow(MapTracker& tracker, const Image& image, const ColourFormat& format = kGray) {
  tracker.follow(image.views(), format);
}

TEST(MapTracker, MapsFollowWhatMoves) {
  MapTracker tracker;
  follow(tracker, scene(640, 360, 100, 100, 160));
  tracker.begin();
  EXPECT_EQ(tracker.map().rows, 0);
  for (int i = 1; i <= 5; ++i) {  // while the model is at work
    follow(tracker, scene(640, 360, 100 + 11 * i, 100 + 3 * i, 160));
  }
  const Map found = Map::of_box(36, 64, 100.0 / 640, 100.0 / 360, 160.0 / 640, 160.0 / 360);
  const double cells = middle_of(found.view()).sum;
  tracker.found(found.view());
  for (int i = 5; i <= 12; ++i) {
    if (i > 5) {
      follow(tracker, scene(640, 360, 100 + 11 * i, 100 + 3 * i, 160));
    }
    const Middle at = middle_of(tracker.map());
    EXPECT_NEAR(at.x * 640, 180 + 11 * i, 16) << i;  // of blocks of 16
    EXPECT_NEAR(at.y * 360, 180 + 3 * i, 16) << i;
    EXPECT_NEAR(at.sum, cells, 0.25 * cells) << i;
  }
}

TEST(MapTracker, MapsOfAStillPictureStayAsTheyAre) {
  MapTracker tracker;
  const Image image = scene(321, 183, 50, 50, 60);
  const Map found = Map::of_box(22, 22, 0.3, 0.2, 0.3, 0.5);
  follow(tracker, image);
  tracker.begin();
  tracker.found(found.view());
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(tracker.map().rows, 22);
    for (int y = 0; y < 22; ++y) {
      for (int x = 0; x < 22; ++x) {
        EXPECT_NEAR(tracker.map().row(y)[x], found.view().row(y)[x], 1e-6);
      }
    }
    follow(tracker, image);
  }
}

TEST(MapTracker, AMapThatIsFoundIsTrustedInPart) {
  MapTracker tracker;
  const Image image = scene(320, 180, 50, 50, 60);
  const Map first = Map::of_box(9, 16, 0, 0, 0.5, 1);
  const Map second = Map::of_box(9, 16, 0.5, 0, 0.5, 1);
  follow(tracker, image);
  tracker.begin();
  tracker.found(first.view());
  follow(tracker, image);
  tracker.begin();
  tracker.found(second.view(), {.trust = 0.75});
  EXPECT_NEAR(tracker.map().row(4)[2], 0.25, 1e-6);
  EXPECT_NEAR(tracker.map().row(4)[13], 0.75, 1e-6);
}

TEST(MapTracker, AfterACutThereIsNoMapUntilTheNextIsFound) {
  MapTracker tracker;
  const Map found = Map::of_box(9, 16, 0.2, 0.2, 0.5, 0.5);
  follow(tracker, scene(320, 180, 50, 50, 60, 1));
  tracker.begin();
  tracker.found(found.view());
  EXPECT_EQ(tracker.map().rows, 9);
  tracker.begin();
  follow(tracker, scene(320, 180, 50, 50, 60, 2));
  EXPECT_EQ(tracker.map().rows, 0);
  tracker.found(found.view());  // of the scene before
  EXPECT_EQ(tracker.map().rows, 0);
  tracker.begin();
  tracker.found(found.view());
  EXPECT_EQ(tracker.map().rows, 9);
}

TEST(MapTracker, WhatWasNotBegunIsDropped) {
  MapTracker tracker;
  const Map found = Map::of_box(9, 16, 0.2, 0.2, 0.5, 0.5);
  tracker.begin();
  tracker.found(found.view());
  follow(tracker, scene(320, 180, 50, 50, 60));
  tracker.found(found.view());
  EXPECT_EQ(tracker.map().rows, 0);
  tracker.begin();
  follow(tracker, scene(160, 90, 20, 20, 30));  // another size
  tracker.found(found.view());
  EXPECT_EQ(tracker.map().rows, 0);
}

// Also one that is reduced to as many samples.
TEST(MapTracker, AFrameOfAnotherSizeForgetsAllBeforeIt) {
  const Map found = Map::of_box(3, 5, 0, 0, 1, 1);
  MapTracker tracker;
  follow(tracker, scene(320, 240, 0, 0, 2));
  tracker.begin();
  tracker.found(found.view());
  follow(tracker, scene(320, 240, 0, 0, 2));
  EXPECT_EQ(tracker.map().rows, 3);
  follow(tracker, scene(640, 480, 0, 0, 2));
  EXPECT_EQ(tracker.map().rows, 0);
}

// Of a frame that is flatter than a sample of the reduced one, too.
TEST(MapTracker, AFlatFrameIsSeenInItsWholeLength) {
  MapTracker tracker;
  const Image image = scene(3300, 9, 0, 0, 2, 1);
  Image cut = scene(3300, 9, 0, 0, 2, 2);
  for (int i = 0; i < 9 * 400; ++i) {
    cut.set(0, i % 400, i / 400, image.get(0, i % 400, i / 400));
  }
  const Map found = Map::of_box(3, 5, 0, 0, 1, 1);
  follow(tracker, image);
  tracker.begin();
  tracker.found(found.view());
  follow(tracker, image);
  ASSERT_EQ(tracker.map().rows, 3);
  follow(tracker, cut);
  EXPECT_EQ(tracker.map().rows, 0);
}

TEST(MapTracker, LayoutsAndFormatsDoNotMatter) {
  const ColourFormat rgb = {ColourModel::kRgb, ColourMatrix::kBt709, ColourRange::kFull};
  const Map found = Map::of_box(18, 32, 0.2, 0.3, 0.3, 0.5);
  const auto shown = [&](auto&& picture, const ColourFormat& format) {
    MapTracker tracker;
    follow(tracker, picture(0), format);
    tracker.begin();
    tracker.found(found.view());
    follow(tracker, picture(1), format);
    std::vector<float> values;
    for (int y = 0; y < tracker.map().rows; ++y) {
      values.insert(values.end(), tracker.map().row(y), tracker.map().row(y) + tracker.map().columns);
    }
    return values;
  };
  const auto gray = [](int i) { return scene(400, 230, 60 + 9 * i, 60, 120); };
  const auto wide = [&](int bits, const Layout& layout, int planes) {
    return [&, bits, layout, planes](int i) {
      const Image from = gray(i);
      Image image(400, 230, bits, planes, layout);
      for (int y = 0; y < 230; ++y) {
        for (int x = 0; x < 400; ++x) {
          image.set(planes == 3 ? 1 : 0, x, y, from.get(0, x, y) << (bits - 8));
        }
      }
      return image;
    };
  };
  const std::vector<float> expected = shown(gray, kGray);
  ASSERT_EQ(expected.size(), 18U * 32);
  EXPECT_EQ(shown(wide(8, {.step = 2, .padding = 5, .upside_down = true}, 1), kGray), expected);
  EXPECT_EQ(shown(wide(10, {.shift = 6}, 1), kGray), expected);
  EXPECT_EQ(shown(wide(16, {.step = 4}, 3), rgb), expected);
}

TEST(MapTracker, AnySizeOfFrame) {
  const Map found = Map::of_box(3, 5, 0, 0, 1, 1);
  for (const auto& [width, height] : {std::pair{1, 1}, {2, 3}, {17, 3}, {3, 321}, {1000, 7}, {641, 361}}) {
    MapTracker tracker;
    const Image image = scene(width, height, 0, 0, 2);
    follow(tracker, image);
    tracker.begin();
    follow(tracker, image);
    tracker.found(found.view());
    follow(tracker, image);
    ASSERT_EQ(tracker.map().rows, 3);
    EXPECT_NEAR(tracker.map().row(1)[2], 1, 1e-6);
  }
}

TEST(MapTracker, AllocatesNothingOnceItHasItsMemory) {
  MapTracker tracker;
  const Map found = Map::of_box(18, 32, 0.2, 0.3, 0.3, 0.5);
  const Image images[2] = {scene(640, 360, 100, 100, 160), scene(640, 360, 104, 100, 160)};
  const std::vector<ConstPlane> views[2] = {images[0].views(), images[1].views()};
  const auto turn = [&](int i) {
    tracker.follow(views[i % 2], kGray);
    if (i % 3 == 2) {
      tracker.found(found.view());
      tracker.begin();
    } else if (i % 3 == 0) {
      tracker.begin();
    }
  };
  for (int i = 0; i < 12; ++i) {
    turn(i);
  }
  const long before = testing::allocations();
  for (int i = 0; i < 12; ++i) {
    turn(i);
  }
  EXPECT_EQ(testing::allocations(), before);
}

TEST(MapTracker, WrongArgumentsAreRefused) {
  MapTracker tracker;
  const Image image = scene(32, 18, 0, 0, 2);
  EXPECT_THROW(tracker.follow({}, kGray), InvalidArgument);
  EXPECT_THROW(tracker.follow(image.views(), kGray, {.threads = -1}), InvalidArgument);
  EXPECT_THROW(tracker.follow(image.views(), kGray, {.trust = 0}), InvalidArgument);
  EXPECT_THROW(tracker.found({}), InvalidArgument);
}

// ------------------------------------------------------------------------------------------ mixing by a map

double weight_at(const Map& map, int x, int y, int width, int height) {
  const auto cell = [](int i, int size, int cells) {
    return std::clamp((i + 0.5) * cells / size - 0.5, 0.0, cells - 1.0);
  };
  const double across = cell(x, width, map.columns);
  const double down = cell(y, height, map.rows);
  const int left = static_cast<int>(across);
  const int top = static_cast<int>(down);
  const auto value = [&](int column, int row) {
    const float v = map.values[std::min(row, map.rows - 1) * map.columns + std::min(column, map.columns - 1)];
    return std::isnan(v) ? 0.0 : static_cast<double>(v);
  };
  const double upper = std::lerp(value(left, top), value(left + 1, top), across - left);
  const double lower = std::lerp(value(left, top + 1), value(left + 1, top + 1), across - left);
  return std::clamp(std::lerp(upper, lower, down - top), 0.0, 1.0);
}

Image random_image(int width, int height, int bits, const Layout& layout, unsigned seed) {
  std::mt19937 random(seed);
  Image image(width, height, bits, 1, layout);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      image.set(0, x, y, static_cast<int>(random() % (1U << bits)));
    }
  }
  return image;
}

TEST(MixByMap, IsTheFormula) {
  std::mt19937 random(5);
  struct Case {
    int width, height, bits;
    Layout layout;
    int rows, columns;
  };
  for (const Case& c : {Case{64, 36, 8, {}, 9, 16}, Case{321, 17, 8, {.step = 2, .padding = 3}, 36, 64},
                        Case{7, 5, 10, {.shift = 6}, 20, 30}, Case{33, 9, 16, {.upside_down = true}, 1, 1},
                        Case{1, 1, 8, {}, 3, 2}, Case{100, 20, 12, {}, 2, 2}}) {
    Map map(c.rows, c.columns);
    for (float& value : map.values) {
      value = static_cast<float>(random() % 1001) / 1000;
      value = value < 0.2F ? 0 : value > 0.8F ? 1 : value;
    }
    const Image changed = random_image(c.width, c.height, c.bits, {}, 1);
    const Image frame = random_image(c.width, c.height, c.bits, c.layout, 2);
    Image mixed = frame;
    mix_by_map(map.view(), changed.views(), mixed.views(), kGray);
    for (int y = 0; y < c.height; ++y) {
      for (int x = 0; x < c.width; ++x) {
        const double expected =
            std::lerp(frame.get(0, x, y), changed.get(0, x, y), weight_at(map, x, y, c.width, c.height));
        // At 16 bits floats have a part of a code value.
        ASSERT_NEAR(mixed.get(0, x, y), expected, 0.5 + std::ldexp(1.0, c.bits - 18)) << x << "," << y;
      }
    }
    Image one = frame;
    mix_by_map(map.view(), changed.views(), one.views(), kGray, 1);
    EXPECT_TRUE(one == mixed);
  }
}

TEST(MixByMap, WhatIsNoWeightLeavesTheFrame) {
  const Image changed = random_image(40, 20, 8, {}, 1);
  const Image frame = random_image(40, 20, 8, {}, 2);
  Map map(4, 8);
  std::fill(map.values.begin(), map.values.end(), std::numeric_limits<float>::quiet_NaN());
  Image mixed = frame;
  mix_by_map(map.view(), changed.views(), mixed.views(), kGray);
  EXPECT_TRUE(mixed == frame);
  std::fill(map.values.begin(), map.values.end(), 7.0F);
  mix_by_map(map.view(), changed.views(), mixed.views(), kGray);
  EXPECT_TRUE(mixed == changed);
}

TEST(MixByMap, WrongArgumentsAreRefused) {
  const Image changed = random_image(40, 20, 8, {}, 1);
  const Image deep = random_image(40, 20, 10, {}, 1);
  Image frame = random_image(40, 20, 8, {}, 2);
  const Map map(4, 8);
  EXPECT_THROW(mix_by_map({}, changed.views(), frame.views(), kGray), InvalidArgument);
  EXPECT_THROW(mix_by_map(map.view(), deep.views(), frame.views(), kGray), InvalidArgument);
  EXPECT_THROW(mix_by_map(map.view(), {}, frame.views(), kGray), InvalidArgument);
  EXPECT_THROW(mix_by_map(map.view(), changed.views(), frame.views(), kGray, -1), InvalidArgument);
  EXPECT_THROW(mix_by_map(Map(1, 4097).view(), changed.views(), frame.views(), kGray), InvalidArgument);
}

}  // namespace
}  // namespace nonlocal
