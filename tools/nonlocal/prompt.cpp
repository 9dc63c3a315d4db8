#include "prompt.h"
#include "json_text.h"

#include <iostream>
#include <nlohmann/json.hpp>

namespace nonlocal::tools {

std::string as_utf8(const std::string& text) {
  using nlohmann::json;
  return json::parse(json_text(json(text))).get<std::string>();
}

void warn_of(std::size_t cut, std::size_t invalid) {
  if (cut > 0) {
    std::cerr << "nonlocal: the model has no room for the prompt's last " << cut << " token"
              << (cut == 1 ? "" : "s") << ", which " << (cut == 1 ? "is" : "are") << " left out" << std::endl;
  }
  if (invalid > 0) {
    std::cerr << "nonlocal: the prompt is not UTF-8 in " << invalid << " place" << (invalid == 1 ? "" : "s")
              << ", read as U+FFFD" << std::endl;
  }
}

void warn_of_unknown(const std::vector<std::string>& words) {
  if (words.empty()) return;
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : ", ") + word;
  std::cerr << "nonlocal: the model has not learned: " << all << std::endl;
}

void warn_of(const PromptReading& read) {
  warn_of(read.cut, read.invalid);
  warn_of_unknown(read.unknown_words);
}

}  // namespace nonlocal::tools
