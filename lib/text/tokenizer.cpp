#include "nonlocal/tokenizer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "nonlocal/error.h"
#include "text/unicode.h"
#include "text/vocabulary.h"
#include "text/words.h"

namespace nonlocal {

using text::AddedToken;
using text::Vocabulary;

namespace {

// A token that is looked for in the text.
struct Marker {
  std::u32string content;
  std::int32_t id;
};

// A part of the text, or where `id` is not negative a marker in it.
struct Part {
  std::u32string_view text;
  std::int32_t id = -1;
};

// Where a marker is next, which is sought anew only once that lies behind.
struct Place {
  const Marker* marker;
  std::size_t at;
};

// Cuts the text where a marker begins: the first one there, the longest of those that begin at one place.
std::vector<Part> cut_at(const std::vector<Marker>& markers, std::u32string_view text) {
  std::vector<Place> places;
  for (const Marker& marker : markers) {
    places.push_back({&marker, text.find(marker.content)});
  }
  const auto is_before = [](const Place& a, const Place& b) {
    return a.at != b.at ? a.at < b.at : a.marker->content.size() > b.marker->content.size();
  };
  std::vector<Part> parts;
  std::size_t begin = 0;
  while (begin < text.size()) {
    for (Place& place : places) {
      if (place.at < begin) {
        place.at = text.find(place.marker->content, begin);
      }
    }
    const auto next = std::ranges::min_element(places, is_before);
    if (next == places.end() || next->at == std::u32string_view::npos) {
      parts.push_back({text.substr(begin)});
      break;
    }
    const std::size_t size = next->marker->content.size();
    parts.push_back({text.substr(begin, next->at - begin)});
    parts.push_back({text.substr(next->at, size), next->marker->id});
    begin = next->at + size;
  }
  return parts;
}

}  // namespace

struct Tokenizer::State {
  explicit State(const std::string& path) : vocabulary(text::read_vocabulary(path)) {
    for (const AddedToken& token : vocabulary.added) {
      const std::u32string content = text::decode_utf8(token.content).points;
      if (token.is_normalised) {
        after.push_back({text::normalised(content), token.id});
      } else {
        before.push_back({content, token.id});
      }
    }
  }

  void append_words(std::u32string_view text, std::vector<std::int32_t>& ids) const;
  void append_text(std::u32string_view text, std::vector<std::int32_t>& ids) const;

  Vocabulary vocabulary;
  std::vector<Marker> before, after;  // looked for before and after the text is normalised
};

void Tokenizer::State::append_words(std::u32string_view text, std::vector<std::int32_t>& ids) const {
  std::string bytes;
  std::vector<std::int32_t> symbols;
  for (const std::u32string_view word : text::words_of(text)) {
    bytes.clear();
    for (const char32_t point : word) {
      text::append_utf8(point, bytes);
    }
    symbols.clear();
    for (const char byte : bytes) {
      symbols.push_back(vocabulary.byte[static_cast<std::uint8_t>(byte)]);
    }
    symbols.back() = vocabulary.last_byte[static_cast<std::uint8_t>(bytes.back())];
    vocabulary.merges.merge(symbols);
    ids.insert(ids.end(), symbols.begin(), symbols.end());
  }
}

void Tokenizer::State::append_text(std::u32string_view text, std::vector<std::int32_t>& ids) const {
  const std::u32string normal = text::normalised(std::u32string(text));
  for (const Part& part : cut_at(after, normal)) {
    if (part.id >= 0) {
      ids.push_back(part.id);
    } else {
      append_words(part.text, ids);
    }
  }
}

Tokenizer::Tokenizer(const std::string& path) : state_(std::make_unique<State>(path)) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

TokenizedText Tokenizer::tokenize(std::string_view text, int context) const {
  if (context < 0 || context == 1) {
    throw InvalidArgument("Tokenizer: expected a context of 0, none, or of 2 tokens or more, got " +
                          std::to_string(context));
  }
  const text::DecodedText decoded = text::decode_utf8(text);
  TokenizedText out;
  out.invalid = decoded.invalid;
  out.ids.push_back(start());
  for (const Part& part : cut_at(state_->before, decoded.points)) {
    if (part.id >= 0) {
      out.ids.push_back(part.id);
    } else {
      state_->append_text(part.text, out.ids);
    }
  }
  const std::size_t most = context == 0 ? out.ids.size() : static_cast<std::size_t>(context) - 1;
  out.cut = out.ids.size() - std::min(most, out.ids.size());
  out.ids.resize(out.ids.size() - out.cut);
  out.ids.push_back(end());
  return out;
}

const std::string& Tokenizer::piece(std::int32_t id) const {
  if (id < 0 || id >= size()) {
    throw InvalidArgument("Tokenizer: expected a token from 0 to " + std::to_string(size() - 1) + ", got " +
                          std::to_string(id));
  }
  return state_->vocabulary.pieces[static_cast<std::size_t>(id)];
}

int Tokenizer::size() const { return static_cast<int>(state_->vocabulary.pieces.size()); }
std::int32_t Tokenizer::start() const { return state_->vocabulary.start; }
std::int32_t Tokenizer::end() const { return state_->vocabulary.end; }

}  // namespace nonlocal
