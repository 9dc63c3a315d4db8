#include "grade/cross_attention_model.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <set>
#include <sstream>
#include <string>

#include "attention/matrix_check.h"
#include "grade/folded.h"
#include "model/safetensors.h"
#include "model/strict_json.h"
#include "nonlocal/error.h"

namespace nonlocal {
namespace {

using model::in_quotes;
using model::Safetensors;
using model::Shape;
using Linear = grade::ModelWeights::Linear;
using Layer = grade::ModelWeights::Layer;

constexpr const char* kName = "CrossAttentionModel";
constexpr const char* kFormat = "nonlocal.cross_attention_filter";
constexpr int kMostLayers = 8;
constexpr int kMostHeads = 64;
constexpr int kMostChannels = 1 << 14;
constexpr int kMostTokens = 1024;
constexpr int kMostScores = 1 << 16;  // 50 MiB of working memory a thread

constexpr int kColours = 3;
constexpr const char* kMatrices[] = {"query", "key", "value", "output"};

// Throws InvalidArgument.
void check_features(const GradeFeatures& features) {
  if (features.colour.empty() || features.colour.size() > grade::kMostFeatures || features.frequencies < 0 ||
      features.frequencies > grade::kMostFrequencies) {
    throw InvalidArgument("expected 1 to 64 colour features and 0 to 8 frequencies, got " +
                          std::to_string(features.colour.size()) + " and " +
                          std::to_string(features.frequencies));
  }
  for (const std::string& name : features.colour) {
    grade::parse_feature(name);
  }
}

// ------------------------------------------------------------------------------------------------- files

// Files may hold the text encoder, too.
bool is_text_encoders(const std::string& tensor) {
  return tensor.starts_with("text_model.") || tensor == "text_projection.weight";
}

class FileReader {
 public:
  explicit FileReader(const std::string& path) : file_(path) {}

  grade::ModelWeights read() {
    grade::ModelWeights model;
    expect("format", kFormat);
    expect("version", "1");
    const int layers = number("layers", 1, kMostLayers);
    model.heads = number("heads", 1, kMostHeads);
    read_features(model.features);
    for (int i = 0; i < layers; ++i) {
      model.layers.push_back(read_layer(i, model));
    }
    for (const std::string& name : file_.names()) {
      if (!read_.contains(name) && !is_text_encoders(name)) {
        fail("tensor " + in_quotes(name) + ": expected no tensor of this name");
      }
    }
    return model;
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const { throw ModelError(file_.path(), problem); }

  void expect(const char* key, const char* expected) const {
    const auto found = file_.metadata(key);
    if (found != expected) {
      fail("expected metadata \"" + std::string(key) + "\" to be \"" + expected + "\", found " +
           (found ? in_quotes(*found) : "none"));
    }
  }

  [[nodiscard]] int number(const char* key, int least, int most) const {
    const std::string text = file_.metadata(key).value_or("");
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
      fail("expected metadata \"" + std::string(key) + "\" to be a number from " + std::to_string(least) +
           " to " + std::to_string(most) + ", found " + in_quotes(text));
    }
    return value;
  }

  void read_features(GradeFeatures& features) const {
    features.frequencies = number("frequencies", 0, grade::kMostFrequencies);
    features.colour.clear();
    std::istringstream names(file_.metadata("colour_features").value_or(""));
    for (std::string name; names >> name;) {
      features.colour.push_back(name);
    }
    try {
      check_features(features);
    } catch (const InvalidArgument& e) {
      fail("metadata \"colour_features\": " + std::string(e.what()));
    }
  }

  Layer read_layer(int number, const grade::ModelWeights& model) {
    const std::string prefix = "layers." + std::to_string(number) + ".";
    Layer layer;
    const int dim = outputs(prefix + "query.weight", model.heads);
    layer.query = read_linear(prefix + "query", dim, model.features.count());
    const int embedding =
        model.layers.empty() ? inputs(prefix + "key.weight", dim) : model.layers[0].key.inputs;
    layer.key = read_linear(prefix + "key", dim, embedding);
    const int value_dim = outputs(prefix + "value.weight", model.heads);
    layer.value = read_linear(prefix + "value", value_dim, embedding);
    layer.output = read_linear(prefix + "output", kColours, value_dim);
    return layer;
  }

  // Rows of a matrix that has some for each head.
  [[nodiscard]] int outputs(const std::string& name, int heads) const {
    const Shape& shape = file_.shape(name);
    if (shape.size() != 2 || shape[0] < 1 || shape[0] > kMostChannels || shape[0] % heads != 0) {
      fail("tensor " + in_quotes(name) + ": expected a matrix with " + std::to_string(heads) +
           " heads' rows, up to " + std::to_string(kMostChannels) + ", found the shape " +
           model::to_string(shape));
    }
    return static_cast<int>(shape[0]);
  }

  [[nodiscard]] int inputs(const std::string& name, int rows) const {
    const Shape& shape = file_.shape(name);
    if (shape.size() != 2 || shape[1] < 1 || shape[1] > kMostChannels) {
      fail("tensor " + in_quotes(name) + ": expected the shape [" + std::to_string(rows) + ", 1 to " +
           std::to_string(kMostChannels) + "], found " + model::to_string(shape));
    }
    return static_cast<int>(shape[1]);
  }

  Linear read_linear(const std::string& name, int outputs, int inputs) {
    const auto rows = static_cast<std::uint64_t>(outputs);
    Linear l{outputs, inputs, {}, {}};
    l.weight = read(name + ".weight", {rows, static_cast<std::uint64_t>(inputs)});
    l.bias = file_.has(name + ".bias") ? read(name + ".bias", {rows}) : std::vector<float>(rows);
    return l;
  }

  std::vector<float> read(const std::string& name, const Shape& shape) {
    read_.insert(name);
    return file_.floats(name, shape);
  }

  Safetensors file_;
  std::set<std::string> read_;
};

// ---------------------------------------------------------------------------------------- weights in memory

void check_finite(const std::string& what, std::span<const float> values) {
  for (const float value : values) {
    if (!std::isfinite(value)) {
      throw InvalidArgument(what + ": expected finite values, one is not");
    }
  }
}

Linear copy_linear(const std::string& name, const LinearLayer& from, int outputs, int inputs) {
  const ConstMatrix& w = from.weight;
  attention::check_matrix(kName, name, w, outputs, inputs);
  if (!from.bias.empty() && from.bias.size() != static_cast<std::size_t>(outputs)) {
    throw InvalidArgument(std::string(kName) + ": expected a bias of " + name + " of " +
                          std::to_string(outputs) + " values or none, got " +
                          std::to_string(from.bias.size()));
  }
  Linear l{outputs, inputs, {}, {from.bias.begin(), from.bias.end()}};
  l.bias.resize(static_cast<std::size_t>(outputs));
  for (int o = 0; o < outputs; ++o) {
    l.weight.insert(l.weight.end(), w.row(o), w.row(o) + inputs);
  }
  check_finite(std::string(kName) + ": " + name, l.weight);
  check_finite(std::string(kName) + ": the bias of " + name, l.bias);
  return l;
}

// The rows of a matrix that has some for each head.
int checked_rows(const std::string& name, const ConstMatrix& m, int heads) {
  if (m.rows < 1 || m.rows > kMostChannels || m.rows % heads != 0 || m.columns < 1 ||
      m.columns > kMostChannels) {
    throw InvalidArgument(std::string(kName) + ": expected " + name + " with " + std::to_string(heads) +
                          " heads' rows, got " + std::to_string(m.rows) + "x" + std::to_string(m.columns));
  }
  return m.rows;
}

grade::ModelWeights copy_weights(const CrossAttentionWeights& weights) {
  if (weights.heads < 1 || weights.heads > kMostHeads || weights.layers.empty() ||
      weights.layers.size() > kMostLayers) {
    throw InvalidArgument(std::string(kName) + ": expected 1 to 8 layers of 1 to 64 heads, got " +
                          std::to_string(weights.layers.size()) + " of " + std::to_string(weights.heads));
  }
  check_features(weights.features);
  grade::ModelWeights model{weights.features, weights.heads, {}};
  for (std::size_t i = 0; i < weights.layers.size(); ++i) {
    const MultiHeadWeights& from = weights.layers[i];
    const auto name = [&](int matrix) {
      return std::string("the ") + kMatrices[matrix] + " weight of layer " + std::to_string(i);
    };
    const int dim = checked_rows(name(0), from.query.weight, weights.heads);
    const int value_dim = checked_rows(name(2), from.value.weight, weights.heads);
    const int embedding = weights.layers[0].key.weight.columns;
    Layer layer;
    layer.query = copy_linear(name(0), from.query, dim, weights.features.count());
    layer.key = copy_linear(name(1), from.key, dim, embedding);
    layer.value = copy_linear(name(2), from.value, value_dim, embedding);
    layer.output = copy_linear(name(3), from.output, kColours, value_dim);
    model.layers.push_back(std::move(layer));
  }
  return model;
}

// ------------------------------------------------------------------------------------------------ folding

// One head's part of a linear layer of one token.
std::vector<double> head_of(const Linear& l, int heads, int head, const float* token) {
  const int dim = l.outputs / heads;
  std::vector<double> values(static_cast<std::size_t>(dim));
  for (int i = 0; i < dim; ++i) {
    values[i] = l.at(head * dim + i, token);
  }
  return values;
}

void fold_key(const grade::ModelWeights& model, const Layer& layer, int head, const float* token,
              grade::FoldedLayer& to) {
  const std::vector<double> key = head_of(layer.key, model.heads, head, token);
  const auto dim = static_cast<int>(key.size());
  const double scale = std::log2(std::exp(1.0)) / std::sqrt(dim);
  const auto column = [&](const auto& at) {
    double sum = 0;
    for (int i = 0; i < dim; ++i) {
      sum += at(head * dim + i) * key[i];
    }
    return sum * scale;
  };
  const int features = static_cast<int>(model.features.colour.size());
  const int places = 2 * model.features.frequencies;
  const int inputs = layer.query.inputs;
  for (int f = 0; f < inputs; ++f) {
    std::vector<double>& part = f < features ? to.key : f < features + places ? to.key_x : to.key_y;
    part.push_back(
        column([&](int o) { return layer.query.weight[static_cast<std::size_t>(o) * inputs + f]; }));
  }
  to.key.push_back(column([&](int o) { return layer.query.bias[o]; }));
}

void fold_value(const grade::ModelWeights& model, const Layer& layer, int head, const float* token,
                grade::FoldedLayer& to) {
  const std::vector<double> value = head_of(layer.value, model.heads, head, token);
  const auto dim = static_cast<int>(value.size());
  double squares = 0;
  for (int c = 0; c < kColours; ++c) {
    double sum = 0;
    for (int i = 0; i < dim; ++i) {
      sum +=
          layer.output.weight[static_cast<std::size_t>(c) * layer.output.inputs + head * dim + i] * value[i];
    }
    squares += sum * sum;
    to.value.push_back(sum + layer.output.bias[c] / model.heads);
  }
  to.effects.push_back(std::sqrt(squares));
}

// [heads * T][columns], less the first row of each head.
std::vector<float> relative(const std::vector<double>& keys, int tokens, int columns) {
  std::vector<float> less(keys.size());
  const std::size_t head = static_cast<std::size_t>(tokens) * columns;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    less[i] = static_cast<float>(keys[i] - keys[i - i % head + i % columns]);
  }
  return less;
}

void make_float_keys(const grade::Folded& folded, grade::FoldedLayer& layer) {
  const int rows = folded.rows();
  const int depth = folded.depth();
  const int places = 2 * folded.frequencies;
  const std::vector<float> keys = relative(layer.key, folded.tokens, depth);
  for (const float* row = keys.data(); row != keys.data() + keys.size(); row += depth) {
    layer.key_f.insert(layer.key_f.end(), row, row + depth - 1);
    layer.constant_f.push_back(row[depth - 1]);
  }
  layer.key_x_f = relative(layer.key_x, folded.tokens, places);
  const std::vector<float> key_y = relative(layer.key_y, folded.tokens, places);
  for (int i = 0; i < places; ++i) {
    for (int row = 0; row < rows; ++row) {
      layer.key_y_f.push_back(key_y[static_cast<std::size_t>(row) * places + i]);
    }
  }
}

void make_floats(const grade::Folded& folded, grade::FoldedLayer& layer) {
  make_float_keys(folded, layer);
  for (int head = 0; head < folded.heads; ++head) {
    for (int c = 0; c < kColours + 1; ++c) {
      for (int t = 0; t < folded.tokens; ++t) {
        const std::size_t row = static_cast<std::size_t>(head) * folded.tokens + t;
        layer.value_f.push_back(c < kColours ? static_cast<float>(layer.value[row * kColours + c]) : 1.0F);
      }
    }
  }
}

// Each weight and token may be a number that its product with others is not.
void check_floats(const grade::FoldedLayer& layer) {
  for (const auto* values :
       {&layer.key_f, &layer.constant_f, &layer.key_x_f, &layer.key_y_f, &layer.value_f}) {
    if (!std::all_of(values->begin(), values->end(), [](float value) { return std::isfinite(value); })) {
      throw InvalidArgument(
          "CrossAttentionFilter: expected weights and tokens whose products are finite, found some that "
          "overflow");
    }
  }
}

grade::Folded fold(const grade::ModelWeights& model, const ConstMatrix& tokens) {
  grade::Folded folded{{}, model.features.frequencies, model.heads, tokens.rows, {}, grade::next_serial()};
  for (const std::string& name : model.features.colour) {
    folded.features.push_back(grade::parse_feature(name));
  }
  for (const Layer& layer : model.layers) {
    grade::FoldedLayer& to = folded.layers.emplace_back();
    for (int head = 0; head < model.heads; ++head) {
      for (int t = 0; t < tokens.rows; ++t) {
        fold_key(model, layer, head, tokens.row(t), to);
        fold_value(model, layer, head, tokens.row(t), to);
      }
    }
    make_floats(folded, to);
    check_floats(to);
  }
  return folded;
}

// -------------------------------------------------------------------------------------------- one colour

// Softmax of one head's scores at a place, in place of `weights`.
void head_weights(const grade::Folded& f, const grade::FoldedLayer& layer, int head, const double* features,
                  const double* x, const double* y, std::vector<double>& weights) {
  const int places = 2 * f.frequencies;
  double most = -HUGE_VAL;
  for (int t = 0; t < f.tokens; ++t) {
    const std::size_t row = static_cast<std::size_t>(head) * f.tokens + t;
    const double* key = layer.key.data() + row * f.depth();
    double score = key[f.depth() - 1];
    for (int i = 0; i + 1 < f.depth(); ++i) {
      score += key[i] * features[i];
    }
    for (int i = 0; i < places; ++i) {
      score += layer.key_x[row * places + i] * x[i] + layer.key_y[row * places + i] * y[i];
    }
    weights[t] = score;
    most = std::max(most, score);
  }
  double sum = 0;
  for (double& weight : weights) {
    weight = std::exp2(weight - most);
    sum += weight;
  }
  for (double& weight : weights) {
    weight /= sum;
  }
}

// The colour after all layers; visit(layer, head, weights) sees each head's attention.
template <typename Visit>
std::array<double, 3> follow(const grade::Folded& f, std::array<double, 3> colour, double x, double y,
                             const Visit& visit) {
  double x_features[2 * grade::kMostFrequencies];
  double y_features[2 * grade::kMostFrequencies];
  double features[grade::kMostFeatures];
  grade::place_features(f.frequencies, x, x_features);
  grade::place_features(f.frequencies, y, y_features);
  std::vector<double> weights(static_cast<std::size_t>(f.tokens));
  for (const grade::FoldedLayer& layer : f.layers) {
    grade::colour_features(f.features, colour.data(), features);
    for (int head = 0; head < f.heads; ++head) {
      head_weights(f, layer, head, features, x_features, y_features, weights);
      visit(layer, head, weights);
      for (int t = 0; t < f.tokens; ++t) {
        const double* value = layer.value.data() + (static_cast<std::size_t>(head) * f.tokens + t) * kColours;
        for (int c = 0; c < kColours; ++c) {
          colour[c] += weights[t] * value[c];
        }
      }
    }
  }
  return colour;
}

}  // namespace

TokenEmbeddings read_token_embeddings(const std::string& path) {
  const Safetensors file(path);
  const Shape& shape = file.shape("tokens");
  if (shape.size() != 2 || shape[0] < 1 || shape[0] > kMostTokens || shape[1] < 1 ||
      shape[1] > kMostChannels) {
    throw ModelError(path, "tensor \"tokens\": expected the shape [1 to " + std::to_string(kMostTokens) +
                               ", 1 to " + std::to_string(kMostChannels) + "], found " +
                               model::to_string(shape));
  }
  TokenEmbeddings embeddings{
      file.floats("tokens", shape), static_cast<int>(shape[0]), static_cast<int>(shape[1]), {}};
  if (file.has("pooled")) {
    const Shape& pooled = file.shape("pooled");
    if (pooled.size() != 1) {
      throw ModelError(path, "tensor \"pooled\": expected one dimension, found " + model::to_string(pooled));
    }
    embeddings.pooled = file.floats("pooled", pooled);
  }
  return embeddings;
}

CrossAttentionModel::CrossAttentionModel(const std::string& path)
    : state_(std::make_shared<const State>(State{FileReader(path).read()})) {}
CrossAttentionModel::CrossAttentionModel(const CrossAttentionWeights& weights)
    : state_(std::make_shared<const State>(State{copy_weights(weights)})) {}

const GradeFeatures& CrossAttentionModel::features() const { return state_->weights.features; }
int CrossAttentionModel::layers() const { return static_cast<int>(state_->weights.layers.size()); }
int CrossAttentionModel::heads() const { return state_->weights.heads; }
int CrossAttentionModel::embedding_dim() const { return state_->weights.layers[0].key.inputs; }

CrossAttentionFilter::CrossAttentionFilter(const CrossAttentionModel& model, const ConstMatrix& tokens) {
  if (tokens.rows < 1 || tokens.rows > kMostTokens) {
    throw InvalidArgument("CrossAttentionFilter: expected 1 to " + std::to_string(kMostTokens) +
                          " tokens, got " + std::to_string(tokens.rows));
  }
  attention::check_matrix("CrossAttentionFilter", "tokens", tokens, tokens.rows, model.embedding_dim());
  if (tokens.rows * model.heads() * model.layers() > kMostScores) {
    throw InvalidArgument("CrossAttentionFilter: expected at most " + std::to_string(kMostScores) +
                          " scores a pixel, got " + std::to_string(tokens.rows) + " tokens, " +
                          std::to_string(model.heads()) + " heads and " + std::to_string(model.layers()) +
                          " layers");
  }
  for (int t = 0; t < tokens.rows; ++t) {
    check_finite("CrossAttentionFilter: token " + std::to_string(t),
                 {tokens.row(t), static_cast<std::size_t>(tokens.columns)});
  }
  state_ = std::make_shared<const State>(State{fold(GradeAccess::state(model).weights, tokens)});
}

int CrossAttentionFilter::tokens() const { return state_->folded.tokens; }
bool CrossAttentionFilter::has_places() const { return state_->folded.frequencies > 0; }

std::array<double, 3> CrossAttentionFilter::apply(const std::array<double, 3>& colour, double x, double y,
                                                  double strength) const {
  const std::array<double, 3> graded =
      follow(state_->folded, colour, x, y, [](const auto&, int, const auto&) {});
  std::array<double, 3> out = colour;
  for (int c = 0; c < kColours; ++c) {
    out[c] += strength * (graded[c] - colour[c]);
  }
  return out;
}

void CrossAttentionFilter::token_effects(const std::array<double, 3>& colour, double x, double y,
                                         std::span<double> effect) const {
  const grade::Folded& f = state_->folded;
  if (effect.size() != static_cast<std::size_t>(f.tokens)) {
    throw InvalidArgument("token_effects: expected room for " + std::to_string(f.tokens) + " tokens, got " +
                          std::to_string(effect.size()));
  }
  std::fill(effect.begin(), effect.end(), 0.0);
  follow(f, colour, x, y, [&](const grade::FoldedLayer& layer, int head, const std::vector<double>& weights) {
    for (int t = 0; t < f.tokens; ++t) {
      effect[t] += weights[t] * layer.effects[static_cast<std::size_t>(head) * f.tokens + t];
    }
  });
}

}  // namespace nonlocal
