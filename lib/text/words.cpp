#include "text/words.h"

#include <cstddef>

#include "text/unicode.h"

namespace nonlocal::text {
namespace {

// The length of the contraction that the text begins with, or 0.
std::size_t contraction(std::u32string_view text) {
  for (const std::u32string_view known : {U"'s", U"'t", U"'re", U"'ve", U"'m", U"'ll", U"'d"}) {
    if (text.starts_with(known)) {
      return known.size();
    }
  }
  return 0;
}

std::size_t run_of(PointClass wanted, std::u32string_view text) {
  std::size_t n = 0;
  while (n < text.size() && class_of(text[n]) == wanted) {
    ++n;
  }
  return n;
}

std::size_t word_length(std::u32string_view text) {
  if (const std::size_t length = contraction(text); length != 0) {
    return length;
  }
  const PointClass first = class_of(text[0]);
  return first == PointClass::kNumber ? 1 : run_of(first, text);
}

}  // namespace

std::u32string normalised(const std::u32string& text) {
  std::u32string out;
  out.reserve(text.size());
  bool was_space = false;
  for (const char32_t point : to_nfc(text)) {
    const bool is_space = class_of(point) == PointClass::kSpace;
    if (!is_space) {
      append_lower(point, out);
    } else if (!was_space) {
      out += U' ';
    }
    was_space = is_space;
  }
  return out;
}

std::vector<std::u32string_view> words_of(std::u32string_view text) {
  std::vector<std::u32string_view> words;
  while (!text.empty()) {
    const std::size_t length = word_length(text);
    if (class_of(text[0]) != PointClass::kSpace) {
      words.push_back(text.substr(0, length));
    }
    text.remove_prefix(length);
  }
  return words;
}

}  // namespace nonlocal::text
