// Small helps for messages.
#pragma once

#include <string>

namespace nonlocal::tools {

// As printf.
[[gnu::format(printf, 1, 2)]] std::string formatted(const char* format, ...);

// The same text in one line.
std::string one_line(std::string text);

// "640x480", and nothing after it. False for any other text.
bool read_size(const std::string& text, int& width, int& height);

}  // namespace nonlocal::tools
