// A text becomes a colour filter: what the tokenizer, the text encoder and the cross-attention filter of one
// model file make of a prompt, in one step. Slips of words that the model knows are undone before
// (KnownWords::corrected).
//
//   PromptReader reader(find_model("grade"));  // of nonlocal/refinement.h
//   const PromptReading read = reader.read("warm sunset, darker edges");
//   if (read.filter) grader.run(in, out, format, *read.filter);
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nonlocal/cross_attention_filter.h"
#include "nonlocal/export.h"

namespace nonlocal {

// What a prompt asks for.
struct PromptReading {
  std::optional<CrossAttentionFilter> filter;  // none: white space alone, which leaves pictures as they are
  std::vector<std::string> tokens;             // as the vocabulary writes them, with start and end
  std::vector<float> pooled;                   // the prompt as one vector, where the encoder projects it
  std::vector<std::string> unknown_words;      // that the model has not learned: worth a warning
  std::size_t cut = 0;                         // tokens that the model has no room for: worth a warning
  std::size_t invalid = 0;                     // places that were not UTF-8: worth a warning
};

// Reads prompts one after another. One object serves one thread at a time; different objects are independent.
class NONLOCAL_API PromptReader {
 public:
  // `model` is a file that holds a filter and its text encoder (cross_attention_filter.h); `threads` 0: as
  // many as the machine has. Throws ModelError if it cannot be read, has no encoder or no tokenizer, or the
  // encoder's tokens are not as wide as the filter's.
  explicit PromptReader(const std::string& model, int threads = 0);
  ~PromptReader();
  PromptReader(PromptReader&&) noexcept;
  PromptReader& operator=(PromptReader&&) noexcept;

  [[nodiscard]] PromptReading read(std::string_view prompt);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nonlocal
