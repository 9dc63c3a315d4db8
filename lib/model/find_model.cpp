#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "nonlocal/error.h"
#include "nonlocal/refinement.h"

namespace nonlocal {
namespace {

namespace fs = std::filesystem;

// Beside this library, wherever its tree was moved to.
fs::path installed_folder() {
  Dl_info library;
  if (dladdr(reinterpret_cast<const void*>(&find_model), &library) == 0 || library.dli_fname == nullptr) {
    return {};
  }
  std::error_code error;
  const fs::path file = fs::canonical(library.dli_fname, error);
  return error ? fs::path() : (file.parent_path() / NONLOCAL_MODELS_FROM_LIBRARY).lexically_normal();
}

std::vector<fs::path> folders() {
  std::vector<fs::path> all;
  if (const char* folder = std::getenv("NONLOCAL_MODELS"); folder != nullptr && *folder != '\0') {
    all.emplace_back(folder);
  }
  all.push_back(installed_folder());
  all.emplace_back(NONLOCAL_MODELS_SOURCE);
  return all;
}

}  // namespace

std::string find_model(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    return name;
  }
  std::string sought;
  for (const fs::path& folder : folders()) {
    const fs::path file = folder / (name + ".safetensors");
    std::error_code error;
    if (!folder.empty() && fs::is_regular_file(file, error)) {
      return file.string();
    }
    sought += (sought.empty() ? "" : ", ") + folder.string();
  }
  throw ModelError(name + ".safetensors", "expected in one of these folders, found in none: " + sought);
}

}  // namespace nonlocal
