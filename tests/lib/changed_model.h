// Model files that a test changes: read, altered, written again.
#pragma once

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/safetensors.h"

namespace nonlocal::testing {

inline std::vector<float> values(const model::Safetensors& file, const std::string& name) {
  return file.floats(name, file.shape(name));
}

struct Model {
  Model() = default;
  explicit Model(const std::string& path) {
    const model::Safetensors file(path);
    metadata = file.metadata();
    for (const std::string& name : file.names()) {
      tensors.push_back({name, file.shape(name), values(file, name)});
    }
  }
  model::NamedTensor& operator[](const std::string& name) {
    return *std::find_if(tensors.begin(), tensors.end(), [&](const auto& t) { return t.name == name; });
  }
  void remove(const std::string& name) {
    std::erase_if(tensors, [&](const auto& t) { return t.name == name; });
  }
  void set_config(const char* pointer, const nlohmann::json& value) {
    nlohmann::json config = nlohmann::json::parse(metadata["config"]);
    config[nlohmann::json::json_pointer(pointer)] = value;
    metadata["config"] = config.dump();
  }

  std::map<std::string, std::string> metadata;
  std::vector<model::NamedTensor> tensors;
};

}  // namespace nonlocal::testing
