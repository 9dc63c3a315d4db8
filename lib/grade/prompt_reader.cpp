#include "nonlocal/prompt_reader.h"

#include "nonlocal/error.h"
#include "nonlocal/known_words.h"
#include "nonlocal/text_encoder.h"
#include "text/unicode.h"

namespace nonlocal {

struct PromptReader::State {
  State(const std::string& file, int threads)
      : model(file), encoder(file, {AttentionPrecision::kFloat32, threads}), words(file) {}

  CrossAttentionModel model;
  TextEncoder encoder;
  KnownWords words;
};

PromptReader::PromptReader(const std::string& model, int threads)
    : state_(std::make_unique<State>(model, threads)) {
  if (state_->encoder.tokenizer() == nullptr) {
    throw ModelError(model, "expected a tokenizer beside the text encoder, found none");
  }
  if (state_->encoder.width() != state_->model.embedding_dim()) {
    throw ModelError(model, "expected tokens of " + std::to_string(state_->model.embedding_dim()) +
                                " values, as the filter in it reads, found " +
                                std::to_string(state_->encoder.width()));
  }
}

PromptReader::~PromptReader() = default;
PromptReader::PromptReader(PromptReader&&) noexcept = default;
PromptReader& PromptReader::operator=(PromptReader&&) noexcept = default;

PromptReading PromptReader::read(std::string_view prompt) {
  constexpr int kFrame = 2;  // the tokens for start and end
  PromptReading reading;
  TextEmbedding read = state_->encoder.encode(state_->words.corrected(prompt));
  const int count = static_cast<int>(read.ids.size());
  if (count <= kFrame && read.cut == 0) {
    return reading;
  }
  reading.filter.emplace(state_->model, ConstMatrix{read.tokens.data(), count, read.width, read.width});
  for (const std::int32_t id : read.ids) {
    reading.tokens.push_back(state_->encoder.tokenizer()->piece(id));
  }
  reading.pooled = std::move(read.pooled);
  reading.unknown_words = state_->words.unknown_words(prompt);
  reading.cut = read.cut;
  reading.invalid = text::decode_utf8(prompt).invalid;
  return reading;
}

}  // namespace nonlocal
