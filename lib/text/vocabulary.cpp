#include "text/vocabulary.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "model/safetensors.h"
#include "model/strict_json.h"
#include "nonlocal/error.h"
#include "text/text_file.h"
#include "text/unicode.h"

namespace nonlocal::text {
namespace {

namespace fs = std::filesystem;
using model::in_quotes;
using nlohmann::json;

constexpr int kDeepest = 32;
constexpr std::size_t kMostTokens = 1'000'000;
constexpr std::size_t kMostListed = 49152 - 256 - 2;  // merges of CLIP's own list that CLIP has

using Merges = std::vector<std::pair<std::string, std::string>>;

// Bytes that vocabularies write as themselves.
bool is_plain(int byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || (byte >= 174 && byte <= 255);
}

// All bytes, those that are written as themselves first.
std::vector<std::uint8_t> bytes_in_order() {
  std::vector<std::uint8_t> all;
  for (const bool plain : {true, false}) {
    for (int byte = 0; byte < 256; ++byte) {
      if (is_plain(byte) == plain) {
        all.push_back(static_cast<std::uint8_t>(byte));
      }
    }
  }
  return all;
}

std::array<std::string, 256> texts_of_bytes() {
  std::array<std::string, 256> texts;
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    append_utf8(is_plain(byte) ? static_cast<char32_t>(byte) : next++, texts[static_cast<std::size_t>(byte)]);
  }
  return texts;
}

// "a b": two symbols.
std::pair<std::string, std::string> read_merge(const std::string& path, const std::string& where,
                                               std::string_view text) {
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos || space == 0 || space + 1 == text.size() ||
      text.find(' ', space + 1) != std::string_view::npos) {
    throw ModelError(path, where + ": expected two symbols with a space between them, found " +
                               in_quotes(std::string(text)));
  }
  return {std::string(text.substr(0, space)), std::string(text.substr(space + 1))};
}

// A merge a line, at most `most`; a first line with a version is none.
Merges read_merge_lines(const std::string& path, std::string_view text, std::size_t most) {
  Merges merges;
  for (std::size_t number = 1; !text.empty() && merges.size() < most; ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    if (line.empty() || (number == 1 && line.find("#version") != std::string_view::npos)) {
      continue;
    }
    merges.push_back(read_merge(path, "line " + std::to_string(number), line));
  }
  return merges;
}

// Fills a vocabulary, and tells what is wrong with it.
class Builder {
 public:
  explicit Builder(std::string path) : path_(std::move(path)) {}

  void add(const std::string& piece) { place(piece, v_.pieces.size()); }

  void place(const std::string& piece, std::size_t id) {
    if (id >= v_.pieces.size()) {
      v_.pieces.resize(id + 1);
    }
    const bool is_same = v_.pieces[id] == piece;  // an added token that the vocabulary has, too
    if ((!v_.pieces[id].empty() && !is_same) ||
        (!v_.ids.try_emplace(piece, static_cast<std::int32_t>(id)).second && !is_same)) {
      fail("token " + in_quotes(piece) + ", number " + std::to_string(id) + ": there is another one like it");
    }
    v_.pieces[id] = piece;
  }

  // {"piece": number, ...}
  void place_all(const json& vocabulary) {
    if (!vocabulary.is_object() || vocabulary.empty()) {
      fail("expected a vocabulary: an object of tokens and their numbers");
    }
    for (const auto& [piece, id] : vocabulary.items()) {
      if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= kMostTokens) {
        fail("token " + in_quotes(piece) + ": expected a number from 0 to " +
             std::to_string(kMostTokens - 1));
      }
      place(piece, id.get<std::size_t>());
    }
  }

  void add_merges(const Merges& merges) {
    for (const auto& [left, right] : merges) {
      const std::int32_t first = id_of(left);
      const std::int32_t second = id_of(right);
      if (!v_.merges.add(first, second, id_of(left + right))) {
        fail("merge of " + in_quotes(left) + " and " + in_quotes(right) + ": it is there twice");
      }
    }
  }

  void look_for(const std::string& token, bool is_normalised) {
    v_.added.push_back({token, id_of(token), is_normalised});
  }

  Vocabulary finish(const std::optional<std::string>& unknown) {
    for (std::size_t id = 0; id < v_.pieces.size(); ++id) {
      if (v_.pieces[id].empty()) {
        fail("expected a token of each number below " + std::to_string(v_.pieces.size()) +
             ", found none of " + std::to_string(id));
      }
    }
    v_.start = id_of(kStartToken);
    v_.end = id_of(kEndToken);
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::string& symbol = text_of_byte(static_cast<std::uint8_t>(byte));
      v_.byte[byte] = symbol_or(symbol, unknown);
      v_.last_byte[byte] = symbol_or(symbol + kEndOfWord, unknown);
    }
    return std::move(v_);
  }

  [[noreturn]] void fail(const std::string& problem) const { throw ModelError(path_, problem); }

 private:
  [[nodiscard]] std::int32_t id_of(const std::string& piece) const {
    const auto at = v_.ids.find(piece);
    if (at == v_.ids.end()) {
      fail("expected a token " + in_quotes(piece) + ", found none");
    }
    return at->second;
  }
  [[nodiscard]] std::int32_t symbol_or(const std::string& symbol,
                                       const std::optional<std::string>& unknown) const {
    return unknown && !v_.ids.contains(symbol) ? id_of(*unknown) : id_of(symbol);
  }

  std::string path_;
  Vocabulary v_;
};

Vocabulary from_merge_list(const std::string& path, std::string_view text) {
  const Merges merges = read_merge_lines(path, text, kMostListed);
  Builder builder(path);
  for (const char* suffix : {"", kEndOfWord}) {
    for (const std::uint8_t byte : bytes_in_order()) {
      builder.add(text_of_byte(byte) + suffix);
    }
  }
  for (const auto& [left, right] : merges) {
    builder.add(left + right);
  }
  builder.add(kStartToken);
  builder.add(kEndToken);
  builder.add_merges(merges);
  builder.look_for(kStartToken, true);
  builder.look_for(kEndToken, true);
  return builder.finish(std::nullopt);
}

Vocabulary from_pair_of_files(const fs::path& vocabulary, const fs::path& merges) {
  Builder builder(vocabulary.string());
  builder.place_all(model::parse_strictly(vocabulary.string(), "the file", read_text(vocabulary), kDeepest));
  builder.add_merges(read_merge_lines(merges.string(), read_text(merges), kMostTokens));
  builder.look_for(kStartToken, true);
  builder.look_for(kEndToken, true);
  return builder.finish(kEndToken);
}

// The part of tokenizer.json with this name; null where it has none.
const json& part(const json& object, const char* name) {
  static const json none;
  const auto at = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && at != object.end() ? *at : none;
}

std::string text_in(const json& value) { return value.is_string() ? value.get<std::string>() : ""; }

Merges merges_of(const Builder& builder, const std::string& path, const json& list) {
  if (!list.is_array()) {
    builder.fail("expected \"merges\" of \"model\" to be a list");
  }
  Merges merges;
  for (const json& merge : list) {
    const std::string where = "merge " + std::to_string(merges.size());
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      merges.emplace_back(merge[0], merge[1]);
    } else if (merge.is_string()) {
      merges.push_back(read_merge(path, where, merge.get<std::string>()));
    } else {
      builder.fail(where + ": expected a text or a pair of texts");
    }
  }
  return merges;
}

// What is not CLIP's way would give other tokens than are expected of it.
void check_ways(const Builder& builder, const json& all) {
  const json& model = part(all, "model");
  if (text_in(part(model, "type")) != "BPE" || text_in(part(model, "end_of_word_suffix")) != kEndOfWord) {
    builder.fail("expected \"model\" of type \"BPE\" with \"end_of_word_suffix\" \"</w>\", as CLIP has it");
  }
  if (!text_in(part(model, "continuing_subword_prefix")).empty()) {
    builder.fail("expected no \"continuing_subword_prefix\", found one");
  }
  std::string ways;
  for (const json& step : part(part(all, "normalizer"), "normalizers")) {
    ways += (ways.empty() ? "" : ", ") + text_in(part(step, "type"));
  }
  if (ways != "NFC, Replace, Lowercase") {
    builder.fail("expected the normalizers NFC, Replace, Lowercase, as CLIP has them, found " +
                 in_quotes(ways));
  }
}

void add_token(Builder& builder, const json& token) {
  const std::string content = text_in(part(token, "content"));
  const json& id = part(token, "id");
  const auto is_set = [&](const char* flag) { return part(token, flag).is_boolean() && part(token, flag); };
  if (content.empty() || !id.is_number_unsigned() || id.get<std::uint64_t>() >= kMostTokens) {
    builder.fail("expected each of \"added_tokens\" with \"content\" and an \"id\" below " +
                 std::to_string(kMostTokens));
  }
  if (is_set("single_word") || is_set("lstrip") || is_set("rstrip")) {
    builder.fail("token " + in_quotes(content) + ": single_word, lstrip and rstrip are not supported");
  }
  builder.place(content, id.get<std::size_t>());
  builder.look_for(content, is_set("normalized"));
}

Vocabulary from_tokenizer_json(const std::string& path, const std::string& what, std::string_view text) {
  const json all = model::parse_strictly(path, what, text, kDeepest);
  Builder builder(path);
  check_ways(builder, all);
  const json& model = part(all, "model");
  builder.place_all(part(model, "vocab"));
  for (const json& token : part(all, "added_tokens")) {
    add_token(builder, token);
  }
  builder.add_merges(merges_of(builder, path, part(model, "merges")));
  const std::string unknown = text_in(part(model, "unk_token"));
  return builder.finish(unknown.empty() ? std::nullopt : std::optional(unknown));
}

// The file of a folder that has a vocabulary, or none.
fs::path file_in(const fs::path& folder) {
  for (const char* name :
       {"tokenizer.json", "vocab.json", "bpe_simple_vocab_16e6.txt", "bpe_simple_vocab_16e6.txt.gz"}) {
    std::error_code error;
    if (fs::exists(folder / name, error)) {
      return folder / name;
    }
  }
  return {};
}

Vocabulary from_file(const fs::path& path);

// Its own, or what lies beside it.
Vocabulary from_safetensors(const fs::path& path) {
  if (const std::optional<std::string> text = model::Safetensors(path.string()).metadata("tokenizer")) {
    return from_tokenizer_json(path.string(), "its metadata's \"tokenizer\"", *text);
  }
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (const fs::path beside = file_in(folder); !beside.empty()) {
    return from_file(beside);
  }
  throw ModelError(path.string(),
                   "expected the text of a tokenizer.json in its metadata, under \"tokenizer\", or a "
                   "vocabulary's files beside it");
}

Vocabulary from_file(const fs::path& path) {
  const std::string name = path.filename().string();
  if (path.extension() == ".safetensors") {
    return from_safetensors(path);
  }
  if (name == "vocab.json" || name == "merges.txt") {
    return from_pair_of_files(path.parent_path() / "vocab.json", path.parent_path() / "merges.txt");
  }
  if (path.extension() == ".json") {
    return from_tokenizer_json(path.string(), "the file", read_text(path));
  }
  return from_merge_list(path.string(), read_text(path));
}

}  // namespace

const std::string& text_of_byte(std::uint8_t byte) {
  static const std::array<std::string, 256> texts = texts_of_bytes();
  return texts[byte];
}

bool has_vocabulary(const std::string& folder) { return !file_in(folder).empty(); }

Vocabulary read_vocabulary(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    return from_file(path);
  }
  const fs::path file = file_in(path);
  if (file.empty()) {
    throw ModelError(path,
                     "expected tokenizer.json, vocab.json with merges.txt, or bpe_simple_vocab_16e6.txt, "
                     "plain or .gz, in this folder, found none");
  }
  return from_file(file);
}

}  // namespace nonlocal::text
