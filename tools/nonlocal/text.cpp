#include "text.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <vector>

namespace nonlocal::tools {

std::string formatted(const char* format, ...) {
  va_list values;
  va_start(values, format);
  va_list again;
  va_copy(again, values);
  std::vector<char> text(std::vsnprintf(nullptr, 0, format, values) + 1);
  std::vsnprintf(text.data(), text.size(), format, again);
  va_end(again);
  va_end(values);
  return text.data();
}

std::string one_line(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text;
}

bool read_size(const std::string& text, int& width, int& height) {
  char rest = 0;
  return std::sscanf(text.c_str(), "%dx%d%c", &width, &height, &rest) == 2;
}

}  // namespace nonlocal::tools
