// What the tokenizer asks of Unicode, by utf8proc's tables.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace nonlocal::text {

struct DecodedText {
  std::u32string points;
  std::size_t invalid = 0;  // places that became U+FFFD
};

// U+FFFD for each maximal part of a sequence that is no UTF-8, as Unicode recommends.
DecodedText decode_utf8(std::string_view bytes);

void append_utf8(char32_t point, std::string& to);

// Canonical composition. Time grows as n log n even where marks come in the worst order.
std::u32string to_nfc(const std::u32string& text);

// By itself: a sigma at a word's end is like any other, and İ gives two code points.
void append_lower(char32_t point, std::u32string& to);

enum class PointClass { kSpace, kLetter, kNumber, kOther };

// White space is what has the property White_Space, letters and numbers are categories L and N.
PointClass class_of(char32_t point);

}  // namespace nonlocal::text
