// Text becomes tokens: numbers of pieces of words, by byte-pair encoding, as CLIP's text towers expect them
// (R. Sennrich et al.: Neural machine translation of rare words with subword units, ACL 2016; A. Radford et
// al.: Learning transferable visual models from natural language supervision, ICML 2021).
//
// The text is brought to Unicode's form NFC, each run of white space becomes one space, and letters become
// lower-case, one code point at a time. It is cut into words: 's 't 're 've 'm 'll 'd, runs of letters,
// single digits, and runs of whatever else is not white space; white space itself is dropped. A word's UTF-8
// bytes are symbols, the last one a symbol that also ends a word; the pair of symbols whose merge has the
// lowest rank becomes one, the leftmost first, until no pair is left that has a merge. All as the fast
// tokenizer of Hugging Face transformers does it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nonlocal/export.h"

namespace nonlocal {

struct TokenizedText {
  std::vector<std::int32_t> ids;  // the start token, those of the text, the end token
  std::size_t cut = 0;            // tokens of the text that the context had no room for: worth a warning
  std::size_t invalid = 0;        // places that were not UTF-8, each read as U+FFFD: worth a warning
};

// May be used by several threads at a time.
class NONLOCAL_API Tokenizer {
 public:
  // `path` is one of
  //
  //   a folder with tokenizer.json, or with vocab.json and merges.txt, or with a list of merges
  //   (bpe_simple_vocab_16e6.txt or .txt.gz), the first of these that is there;
  //   tokenizer.json itself, whose merges are texts "a b" or pairs ["a", "b"];
  //   vocab.json, beside which lies merges.txt, or the other way round;
  //   a list of merges, plain (*.txt) or compressed (*.gz), a merge "a b" a line, the first line left out
  //   where it has "#version" in it. The vocabulary is that of its first 48,894 merges: 256 bytes, the same
  //   at the end of a word, what the merges give, the start token and the end token;
  //   a safetensors file whose metadata have the text of a tokenizer.json under "tokenizer", or beside which
  //   lies what a folder may have.
  //
  // Every vocabulary has the tokens <|startoftext|> and <|endoftext|>, symbols of which words end in "</w>",
  // and symbols of all bytes, unless it names a token for what it does not know.
  //
  // Throws ModelError, naming the file and what is wrong in it.
  explicit Tokenizer(const std::string& path);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  // At most `context` tokens, those for start and end included, where it is not 0: the text's last ones are
  // cut. An empty text has these two alone. Bytes that are no UTF-8 are read as U+FFFD, one for each maximal
  // part of a sequence (Unicode 15, 3.9); so are code points that UTF-8 may not have. "<|startoftext|>" and
  // "<|endoftext|>" within the text are these tokens, in lower-case or not where the vocabulary's file does
  // not say otherwise: so does the tokenizer followed here. Time and memory grow as n log n at the most,
  // whatever the text. Throws InvalidArgument if `context` is 1 or negative.
  [[nodiscard]] TokenizedText tokenize(std::string_view text, int context = 0) const;

  // What a token stands for, as the vocabulary writes it: "hello</w>". Throws InvalidArgument if there is
  // none of this number.
  [[nodiscard]] const std::string& piece(std::int32_t id) const;

  // Tokens: numbers are below this.
  [[nodiscard]] int size() const;
  [[nodiscard]] std::int32_t start() const;
  [[nodiscard]] std::int32_t end() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nonlocal
