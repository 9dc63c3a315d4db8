// A vocabulary and its merges, from whichever files hold them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "text/byte_pairs.h"

namespace nonlocal::text {

inline constexpr const char* kStartToken = "<|startoftext|>";
inline constexpr const char* kEndToken = "<|endoftext|>";
inline constexpr const char* kEndOfWord = "</w>";

// A token that is looked for in the text itself, before it is cut into words.
struct AddedToken {
  std::string content;
  std::int32_t id;
  bool is_normalised;  // looked for in the normalised text, in its own normal form
};

struct Vocabulary {
  std::vector<std::string> pieces;  // by number
  std::unordered_map<std::string, std::int32_t> ids;
  BytePairs merges;
  std::vector<AddedToken> added;
  std::int32_t start, end;
  // Symbols of bytes, within a word and at its end.
  std::array<std::int32_t, 256> byte, last_byte;
};

// As vocabularies write a byte: printable Latin-1 as it is, the rest as U+0100 and on.
const std::string& text_of_byte(std::uint8_t byte);

// Whether a folder has the files of one.
bool has_vocabulary(const std::string& folder);

// See Tokenizer's constructor.
Vocabulary read_vocabulary(const std::string& path);

}  // namespace nonlocal::text
