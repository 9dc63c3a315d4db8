// Where a model is, by what a user calls it.
#pragma once

#include <string>

namespace nonlocal::tools {

// A file or a folder that exists, else the file of the library's model of this name. Throws what find_model()
// does.
std::string model_file(const std::string& model);

}  // namespace nonlocal::tools
