// nonlocal tokenize, embed and bench text.
#include <fstream>
#include <iterator>

#include "support.h"

namespace {

using nlohmann::json;

const std::string kVocabulary = PARITY_FOLDER "/tokenizer.json";
const std::string kModel = PARITY_FOLDER "/text_clip.safetensors";

class TextTest : public ToolTest {
 protected:
  static void expect_failure(const std::string& command, const std::string& words) {
    const Outcome outcome = run("$TOOL " + command);
    EXPECT_EQ(outcome.status, 1) << command;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    EXPECT_NE(outcome.err.find(words), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
};

// The header of a safetensors file.
json header_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  std::size_t length = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    length |= static_cast<std::size_t>(static_cast<unsigned char>(all.at(i))) << (8 * i);
  }
  return json::parse(all.substr(8, length));
}

TEST_F(TextTest, TokenizePrintsNumbersAndPieces) {
  EXPECT_EQ(must("$TOOL tokenize --model " + kVocabulary + " 'warm\nSUNSET'"),
            "    762  <|startoftext|>\n    752  warm</w>\n    747  sunset</w>\n    763  <|endoftext|>\n");
}

TEST_F(TextTest, TokenizeAsJson) {
  const json all =
      json::parse(must("$TOOL tokenize --json --context 3 --model " + kModel + " 'warm sunset'"));
  EXPECT_EQ(all["ids"], (json{762, 752, 763}));
  EXPECT_EQ(all["pieces"], (json{"<|startoftext|>", "warm</w>", "<|endoftext|>"}));
  EXPECT_EQ(all["cut"], 1);
  EXPECT_EQ(all["invalid_utf8"], 0);
  EXPECT_EQ(all["vocabulary"], 764);
  EXPECT_EQ(json::parse(must("$TOOL tokenize --json --model " + kVocabulary + " $'a\\xff'"))["invalid_utf8"],
            1);
}

TEST_F(TextTest, WhatOfAPromptDoesNotCountIsTold) {
  const Outcome cut = run("$TOOL tokenize --context 3 --model " + kVocabulary + " 'warm sunset'");
  EXPECT_EQ(cut.status, 0);
  EXPECT_EQ(cut.err, "nonlocal: --context 3 leaves out the prompt's last 1 token\n");
  const Outcome invalid = run("$TOOL embed $'a\\xff b\\xff' -o e.safetensors --model " + kModel);
  EXPECT_EQ(invalid.status, 0);
  EXPECT_NE(invalid.err.find("2 places"), std::string::npos) << invalid.err;
  EXPECT_EQ(header_of("e.safetensors")["__metadata__"]["prompt"], "a\uFFFD b\uFFFD");
}

TEST_F(TextTest, AContextHasRoomForStartAndEnd) {
  for (const std::string context : {"-1", "1", "1000001", "99999999999", "nan", "few"}) {
    const Outcome outcome = run("$TOOL tokenize a --context " + context);
    EXPECT_EQ(outcome.status, 2) << context;
    EXPECT_EQ(outcome.err, "nonlocal: --context: " + context +
                               " is neither 0 nor from 2 to 1000000 (see nonlocal --help)\n");
  }
  EXPECT_EQ(run("$TOOL tokenize a --context 2 --model " + kVocabulary).out,
            "    762  <|startoftext|>\n    763  <|endoftext|>\n");
}

TEST_F(TextTest, EmbedWritesTokensAndPooled) {
  const std::string out = must("$TOOL embed 'a warm sunset' --model " + kModel + " -o e.safetensors");
  EXPECT_EQ(out, "e.safetensors: 5 tokens of 24 channels, pooled to 10\n");
  const json header = header_of("e.safetensors");
  EXPECT_EQ(header["tokens"]["shape"], (json{5, 24}));
  EXPECT_EQ(header["pooled"]["shape"], (json{10}));
  EXPECT_EQ(header["__metadata__"]["prompt"], "a warm sunset");
  EXPECT_EQ(header["__metadata__"]["model"], kModel);
  EXPECT_EQ(header["__metadata__"]["ids"], "762 320 752 747 763");
  must("$TOOL embed '' --model " + kModel + " -o empty.safetensors");
  EXPECT_EQ(header_of("empty.safetensors")["tokens"]["shape"], (json{2, 24}));
}

// Without a model it is the bundled one, whatever lies in the current folder.
TEST_F(TextTest, TheLibrarysModelIsTheDefault) {
  std::filesystem::create_directory("grade");
  const json tokens = json::parse(must("$TOOL tokenize --json 'warm sunset'"));
  EXPECT_EQ(tokens["pieces"], (json{"<|startoftext|>", "warm</w>", "sunset</w>", "<|endoftext|>"}));
  must("$TOOL embed 'warm sunset' -o e.safetensors");
  const json header = header_of("e.safetensors");
  EXPECT_EQ(header["tokens"]["shape"][0], 4);
  EXPECT_EQ(header["__metadata__"]["model"], "grade");
  expect_failure("tokenize a --model ./grade", "expected tokenizer.json");
  // What it writes is what grade reads.
  must("ffmpeg -v error -f lavfi -i testsrc2=size=40x30 -frames:v 1 in.png");
  must(
      "$TOOL grade in.png a.png --embeddings e.safetensors && $TOOL grade in.png b.png --prompt 'warm "
      "sunset'");
  must("cmp a.png b.png");
}

// A prompt is read as grade reads it, and what it does not know is said.
TEST_F(TextTest, EmbedReadsAsGradeDoes) {
  EXPECT_EQ(run("$TOOL embed 'much brighter' -o right.safetensors").err, "");
  EXPECT_EQ(run("$TOOL embed 'much brighrer' -o slip.safetensors").err, "");
  EXPECT_EQ(header_of("slip.safetensors")["__metadata__"]["ids"],
            header_of("right.safetensors")["__metadata__"]["ids"]);
  const Outcome unknown = run("$TOOL embed 'zzqqvvxx' -o unknown.safetensors");
  EXPECT_EQ(unknown.status, 0);
  EXPECT_EQ(unknown.err, "nonlocal: the model has not learned: zzqqvvxx\n");
}

TEST_F(TextTest, AFullDiskIsSaidOfTheFileAskedFor) {
  const Outcome full =
      run("(ulimit -f 1; trap '' XFSZ; $TOOL embed 'much brighter, redder edges' -o e.safetensors)");
  EXPECT_EQ(full.status, 1);
  EXPECT_EQ(full.err, "nonlocal: e.safetensors: cannot be written\n");
  EXPECT_EQ(files().size(), 0U);
}

TEST_F(TextTest, FailuresAreOneLine) {
  expect_failure("tokenize a --model none", "none.safetensors: expected in one of these folders");
  expect_failure("tokenize a --model .", "expected tokenizer.json");
  expect_failure("embed a --model " + kVocabulary + " -o e.safetensors", "tokenizer.json: ");
  expect_failure("embed a --model . -o e.safetensors", "expected model.safetensors");
  expect_failure("embed a --model " + kModel + " -o none/e.safetensors", "no such folder");
  EXPECT_EQ(files().size(), 0U);  // nothing half done
  must("cp " + kModel + " model.safetensors; cp model.safetensors kept");
  expect_failure("embed a --model ./model.safetensors -o ./model.safetensors",
                 "the output is the model itself");
  must("cmp model.safetensors kept");
  EXPECT_EQ(run("$TOOL embed a").status, 2);
}

// What is read beside a model that is named by its file.
TEST_F(TextTest, EmbedDoesNotOverwriteWhatLiesBesideTheModel) {
  must("mkdir model; cp " + kModel + " model/clip.safetensors; cp " + kVocabulary + " model/tokenizer.json");
  must("cp -r model kept");
  expect_failure("embed a --model model/clip.safetensors -o model/tokenizer.json",
                 "the model's tokenizer.json itself");
  expect_failure("embed a --model model/clip.safetensors -o model/clip.safetensors", "the model itself");
  must("diff -r model kept");
  must("for i in 1 2; do $TOOL embed a --model model/clip.safetensors -o model/mine.safetensors; done");
}

TEST_F(TextTest, WhatIsNoRegularFileIsNotReplacedByOne) {
  must("mkfifo pipe");
  expect_failure("embed a -o pipe", "pipe: is no regular file");
  must("test -p pipe");
}

TEST_F(TextTest, WhatCannotBeWrittenToStandardOutputIsAFailure) {
  for (const std::string command :
       {"tokenize a", "tokenize --json a", "inspect grade", "embed a -o e.safetensors"}) {
    const Outcome outcome = run("$TOOL " + command + " > /dev/full");
    EXPECT_EQ(outcome.status, 1) << command;
    EXPECT_EQ(outcome.err, "nonlocal: standard output: cannot be written\n") << command;
  }
}

TEST_F(TextTest, TerminalsAreNotSentWhatAVocabularyHolds) {
  nlohmann::json vocabulary = nlohmann::json::parse(std::ifstream(kVocabulary));
  nlohmann::json token = vocabulary["added_tokens"].back();
  token["id"] = 764;
  token["content"] = "\x1b[31mX";
  vocabulary["added_tokens"].push_back(token);
  std::ofstream("tokenizer.json") << vocabulary;
  const std::string out = must("$TOOL tokenize $'a \\x1b[31mX' --model tokenizer.json");
  EXPECT_NE(out.find("764  \"\\u001b[31mX\""), std::string::npos) << out;
  EXPECT_EQ(out.find('\x1b'), std::string::npos) << out;
}

// Whatever its files are called, and by whatever name the output is one of them.
TEST_F(TextTest, EmbedDoesNotOverwriteTheModelsFolder) {
  must("mkdir model; cp " + kModel + " model/clip.safetensors; cp " + kVocabulary + " model/tokenizer.json");
  must("cp -r model kept; ln model/tokenizer.json link; ln -s model name");
  expect_failure("embed a --model model -o model/clip.safetensors",
                 "model/clip.safetensors: the output is the model's clip.safetensors itself");
  expect_failure("embed a --model ./model -o name/clip.safetensors", "the model's clip.safetensors itself");
  expect_failure("embed a --model model -o link", "link: the output is the model's tokenizer.json itself");
  must("diff -r model kept");
  // A second one would make it a model of two.
  expect_failure("embed a --model model -o name/mine.safetensors", "could not be read any more");
  must("mv model/clip.safetensors model/model.safetensors");
  expect_failure("embed a --model model -o model/model.safetensors", "the model");
  must("for i in 1 2; do $TOOL embed a --model model -o model/mine.safetensors; done");
  must("$TOOL embed a --model model -o e.safetensors && $TOOL embed a --model model -o e.safetensors");
}

TEST_F(TextTest, BenchReportsBothTowers) {
  const json result =
      json::parse(must("$TOOL bench text --layers 1 --tokens 5 --threads 2 --seconds 0 --json"));
  EXPECT_EQ(result["tokens"], 5);
  EXPECT_EQ(result["layers"], 1);
  EXPECT_EQ(result["precision"], "f32");
  EXPECT_TRUE(result["peers"].is_null());
  for (const char* tower : {"text", "vision"}) {
    EXPECT_EQ(result[tower]["calls"], 3);
    EXPECT_GT(result[tower]["ms_min"], 0.0);
    EXPECT_GE(result[tower]["ms_median"], result[tower]["ms_min"]);
  }
}

TEST_F(TextTest, BenchMeasuresPyTorchInTurn) {
  const json result = json::parse(must("$TOOL bench text --layers 1 --peers --rounds 1 --json"));
  const json peer = result["peers"]["pytorch"];
  if (peer.is_null()) {
    GTEST_SKIP() << "no PyTorch";
  }
  ASSERT_TRUE(peer.contains("text")) << peer;
  EXPECT_EQ(peer["measurements"], 1);
  for (const char* tower : {"text", "vision"}) {
    const double ratio = peer[tower]["ms_min"].get<double>() / result[tower]["ms_min"].get<double>();
    EXPECT_NEAR(peer[tower]["ratio"], ratio, 1e-6 * ratio);
  }
}

}  // namespace
