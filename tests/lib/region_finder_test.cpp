// Regions that answer a prompt: compared with PyTorch, which made what is expected (tests/parity/regions.py);
// models in which relevance is planted (tests/parity/planted.py) find the planted region.
#include "nonlocal/region_finder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "allocations.h"
#include "changed_model.h"
#include "folder_test.h"
#include "image.h"
#include "nonlocal/cpu.h"
#include "nonlocal/error.h"
#include "planted_frame.h"
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

// --- What is planted is found ---

using testing::Found;
using testing::FrameKind;
using testing::look_at;
using testing::planted_frame;
using testing::Region;
using testing::views_of;

constexpr Region kLeft = {0.25, 0.3, 0.55, 0.7};
constexpr Region kCorner = {0.7, 0, 1, 0.4};
constexpr testing::Rgb kRed = {0.8, 0.15, 0.2};
constexpr testing::Rgb kGreen = {0.15, 0.75, 0.2};

void expect_found(RegionFinder& finder, const Region& region, const std::string& what) {
  const Found found = look_at(finder.map(), region);
  EXPECT_TRUE(found.has_most) << what;
  EXPECT_GT(found.inside, 0.7) << what;
  EXPECT_GT(found.mean, 0.7) << what;
  EXPECT_LT(found.beyond, 0.1) << what;
}

void expect_both_found(RegionFinder& finder, const FrameKind& kind, int width, int height) {
  const auto frame = planted_frame(kind, width, height, {{kLeft, kRed}, {kCorner, kGreen}});
  const std::string what = kind.name + " " + std::to_string(width) + "x" + std::to_string(height);
  for (const auto& [text, region] : {std::pair("red", kLeft), std::pair("something green", kCorner)}) {
    finder.set_text(text);
    finder.find(views_of(frame), kind.format);
    expect_found(finder, region, what + ": " + text);
  }
}

TEST(RegionFinder, PlantedRegionsAreFound) {
  for (const RegionFeatures features : {RegionFeatures::kGem, RegionFeatures::kMaskClip}) {
    // Fifteen patches on the short side: regions have edges within patches, where relevance is part of it.
    RegionFinder finder(kPlantedClip, {.features = features, .side = 120});
    EXPECT_FALSE(finder.has_decoder());
    for (const FrameKind& kind : testing::frame_kinds()) {
      for (const auto& [width, height] : {std::pair(320, 240), std::pair(426, 240), std::pair(121, 203)}) {
        expect_both_found(finder, kind, width, height);
      }
    }
    expect_both_found(finder, testing::frame_kinds()[1], 1280, 720);
  }
}

TEST(RegionFinder, PlantedRegionsAreFoundByADecoder) {
  RegionFinder finder(kPlantedClipSeg, {.side = 128});
  EXPECT_TRUE(finder.has_decoder());
  for (const FrameKind& kind : testing::frame_kinds()) {
    for (const auto& [width, height] : {std::pair(320, 240), std::pair(426, 240), std::pair(121, 203)}) {
      expect_both_found(finder, kind, width, height);
      EXPECT_EQ(finder.map().columns, 128);
      EXPECT_EQ(finder.map().rows, 128);
    }
  }
}

// At the size that it was trained with, and wherever the region lies.
TEST(RegionFinder, RegionsAreFoundWhereverTheyLie) {
  RegionFinder finder(kPlantedClip);
  finder.set_text("blue");
  for (const double left : {0.0, 0.25, 0.5}) {
    for (const double top : {0.0, 0.25, 0.5}) {
      const Region region = {left, top, left + 0.5, top + 0.5};
      const auto frame = planted_frame(testing::frame_kinds()[1], 160, 120, {{region, {0.2, 0.25, 0.8}}});
      finder.find(views_of(frame), testing::frame_kinds()[1].format);
      EXPECT_EQ(finder.map().rows, 8);
      EXPECT_EQ(finder.map().columns, 11);
      expect_found(finder, region, std::to_string(left) + ", " + std::to_string(top));
    }
  }
}

// 0.5 is as much like the text as like anything; what is not there is less.
TEST(RegionFinder, RelevanceIsAbsolute) {
  RegionFinder finder(kPlantedClip);
  const FrameKind kind = testing::frame_kinds()[0];
  const auto frame = planted_frame(kind, 160, 120, {{kLeft, kRed}});
  const auto largest = [&](const std::string& text) {
    finder.set_text(text);
    finder.find(views_of(frame), kind.format);
    return std::ranges::max(map_of(finder));
  };
  EXPECT_GT(largest("red"), 0.9);
  EXPECT_NEAR(largest("zebra"), 0.5, 1e-3);  // not in the vocabulary: as gray as the phrases
  EXPECT_LT(largest("cyan"), 0.3);
}

// v' lies near the prompt where there is what it asks for.
TEST(RegionFinder, PooledVectorIsOfTheRegion) {
  for (const std::string& path : {kPlantedClip, kPlantedClipSeg}) {
    RegionFinder finder(path, {.side = 64});
    const FrameKind kind = testing::frame_kinds()[0];
    const auto frame = planted_frame(kind, 160, 120, {{kLeft, kRed}, {kCorner, kGreen}});
    finder.set_text("green");
    finder.find(views_of(frame), kind.format);
    const std::vector<float> v = pooled_of(finder);  // red, green, blue, gray
    ASSERT_EQ(v.size(), 4U);
    EXPECT_GT(v[1], 1);
    EXPECT_LT(v[0], 0);
    EXPECT_LT(v[2], 0);
  }
}

// --- How it behaves ---

TEST(RegionFinder, TextIsCutAndInvalidBytesAreCounted) {
  RegionFinder finder(kPlantedClip);
  EXPECT_TRUE(finder.text().ids.empty());
  finder.set_text("red");
  EXPECT_EQ(finder.text().ids.size(), 3U);
  EXPECT_EQ(finder.text().ids, finder.tokenizer().tokenize("red").ids);
  finder.set_text("red 1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9\xFF");
  EXPECT_EQ(finder.text().ids.size(), 16U);
  EXPECT_GT(finder.text().cut, 0U);
  EXPECT_EQ(finder.text().invalid, 1U);
  finder.set_text("");
  EXPECT_EQ(finder.text().ids.size(), 2U);
}

TEST(RegionFinder, ThreadsDoNotChangeTheOutput) {
  const FrameKind kind = testing::frame_kinds()[1];
  const auto frame = planted_frame(kind, 160, 120, {{kLeft, kRed}});
  for (const std::string& path : {kPlantedClip, kPlantedClipSeg}) {
    std::vector<float> expected;
    for (const int threads : {1, 2, 3, 7}) {
      RegionFinder finder(path, {.threads = threads, .side = 64});
      finder.set_text("red");
      finder.find(views_of(frame), kind.format);
      expected = expected.empty() ? map_of(finder) : expected;
      EXPECT_EQ(map_of(finder), expected) << threads;
    }
  }
}

TEST(RegionFinder, RepeatedFramesAllocateNothing) {
#ifdef NONLOCAL_SANITIZED
  GTEST_SKIP() << "sanitizers have a new of their own";
#endif
  const FrameKind kind = testing::frame_kinds()[1];
  const auto frame = planted_frame(kind, 160, 120, {{kLeft, kRed}});
  const std::vector<ConstPlane> planes = views_of(frame);
  for (const std::string& path : {kPlantedClip, kPlantedClipSeg}) {
    RegionFinder finder(path, {.threads = 2, .side = 64});
    finder.set_text("red");
    finder.find(planes, kind.format);
    const int before = testing::allocations();
    finder.find(planes, kind.format);
    EXPECT_EQ(testing::allocations(), before);
  }
}

TEST(RegionFinder, StopsAndLeavesWhatWasFound) {
  const FrameKind kind = testing::frame_kinds()[1];
  const auto frame = planted_frame(kind, 160, 120, {{kLeft, kRed}});
  const auto other = planted_frame(kind, 120, 160, {{kLeft, kRed}});
  for (const std::string& path : {kPlantedClip, kPlantedClipSeg}) {
    RegionFinder finder(path, {.threads = 2, .side = 64});
    finder.set_text("red");
    std::stop_source stop;
    stop.request_stop();
    EXPECT_FALSE(finder.find(views_of(frame), kind.format, stop.get_token()));
    EXPECT_EQ(finder.map().rows, 0);
    ASSERT_TRUE(finder.find(views_of(frame), kind.format));
    const std::vector<float> map = map_of(finder);
    const std::vector<float> pooled(finder.pooled().begin(), finder.pooled().end());
    EXPECT_FALSE(finder.find(views_of(other), kind.format, stop.get_token()));
    EXPECT_EQ(map_of(finder), map);
    EXPECT_TRUE(std::ranges::equal(finder.pooled(), pooled));
    ASSERT_TRUE(finder.find(views_of(other), kind.format));
    RegionFinder fresh(path, {.threads = 2, .side = 64});
    fresh.set_text("red");
    ASSERT_TRUE(fresh.find(views_of(other), kind.format));
    EXPECT_EQ(map_of(finder), map_of(fresh));
  }
}

TEST(RegionFinder, NothingIsThereBeforeAFrame) {
  RegionFinder finder(kPlantedClip);
  EXPECT_EQ(finder.map().rows, 0);
  EXPECT_TRUE(finder.pooled().empty());
  EXPECT_EQ(finder.embedding_size(), 4);
  EXPECT_EQ(finder.precision(), AttentionPrecision::kFloat32);
}

// --- What is wrong ---

class RegionFinderErrors : public nonlocal::testing::FolderTest {
 protected:
  // A model as a folder; its description and its vocabulary lie beside the tensors.
  void write_folder(Model model) {
    write("config.json", model.metadata["config"]);
    write("tokenizer.json", model.metadata["tokenizer"]);
    model.metadata.clear();
    model::write_safetensors((folder_ / "model.safetensors").string(), {}, model.tensors);
  }
  void expect_problem(const std::vector<std::string>& words) {
    std::string problem = "none";
    try {
      RegionFinder finder(folder_.string());
    } catch (const ModelError& e) {
      problem = e.what();
    }
    for (const std::string& word : words) {
      EXPECT_NE(problem.find(word), std::string::npos) << problem;
    }
  }
  void expect_problem(const std::string& from, const std::function<void(Model&)>& change,
                      const std::vector<std::string>& words) {
    Model model(from);
    change(model);
    write_folder(model);
    expect_problem(words);
  }
};

TEST_F(RegionFinderErrors, FoldersAreLikeFiles) {
  write_folder(Model(kPlantedClipSeg));
  write("preprocessor_config.json", R"({"size": {"height": 136, "width": 136}, "resample": 2})");
  RegionFinder finder(folder_.string());
  EXPECT_TRUE(finder.has_decoder());
  const FrameKind kind = testing::frame_kinds()[1];
  expect_both_found(finder, kind, 320, 240);
  EXPECT_EQ(finder.map().columns, 136);
  fs::remove(folder_ / "preprocessor_config.json");
  RegionFinder standard(folder_.string());
  expect_both_found(standard, kind, 320, 240);
  EXPECT_EQ(standard.map().columns, 352);
}

TEST_F(RegionFinderErrors, FilesAreNamed) {
  expect_problem({folder_.string(), "expected model.safetensors", "found none"});
  folder_ /= "none";
  expect_problem({"none: ", "found nothing of this name"});
  folder_ = folder_.parent_path();
  write_folder(Model(kPlantedClip));
  write("preprocessor_config.json", R"({"resample": 4})");
  expect_problem({"preprocessor_config.json: ", "resample", "2 (linear) or 3 (cubic)"});
  write_folder(Model(kPlantedClipSeg));
  for (const char* size : {R"({"height": 96, "width": 80})", "0", "\"x\"", "100"}) {
    write("preprocessor_config.json", std::string(R"({"size": )") + size + "}");
    expect_problem({"preprocessor_config.json: ", "size: expected"});
  }
}

TEST_F(RegionFinderErrors, VocabulariesAreNeededAndMustFit) {
  write_folder(Model(kPlantedClip));
  fs::remove(folder_ / "tokenizer.json");
  expect_problem({folder_.string(), "expected a tokenizer", "found none"});
  fs::copy(kVocabulary, folder_ / "tokenizer.json");
  expect_problem({"expected a vocabulary of ", "found 764"});
}

TEST_F(RegionFinderErrors, TensorsAreNamedWithTheirShapes) {
  expect_problem(kPlantedClip, [](Model& m) { m.remove("visual_projection.weight"); },
                 {"expected embeddings of one size", "4 of prompts", "8 of patches"});
  expect_problem(kPlantedClip, [](Model& m) { m["logit_scale"].values = {40}; },
                 {"model.safetensors", "\"logit_scale\"", "-10 to 10", "40"});
  expect_problem(kPlantedClip, [](Model& m) { m.remove("vision_model.post_layernorm.bias"); },
                 {"\"vision_model.post_layernorm.bias\"", "found none"});
  expect_problem(kPlantedClipSeg, [](Model& m) { m.remove("decoder.reduces.1.bias"); },
                 {"model.safetensors", "\"decoder.reduces.1.bias\"", "found none"});
  expect_problem(kPlantedClipSeg,
                 [](Model& m) {
                   m["decoder.film_add.weight"].shape = {4, 8};
                 },
                 {"\"decoder.film_add.weight\"", "expected the shape [8, 4]"});
  expect_problem(kPlantedClipSeg,
                 [](Model& m) {
                   m["decoder.transposed_convolution.weight"].shape = {8, 1, 4, 16};
                 },
                 {"\"decoder.transposed_convolution.weight\"", "[8, 1, 16, 16]", "[8, 1, 4, 16]"});
}

TEST_F(RegionFinderErrors, DescriptionsMustAgree) {
  const auto expect = [&](const char* pointer, const nlohmann::json& value,
                          const std::vector<std::string>& words) {
    expect_problem(
        kPlantedClipSeg, [&](Model& m) { m.set_config(pointer, value); }, words);
  };
  expect("/extract_layers", {0, 3}, {"config.json", "extract_layers", "0 to 2"});
  expect("/extract_layers", {1, 1}, {"extract_layers", "rising"});
  expect("/extract_layers", "all", {"extract_layers", "\\\"all\\\""});
  expect("/extract_layers", nlohmann::json(), {"extract_layers", "which has 3"});  // the standard: 3, 6, 9
  expect("/decoder_num_attention_heads", 3, {"decoder_num_attention_heads", "divisor", "8"});
  expect("/conditional_layer", 3, {"conditional_layer", "0 to 2"});
}

// The decoder's last steps as refined ones, of kernels of these sides and so many channels between them.
void refine(Model& m, std::uint64_t first, std::uint64_t last, std::uint64_t channels) {
  const std::string name = "decoder.transposed_convolution";
  m.remove(name + ".weight");
  m.remove(name + ".bias");
  const auto add = [&](const std::string& part, const model::Shape& shape) {
    const std::uint64_t size =
        std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>());
    m.tensors.push_back({name + part, shape, std::vector<float>(size, 0.01F)});
  };
  add(".0.weight", {8, 8, 3, 3});
  add(".0.bias", {8});
  add(".2.weight", {8, channels, first, first});
  add(".2.bias", {channels});
  add(".4.weight", {channels, 1, last, last});
  add(".4.bias", {1});
}

// Whatever the number of channels between them: their ReLU makes 0 of -1, of which the probability is 1/2.
TEST_F(RegionFinderErrors, RefinedStepsHaveTheirActivation) {
  for (const std::uint64_t channels : {1, 2}) {
    Model model(kPlantedClipSeg);
    refine(model, 4, 2, channels);
    const std::string name = "decoder.transposed_convolution";
    const auto fill = [&](const std::string& part, float value) {
      std::ranges::fill(model[name + part].values, value);
    };
    fill(".2.weight", 0);
    fill(".2.bias", -1);
    fill(".4.weight", 1);
    fill(".4.bias", 0);
    write_folder(model);
    RegionFinder finder(folder_.string(), {.side = 64});
    finder.set_text("red");
    const FrameKind kind = testing::frame_kinds()[1];
    ASSERT_TRUE(finder.find(views_of(planted_frame(kind, 160, 120, {{kLeft, kRed}})), kind.format));
    for (const float v : map_of(finder)) {
      ASSERT_NEAR(v, 0.5, 1e-6) << channels;
    }
  }
}

// 44 patches a side: 352 samples of 8 a patch.
TEST_F(RegionFinderErrors, MapsHaveALimit) {
  expect_problem(kPlantedClipSeg, [](Model& m) { refine(m, 16, 16, 1); },
                 {"model.safetensors: tensor \"decoder.transposed_convolution.4.weight\"",
                  "at most 4096 samples a side, found 11264: 44 patches of 256"});
  expect_problem(kPlantedClipSeg, [](Model& m) { refine(m, 64, 1, 64); },
                 {"model.safetensors: tensor \"decoder.transposed_convolution.2.weight\"", "found 507510784",
                  "64 of each of 2816 x 2816"});
  const auto widen = [](Model& m) {
    NamedTensor& t = m["decoder.transposed_convolution.weight"];
    t.shape = {8, 1, 94, 94};
    t.values.assign(8 * 94 * 94, 0.01F);
  };
  expect_problem(kPlantedClipSeg, widen,
                 {"tensor \"decoder.transposed_convolution.weight\"", "found 4136: 44 patches of 94"});
  Model model(kPlantedClipSeg);
  refine(model, 16, 16, 1);
  write_folder(model);
  RegionFinder largest(folder_.string(), {.side = 128});
  largest.set_text("red");
  const Image black(32, 24, 8, 3);
  largest.find(black.views(), {});
  EXPECT_EQ(largest.map().columns, 4096);
  EXPECT_THROW(RegionFinder(folder_.string(), {.side = 136}), ModelError);
}

TEST_F(RegionFinderErrors, PicturesOfModelsHaveALimit) {
  write("preprocessor_config.json", R"({"size": 4096})");
  expect_problem(kPlantedClipSeg, [](Model&) {},
                 {"preprocessor_config.json: size: expected", "up to 2040, found 4096"});
  fs::remove(folder_ / "preprocessor_config.json");
  const auto enlarge = [](Model& m) {
    m["vision_model.embeddings.patch_embedding.weight"] = {"vision_model.embeddings.patch_embedding.weight",
                                                           {8, 3, 256, 256},
                                                           std::vector<float>(8 * 3 * 65536)};
    m["vision_model.embeddings.position_embedding.weight"] = {
        "vision_model.embeddings.position_embedding.weight", {290, 8}, std::vector<float>(290 * 8)};
    m.set_config("/vision_config/patch_size", 256);
    m.set_config("/vision_config/image_size", 17 * 256);
  };
  expect_problem(kPlantedClip, enlarge, {"config.json: image_size", "at most 4096, found 4352"});
}

// Told before there is any working memory: it would be gigabytes.
TEST(RegionFinder, PatchesHaveALimit) {
  RegionFinder finder(kPlantedClip, {.side = 2040});
  finder.set_text("red");
  const Image image(320, 24, 8, 3);
  try {
    finder.find(image.views(), {});
    FAIL();
  } catch (const InvalidArgument& e) {
    EXPECT_NE(std::string(e.what()).find("at most 65535 patches, got 2040x255"), std::string::npos)
        << e.what();
  }
  EXPECT_TRUE(finder.pooled().empty());
}

TEST_F(RegionFinderErrors, ValuesThatAreNotFiniteAreTold) {
  const auto expect = [&](const std::string& path, const std::string& tensor, float value) {
    Model model(path);
    std::ranges::fill(model[tensor].values, value);
    write_folder(model);
    RegionFinder finder(folder_.string(), {.side = 64});
    finder.set_text("red");
    Image frame(32, 24, 8, 3);
    for (int i = 0; i < 32 * 24; ++i) {
      frame.set(i % 3, i % 32, i / 32, i * 37 % 256);
    }
    try {
      finder.find(std::as_const(frame).views(), {});
      ADD_FAILURE() << tensor;
    } catch (const ModelError& e) {
      EXPECT_EQ(std::string(e.what()), folder_.string() + ": gives values that are not finite");
    }
  };
  expect(kPlantedClip, "vision_model.embeddings.patch_embedding.weight", 1e38F);
  expect(kPlantedClipSeg, "clip.vision_model.embeddings.patch_embedding.weight", 1e38F);
  expect(kPlantedClipSeg, "decoder.transposed_convolution.weight", 3e38F);
}

TEST(RegionFinder, WrongArgumentsAreRefused) {
  EXPECT_THROW(RegionFinder(kPlantedClip, {.threads = -1}), InvalidArgument);
  EXPECT_THROW(RegionFinder(kPlantedClip, {.side = 12}), InvalidArgument);
  EXPECT_THROW(RegionFinder(kPlantedClip, {.side = -8}), InvalidArgument);
  EXPECT_THROW(RegionFinder(kPlantedClip, {.side = 8192}), InvalidArgument);
  EXPECT_THROW(RegionFinder(kPlantedClip, {.features = static_cast<RegionFeatures>(7)}), InvalidArgument);
  RegionFinder finder(kPlantedClip);
  const Image image(32, 24, 8, 3);
  EXPECT_THROW(finder.find(image.views(), {}), InvalidArgument);  // no text
  finder.set_text("red");
  finder.find(image.views(), {});
  EXPECT_THROW(finder.find({}, {}), InvalidArgument);
  std::vector<ConstPlane> planes = image.views();
  planes[1].width = 16;
  EXPECT_THROW(finder.find(planes, {}), InvalidArgument);
  EXPECT_THROW(finder.find(image.views(), {.model = ColourModel::kGray}), InvalidArgument);
}

}  // namespace
}  // namespace nonlocal
