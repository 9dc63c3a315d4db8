#include "nonlocal/known_words.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "model/safetensors.h"
#include "text/unicode.h"
#include "text/words.h"

namespace nonlocal {

using namespace text;  // NOLINT: this library's own

namespace {

constexpr std::size_t kSlipsFrom = 5;  // letters: "warm" and "worm" are two words

// One letter inserted, left out or replaced, or two neighbours swapped.
bool is_one_slip(std::u32string_view a, std::u32string_view b) {
  if (a.size() > b.size()) {
    std::swap(a, b);
  }
  if (b.size() - a.size() > 1) {
    return false;
  }
  const std::size_t same = static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
  const std::u32string_view rest = a.substr(same);
  const std::u32string_view longer = b.substr(same);
  if (a.size() < b.size()) {
    return rest == longer.substr(1);
  }
  const bool is_replaced = rest.empty() || rest.substr(1) == longer.substr(1);
  return is_replaced || (rest[0] == longer[1] && rest[1] == longer[0] && rest.substr(2) == longer.substr(2));
}

// How unlikely it is that `word`, one slip away, was meant to be `known`.
int rank_of_slip(std::u32string_view word, std::u32string_view known) {
  enum { kSwapped, kLeftOut, kTooMuch, kReplaced };
  if (word.size() != known.size()) {
    return word.size() < known.size() ? kLeftOut : kTooMuch;
  }
  const auto others =
      std::inner_product(word.begin(), word.end(), known.begin(), 0, std::plus<>(), std::not_equal_to<>());
  return others == 2 ? kSwapped : kReplaced;
}

std::string in_utf8(std::u32string_view word) {
  std::string bytes;
  for (const char32_t point : word) {
    append_utf8(point, bytes);
  }
  return bytes;
}

// Runs of letters; "don't" is "don" and a contraction, which is none.
std::vector<std::u32string> letters_of(std::string_view bytes) {
  const std::u32string text = normalised(decode_utf8(bytes).points);
  std::vector<std::u32string> words;
  for (const std::u32string_view word : words_of(text)) {
    if (class_of(word[0]) == PointClass::kLetter) {
      words.emplace_back(word);
    }
  }
  return words;
}

}  // namespace

struct KnownWords::State {
  [[nodiscard]] bool knows(const std::u32string& word) const {
    return words.contains(word) || meant_by(word) != word;
  }

  // Itself, or what it is a slip of.
  [[nodiscard]] std::u32string_view meant_by(std::u32string_view word) const {
    std::u32string_view meant = word;
    if (word.size() < kSlipsFrom || words.contains(std::u32string(word))) {
      return meant;
    }
    int least = std::numeric_limits<int>::max();
    for (std::size_t length = word.size() - 1; length <= word.size() + 1; ++length) {
      const auto at = by_length.find(length);
      if (at == by_length.end()) {
        continue;
      }
      for (const std::u32string& known : at->second) {
        if (known[0] == word[0] && is_one_slip(word, known) && rank_of_slip(word, known) < least) {
          least = rank_of_slip(word, known);
          meant = known;
        }
      }
    }
    return meant;
  }

  std::set<std::u32string> words;
  std::map<std::size_t, std::vector<std::u32string>> by_length;  // those that slips may be of
};

KnownWords::KnownWords(const std::string& path) {
  State state;
  for (const std::u32string& word : letters_of(model::Safetensors(path).metadata("words").value_or(""))) {
    if (state.words.insert(word).second && word.size() >= kSlipsFrom) {
      state.by_length[word.size()].push_back(word);
    }
  }
  state_ = std::make_shared<const State>(std::move(state));
}

bool KnownWords::empty() const { return state_->words.empty(); }

std::string KnownWords::corrected(std::string_view prompt) const {
  const std::u32string text = normalised(decode_utf8(prompt).points);
  std::u32string meant;
  const char32_t* end = text.data();
  bool is_other = false;
  for (const std::u32string_view word : words_of(text)) {
    const std::u32string_view known =
        class_of(word[0]) == PointClass::kLetter ? state_->meant_by(word) : word;
    is_other = is_other || known != word;
    meant.append(end, word.data());
    meant += known;
    end = word.data() + word.size();
  }
  return is_other ? in_utf8(meant) : std::string(prompt);
}

std::vector<std::string> KnownWords::unknown_words(std::string_view prompt) const {
  std::vector<std::string> unknown;
  std::set<std::u32string> seen;
  if (empty()) {
    return unknown;
  }
  for (const std::u32string& word : letters_of(prompt)) {
    if (seen.insert(word).second && !state_->knows(word)) {
      unknown.push_back(in_utf8(word));
    }
  }
  return unknown;
}

}  // namespace nonlocal
