// JSON as the tools write it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace nonlocal::tools {

// In one line, or in lines indented by so many spaces. What is not UTF-8, as a file's name need not be,
// becomes U+FFFD.
inline std::string json_text(const nlohmann::json& value, int indent = -1) {
  return value.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace nonlocal::tools
