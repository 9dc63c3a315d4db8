// Regions that answer a prompt: compared with PyTorch, which made what is expected (tests/parity/regions.py);
// models in which relevance is planted (tests/parity/planted.py) find the planted region.
#include "nonlocal/region_finder.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "allocations.h"
#include "changed_model.h"
#include "image.h"
#include "nonlocal/cpu.h"
#include "nonlocal/error.h"
#include "random_matrix.h"

namespace nonlocal {
namespace {

namespace fs = std::filesystem;
using model::NamedTensor;
using model::Safetensors;
using testing::Image;
using testing::Model;
using testing::relative_error;
using testing::values;

const std::string kFolder = PARITY_FOLDER "/";
const std::string kClip = kFolder + "regions_clip.safetensors";
const std::string kClipSeg = kFolder + "regions_clipseg.safetensors";
const std::string kRefined = kFolder + "regions_clipseg_refined.safetensors";
const std::string kPlantedClip = kFolder + "planted_clip.safetensors";
const std::string kPlantedClipSeg = kFolder + "planted_clipseg.safetensors";
const std::string kVocabulary = kFolder + "tokenizer.json";
constexpr double kNear = 2e-5;
constexpr double kNearInBfloat16 = 1e-1;
constexpr int kClipSegSide = 16;  // of the fixtures

std::vector<float> map_of(const RegionFinder& finder) {
  const ConstMatrix map = finder.map();
  return {map.data, map.data + static_cast<std::ptrdiff_t>(map.rows) * map.columns};
}

std::vector<float> pooled_of(const RegionFinder& finder) {
  return {finder.pooled().begin(), finder.pooled().end()};
}

// --- As PyTorch has it ---

Image frame_of(const Safetensors& expected, const std::string& name) {
  const model::Shape shape = expected.shape(name);
  const std::vector<float> codes = values(expected, name);
  const auto height = static_cast<int>(shape[1]);
  const auto width = static_cast<int>(shape[2]);
  Image image(width, height, 8, 3);
  for (int i = 0; i < 3 * width * height; ++i) {
    image.set(i / (width * height), i % width, i / width % height,
              static_cast<int>(codes[static_cast<std::size_t>(i)]));
  }
  return image;
}

// `outputs`: what comes before ".map" and ".pooled" in the names of what is expected.
void expect_outputs(RegionFinder& finder, const std::string& outputs, double near) {
  const Safetensors expected(kFolder + "regions_expected.safetensors");
  finder.set_text(*expected.metadata("prompt"));
  int cases = 0;
  for (const std::string& name : expected.names()) {
    if (name.starts_with("frame.")) {
      const std::string size = name.substr(6);
      const Image frame = frame_of(expected, name);
      finder.find(frame.views(), {});
      const model::Shape shape = expected.shape(outputs + ".map." + size);
      EXPECT_EQ(finder.map().rows, static_cast<int>(shape[0])) << size;
      EXPECT_EQ(finder.map().columns, static_cast<int>(shape[1])) << size;
      EXPECT_LT(relative_error(map_of(finder), values(expected, outputs + ".map." + size)), near) << size;
      EXPECT_LT(relative_error(pooled_of(finder), values(expected, outputs + ".pooled." + size)), near)
          << size;
      ++cases;
    }
  }
  EXPECT_EQ(cases, 4);
}

void expect_pytorchs(const std::string& path, const std::string& outputs, RegionFinderParameters p) {
  for (const std::string& isa : instruction_sets()) {
    force_instruction_set(isa);
    RegionFinder finder(path, p, kVocabulary);
    expect_outputs(finder, outputs, kNear);
  }
  force_instruction_set("");
  p.precision = AttentionPrecision::kBfloat16;
  if (is_supported(p.precision)) {
    RegionFinder finder(path, p, kVocabulary);
    EXPECT_EQ(finder.precision(), p.precision);
    expect_outputs(finder, outputs, kNearInBfloat16);
  }
}

TEST(RegionFinder, ClipIsPyTorchs) {
  expect_pytorchs(kClip, "clip.gem", {});
  expect_pytorchs(kClip, "clip.maskclip", {.features = RegionFeatures::kMaskClip});
}

TEST(RegionFinder, ClipSegIsPyTorchs) {
  expect_pytorchs(kClipSeg, "clipseg", {.side = kClipSegSide});
  expect_pytorchs(kRefined, "clipseg_refined", {.side = kClipSegSide});
}

}  // namespace
}  // namespace nonlocal
