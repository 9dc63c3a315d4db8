#include "nonlocal/text_encoder.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "attention/matrix_check.h"
#include "core/workers.h"
#include "model/strict_json.h"
#include "nonlocal/error.h"
#include "text/encoder_parameters.h"
#include "text/model_config.h"
#include "text/tower.h"
#include "text/vocabulary.h"

namespace nonlocal {

using namespace text;  // NOLINT: this library's own

namespace {

constexpr const char* kName = "TextEncoder";

// What a file calls the text tower's parts.
struct TextNames {
  TowerNames tower;
  std::string tokens, positions, final_norm, projection;
  bool is_openai;
};

TextNames names_in(const Checkpoint& file) {
  if (file.has("token_embedding.weight")) {
    return {openai_names("transformer.resblocks."),
            "token_embedding.weight",
            "positional_embedding",
            "ln_final",
            "text_projection",
            true};
  }
  // CLIPSeg's has what CLIP has under a name of its own.
  const std::string prefix = file.has("clip.text_model.final_layer_norm.weight") ? "clip." : "";
  const std::string tower = prefix + "text_model.";
  return {hugging_face_names(tower + "encoder.layers."),
          tower + "embeddings.token_embedding.weight",
          tower + "embeddings.position_embedding.weight",
          tower + "final_layer_norm",
          prefix + "text_projection.weight",
          false};
}

// Sizes, as the description has them, or the tensors.
struct TextShape {
  TextShape(const Checkpoint& file, const TextNames& names) {
    const TowerConfig config(file, "text_config");
    width =
        config.integer("hidden_size", dimension(file, names.tokens, 2, 1, kMostChannels), 1, kMostChannels);
    vocabulary = config.integer("vocab_size", dimension(file, names.tokens, 2, 0, kMostVocabulary), 1,
                                kMostVocabulary);
    context = config.integer("max_position_embeddings", dimension(file, names.positions, 2, 0, kMostTokens),
                             1, kMostTokens);
    constexpr int kOpenAiHead = 64;
    constexpr int kHuggingFaceHeads = 8;
    tower = tower_shape(file, config, names.tower, width,
                        names.is_openai ? std::max(width / kOpenAiHead, 1) : kHuggingFaceHeads,
                        config.boolean("causal", true));
    embedding = file.has(names.projection)
                    ? dimension(file, names.projection, 2, names.is_openai ? 1 : 0, kMostChannels)
                    : 0;
  }

  int width, vocabulary, context;
  int embedding;  // 0: no projection
  TowerShape tower;
};

std::uint64_t size(int n) { return static_cast<std::uint64_t>(n); }

// Where the model's tokenizer is, or "".
std::string tokenizer_of(const Checkpoint& file) {
  if (!file.metadata("tokenizer").empty()) {
    return file.first_file();
  }
  return has_vocabulary(file.folder()) ? file.folder() : "";
}

// Prompts have a start and an end token.
void check_context(const Checkpoint& file, const TextNames& names, int context) {
  if (context < 2) {
    throw ModelError(file.path_of(names.positions), "tensor " + model::in_quotes(names.positions) +
                                                        ": expected 2 positions or more, found " +
                                                        model::to_string(file.shape(names.positions)));
  }
}

}  // namespace

struct TextEncoder::State {
  State(const Checkpoint& file, const TextNames& names, const EncoderParameters& parameters,
        const std::string& tokenizer);

  // Working memory and stages for prompts of so many tokens.
  struct Run {
    Run(const State& state, int rows);

    TowerMemory memory;
    OwnRows end_row, pooled;
    Stages stages;
  };

  void embed(Run& run, int row) const;
  void encode(std::span<const std::int32_t> ids, const Matrix& tokens, std::span<float> out);
  [[nodiscard]] std::ptrdiff_t end_of(std::span<const std::int32_t> ids) const;
  void check(std::span<const std::int32_t> ids, const Matrix& tokens, std::span<float> out) const;

  TextShape shape;
  int threads;
  std::vector<float> tokens, positions;
  Tower tower;
  Norm final_norm;
  std::optional<Dense> projection;
  std::optional<Tokenizer> tokenizer;

  std::unique_ptr<Run> run;
  // Of the call that runs.
  std::span<const std::int32_t> ids;
  std::ptrdiff_t end = 0;
};

TextEncoder::State::State(const Checkpoint& file, const TextNames& names, const EncoderParameters& parameters,
                          const std::string& tokenizer_path)
    : shape(file, names),
      threads(thread_count(parameters.threads)),
      tokens(file.floats(names.tokens, {size(shape.vocabulary), size(shape.width)})),
      positions(file.floats(names.positions, {size(shape.context), size(shape.width)})),
      tower(file, names.tower, shape.tower, calculates_in_bfloat16(parameters)),
      final_norm(read_norm(file, names.final_norm, shape.width, shape.tower.epsilon)) {
  if (shape.embedding != 0) {
    projection.emplace(read_dense(file, names.projection, "", shape.embedding, shape.width, names.is_openai,
                                  tower.is_bfloat16()));
  }
  if (const std::string where = tokenizer_path.empty() ? tokenizer_of(file) : tokenizer_path;
      !where.empty()) {
    tokenizer.emplace(where);
    check_context(file, names, shape.context);
    if (tokenizer->size() != shape.vocabulary) {
      throw ModelError(file.path(), "expected a vocabulary of " + std::to_string(shape.vocabulary) +
                                        " tokens, as many as the token embedding has, found " +
                                        std::to_string(tokenizer->size()) + " in " + where);
    }
  }
}

TextEncoder::State::Run::Run(const State& state, int rows)
    : memory(state.shape.tower, rows, 0, state.tower.is_bfloat16(), state.threads),
      end_row(1, state.shape.width),
      pooled(1, std::max(state.shape.embedding, 1)),
      stages(state.threads) {
  StageBuilder builder(stages, memory);
  builder.add(rows, [this, &state](int row, int) { state.embed(*this, row); });
  state.tower.add_stages(builder, memory);
  builder.add_norm(state.final_norm, memory.x.view(), memory.normal.view());
  builder.add(1, [this, &state](int, int) {
    std::copy_n(memory.normal.view().row(state.end), state.shape.width, end_row.view().data);
  });
  if (state.projection) {
    builder.add_dense(*state.projection, end_row.view(), pooled.view());
  }
}

void TextEncoder::State::embed(Run& run, int row) const {
  const auto width = static_cast<std::size_t>(shape.width);
  const float* token = tokens.data() + static_cast<std::size_t>(ids[static_cast<std::size_t>(row)]) * width;
  const float* position = positions.data() + static_cast<std::size_t>(row) * width;
  std::transform(token, token + width, position, run.memory.x.view().row(row), std::plus<>());
}

std::ptrdiff_t TextEncoder::State::end_of(std::span<const std::int32_t> all) const {
  const auto at = tokenizer ? std::ranges::find(all, tokenizer->end()) : std::ranges::max_element(all);
  if (at == all.end()) {
    throw InvalidArgument(std::string(kName) + ": expected an end token, " +
                          std::to_string(tokenizer->end()) + ", among the tokens, got none");
  }
  return at - all.begin();
}

void TextEncoder::State::check(std::span<const std::int32_t> all, const Matrix& to,
                               std::span<float> out) const {
  const auto refuse = [](const std::string& expected, const auto& got) {
    throw InvalidArgument(std::string(kName) + ": expected " + expected + ", got " + std::to_string(got));
  };
  if (all.empty() || all.size() > size(shape.context)) {
    refuse("1 to " + std::to_string(shape.context) + " tokens", all.size());
  }
  for (const std::int32_t id : all) {
    if (id < 0 || id >= shape.vocabulary) {
      refuse("tokens from 0 to " + std::to_string(shape.vocabulary - 1), id);
    }
  }
  if (to.data != nullptr) {
    attention::check_matrix(kName, "tokens", to, static_cast<int>(all.size()), shape.width);
  }
  const std::size_t wanted = size(shape.embedding == 0 ? shape.width : shape.embedding);
  if (!out.empty() && out.size() != wanted) {
    refuse("pooled of " + std::to_string(wanted) + " floats, or none", out.size());
  }
}

void TextEncoder::State::encode(std::span<const std::int32_t> all, const Matrix& to, std::span<float> out) {
  check(all, to, out);
  end = end_of(all);
  ids = all;
  const auto rows = static_cast<int>(all.size());
  if (!run || run->memory.x.view().rows != rows) {
    run = std::make_unique<Run>(*this, rows);
  }
  run->stages.run();
  const Matrix normal = run->memory.normal.view();
  for (int r = 0; to.data != nullptr && r < rows; ++r) {
    std::copy_n(normal.row(r), shape.width, to.row(r));
  }
  const float* pooled = projection ? run->pooled.view().data : run->end_row.view().data;
  std::copy_n(pooled, out.size(), out.data());
}

TextEncoder::TextEncoder(const std::string& path, const EncoderParameters& parameters,
                         const std::string& tokenizer) {
  check_parameters(kName, parameters);
  const Checkpoint file(path);
  state_ = std::make_unique<State>(file, names_in(file), parameters, tokenizer);
}
TextEncoder::~TextEncoder() = default;
TextEncoder::TextEncoder(TextEncoder&&) noexcept = default;
TextEncoder& TextEncoder::operator=(TextEncoder&&) noexcept = default;

int TextEncoder::width() const { return state_->shape.width; }
int TextEncoder::embedding_size() const {
  return state_->shape.embedding == 0 ? state_->shape.width : state_->shape.embedding;
}
int TextEncoder::context() const { return state_->shape.context; }
int TextEncoder::vocabulary_size() const { return state_->shape.vocabulary; }
int TextEncoder::layers() const { return state_->shape.tower.layers; }
AttentionPrecision TextEncoder::precision() const { return precision_of(state_->tower.is_bfloat16()); }
const Tokenizer* TextEncoder::tokenizer() const { return state_->tokenizer ? &*state_->tokenizer : nullptr; }

TextEmbedding TextEncoder::encode(std::string_view prompt) {
  if (!state_->tokenizer) {
    throw ModelError(kName, "expected a tokenizer in the model or beside it, found none");
  }
  const TokenizedText text = state_->tokenizer->tokenize(prompt, context());
  TextEmbedding embedding{text.ids, text.cut, text.invalid, width(), {}, {}};
  embedding.tokens.resize(text.ids.size() * size(width()));
  embedding.pooled.resize(size(embedding_size()));
  encode(embedding.ids, {embedding.tokens.data(), static_cast<int>(text.ids.size()), width(), width()},
         embedding.pooled);
  return embedding;
}

void TextEncoder::encode(std::span<const std::int32_t> ids, const Matrix& tokens, std::span<float> pooled) {
  state_->encode(ids, tokens, pooled);
}

}  // namespace nonlocal
