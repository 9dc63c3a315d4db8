#include "text/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "model/strict_json.h"
#include "nonlocal/error.h"
#include "text/text_file.h"

namespace nonlocal::text {
namespace {

namespace fs = std::filesystem;
using model::in_quotes;
using nlohmann::json;

constexpr int kDeepest = 32;
constexpr std::size_t kMostFiles = 1000;

std::vector<fs::path> safetensors_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.ends_with(".safetensors") && !name.starts_with('.')) {  // hidden ones are being written
      found.push_back(at->path());
    }
  }
  return found;
}

// Files by tensors, as an index has them.
std::map<std::string, std::string> weight_map(const std::string& index) {
  const json all = model::parse_strictly(index, "the file", read_text(index), kDeepest);
  const auto map = all.is_object() ? all.find("weight_map") : all.end();
  if (!all.is_object() || map == all.end() || !map->is_object() || map->empty()) {
    throw ModelError(index, "expected \"weight_map\": an object of tensors and their files");
  }
  for (const auto& [tensor, name] : map->items()) {
    // Files beside the index, nowhere else.
    if (!name.is_string() || name.get<std::string>().find('/') != std::string::npos ||
        !name.get<std::string>().ends_with(".safetensors")) {
      throw ModelError(index,
                       "tensor " + in_quotes(tensor) + ": expected the name of a safetensors file here");
    }
  }
  return *map;
}

}  // namespace

Checkpoint::Checkpoint(const std::string& path) : path_(path) {
  std::error_code error;
  if (!fs::exists(path, error)) {
    throw ModelError(path, "expected a folder or a safetensors file, found nothing of this name");
  }
  if (fs::is_directory(path, error)) {
    folder_ = path;
    open_folder();
  } else {
    const fs::path folder = fs::path(path).parent_path();
    folder_ = folder.empty() ? "." : folder.string();
    files_.emplace_back(path);
  }
  read_config();
}

void Checkpoint::open_folder() {
  const fs::path folder(folder_);
  std::error_code error;
  if (fs::exists(folder / "model.safetensors", error)) {
    files_.emplace_back((folder / "model.safetensors").string());
    return;
  }
  if (fs::exists(folder / "model.safetensors.index.json", error)) {
    open_index((folder / "model.safetensors.index.json").string());
    return;
  }
  const std::vector<fs::path> found = safetensors_in(folder);
  if (found.size() == 1) {
    files_.emplace_back(found[0].string());
    return;
  }
  const bool has_pickle = fs::exists(folder / "pytorch_model.bin", error);
  throw ModelError(
      folder_, std::string("expected model.safetensors, model.safetensors.index.json or one other "
                           "safetensors file in this folder, found ") +
                   (found.empty() ? "none" : std::to_string(found.size())) +
                   (has_pickle ? "; tools/convert/to_safetensors.py makes one of pytorch_model.bin" : ""));
}

void Checkpoint::open_index(const std::string& index) {
  const std::map<std::string, std::string> map = weight_map(index);
  std::set<std::string> names;
  for (const auto& [tensor, name] : map) {
    names.insert(name);
  }
  if (names.size() > kMostFiles) {
    throw ModelError(index, "expected at most " + std::to_string(kMostFiles) + " files, found " +
                                std::to_string(names.size()));
  }
  for (const std::string& name : names) {
    files_.emplace_back((fs::path(folder_) / name).string());
  }
  check_shards(map);
}

// Each tensor is in one file, and each that the index names in the file that it names. Files may have more.
void Checkpoint::check_shards(const std::map<std::string, std::string>& map) const {
  std::map<std::string, std::string> paths;
  for (const model::Safetensors& file : files_) {
    for (const std::string& name : file.names()) {
      const auto [first, is_first] = paths.emplace(name, file.path());
      if (!is_first) {
        throw ModelError(file.path(), "tensor " + in_quotes(name) +
                                          ": expected it in one file, found it in " +
                                          in_quotes(first->second) + ", too");
      }
    }
  }
  for (const auto& [name, file] : map) {
    const std::string path = (fs::path(folder_) / file).string();
    const auto found = paths.find(name);
    if (found == paths.end() || found->second != path) {
      throw ModelError(path, "tensor " + in_quotes(name) + ": expected it here, as the index has it, found " +
                                 (found == paths.end() ? "it nowhere" : "it in " + in_quotes(found->second)));
    }
  }
}

void Checkpoint::read_config() {
  const std::string own = metadata("config");
  const fs::path beside = fs::path(folder_) / "config.json";
  std::error_code error;
  if (!own.empty()) {
    config_path_ = files_[0].path();
    config_ = model::parse_strictly(config_path_, "its metadata's \"config\"", own, kDeepest);
  } else if (fs::exists(beside, error)) {
    config_path_ = beside.string();
    config_ = model::parse_strictly(config_path_, "the file", read_text(beside), kDeepest);
  }
  if (!config_.is_object()) {
    throw ModelError(config_path_, "expected an object");
  }
}

const model::Safetensors* Checkpoint::find(const std::string& name) const {
  const auto at =
      std::ranges::find_if(files_, [&](const model::Safetensors& file) { return file.has(name); });
  return at == files_.end() ? nullptr : &*at;
}

const model::Safetensors& Checkpoint::file_of(const std::string& name) const {
  const model::Safetensors* file = find(name);
  if (file != nullptr) {
    return *file;
  }
  throw ModelError(files_.size() == 1 ? files_[0].path() : path_,
                   "expected a tensor " + in_quotes(name) + ", found none of this name");
}

const model::Shape& Checkpoint::shape(const std::string& name) const { return file_of(name).shape(name); }

std::vector<float> Checkpoint::floats(const std::string& name, const model::Shape& expected) const {
  return file_of(name).floats(name, expected);
}

std::vector<std::string> Checkpoint::names() const {
  std::vector<std::string> all;
  for (const model::Safetensors& file : files_) {
    const std::vector<std::string> some = file.names();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

std::string Checkpoint::metadata(const std::string& key) const {
  return files_.empty() ? "" : files_[0].metadata(key).value_or("");
}

}  // namespace nonlocal::text
