#include "model/strict_json.h"

#include <functional>
#include <set>
#include <vector>

#include "nonlocal/error.h"

namespace nonlocal::model {
namespace {

using nlohmann::json;

// Refuses what JSON's parser lets pass: a name twice in one object, and nesting without end.
class Rules {
 public:
  Rules(const std::string& path, const std::string& what, int deepest)
      : path_(path), what_(what), deepest_(deepest), names_(static_cast<std::size_t>(deepest) + 1) {}

  bool operator()(int depth, json::parse_event_t event, const json& parsed) {
    if (depth > deepest_) {
      throw ModelError(path_, what_ + " is nested too deeply: expected at most " + std::to_string(deepest_) +
                                  " objects or lists in each other");
    }
    const auto at = static_cast<std::size_t>(depth);
    if (event == json::parse_event_t::object_start) {
      names_[at].clear();
    } else if (event == json::parse_event_t::key && !names_[at - 1].insert(parsed).second) {
      throw ModelError(path_, what_ + " has " + in_quotes(parsed) + " twice");
    }
    return true;
  }

 private:
  const std::string& path_;
  const std::string& what_;
  int deepest_;
  std::vector<std::set<std::string>> names_;
};

}  // namespace

std::string in_quotes(const std::string& name) {
  constexpr std::size_t kLongest = 100;
  const bool is_long = name.size() > kLongest;
  return json(is_long ? name.substr(0, kLongest) : name).dump(-1, ' ', true, json::error_handler_t::replace) +
         (is_long ? "..." : "");
}

json parse_strictly(const std::string& path, const std::string& what, std::string_view text, int deepest) {
  Rules rules(path, what, deepest);
  try {
    return json::parse(text.begin(), text.end(), std::ref(rules));
  } catch (const json::exception& e) {
    // Its message may quote the file.
    throw ModelError(path, what + " is not JSON, error " + std::to_string(e.id));
  }
}

}  // namespace nonlocal::model
