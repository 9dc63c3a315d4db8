// A model's tensors and its description, from a folder as Hugging Face's, or from one file.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/safetensors.h"

namespace nonlocal::text {

class Checkpoint {
 public:
  // `path` is a safetensors file, or a folder with model.safetensors, or with model.safetensors.index.json
  // and the files that it names, none of which has a tensor of another, or with one safetensors file of any
  // name. The description is config.json in the folder, or beside the file, or the text under "config" in the
  // file's metadata, the last one first. Throws ModelError.
  explicit Checkpoint(const std::string& path);

  [[nodiscard]] bool has(const std::string& name) const { return find(name) != nullptr; }
  // Throw ModelError, naming the file, as Safetensors does.
  [[nodiscard]] const std::string& path_of(const std::string& name) const { return file_of(name).path(); }
  [[nodiscard]] const model::Shape& shape(const std::string& name) const;
  [[nodiscard]] std::vector<float> floats(const std::string& name, const model::Shape& expected) const;

  // An empty object where there is no description.
  [[nodiscard]] const nlohmann::json& config() const { return config_; }
  [[nodiscard]] const std::string& config_path() const { return config_path_; }

  // The folder, and the file if that is what was opened.
  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  // The first file, or the only one.
  [[nodiscard]] const std::string& first_file() const { return files_[0].path(); }
  // What the file's metadata, or the first file's, say of `key`, or say at all.
  [[nodiscard]] std::string metadata(const std::string& key) const;
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const { return files_[0].metadata(); }
  // Of all tensors.
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  [[nodiscard]] const model::Safetensors* find(const std::string& name) const;
  [[nodiscard]] const model::Safetensors& file_of(const std::string& name) const;
  void open_folder();
  void open_index(const std::string& index);
  void check_shards(const std::map<std::string, std::string>& map) const;
  void read_config();

  std::string path_, folder_;
  std::vector<model::Safetensors> files_;
  std::string config_path_;
  nlohmann::json config_ = nlohmann::json::object();
};

}  // namespace nonlocal::text
