// The tokenizer: known answers by tests/parity/tokenizer.py, every form that a vocabulary has, wrong files,
// limits.
#include "nonlocal/tokenizer.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "folder_test.h"
#include "model/safetensors.h"
#include "nonlocal/error.h"

namespace nonlocal {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Ids = std::vector<std::int32_t>;

const std::string kOwn = PARITY_FOLDER "/tokenizer.json";

json read_json(const std::string& path) { return json::parse(std::ifstream(path)); }

// A folder of the test's own.
class TokenizerTest : public nonlocal::testing::FolderTest {
 protected:
  // What the error says of a vocabulary, or that there is none.
  static std::string problem_of(const std::string& path) {
    try {
      Tokenizer tokenizer(path);
      return "none";
    } catch (const ModelError& e) {
      return e.what();
    }
  }
};

void expect_answers(const Tokenizer& tokenizer) {
  for (const json& answer : read_json(PARITY_FOLDER "/tokenizer_answers.json")) {
    const auto bytes = answer["text"].get<std::vector<std::uint8_t>>();
    const std::string text(bytes.begin(), bytes.end());
    EXPECT_EQ(tokenizer.tokenize(text).ids, answer["ids"].get<Ids>()) << text;
  }
}

TEST_F(TokenizerTest, KnownAnswers) { expect_answers(Tokenizer(kOwn)); }

// "a b" and "c d" on lines, after one that tells a version.
std::string merge_lines(const json& file) {
  std::string lines = "#version: 0.2\n";
  for (const json& merge : file["model"]["merges"]) {
    lines += merge.get<std::string>() + "\n";
  }
  return lines;
}

TEST_F(TokenizerTest, EveryFormOfAVocabularyIsTheSame) {
  json file = read_json(kOwn);
  const std::string lines = merge_lines(file);

  write("vocab.json", file["model"]["vocab"].dump());
  write("merges.txt", lines);
  for (const fs::path& path : {folder_, folder_ / "vocab.json", folder_ / "merges.txt"}) {
    const Tokenizer tokenizer(path.string());
    EXPECT_EQ(tokenizer.tokenize("A warm sunset").ids, Tokenizer(kOwn).tokenize("A warm sunset").ids);
    EXPECT_EQ(tokenizer.size(), 764);
  }

  const Tokenizer listed(write("list.txt", lines));
  EXPECT_EQ(listed.size(), 764);
  EXPECT_EQ(listed.start(), 762);
  EXPECT_EQ(listed.end(), 763);
  EXPECT_EQ(listed.tokenize("the sea").ids, Tokenizer(kOwn).tokenize("the sea").ids);

  gzFile packed = gzopen((folder_ / "list.txt.gz").c_str(), "wb");
  gzwrite(packed, lines.data(), static_cast<unsigned>(lines.size()));
  gzclose(packed);
  EXPECT_EQ(Tokenizer((folder_ / "list.txt.gz").string()).tokenize("the sea").ids,
            listed.tokenize("the sea").ids);

  const std::string one_file = (folder_ / "model.safetensors").string();
  model::write_safetensors(one_file, {{"tokenizer", file.dump()}}, {});
  expect_answers(Tokenizer(one_file));

  json pairs = json::array();
  for (const std::string merge : file["model"]["merges"]) {
    const std::size_t space = merge.find(' ');
    pairs.push_back({merge.substr(0, space), merge.substr(space + 1)});
  }
  file["model"]["merges"] = pairs;
  expect_answers(Tokenizer(write("tokenizer.json", file.dump())));
  expect_answers(Tokenizer(folder_.string()));  // before vocab.json, which is there, too
}

// CLIP's own list of merges is not ours to commit.
TEST_F(TokenizerTest, ClipsVocabularyHasItsKnownAnswers) {
  const char* path = std::getenv("NONLOCAL_CLIP_VOCABULARY");
  if (path == nullptr) {
    GTEST_SKIP() << "NONLOCAL_CLIP_VOCABULARY does not name a bpe_simple_vocab_16e6.txt.gz";
  }
  const Tokenizer tokenizer(path);
  EXPECT_EQ(tokenizer.size(), 49408);
  EXPECT_EQ(tokenizer.start(), 49406);
  EXPECT_EQ(tokenizer.end(), 49407);
  EXPECT_EQ(tokenizer.tokenize("hello world").ids, (Ids{49406, 3306, 1002, 49407}));
  EXPECT_EQ(tokenizer.tokenize("my").ids, (Ids{49406, 607, 49407}));
  EXPECT_EQ(tokenizer.tokenize("Hello\n\tWORLD").ids, (Ids{49406, 3306, 1002, 49407}));
  EXPECT_EQ(tokenizer.piece(3306), "hello</w>");
  EXPECT_EQ(tokenizer.piece(49406), "<|startoftext|>");
}

TEST_F(TokenizerTest, EmptyTextsAreStartAndEnd) {
  const Tokenizer tokenizer(kOwn);
  for (const char* text : {"", " ", "\n\t \xE3\x80\x80"}) {
    const TokenizedText found = tokenizer.tokenize(text, 77);
    EXPECT_EQ(found.ids, (Ids{tokenizer.start(), tokenizer.end()}));
    EXPECT_EQ(found.cut, 0U);
    EXPECT_EQ(found.invalid, 0U);
  }
}

TEST_F(TokenizerTest, LongTextsAreCutAndSaySo) {
  const Tokenizer tokenizer(kOwn);
  const Ids all = tokenizer.tokenize("1 2 3 4 5 6").ids;
  ASSERT_EQ(all.size(), 8U);
  for (const int context : {2, 3, 7, 8, 9}) {
    const TokenizedText found = tokenizer.tokenize("1 2 3 4 5 6", context);
    const std::size_t kept = std::min<std::size_t>(all.size(), static_cast<std::size_t>(context));
    Ids expected(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(kept) - 1);
    expected.push_back(tokenizer.end());
    EXPECT_EQ(found.ids, expected) << context;
    EXPECT_EQ(found.cut, all.size() - kept) << context;
  }
  EXPECT_THROW((void)tokenizer.tokenize("a", 1), InvalidArgument);
  EXPECT_THROW((void)tokenizer.tokenize("a", -1), InvalidArgument);
}

TEST_F(TokenizerTest, InvalidUtf8IsReplacedAndCounted) {
  const Tokenizer tokenizer(kOwn);
  const auto expect = [&](const std::string& bytes, const std::string& replaced, std::size_t count) {
    const TokenizedText found = tokenizer.tokenize(bytes);
    EXPECT_EQ(found.ids, tokenizer.tokenize(replaced).ids) << replaced;
    EXPECT_EQ(found.invalid, count) << replaced;
    EXPECT_EQ(tokenizer.tokenize(replaced).invalid, 0U);
  };
  expect("a\xFF z", "a\uFFFD z", 1);
  expect("\xE2\x82 x", "\uFFFD x", 1);                        // a sequence that ends early is one
  expect("\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD", 3);            // a surrogate
  expect("\xC0\xAF", "\uFFFD\uFFFD", 2);                      // longer than need be
  expect("\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD", 4);  // beyond U+10FFFF
}

TEST_F(TokenizerTest, PiecesAreTheVocabularys) {
  const Tokenizer tokenizer(kOwn);
  std::string joined;
  for (const int id : tokenizer.tokenize("Warm sunset").ids) {
    joined += tokenizer.piece(id);
  }
  EXPECT_EQ(joined, "<|startoftext|>warm</w>sunset</w><|endoftext|>");
  EXPECT_THROW((void)tokenizer.piece(-1), InvalidArgument);
  EXPECT_THROW((void)tokenizer.piece(tokenizer.size()), InvalidArgument);
}

TEST_F(TokenizerTest, AMegabyteTakesLessThanASecond) {
#ifdef NONLOCAL_SANITIZED
  GTEST_SKIP() << "sanitizers take their time";
#endif
  const char* clip = std::getenv("NONLOCAL_CLIP_VOCABULARY");
  const Tokenizer tokenizer(clip != nullptr ? clip : kOwn);
  const auto repeated = [](const std::string& text) {
    std::string all;
    while (all.size() < 1'000'000) {
      all += text;
    }
    return all;
  };
  // One word; equal neighbours; marks in the wrong order; tokens; lines.
  for (const char* text : {"abcdefghij", "a", "\u0301\u0323", "<|startoftext|>", "warm\n"}) {
    const std::string all = repeated(text);
    const std::clock_t start = std::clock();  // the processor's time: other programs are of no matter
    EXPECT_GT(tokenizer.tokenize(all).ids.size(), 1000U);
    EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 1) << text;
  }
}

TEST_F(TokenizerTest, WrongFilesSayWhatIsWrong) {
  const auto expect = [&](const std::string& path, const std::string& words) {
    const std::string problem = problem_of(path);
    EXPECT_NE(problem.find(words), std::string::npos) << problem;
    EXPECT_EQ(problem.rfind(path, 0), 0U) << problem;
  };
  const json good = read_json(kOwn);
  const auto changed = [&](const char* pointer, const json& value) {
    json file = good;
    file[json::json_pointer(pointer)] = value;
    return write("tokenizer.json", file.dump());
  };
  expect((folder_ / "none.json").string(), "No such file");
  expect(folder_.string(), "found none");
  expect(write("a.json", "{"), "not JSON");
  expect(write("a.json", "[1]"), "\"BPE\"");
  expect(changed("/model/type", "WordPiece"), "\"BPE\"");
  expect(changed("/model/end_of_word_suffix", ""), "\"</w>\"");
  expect(changed("/normalizer", nullptr), "normalizers");
  expect(changed("/model/vocab", json::object()), "expected a vocabulary");
  expect(changed("/model/vocab/warm</w>", -3), "expected a number");
  expect(changed("/model/vocab/another", 5), "another one like it");
  expect(changed("/model/vocab/another", 900), "found none of 764");
  expect(changed("/model/merges/0", "a"), "merge 0");
  expect(changed("/model/merges/0", 7), "merge 0");
  expect(changed("/model/merges/0", "q nowhere"), "expected a token \"nowhere\"");
  expect(changed("/model/merges/1", good["model"]["merges"][0]), "twice");
  expect(changed("/added_tokens/0/lstrip", true), "lstrip");
  expect(changed("/added_tokens/0/id", "x"), "added_tokens");
  expect(changed("/added_tokens/0/id", 3), "another one like it");
  expect(write("list.txt", "#version\na b\na b c\n"), "line 3");
  expect(write("list.txt", "#version\na b\na b\n"), "another one like it");
  expect(write("list.txt.gz", "\x1F\x8B\x08 no more"), "cannot be read");
}

}  // namespace
}  // namespace nonlocal
