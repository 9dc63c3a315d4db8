// Small helps for messages.
#pragma once

#include <string>

namespace nonlocal::tools {

// As printf.
[[gnu::format(printf, 1, 2)]] std::string formatted(const char* format, ...);

// The same text in one line.
std::string one_line(std::string text);

}  // namespace nonlocal::tools
