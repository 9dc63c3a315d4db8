// What RegionFinder costs: region_cost MODEL [WIDTH HEIGHT [RUNS]]. The least of each, in turn, of frames of
// I420.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "image.h"
#include "nonlocal/region_finder.h"

namespace nonlocal {
namespace {

struct Way {
  std::string name;
  RegionFinder finder;
  double least = 1e9;
};

double seconds_of(RegionFinder& finder, const std::vector<ConstPlane>& planes, const ColourFormat& format) {
  const auto start = std::chrono::steady_clock::now();
  finder.find(planes, format);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void measure(const std::string& path, int width, int height, int runs) {
  const testing::Image luma(width, height, 8, 1);
  const testing::Image chroma((width + 1) / 2, (height + 1) / 2, 8, 2);
  const std::vector<ConstPlane> planes = {luma.views()[0], chroma.views()[0], chroma.views()[1]};
  const ColourFormat format{ColourModel::kYCbCr, ColourMatrix::kBt709, ColourRange::kLimited};
  std::vector<Way> ways;
  for (const int threads : {1, 2}) {
    for (const auto precision : {AttentionPrecision::kFloat32, AttentionPrecision::kBfloat16}) {
      for (const auto features : {RegionFeatures::kGem, RegionFeatures::kMaskClip}) {
        if (is_supported(precision)) {
          const std::string name = std::string(features == RegionFeatures::kGem ? "GEM" : "MaskCLIP") +
                                   (precision == AttentionPrecision::kBfloat16 ? ", bfloat16, " : ", F32, ") +
                                   std::to_string(threads) + (threads == 1 ? " thread" : " threads");
          ways.push_back(
              {name, RegionFinder(path, {.precision = precision, .threads = threads, .features = features})});
        }
      }
    }
  }
  for (int run = 0; run <= runs; ++run) {
    for (Way& way : ways) {
      if (run == 0) {
        way.finder.set_text("a warm sunset");
      }
      const double seconds = seconds_of(way.finder, planes, format);
      way.least = run == 0 ? way.least : std::min(way.least, seconds);
    }
  }
  for (const Way& way : ways) {
    std::printf("%-32s %7.1f ms, %dx%d cells\n", way.name.c_str(), way.least * 1000, way.finder.map().columns,
                way.finder.map().rows);
  }
}

}  // namespace
}  // namespace nonlocal

int main(int argc, char** argv) {
  const auto number = [&](int i, int standard) { return argc > i ? std::atoi(argv[i]) : standard; };
  try {
    nonlocal::measure(argc > 1 ? argv[1] : "", number(2, 1920), number(3, 1080), number(4, 5));
    return 0;
  } catch (const std::exception& e) {
    std::cerr << e.what() << std::endl;
    return 1;
  }
}
