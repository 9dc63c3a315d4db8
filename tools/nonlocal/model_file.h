// Where a model is, by what a user calls it.
#pragma once

#include <string>

namespace nonlocal::tools {

// The file of the library's model of this name, whatever lies in the current folder; else a file or a folder
// that exists ("./grade" is one for sure). Throws what find_model() does.
std::string model_file(const std::string& model);

// Does this name the folder of a model? One of the library's names does not, whatever folders there are.
bool is_model_folder(const std::string& model);

}  // namespace nonlocal::tools
