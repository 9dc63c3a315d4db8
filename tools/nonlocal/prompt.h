// What commands that take a prompt have in common.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "nonlocal/prompt_reader.h"

namespace nonlocal::tools {

// The model of prompts that the library brings.
inline constexpr const char* kPromptModel = "grade";

// The same, with U+FFFD in place of what is no UTF-8: for JSON.
std::string as_utf8(const std::string& text);

// Tells on stderr what of a prompt did not count: tokens that were cut, places that were not UTF-8.
void warn_of(std::size_t cut, std::size_t invalid);

// The same of words that the model has not learned.
void warn_of_unknown(const std::vector<std::string>& words);

// All of that.
void warn_of(const PromptReading& read);

}  // namespace nonlocal::tools
