// JSON from files that nobody vouches for.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace nonlocal::model {

// Parses an object. Throws ModelError, saying that `what` of `path` is wrong, where the text is no JSON
// object, has a name twice in one object, or is nested more deeply than `deepest`.
nlohmann::json parse_strictly(const std::string& path, const std::string& what, std::string_view text,
                              int deepest);

// A name that comes from a file, for messages: control characters and the like are escaped, and it ends.
std::string in_quotes(const std::string& name);

}  // namespace nonlocal::model
