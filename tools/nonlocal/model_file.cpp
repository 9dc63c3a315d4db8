#include "model_file.h"

#include <nonlocal/error.h>
#include <nonlocal/refinement.h>

#include <filesystem>

namespace nonlocal::tools {

std::string model_file(const std::string& model) {
  try {
    return find_model(model);
  } catch (const ModelError&) {
    std::error_code error;
    if (std::filesystem::exists(model, error)) return model;
    throw;
  }
}

bool is_model_folder(const std::string& model) {
  std::error_code error;
  return std::filesystem::is_directory(model, error) &&
         std::filesystem::is_directory(model_file(model), error);
}

}  // namespace nonlocal::tools
