#include "model_file.h"

#include <nonlocal/refinement.h>

#include <filesystem>

namespace nonlocal::tools {

std::string model_file(const std::string& model) {
  std::error_code error;
  return std::filesystem::exists(model, error) ? model : find_model(model);
}

}  // namespace nonlocal::tools
