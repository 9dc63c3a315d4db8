#include "nonlocal/prompt_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "nonlocal/error.h"
#include "nonlocal/refinement.h"
#include "nonlocal/text_encoder.h"

namespace nonlocal {
namespace {

using Texts = std::vector<std::string>;

const std::string& model() {
  static const std::string file = find_model("grade");
  return file;
}

// Tokenizer, encoder and filter one after another.
TEST(PromptReader, GivesWhatItsPartsGive) {
  PromptReader reader(model());
  const CrossAttentionModel weights(model());
  TextEncoder encoder(model());
  for (const char* prompt : {"warm sunset, darker edges", "noir"}) {
    const PromptReading read = reader.read(prompt);
    const TextEmbedding embedding = encoder.encode(prompt);
    const int count = static_cast<int>(embedding.ids.size());
    const CrossAttentionFilter filter(
        weights, ConstMatrix{embedding.tokens.data(), count, embedding.width, embedding.width});
    ASSERT_TRUE(read.filter);
    EXPECT_EQ(read.filter->tokens(), count);
    EXPECT_EQ(read.filter->apply({0.2, 0.5, 0.7}, 0.3, -0.8), filter.apply({0.2, 0.5, 0.7}, 0.3, -0.8));
    EXPECT_EQ(read.pooled, embedding.pooled);
  }
  EXPECT_EQ(reader.read("warm sunset").tokens,
            (Texts{"<|startoftext|>", "warm</w>", "sunset</w>", "<|endoftext|>"}));
}

TEST(PromptReader, WhiteSpaceAsksForNothing) {
  PromptReader reader(model());
  for (const char* prompt : {"", " ", "\t\r\n \f\v", "\u00a0\u2003\u3000"}) {
    const PromptReading read = reader.read(prompt);
    EXPECT_FALSE(read.filter);
    EXPECT_TRUE(read.tokens.empty() && read.unknown_words.empty());
  }
}

TEST(PromptReader, TellsWhatDidNotCount) {
  PromptReader reader(model());
  const PromptReading fine = reader.read("warmer");
  EXPECT_TRUE(fine.unknown_words.empty() && fine.cut == 0 && fine.invalid == 0);
  EXPECT_EQ(reader.read("Qzxv warmer, plonk").unknown_words, (Texts{"qzxv", "plonk"}));
  EXPECT_EQ(reader.read("warmer \xff").invalid, 1U);
  std::string text;
  for (int i = 0; i < 200; ++i) {
    text += "warmer ";
  }
  const PromptReading cut = reader.read(text);
  EXPECT_GT(cut.cut, 100U);
  EXPECT_EQ(cut.tokens.size() + cut.cut, 202U) << "a token each, start and end";
}

TEST(PromptReader, AFileThatHoldsNoEncoderIsNamed) {
  try {
    PromptReader reader(PARITY_FOLDER "/cross_attention_filter.safetensors");
    FAIL() << "no error";
  } catch (const ModelError& error) {
    EXPECT_NE(std::string(error.what()).find("cross_attention_filter.safetensors"), std::string::npos);
  }
}

}  // namespace
}  // namespace nonlocal
