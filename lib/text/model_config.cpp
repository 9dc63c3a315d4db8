#include "text/model_config.h"

#include <algorithm>

#include "model/strict_json.h"
#include "nonlocal/error.h"

namespace nonlocal::text {
namespace {

using model::in_quotes;
using nlohmann::json;

Activation activation_of(const TowerConfig& config) {
  const std::string name = config.text("hidden_act", "quick_gelu");
  if (name == "quick_gelu") {
    return Activation::kQuickGelu;
  }
  if (name != "gelu") {
    config.fail("hidden_act: expected \"quick_gelu\" or \"gelu\", found " + in_quotes(name));
  }
  return Activation::kGelu;
}

// Blocks that the file has tensors of.
int count_blocks(const Checkpoint& file, const TowerNames& names) {
  int count = 0;
  while (count < kMostLayers &&
         file.has(names.blocks + std::to_string(count) + "." + names.norm1 + ".weight")) {
    ++count;
  }
  return count;
}

int layers_of(const Checkpoint& file, const TowerConfig& config, const TowerNames& names) {
  const int found = count_blocks(file, names);
  const int layers = config.integer("num_hidden_layers", std::max(found, 1), 1, kMostLayers);
  if (found > layers) {
    config.fail("num_hidden_layers: expected as many as there are tensors of, " + std::to_string(found) +
                ", found " + std::to_string(layers));
  }
  return layers;  // those that have no tensors are told as tensors that are missing
}

}  // namespace

TowerConfig::TowerConfig(const Checkpoint& file, const char* part) : file_(file) {
  const json& all = file.config();
  const auto at = all.find(part);
  part_ = at == all.end() ? all : *at;
  if (!part_.is_object()) {
    fail(std::string("expected \"") + part + "\" to be an object");
  }
}

const json* TowerConfig::find(const char* key) const {
  const auto at = part_.find(key);
  return at == part_.end() || at->is_null() ? nullptr : &*at;
}

void TowerConfig::fail(const std::string& problem) const {
  throw ModelError(file_.config_path().empty() ? file_.path() : file_.config_path(), problem);
}

void TowerConfig::fail_field(const char* key, const std::string& expected) const {
  fail(std::string(key) + ": expected " + expected + ", found " +
       in_quotes(find(key)->dump(-1, ' ', true, json::error_handler_t::replace)));
}

int TowerConfig::integer(const char* key, int standard, int least, int most) const {
  const json* value = find(key);
  if (value == nullptr) {
    return standard;
  }
  if (!value->is_number_integer() || value->get<double>() < least || value->get<double>() > most) {
    fail_field(key, "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return value->get<int>();
}

double TowerConfig::number(const char* key, double standard, double least, double most) const {
  const json* value = find(key);
  if (value == nullptr) {
    return standard;
  }
  if (!value->is_number() || !(value->get<double>() >= least && value->get<double>() <= most)) {
    fail_field(key, "a number from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return value->get<double>();
}

bool TowerConfig::boolean(const char* key, bool standard) const {
  const json* value = find(key);
  if (value != nullptr && !value->is_boolean()) {
    fail_field(key, "true or false");
  }
  return value == nullptr ? standard : value->get<bool>();
}

std::string TowerConfig::text(const char* key, const std::string& standard) const {
  const json* value = find(key);
  if (value != nullptr && !value->is_string()) {
    fail_field(key, "a text");
  }
  return value == nullptr ? standard : value->get<std::string>();
}

std::vector<int> TowerConfig::rising(const char* key, const std::vector<int>& standard, int least,
                                     int most) const {
  const json* value = find(key);
  if (value == nullptr) {
    return standard;
  }
  const auto is_in_range = [&](const json& n) {
    return n.is_number_integer() && n.get<double>() >= least && n.get<double>() <= most;
  };
  const auto falls = [](const json& a, const json& b) { return a >= b; };
  if (!value->is_array() || value->empty() || !std::ranges::all_of(*value, is_in_range) ||
      std::ranges::adjacent_find(*value, falls) != value->end()) {
    fail_field(key, "rising numbers from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return value->get<std::vector<int>>();
}

int dimension(const Checkpoint& file, const std::string& tensor, std::size_t rank, std::size_t at, int most) {
  const model::Shape& shape = file.shape(tensor);
  if (shape.size() != rank || shape[at] < 1 || shape[at] > static_cast<std::uint64_t>(most)) {
    throw ModelError(file.path_of(tensor), "tensor " + in_quotes(tensor) + ": expected " +
                                               std::to_string(rank) + " dimensions, number " +
                                               std::to_string(at) + " of them from 1 to " +
                                               std::to_string(most) + ", found " + model::to_string(shape));
  }
  return static_cast<int>(shape[at]);
}

TowerShape tower_shape(const Checkpoint& file, const TowerConfig& config, const TowerNames& names, int width,
                       int heads, bool is_causal) {
  const int layers = layers_of(file, config, names);
  const int hidden = dimension(file, names.blocks + "0." + names.fc1 + ".weight", 2, 0, kMostChannels);
  TowerShape shape{width,
                   config.integer("intermediate_size", hidden, 1, kMostChannels),
                   layers,
                   config.integer("num_attention_heads", heads, 1, kMostChannels),
                   activation_of(config),
                   static_cast<float>(config.number("layer_norm_eps", 1e-5, 1e-12, 1)),
                   is_causal};
  if (shape.width % shape.heads != 0) {
    config.fail("num_attention_heads: expected a divisor of the width, " + std::to_string(shape.width) +
                ", found " + std::to_string(shape.heads));
  }
  return shape;
}

}  // namespace nonlocal::text
