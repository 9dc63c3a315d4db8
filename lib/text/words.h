// Text, brought to its normal form and cut into words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nonlocal::text {

// NFC, runs of white space as one space, lower-case.
std::u32string normalised(const std::u32string& text);

// What this pattern finds in a normalised text, one match after another:
// 's|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+
std::vector<std::u32string_view> words_of(std::u32string_view text);

}  // namespace nonlocal::text
