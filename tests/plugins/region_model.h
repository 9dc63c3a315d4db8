// Folders of small models that find regions, with relevance planted in them (tests/parity/planted.py).
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>

namespace nonlocal::test {

// As a user has it; gone with the process.
inline std::string folder_of(const std::string& model) {
  static const struct Folder {
    Folder() : path(std::filesystem::temp_directory_path() / ("region_model." + std::to_string(getpid()))) {}
    ~Folder() { std::filesystem::remove_all(path); }
    std::filesystem::path path;
  } all;
  const std::filesystem::path folder = all.path / model;
  if (std::filesystem::create_directories(folder)) {
    std::filesystem::copy(std::string(PARITY_FOLDER) + "/" + model + ".safetensors",
                          folder / "model.safetensors");
  }
  return folder;
}

}  // namespace nonlocal::test
