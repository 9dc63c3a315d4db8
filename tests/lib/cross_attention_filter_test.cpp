#include "nonlocal/cross_attention_filter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "grade_model.h"
#include "model/safetensors.h"
#include "nonlocal/error.h"
#include "reference/cross_attention_filter.h"

namespace nonlocal {
namespace {

using testing::OwnMatrix;
using testing::OwnWeights;
using testing::random_weights;
using testing::RandomShape;

using Colour = std::array<double, 3>;

OwnMatrix matrix(int rows, int columns, const std::vector<float>& values) {
  OwnMatrix m(rows, columns);
  std::copy(values.begin(), values.end(), m.view().data);
  return m;
}

// Three words of six dimensions, projected to two, and back to R, G and B. Scores are ln 4 times r for the
// first word, ln 4 times g for the second and 0 for the third.
OwnWeights textbook() {
  const auto a = static_cast<float>(std::sqrt(2.0) * std::log(4.0));
  OwnWeights w;
  w.features = {{"r", "g", "b"}, 0};
  w.heads = 1;
  w.tokens = matrix(3, 6,
                    {1, 0, 9, 1, 0, -5,  //
                     0, 1, -3, 0, 1, 2,  //
                     0, 0, 4, 1, 1, 0});
  w.layers.push_back({{matrix(2, 3, {a, 0, 0, 0, a, 0}), {}},
                      {matrix(2, 6, {1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0}), {}},
                      {matrix(2, 6, {0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0}), {}},
                      {matrix(3, 2, {0.3F, 0, 0, 0.3F, 0.3F, -0.3F}), {}}});
  return w;
}

TEST(CrossAttentionFilter, TextbookCaseIsThatByHand) {
  const CrossAttentionFilter filter = textbook().filter();
  EXPECT_EQ(filter.tokens(), 3);
  EXPECT_FALSE(filter.has_places());
  // Attention of each pixel, and the average of the values (1, 0), (0, 1), (1, 1):
  struct Case {
    Colour colour;
    Colour weights;
    double average[2];
  };
  const Case cases[] = {{{1, 0, 0}, {4 / 6.0, 1 / 6.0, 1 / 6.0}, {5 / 6.0, 2 / 6.0}},
                        {{0, 1, 0}, {1 / 6.0, 4 / 6.0, 1 / 6.0}, {2 / 6.0, 5 / 6.0}},
                        {{0, 0, 1}, {1 / 3.0, 1 / 3.0, 1 / 3.0}, {2 / 3.0, 2 / 3.0}},
                        {{1, 1, 0}, {4 / 9.0, 4 / 9.0, 1 / 9.0}, {5 / 9.0, 5 / 9.0}}};
  for (const Case& c : cases) {
    const Colour out = filter.apply(c.colour, 0, 0);
    EXPECT_NEAR(out[0], c.colour[0] + 0.3 * c.average[0], 1e-7);
    EXPECT_NEAR(out[1], c.colour[1] + 0.3 * c.average[1], 1e-7);
    EXPECT_NEAR(out[2], c.colour[2] + 0.3 * (c.average[0] - c.average[1]), 1e-7);
    const Colour half = filter.apply(c.colour, 0, 0, 0.5);
    EXPECT_NEAR(half[0], c.colour[0] + 0.15 * c.average[0], 1e-7);
    // Lengths of the words' changes: |0.3 (1, 0, 1)|, |0.3 (0, 1, -1)|, |0.3 (1, 1, 0)|.
    std::vector<double> effect(3);
    filter.token_effects(c.colour, 0, 0, effect);
    for (int t = 0; t < 3; ++t) {
      EXPECT_NEAR(effect[t], c.weights[t] * 0.3 * std::sqrt(2.0), 1e-7);
    }
  }
}

std::vector<RandomShape> shapes() {
  return {{},
          {.heads = 3, .dim = 5, .value_dim = 2, .has_bias = true},
          {.layers = 3, .heads = 2, .tokens = 9, .has_bias = true},
          {.features = {{"r", "g", "b", "r*g", "luma*luma*chroma", "cb", "cr*cr*cr*r"}, 0}, .layers = 2},
          {.features = {{"r", "g", "b"}, 2}, .heads = 2, .has_bias = true},
          {.features = {{"chroma"}, 3}, .layers = 2, .tokens = 1},
          {.tokens = 40, .embedding = 100, .sharpness = 30}};
}

TEST(CrossAttentionFilter, IsTheFormula) {
  for (const RandomShape& shape : shapes()) {
    const OwnWeights w = random_weights(shape);
    const CrossAttentionFilter filter = w.filter();
    const std::vector<MultiHeadWeights> layers = w.views();
    const CrossAttentionWeights weights{w.features, w.heads, layers};
    std::mt19937 random(5);
    std::uniform_real_distribution<double> unit(-0.1, 1.1);
    for (int i = 0; i < 20; ++i) {
      const Colour colour = {unit(random), unit(random), unit(random)};
      const double x = 2 * unit(random) - 1;
      const double y = 2 * unit(random) - 1;
      const auto expected = reference::cross_attention_filter(weights, w.tokens.view(),
                                                              {colour[0], colour[1], colour[2]}, x, y, 1.5);
      const Colour found = filter.apply(colour, x, y, 1.5);
      for (int c = 0; c < 3; ++c) {
        EXPECT_NEAR(found[c], expected[c], 1e-9);
      }
    }
  }
}

// What is expected was made by tests/parity/cross_attention_filter.py.
TEST(CrossAttentionFilter, IsPyTorchs) {
  const std::string path = PARITY_FOLDER "/cross_attention_filter";
  const CrossAttentionFilter filter(CrossAttentionModel(path + ".safetensors"),
                                    read_token_embeddings(path + "_case.safetensors").tokens());
  const model::Safetensors file(path + "_case.safetensors");
  const auto values = [&file](const char* name) { return file.floats(name, file.shape(name)); };
  const std::vector<float> colours = values("colours");
  const std::vector<float> places = values("places");
  const std::vector<float> expected = values("expected");
  double change = 0;
  for (std::size_t i = 0; i < colours.size() / 3; ++i) {
    const float* c = colours.data() + 3 * i;
    const Colour out = filter.apply({c[0], c[1], c[2]}, places[2 * i], places[2 * i + 1]);
    for (int k = 0; k < 3; ++k) {
      EXPECT_NEAR(out[k], expected[3 * i + k], 1e-6);
      change = std::max(change, std::abs(out[k] - static_cast<double>(c[k])));
    }
  }
  EXPECT_GT(change, 0.1);
}

TEST(CrossAttentionFilter, WrongWeightsAreNamed) {
  const auto message = [](OwnWeights w) -> std::string {
    try {
      static_cast<void>(w.filter());
    } catch (const InvalidArgument& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(message(textbook()), "");
  OwnWeights w = textbook();
  w.features.colour.emplace_back("r*q");
  EXPECT_NE(message(w).find("'r*q'"), std::string::npos) << message(w);
  w.features.colour.back() = "r*r*r*r*r";
  EXPECT_NE(message(w).find("up to 4"), std::string::npos);
  w.features.colour.back() = "g";
  EXPECT_NE(message(w).find("query weight of layer 0 as a matrix of 2x4, got 2x3"), std::string::npos)
      << message(w);
  w = textbook();
  w.layers[0].key.weight = OwnMatrix::random(2, 5);
  EXPECT_NE(message(w).find("value weight of layer 0 as a matrix of 2x5, got 2x6"), std::string::npos)
      << message(w);
  w = textbook();
  w.layers[0].value.bias = {1};
  EXPECT_NE(message(w).find("a bias of the value weight of layer 0 of 2 values"), std::string::npos);
  w = textbook();
  w.layers[0].output.weight.at(0, 0) = std::nanf("");
  EXPECT_NE(message(w).find("finite"), std::string::npos);
  w = textbook();
  w.layers[0].key.weight.at(0, 0) = 1e20F;
  w.layers[0].query.weight.at(0, 0) = 1e20F;
  w.tokens.at(0, 0) = 1e20F;
  EXPECT_NE(message(w).find("overflow"), std::string::npos) << message(w);
  w = textbook();
  w.heads = 3;
  EXPECT_NE(message(w).find("3 heads' rows, got 2x3"), std::string::npos) << message(w);
  w = random_weights({.layers = 3, .heads = 64, .tokens = 1024});
  EXPECT_NE(message(w).find("1024 tokens, 64 heads and 3 layers"), std::string::npos) << message(w);
  w = textbook();
  w.layers.clear();
  EXPECT_NE(message(w).find("1 to 8 layers"), std::string::npos);
  w = textbook();
  w.tokens.at(1, 1) = std::numeric_limits<float>::infinity();
  EXPECT_NE(message(w).find("token 1"), std::string::npos);
  w = textbook();
  w.tokens = OwnMatrix::random(3, 7);
  EXPECT_NE(message(w).find("tokens as a matrix of 3x6, got 3x7"), std::string::npos) << message(w);
}

// ------------------------------------------------------------------------------------------------- files

class ModelFile : public ::testing::Test {
 protected:
  void SetUp() override {
    const OwnWeights w =
        random_weights({.features = {{"r", "luma*b"}, 1}, .layers = 2, .heads = 2, .has_bias = true});
    weights_ = w;
    metadata_ = {{"format", "nonlocal.cross_attention_filter"},
                 {"version", "1"},
                 {"layers", "2"},
                 {"heads", "2"},
                 {"colour_features", "r luma*b"},
                 {"frequencies", "1"},
                 {"trained_on", "nothing"}};
    for (std::size_t i = 0; i < w.layers.size(); ++i) {
      const std::string layer = "layers." + std::to_string(i) + ".";
      add(layer + "query", w.layers[i].query);
      add(layer + "key", w.layers[i].key);
      add(layer + "value", w.layers[i].value);
      add(layer + "output", w.layers[i].output);
    }
  }
  void TearDown() override { std::filesystem::remove(path_); }

  void add(const std::string& name, const OwnWeights::Linear& l) {
    const ConstMatrix w = l.weight.view();
    tensors_.push_back({name + ".weight",
                        {static_cast<std::uint64_t>(w.rows), static_cast<std::uint64_t>(w.columns)},
                        l.weight.values()});
    tensors_.push_back({name + ".bias", {static_cast<std::uint64_t>(w.rows)}, l.bias});
  }
  model::NamedTensor& tensor(const std::string& name) {
    for (model::NamedTensor& t : tensors_) {
      if (t.name == name) {
        return t;
      }
    }
    throw std::out_of_range(name);
  }
  [[nodiscard]] CrossAttentionModel load() const {
    model::write_safetensors(path_, metadata_, tensors_);
    return CrossAttentionModel(path_);
  }
  // Says that this is what the file is refused for.
  void expect_refused(const std::string& part) const {
    try {
      static_cast<void>(load());
      FAIL() << "taken: " << part;
    } catch (const ModelError& e) {
      EXPECT_NE(std::string(e.what()).find(path_), std::string::npos);
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    }
  }

  const std::string path_ =
      (std::filesystem::temp_directory_path() /
       ("cross_attention_" + std::to_string(::testing::UnitTest::GetInstance()->random_seed()) +
        std::to_string(reinterpret_cast<std::uintptr_t>(this)) + ".safetensors"))
          .string();
  OwnWeights weights_;
  std::map<std::string, std::string> metadata_;
  std::vector<model::NamedTensor> tensors_;
};

TEST_F(ModelFile, IsWhatItWasWrittenFrom) {
  const CrossAttentionModel model = load();
  EXPECT_EQ(model.layers(), 2);
  EXPECT_EQ(model.heads(), 2);
  EXPECT_EQ(model.embedding_dim(), 7);
  EXPECT_EQ(model.features().count(), 6);
  const CrossAttentionFilter filter(model, weights_.tokens.view());
  EXPECT_EQ(filter.apply({0.1, 0.5, 0.7}, 0.3, -0.8), weights_.filter().apply({0.1, 0.5, 0.7}, 0.3, -0.8));
}

TEST_F(ModelFile, BiasesAreOptional) {
  std::erase_if(tensors_, [](const auto& t) { return t.name.ends_with(".bias"); });
  for (OwnWeights::Layer& l : weights_.layers) {
    l.query.bias = l.key.bias = l.value.bias = l.output.bias = {};
  }
  const CrossAttentionFilter filter(load(), weights_.tokens.view());
  EXPECT_EQ(filter.apply({0.1, 0.5, 0.7}, 0.3, -0.8), weights_.filter().apply({0.1, 0.5, 0.7}, 0.3, -0.8));
}

TEST_F(ModelFile, MayHoldATextEncoder) {
  tensors_.push_back({"text_model.embeddings.token_embedding.weight", {2, 7}, std::vector<float>(14)});
  tensors_.push_back({"text_projection.weight", {1}, {0}});
  const CrossAttentionFilter filter(load(), weights_.tokens.view());
  EXPECT_EQ(filter.apply({0.1, 0.5, 0.7}, 0.3, -0.8), weights_.filter().apply({0.1, 0.5, 0.7}, 0.3, -0.8));
}

TEST_F(ModelFile, WrongShapesAreNamed) {
  tensor("layers.1.query.weight") = {"layers.1.query.weight", {8, 5}, std::vector<float>(40)};
  expect_refused("tensor \"layers.1.query.weight\": expected the shape [8, 6], found [8, 5]");
}
TEST_F(ModelFile, WrongBiasIsNamed) {
  tensor("layers.0.value.bias") = {"layers.0.value.bias", {4}, std::vector<float>(4)};
  expect_refused("tensor \"layers.0.value.bias\": expected the shape [6], found [4]");
}
TEST_F(ModelFile, HeadsMustDivideRows) {
  tensor("layers.0.query.weight") = {"layers.0.query.weight", {7, 6}, std::vector<float>(42)};
  expect_refused("expected a matrix with 2 heads' rows, up to 16384, found the shape [7, 6]");
}
TEST_F(ModelFile, EmbeddingsMustAgree) {
  tensor("layers.1.key.weight") = {"layers.1.key.weight", {8, 9}, std::vector<float>(72)};
  expect_refused("tensor \"layers.1.key.weight\": expected the shape [8, 7], found [8, 9]");
}
TEST_F(ModelFile, OutputIsThreeColours) {
  tensor("layers.0.output.weight") = {"layers.0.output.weight", {4, 6}, std::vector<float>(24)};
  expect_refused("tensor \"layers.0.output.weight\": expected the shape [3, 6], found [4, 6]");
}
TEST_F(ModelFile, NotANumberIsRefused) {
  tensor("layers.0.key.weight").values[3] = std::nanf("");
  expect_refused("tensor \"layers.0.key.weight\": expected finite values, value 3 is not");
}
TEST_F(ModelFile, MissingTensorIsNamed) {
  std::erase_if(tensors_, [](const auto& t) { return t.name == "layers.1.value.weight"; });
  expect_refused("expected a tensor \"layers.1.value.weight\"");
}
TEST_F(ModelFile, UnknownTensorIsNamed) {
  tensors_.push_back({"layers.2.query.weight", {1}, {0}});
  expect_refused("tensor \"layers.2.query.weight\": expected no tensor of this name");
}
TEST_F(ModelFile, EmptyMatrixIsRefused) {
  tensor("layers.0.query.weight") = {"layers.0.query.weight", {0, 6}, {}};
  expect_refused("tensor \"layers.0.query.weight\"");
}
TEST_F(ModelFile, MetadataAreChecked) {
  for (const auto& [key, wrong] : std::map<std::string, std::string>{{"format", "nonlocal.network"},
                                                                     {"version", "2"},
                                                                     {"layers", "9"},
                                                                     {"heads", "2x"},
                                                                     {"colour_features", "r luma*hue"},
                                                                     {"frequencies", "-1"}}) {
    const std::string right = metadata_[key];
    metadata_[key] = wrong;
    expect_refused("metadata \"" + key + "\"");
    metadata_.erase(key);
    expect_refused(key == "colour_features" ? "expected 1 to 64 colour features"
                                            : "metadata \"" + key + "\"");
    metadata_[key] = right;
  }
}
TEST_F(ModelFile, OtherFilesAreRefused) {
  std::ofstream(path_) << "no model";
  EXPECT_THROW(CrossAttentionModel{path_}, ModelError);
  EXPECT_THROW(CrossAttentionModel{path_ + ".none"}, ModelError);
  EXPECT_THROW(read_token_embeddings(path_), ModelError);
}

TEST_F(ModelFile, EmbeddingsAreRead) {
  const auto write = [this](model::Shape shape, std::vector<float> values) {
    model::write_safetensors(path_, {},
                             {{"tokens", std::move(shape), std::move(values)}, {"pooled", {2}, {5, 6}}});
  };
  write({2, 3}, {1, 2, 3, 4, 5, 6});
  const TokenEmbeddings e = read_token_embeddings(path_);
  EXPECT_EQ(e.tokens().rows, 2);
  EXPECT_EQ(e.tokens().columns, 3);
  EXPECT_EQ(e.tokens().row(1)[2], 6);
  EXPECT_EQ(e.pooled, (std::vector<float>{5, 6}));
  const auto refused = [this]() -> std::string {
    try {
      read_token_embeddings(path_);
    } catch (const ModelError& error) {
      return error.what();
    }
    return "";
  };
  write({6}, {1, 2, 3, 4, 5, 6});
  EXPECT_NE(refused().find("tensor \"tokens\": expected the shape [1 to 1024, 1 to 16384], found [6]"),
            std::string::npos)
      << refused();
  write({0, 3}, {});
  EXPECT_NE(refused().find("found [0, 3]"), std::string::npos);
  write({1, 2}, {1, std::nanf("")});
  EXPECT_NE(refused().find("value 1 is not"), std::string::npos);
  model::write_safetensors(path_, {}, {{"token", {1, 2}, {1, 2}}});
  EXPECT_NE(refused().find("expected a tensor \"tokens\""), std::string::npos);
}

}  // namespace
}  // namespace nonlocal
