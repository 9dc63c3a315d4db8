// The encoders compared with PyTorch, which made what is expected (tests/parity/encoders.py), in every form
// that a model has; what they say of wrong ones.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "allocations.h"
#include "changed_model.h"
#include "folder_test.h"
#include "model/safetensors.h"
#include "nonlocal/cpu.h"
#include "nonlocal/error.h"
#include "nonlocal/text_encoder.h"
#include "nonlocal/vision_encoder.h"
#include "random_matrix.h"
#include "reference/transformer.h"

namespace nonlocal {
namespace {

namespace fs = std::filesystem;
using model::NamedTensor;
using model::Safetensors;
using nlohmann::json;
using testing::Model;
using testing::OwnMatrix;
using testing::relative_error;
using testing::values;

const std::string kFolder = PARITY_FOLDER "/";
const std::string kTextClip = kFolder + "text_clip.safetensors";
const std::string kVision = kFolder + "vision.safetensors";
constexpr double kNear = 1e-5;
constexpr double kNearInBfloat16 = 5e-2;

class EncoderTest : public nonlocal::testing::FolderTest {
 protected:
  using FolderTest::write;
  std::string write(const std::string& name, const Model& model) {
    model::write_safetensors((folder_ / name).string(), model.metadata, model.tensors);
    return (folder_ / name).string();
  }
};

struct TextOutputs {
  std::vector<float> tokens, pooled;
};

TextOutputs run_text(TextEncoder& encoder, const std::vector<std::int32_t>& ids) {
  OwnMatrix tokens(static_cast<int>(ids.size()), encoder.width(), 3);
  TextOutputs out{{}, std::vector<float>(static_cast<std::size_t>(encoder.embedding_size()))};
  encoder.encode(ids, tokens.view(), out.pooled);
  out.tokens = tokens.values();
  return out;
}

std::vector<std::int32_t> ids_of(const Safetensors& expected, const std::string& count) {
  const std::vector<float> numbers = values(expected, "ids." + count);
  return {numbers.begin(), numbers.end()};
}

void expect_text(TextEncoder& encoder, const Safetensors& expected, double near) {
  for (const std::string& name : expected.names()) {
    if (!name.starts_with("ids.")) {
      continue;
    }
    const std::string count = name.substr(4);
    const TextOutputs out = run_text(encoder, ids_of(expected, count));
    EXPECT_LT(relative_error(out.tokens, values(expected, "tokens." + count)), near) << count;
    EXPECT_LT(relative_error(out.pooled, values(expected, "pooled." + count)), near) << count;
  }
}

void expect_vision(VisionEncoder& encoder, const Safetensors& expected, double near) {
  for (const std::string& name : expected.names()) {
    if (!name.starts_with("rgb.")) {
      continue;
    }
    const std::string grid = name.substr(4);
    const model::Shape shape = expected.shape(name);
    const auto width = static_cast<int>(shape[2]);
    const std::vector<float> rgb = values(expected, name);
    std::vector<ConstFloatPlane> planes;
    for (std::size_t c = 0; c < 3; ++c) {
      planes.push_back({rgb.data() + c * shape[1] * shape[2], width, static_cast<int>(shape[1]), width});
    }
    const auto patches = static_cast<int>(expected.shape("patches." + grid)[0]);
    OwnMatrix pooled(1, encoder.embedding_size());
    OwnMatrix related(patches, encoder.embedding_size(), 2);
    OwnMatrix tokens(patches + 1, encoder.width(), 1);
    OwnMatrix grounded(patches, encoder.embedding_size(), 4);
    OwnMatrix last(patches + 1, encoder.width(), 3);
    const std::vector<BlockTokens> blocks = {{encoder.layers() - 1, last.view()}};
    encoder.encode(planes, {pooled.view(), related.view(), tokens.view(), grounded.view(), blocks});
    EXPECT_EQ(last.values(), tokens.values()) << grid;
    EXPECT_LT(relative_error(grounded.values(), values(expected, "grounded." + grid)), near) << grid;
    EXPECT_LT(relative_error(pooled.values(), values(expected, "pooled." + grid)), near) << grid;
    EXPECT_LT(relative_error(related.values(), values(expected, "patches." + grid)), near) << grid;
    EXPECT_LT(relative_error(tokens.values(), values(expected, "tokens." + grid)), near) << grid;
  }
}

TEST_F(EncoderTest, TextIsPyTorchs) {
  for (const std::string name : {"text_clip", "text_full"}) {
    const Safetensors expected(kFolder + name + "_expected.safetensors");
    for (const std::string& isa : instruction_sets()) {
      force_instruction_set(isa);
      TextEncoder encoder(kFolder + name + ".safetensors");
      expect_text(encoder, expected, kNear);
    }
    force_instruction_set("");
    if (is_supported(AttentionPrecision::kBfloat16)) {
      TextEncoder encoder(kFolder + name + ".safetensors", {AttentionPrecision::kBfloat16});
      EXPECT_EQ(encoder.precision(), AttentionPrecision::kBfloat16);
      expect_text(encoder, expected, kNearInBfloat16);
    }
  }
}

TEST_F(EncoderTest, VisionIsPyTorchs) {
  const Safetensors expected(kFolder + "vision_expected.safetensors");
  for (const std::string& isa : instruction_sets()) {
    force_instruction_set(isa);
    VisionEncoder encoder(kVision);
    expect_vision(encoder, expected, kNear);
  }
  force_instruction_set("");
  if (is_supported(AttentionPrecision::kBfloat16)) {
    VisionEncoder encoder(kVision, {AttentionPrecision::kBfloat16});
    expect_vision(encoder, expected, kNearInBfloat16);
  }
}

// Towers of random weights.
class RandomTower {
 public:
  RandomTower(const reference::TransformerShape& shape, reference::Tensors& tensors)
      : shape_(shape), tensors_(tensors) {
    model_.metadata["config"] = json{
        {"num_attention_heads", shape.heads},
        {"hidden_act", shape.is_quick ? "quick_gelu" : "gelu"},
        {"layer_norm_eps", shape.epsilon},
        {"causal", shape.is_causal}}.dump();
  }
  [[nodiscard]] const Model& model() const { return model_; }

  void add(const std::string& name, const std::vector<int>& shape, float deviation, float middle = 0) {
    std::normal_distribution<float> normal(middle, deviation);
    NamedTensor t{name, {shape.begin(), shape.end()}, {}};
    const int count = std::accumulate(shape.begin(), shape.end(), 1, std::multiplies<>());
    for (int i = 0; i < count; ++i) {
      t.values.push_back(normal(random_));
    }
    tensors_[name] = t.values;
    model_.tensors.push_back(t);
  }
  void add_linear(const std::string& name, int outputs, int inputs, float scale) {
    add(name + ".weight", {outputs, inputs}, scale / std::sqrt(static_cast<float>(inputs)));
    add(name + ".bias", {outputs}, 0.3F * scale);
  }
  void add_norm(const std::string& name) {
    add(name + ".weight", {shape_.width}, 0.3F, 1);
    add(name + ".bias", {shape_.width}, 0.3F);
  }
  // `size` scales the weights of fc1, so that activations go far to both sides.
  void add_blocks(const std::string& tower, float size) {
    for (int i = 0; i < shape_.layers; ++i) {
      const std::string block = tower + "encoder.layers." + std::to_string(i) + ".";
      for (const char* part : {"q_proj", "k_proj", "v_proj", "out_proj"}) {
        add_linear(block + "self_attn." + part, shape_.width, shape_.width, 1);
      }
      add_norm(block + "layer_norm1");
      add_norm(block + "layer_norm2");
      add_linear(block + "mlp.fc1", shape_.hidden, shape_.width, size);
      add_linear(block + "mlp.fc2", shape_.width, shape_.hidden, 1 / size);
    }
  }

 private:
  reference::TransformerShape shape_;
  reference::Tensors& tensors_;
  Model model_;
  std::mt19937 random_{1};
};

Model random_text_tower(const reference::TransformerShape& s, int vocabulary, int context, float size,
                        reference::Tensors& tensors) {
  RandomTower tower(s, tensors);
  tower.add("text_model.embeddings.token_embedding.weight", {vocabulary, s.width}, 1);
  tower.add("text_model.embeddings.position_embedding.weight", {context, s.width}, 1);
  tower.add_blocks("text_model.", size);
  tower.add_norm("text_model.final_layer_norm");
  return tower.model();
}

Model random_vision_tower(const reference::TransformerShape& s, int patch, int side,
                          reference::Tensors& tensors) {
  RandomTower tower(s, tensors);
  tower.add("vision_model.embeddings.class_embedding", {s.width}, 1);
  tower.add("vision_model.embeddings.patch_embedding.weight", {s.width, 3, patch, patch}, 1);
  tower.add("vision_model.embeddings.position_embedding.weight", {1 + side * side, s.width}, 1);
  tower.add_norm("vision_model.pre_layrnorm");
  tower.add_blocks("vision_model.", 1);
  tower.add_norm("vision_model.post_layernorm");
  return tower.model();
}

// Rows and columns that fill no block, one row, more rows than a task takes; small, usual and far
// activations.
TEST_F(EncoderTest, TextIsTheFormula) {
  const reference::TransformerShape shapes[] = {{1, 1, 1, 1, true, true, 1e-5},
                                                {7, 3, 2, 7, false, false, 1e-2},
                                                {33, 65, 1, 3, true, false, 1e-5},
                                                {64, 128, 2, 2, false, true, 1e-5},
                                                {130, 97, 1, 5, true, true, 1e-6}};
  for (const reference::TransformerShape& shape : shapes) {
    for (const float size : {0.01F, 1.0F, 40.0F}) {
      reference::Tensors tensors;
      const std::string file = write("model.safetensors", random_text_tower(shape, 9, 150, size, tensors));
      TextEncoder encoder(file);
      const bool has_rough = size == 1 && is_supported(AttentionPrecision::kBfloat16);
      TextEncoder rough(
          file, {.precision = has_rough ? AttentionPrecision::kBfloat16 : AttentionPrecision::kFloat32});
      for (const int count : {1, 2, 11, 12, 13, 25, 64, 65, 150}) {
        std::vector<std::int32_t> ids;
        for (int i = 0; i < count; ++i) {
          ids.push_back(i * 5 % 9);
        }
        std::vector<double> expected;
        for (const reference::Row& row : reference::text_tower(tensors, shape, ids)) {
          expected.insert(expected.end(), row.begin(), row.end());
        }
        EXPECT_LT(relative_error(run_text(encoder, ids).tokens, expected), kNear)
            << shape.width << " " << size << " " << count;
        EXPECT_LT(relative_error(run_text(rough, ids).tokens, expected), has_rough ? 5e-2 : kNear)
            << shape.width << " " << size << " " << count;
      }
    }
  }
}

// Heads of one channel and of many, fewer blocks than the path runs beside and more, one patch and more than
// a task takes.
TEST_F(EncoderTest, GroundedIsTheFormula) {
  struct Case {
    reference::TransformerShape shape;
    int patch, side;
  };
  const Case cases[] = {{{7, 3, 2, 7, false, false, 1e-2}, 1, 1},
                        {{33, 20, 7, 1, true, false, 1e-5}, 2, 3},
                        {{48, 64, 3, 3, true, false, 1e-5}, 3, 9}};
  for (const auto& [shape, patch, side] : cases) {
    reference::Tensors tensors;
    VisionEncoder encoder(write("model.safetensors", random_vision_tower(shape, patch, side, tensors)));
    const int size = patch * side;
    const OwnMatrix rgb = OwnMatrix::random(3 * size, size, 0.3);
    std::vector<ConstFloatPlane> planes;
    for (int c = 0; c < 3; ++c) {
      planes.push_back({rgb.view().row(static_cast<std::ptrdiff_t>(c) * size), size, size, size});
    }
    reference::Rows samples;
    for (int at = 0; at < side * side; ++at) {
      reference::Row row;
      for (int i = 0; i < 3 * patch * patch; ++i) {
        const int c = i / (patch * patch);
        const double value =
            rgb.at(c * size + at / side * patch + i / patch % patch, at % side * patch + i % patch);
        const auto channel = static_cast<std::size_t>(c);
        row.push_back((value - VisionNormalisation{}.mean[channel]) /
                      VisionNormalisation{}.deviation[channel]);
      }
      samples.push_back(row);
    }
    std::vector<double> expected;
    for (const reference::Row& row : reference::grounded(tensors, shape, samples)) {
      expected.insert(expected.end(), row.begin(), row.end());
    }
    OwnMatrix found(side * side, shape.width);
    encoder.encode(planes, {.grounded = found.view()});
    EXPECT_LT(relative_error(found.values(), expected), kNear) << shape.width << " " << side;
  }
}

TEST_F(EncoderTest, SizesAreTheModels) {
  const TextEncoder text(kTextClip);
  EXPECT_EQ(text.width(), 24);
  EXPECT_EQ(text.embedding_size(), 10);
  EXPECT_EQ(text.context(), 20);
  EXPECT_EQ(text.vocabulary_size(), 764);
  EXPECT_EQ(text.layers(), 2);
  EXPECT_EQ(TextEncoder(kFolder + "text_full.safetensors").embedding_size(), 15);  // not projected
  const VisionEncoder vision(kVision);
  EXPECT_EQ(vision.width(), 24);
  EXPECT_EQ(vision.embedding_size(), 10);
  EXPECT_EQ(vision.patch_size(), 4);
  EXPECT_EQ(vision.image_size(), 12);
  EXPECT_EQ(vision.layers(), 2);
}

TEST_F(EncoderTest, ThreadsDoNotChangeTheOutput) {
  const std::vector<std::int32_t> ids = {762, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 763};
  TextEncoder one(kTextClip, {.threads = 1});
  const TextOutputs expected = run_text(one, ids);
  for (const int threads : {2, 3, 7}) {
    TextEncoder many(kTextClip, {.threads = threads});
    for (int i = 0; i < 20; ++i) {
      const TextOutputs found = run_text(many, ids);
      ASSERT_EQ(found.tokens, expected.tokens) << threads;
      ASSERT_EQ(found.pooled, expected.pooled) << threads;
    }
  }
}

TEST_F(EncoderTest, RepeatedShapesAllocateNothing) {
#ifdef NONLOCAL_SANITIZED
  GTEST_SKIP() << "sanitizers have a new of their own";
#endif
  for (const AttentionPrecision precision : {AttentionPrecision::kFloat32, AttentionPrecision::kAutomatic}) {
    TextEncoder text(kTextClip, {precision, 2});
    VisionEncoder vision(kVision, {precision, 2});
    VisionEncoder grounded(kVision, {precision, 2});
    const std::vector<std::int32_t> ids = {762, 5, 6, 763};
    const std::vector<float> samples(12 * 12, 0.5F);
    const std::vector<ConstFloatPlane> planes(3, {samples.data(), 12, 12, 12});
    std::vector<float> pooled(10);
    OwnMatrix patches(9, 10);
    const auto run = [&] {
      text.encode(ids, {}, pooled);
      vision.encode(planes, {.pooled = {pooled.data(), 1, 10, 10}, .patches = patches.view()});
      grounded.encode(planes, {.grounded = patches.view()});
    };
    run();
    const int before = testing::allocations();
    run();
    EXPECT_EQ(testing::allocations(), before);
  }
}

TEST_F(EncoderTest, PromptsAreTokenizedCutAndCounted) {
  TextEncoder encoder(kTextClip);
  ASSERT_NE(encoder.tokenizer(), nullptr);
  const TextEmbedding found = encoder.encode("A warm sunset");
  EXPECT_EQ(found.ids, encoder.tokenizer()->tokenize("A warm sunset").ids);
  EXPECT_EQ(found.cut, 0U);
  EXPECT_EQ(found.width, 24);
  const TextOutputs expected = run_text(encoder, found.ids);
  EXPECT_EQ(found.tokens, expected.tokens);
  EXPECT_EQ(found.pooled, expected.pooled);

  EXPECT_EQ(encoder.encode("").ids, (std::vector<std::int32_t>{762, 763}));
  const TextEmbedding digits = encoder.encode("1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9 1 2 3");
  EXPECT_EQ(digits.ids.size(), 20U);
  EXPECT_EQ(digits.cut, 3U);
  EXPECT_EQ(encoder.encode("a\xFF").invalid, 1U);
}

// The end token that counts is the first.
TEST_F(EncoderTest, WhatFollowsTheEndTokenIsOfNoMatter) {
  TextEncoder encoder(kTextClip);
  const TextOutputs alone = run_text(encoder, {762, 30, 40, 763});
  const TextOutputs padded = run_text(encoder, {762, 30, 40, 763, 763, 763, 0, 0});
  EXPECT_LT(relative_error(padded.pooled, alone.pooled), kNear);
}

// --- Forms of a model ---

TEST_F(EncoderTest, FoldersAreLikeFiles) {
  Model model(kTextClip);
  write("config.json", model.metadata["config"]);
  write("tokenizer.json", model.metadata["tokenizer"]);
  model.metadata.clear();
  const std::string file = write("model.safetensors", model);
  const Safetensors expected(kFolder + "text_clip_expected.safetensors");
  for (const std::string& path : {folder_.string(), file}) {
    TextEncoder encoder(path);
    ASSERT_NE(encoder.tokenizer(), nullptr);
    expect_text(encoder, expected, kNear);
  }
  fs::remove(folder_ / "tokenizer.json");
  TextEncoder bare(folder_.string());
  EXPECT_EQ(bare.tokenizer(), nullptr);
  expect_text(bare, expected, kNear);  // the end token is the largest
  EXPECT_THROW((void)bare.encode("a"), ModelError);
  EXPECT_NE(TextEncoder(folder_.string(), {}, kFolder + "tokenizer.json").tokenizer(), nullptr);
}

TEST_F(EncoderTest, ShardsAreOneModel) {
  Model model(kTextClip);
  write("config.json", model.metadata["config"]);
  Model part = model;
  json map;
  for (int i = 0; i < 2; ++i) {
    const std::string name = "model-0000" + std::to_string(i) + ".safetensors";
    part.tensors.clear();
    for (std::size_t t = static_cast<std::size_t>(i); t < model.tensors.size(); t += 2) {
      part.tensors.push_back(model.tensors[t]);
      map[model.tensors[t].name] = name;
    }
    part.metadata.clear();
    write(name, part);
  }
  const std::string index = write("model.safetensors.index.json", json{{"weight_map", map}}.dump());
  TextEncoder encoder(folder_.string());
  expect_text(encoder, Safetensors(kFolder + "text_clip_expected.safetensors"), kNear);

  const auto expect = [&](const json& wrong, const std::string& words) {
    write("model.safetensors.index.json", wrong.dump());
    try {
      TextEncoder none(folder_.string());
      ADD_FAILURE() << words;
    } catch (const ModelError& e) {
      EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
    }
  };
  expect({{"weight_map", 3}}, "\"weight_map\"");
  expect({{"weight_map", {{"a", "../elsewhere.safetensors"}}}}, "tensor \"a\"");
  expect({{"weight_map", {{"a", "none.safetensors"}}}}, "none.safetensors: ");
  const std::string name = model.tensors[0].name;
  json other = map;
  other[name] = "model-00001.safetensors";
  expect({{"weight_map", other}}, "model-00001.safetensors: tensor \"" + name + "\": expected it here");
  other = map;
  other["more"] = "model-00001.safetensors";
  expect({{"weight_map", other}}, "tensor \"more\": expected it here, as the index has it, found it nowhere");
  EXPECT_TRUE(fs::exists(index));

  // What the index leaves out may be there, but not twice.
  part.tensors.push_back({"surplus", {1}, {0}});
  write("model-00001.safetensors", part);
  write("model.safetensors.index.json", json{{"weight_map", map}}.dump());
  TextEncoder tolerant(folder_.string());
  part.tensors.push_back(model.tensors[0]);
  write("model-00001.safetensors", part);
  expect({{"weight_map", map}}, "model-00001.safetensors: tensor \"" + name + "\": expected it in one file");
}

std::vector<float> transposed(const NamedTensor& t) {
  const std::uint64_t rows = t.shape[0];
  const std::uint64_t columns = t.shape[1];
  std::vector<float> to(t.values.size());
  for (std::uint64_t i = 0; i < t.values.size(); ++i) {
    to[i % columns * rows + i / columns] = t.values[i];
  }
  return to;
}

// Q, K and V as one tensor.
NamedTensor fused(Model& model, const std::string& block, const std::string& kind) {
  NamedTensor all = model[block + "self_attn.q_proj." + kind];
  all.name = "attn.in_proj_" + kind;
  all.shape[0] *= 3;
  for (const char* part : {"k", "v"}) {
    const auto& more = model[block + "self_attn." + part + "_proj." + kind].values;
    all.values.insert(all.values.end(), more.begin(), more.end());
  }
  return all;
}

// Blocks with the names that OpenAI gives them.
void append_openai_blocks(Model& from, const std::string& old_prefix, const std::string& prefix, int layers,
                          Model& to) {
  const std::pair<const char*, const char*> names[] = {{"self_attn.out_proj", "attn.out_proj"},
                                                       {"layer_norm1", "ln_1"},
                                                       {"layer_norm2", "ln_2"},
                                                       {"mlp.fc1", "mlp.c_fc"},
                                                       {"mlp.fc2", "mlp.c_proj"}};
  for (int i = 0; i < layers; ++i) {
    const std::string old_block = old_prefix + std::to_string(i) + ".";
    const std::string block = prefix + std::to_string(i) + ".";
    for (const std::string kind : {"weight", "bias"}) {
      to.tensors.push_back(fused(from, old_block, kind));
      to.tensors.back().name = block + to.tensors.back().name;
      for (const auto& [old_name, name] : names) {
        to.tensors.push_back(from[old_block + old_name + "." + kind]);
        to.tensors.back().name = block + name + "." + kind;
      }
    }
  }
}

void append_as(Model& from, const std::string& old_name, const std::string& name, Model& to) {
  to.tensors.push_back(from[old_name]);
  to.tensors.back().name = name;
}

void append_transposed(Model& from, const std::string& old_name, const std::string& name, Model& to) {
  const NamedTensor& t = from[old_name];
  to.tensors.push_back({name, {t.shape[1], t.shape[0]}, transposed(t)});
}

TEST_F(EncoderTest, OpenAisLayoutIsRead) {
  Model from(kTextClip);
  Model to = from;
  to.tensors.clear();
  append_as(from, "text_model.embeddings.token_embedding.weight", "token_embedding.weight", to);
  append_as(from, "text_model.embeddings.position_embedding.weight", "positional_embedding", to);
  append_openai_blocks(from, "text_model.encoder.layers.", "transformer.resblocks.", 2, to);
  append_as(from, "text_model.final_layer_norm.weight", "ln_final.weight", to);
  append_as(from, "text_model.final_layer_norm.bias", "ln_final.bias", to);
  append_transposed(from, "text_projection.weight", "text_projection", to);
  TextEncoder text(write("openai.safetensors", to));
  expect_text(text, Safetensors(kFolder + "text_clip_expected.safetensors"), kNear);

  Model vision(kVision);
  Model open = vision;
  open.tensors.clear();
  append_as(vision, "vision_model.embeddings.class_embedding", "visual.class_embedding", open);
  append_as(vision, "vision_model.embeddings.patch_embedding.weight", "visual.conv1.weight", open);
  append_as(vision, "vision_model.embeddings.position_embedding.weight", "visual.positional_embedding", open);
  for (const std::string kind : {".weight", ".bias"}) {
    append_as(vision, "vision_model.pre_layrnorm" + kind, "visual.ln_pre" + kind, open);
    append_as(vision, "vision_model.post_layernorm" + kind, "visual.ln_post" + kind, open);
  }
  append_openai_blocks(vision, "vision_model.encoder.layers.", "visual.transformer.resblocks.", 2, open);
  append_transposed(vision, "visual_projection.weight", "visual.proj", open);
  VisionEncoder encoder(write("visual.safetensors", open));
  expect_vision(encoder, Safetensors(kFolder + "vision_expected.safetensors"), kNear);

  // Without a description heads have 64 channels: one here, of fewer.
  to.metadata.erase("config");
  open.metadata.erase("config");
  EXPECT_EQ(TextEncoder(write("openai.safetensors", to)).context(), 20);
  EXPECT_EQ(VisionEncoder(write("visual.safetensors", open)).image_size(), 12);
}

TEST_F(EncoderTest, ClipSegsNamesAreRead) {
  Model model(kTextClip);
  for (NamedTensor& t : model.tensors) {
    t.name = "clip." + t.name;
  }
  TextEncoder text(write("clipseg.safetensors", model));
  expect_text(text, Safetensors(kFolder + "text_clip_expected.safetensors"), kNear);
}

TEST_F(EncoderTest, NormalisationIsTheFolders) {
  Model model(kVision);
  write("model.safetensors", model);
  EXPECT_FLOAT_EQ(VisionEncoder(folder_.string()).normalisation().mean[0], 0.48145466F);
  write("preprocessor_config.json",
        R"({"image_mean": [0.5, 0.25, 0], "image_std": [0.5, 1, 2], "size": 12})");
  const VisionEncoder encoder(folder_.string());
  EXPECT_EQ(encoder.normalisation().mean, (std::array<float, 3>{0.5F, 0.25F, 0}));
  EXPECT_EQ(encoder.normalisation().deviation, (std::array<float, 3>{0.5F, 1, 2}));
  for (const char* wrong :
       {"[]", R"({"image_mean": [1, 2]})", R"({"image_std": [1, 0, 1]})", R"({"image_std": "x"})"}) {
    write("preprocessor_config.json", wrong);
    EXPECT_THROW(VisionEncoder{folder_.string()}, ModelError) << wrong;
  }
  const auto expect = [&](const std::string& key, const std::string& values) {
    write("preprocessor_config.json", R"({")" + key + R"(": )" + values + "}");
    try {
      VisionEncoder none(folder_.string());
      ADD_FAILURE() << key << values;
    } catch (const ModelError& e) {
      const std::string problem = e.what();
      EXPECT_NE(problem.find("preprocessor_config.json: " + key + ": expected three numbers"),
                std::string::npos)
          << problem;
    }
  };
  expect("image_mean", "[1e39, 0, 0]");
  expect("image_mean", "[0, -1001, 0]");
  expect("image_std", "[1, 1e-45, 1]");
  expect("image_std", "[1, 1, 1001]");
  expect("image_std", "[1, 1, -1]");
  write("preprocessor_config.json",
        R"({"image_mean": [123.7, -1000, 1000], "image_std": [58, 0.001, 1000]})");
  EXPECT_EQ(VisionEncoder(folder_.string()).normalisation().deviation[2], 1000);
}

// --- Errors ---

class WrongModelTest : public EncoderTest {
 protected:
  void expect_problem(const std::string& path, const std::vector<std::string>& words) {
    std::string problem = "none";
    try {
      if (fs::path(path).filename() == "vision.safetensors") {
        VisionEncoder encoder(path);
      } else {
        TextEncoder encoder(path);
      }
    } catch (const ModelError& e) {
      problem = e.what();
    }
    for (const std::string& word : words) {
      EXPECT_NE(problem.find(word), std::string::npos) << problem;
    }
  }
  void expect_problem(const std::function<void(Model&)>& change, const std::vector<std::string>& words) {
    Model model(kTextClip);
    change(model);
    std::vector<std::string> all = words;
    all.emplace_back("model.safetensors: ");
    expect_problem(write("model.safetensors", model), all);
  }
};

TEST_F(WrongModelTest, FilesAndFoldersThatAreNone) {
  expect_problem((folder_ / "none").string(), {"none: ", "found nothing of this name"});
  expect_problem(folder_.string(), {"expected model.safetensors", "found none"});
  write("pytorch_model.bin", "x");
  expect_problem(folder_.string(), {"to_safetensors.py"});
  expect_problem(write("a.safetensors", "no"), {"a.safetensors: "});
  Model model(kTextClip);
  model.metadata.clear();
  write("config.json", "{");
  expect_problem(write("model.safetensors", model), {"config.json: ", "not JSON"});
}

TEST_F(WrongModelTest, TensorsAreNamedWithTheirShapes) {
  const std::string q = "text_model.encoder.layers.1.self_attn.q_proj.weight";
  expect_problem([&](Model& m) { m.remove(q); }, {"expected a tensor \"" + q + "\"", "found none"});
  expect_problem(
      [&](Model& m) {
        m[q].shape = {12, 48};
      },
      {"tensor \"" + q + "\"", "expected the shape [24, 24]", "found [12, 48]"});
  expect_problem([](Model& m) { m.remove("text_model.embeddings.token_embedding.weight"); },
                 {"\"text_model.embeddings.token_embedding.weight\"", "found none"});
  expect_problem([](Model& m) { m["text_model.embeddings.token_embedding.weight"].shape = {764 * 24}; },
                 {"expected 2 dimensions", "[18336]"});
  expect_problem(
      [](Model& m) {
        m["text_projection.weight"].shape = {24, 10};
      },
      {"\"text_projection.weight\"", "expected the shape [24, 24]", "[24, 10]"});
  expect_problem([](Model& m) { m["text_model.final_layer_norm.bias"].values[3] = NAN; },
                 {"\"text_model.final_layer_norm.bias\"", "value 3"});
}

TEST_F(WrongModelTest, DescriptionsMustAgree) {
  const auto expect = [&](const char* pointer, const json& value, const std::vector<std::string>& words) {
    expect_problem([&](Model& m) { m.set_config(pointer, value); }, words);
  };
  expect("/text_config", 3, {"\"text_config\""});
  expect("/text_config/hidden_size", 36, {"[764, 36]", "[764, 24]"});
  expect("/text_config/intermediate_size", 90, {"[90, 24]", "[96, 24]"});
  expect("/text_config/max_position_embeddings", 77, {"[77, 24]", "[20, 24]"});
  expect("/text_config/num_hidden_layers", 3, {"layers.2.", "found none"});
  expect("/text_config/num_hidden_layers", 1, {"num_hidden_layers", "2", "found 1"});
  expect("/text_config/num_attention_heads", 5, {"num_attention_heads", "divisor"});
  expect("/text_config/num_attention_heads", "3", {"num_attention_heads", "whole number"});
  expect("/text_config/hidden_act", "relu", {"hidden_act", "\"relu\""});
  expect("/text_config/hidden_act", 1, {"hidden_act", "a text"});
  expect("/text_config/layer_norm_eps", -1, {"layer_norm_eps"});
  expect("/text_config/causal", 1, {"causal", "true or false"});
  expect_problem([](Model& m) { m.metadata["config"] = "{"; }, {"\"config\"", "not JSON"});
}

TEST_F(WrongModelTest, VocabulariesMustFitTheEmbedding) {
  Model model(kTextClip);
  json tokenizer = json::parse(model.metadata["tokenizer"]);
  tokenizer["model"]["vocab"]["more"] = 764;
  model.metadata["tokenizer"] = tokenizer.dump();
  expect_problem(write("model.safetensors", model), {"expected a vocabulary of 764 tokens", "found 765"});
}

// A start and an end token, at the least.
TEST_F(WrongModelTest, PromptsNeedTwoPositions) {
  const auto shorten = [](std::uint64_t positions) {
    return [positions](Model& m) {
      NamedTensor& t = m["text_model.embeddings.position_embedding.weight"];
      t.shape[0] = positions;
      t.values.resize(positions * t.shape[1]);
      m.set_config("/text_config/max_position_embeddings", positions);
    };
  };
  expect_problem(shorten(1), {"tensor \"text_model.embeddings.position_embedding.weight\": "
                              "expected 2 positions or more, found [1, 24]"});
  Model model(kTextClip);
  shorten(2)(model);
  EXPECT_EQ(TextEncoder(write("model.safetensors", model)).encode("a").ids.size(), 2U);
  // Whoever has the tokens needs no more than they take.
  shorten(1)(model);
  model.metadata.erase("tokenizer");
  EXPECT_EQ(TextEncoder(write("model.safetensors", model)).context(), 1);
}

TEST_F(WrongModelTest, VisionToo) {
  const auto expect = [&](const std::function<void(Model&)>& change, const std::vector<std::string>& words) {
    Model model(kVision);
    change(model);
    expect_problem(write("vision.safetensors", model), words);
  };
  expect([](Model& m) { m.remove("vision_model.pre_layrnorm.weight"); },
         {"\"vision_model.pre_layrnorm.weight\""});
  expect(
      [](Model& m) {
        m["vision_model.embeddings.position_embedding.weight"].shape = {20, 12};
      },
      {"position_embedding", "expected the shape [10, 24]", "[20, 12]"});
  expect([](Model& m) { m.set_config("/vision_config/image_size", 16); }, {"[17, 24]", "[10, 24]"});
  expect([](Model& m) { m.set_config("/vision_config/image_size", 3); }, {"image_size"});
  const auto larger = [](Model& m) {
    m.set_config("/vision_config/patch_size", 8);
    m.set_config("/vision_config/image_size", 24);
  };
  expect(larger, {"[24, 3, 8, 8]", "[24, 3, 4, 4]"});
}

TEST_F(WrongModelTest, ArgumentsThatDoNotFit) {
  TextEncoder text(kTextClip);
  std::vector<float> pooled(10);
  const auto encode = [&](const std::vector<std::int32_t>& ids) { text.encode(ids, {}, pooled); };
  EXPECT_THROW(encode({}), InvalidArgument);
  EXPECT_THROW(encode(std::vector<std::int32_t>(21, 763)), InvalidArgument);
  EXPECT_THROW(encode({762, 764, 763}), InvalidArgument);
  EXPECT_THROW(encode({762, -1, 763}), InvalidArgument);
  EXPECT_THROW(encode({762, 5}), InvalidArgument);  // no end
  pooled.resize(9);
  EXPECT_THROW(encode({762, 763}), InvalidArgument);
  OwnMatrix tokens(3, 24);
  EXPECT_THROW(text.encode(std::vector<std::int32_t>{762, 763}, tokens.view(), {}), InvalidArgument);
  EXPECT_THROW(TextEncoder(kTextClip, {.threads = -1}), InvalidArgument);

  VisionEncoder vision(kVision);
  const std::vector<float> samples(16 * 16);
  const auto look = [&](int planes, int width, int height, const VisionOutputs& out) {
    vision.encode(std::vector<ConstFloatPlane>(static_cast<std::size_t>(planes),
                                               {samples.data(), width, height, width}),
                  out);
  };
  look(3, 16, 16, {});
  EXPECT_THROW(look(1, 16, 16, {}), InvalidArgument);
  EXPECT_THROW(look(3, 15, 16, {}), InvalidArgument);
  EXPECT_THROW(look(3, 16, 0, {}), InvalidArgument);
  OwnMatrix wrong(2, 10);
  EXPECT_THROW(look(3, 16, 16, {.pooled = wrong.view()}), InvalidArgument);
  EXPECT_THROW(look(3, 16, 16, {.patches = wrong.view()}), InvalidArgument);
  EXPECT_THROW(look(3, 16, 16, {.tokens = wrong.view()}), InvalidArgument);
  EXPECT_THROW(look(3, 16, 16, {.grounded = wrong.view()}), InvalidArgument);
  OwnMatrix right(17, 24);
  const auto look_at_block = [&](int block, const Matrix& tokens) {
    const BlockTokens wanted{block, tokens};
    look(3, 16, 16, {.blocks = {&wanted, 1}});
  };
  look_at_block(1, right.view());
  EXPECT_THROW(look_at_block(2, right.view()), InvalidArgument);
  EXPECT_THROW(look_at_block(-1, right.view()), InvalidArgument);
  EXPECT_THROW(look_at_block(0, wrong.view()), InvalidArgument);
}

}  // namespace
}  // namespace nonlocal
