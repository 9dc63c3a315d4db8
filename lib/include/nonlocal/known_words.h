// Which words of a prompt a model has not learned: a small model that grades by instructions knows some
// thousand words, and a prompt of others does nothing. An application says so, rather than leave its user
// wondering.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nonlocal/export.h"

namespace nonlocal {

// The list of words that a model's file may have: in a safetensors file's metadata, under "words", lower-case
// with spaces between them. Immutable; copies share it and may be used by any thread.
class NONLOCAL_API KnownWords {
 public:
  // An empty list if the file has none: then no word is unknown. Throws ModelError if the file cannot be
  // read.
  explicit KnownWords(const std::string& path);

  [[nodiscard]] bool empty() const;

  // The words of the prompt, runs of letters, that are not on the list, lower-case, each once, in the
  // prompt's order. A word of 5 letters or more is also known by a slip behind its first letter, which
  // corrected() undoes: a letter too much, too few or another one, or two neighbours that changed places.
  // What is not UTF-8 is read as Tokenizer reads it.
  [[nodiscard]] std::vector<std::string> unknown_words(std::string_view prompt) const;

  // The prompt with slips undone, in the tokenizer's normal form: "more contarst" is "more contrast". Of
  // several words that may be meant, those come first whose letters changed places, then those that miss a
  // letter, have one too many, or another one; and of those alike the one that the file has first. First
  // letters are taken to be right. As it is where no word is a slip.
  [[nodiscard]] std::string corrected(std::string_view prompt) const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

}  // namespace nonlocal
