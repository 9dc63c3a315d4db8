#include "inspect_text.h"

#include <nonlocal/cross_attention_filter.h>
#include <nonlocal/text_encoder.h>
#include <nonlocal/vision_encoder.h>

#include <algorithm>
#include <iostream>
#include <string_view>

#include "json_text.h"
#include "text.h"
#include "text/checkpoint.h"

namespace nonlocal::tools {
namespace {

using nlohmann::json;
using text::Checkpoint;

// What names of tensors begin with, in Hugging Face's layout and OpenAI's, after "clip." where that is.
struct Part {
  std::string_view begin;
  const char* name;
};
constexpr Part kParts[] = {{"text_", "text"},           {"transformer.", "text"},
                           {"token_embedding", "text"}, {"positional_embedding", "text"},
                           {"ln_final", "text"},        {"vision_", "vision"},
                           {"visual", "vision"},        {"decoder.", "decoder"},
                           {"layers.", "filter"}};

std::string part_of(std::string_view name) {
  constexpr std::string_view kPrefix = "clip.";
  if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
  const auto* part = std::ranges::find_if(kParts, [&](const Part& p) { return name.starts_with(p.begin); });
  return part == std::end(kParts) ? "other" : part->name;
}

std::map<std::string, std::int64_t> parameters_in(const Checkpoint& file) {
  std::map<std::string, std::int64_t> all;
  for (const std::string& name : file.names()) {
    if (name.ends_with(".position_ids")) continue;  // 0, 1, 2 ... in older files
    std::int64_t count = 1;
    for (const std::uint64_t side : file.shape(name)) count *= static_cast<std::int64_t>(side);
    all[part_of(name)] += count;
  }
  return all;
}

bool has_any(const Checkpoint& file, std::initializer_list<const char*> names) {
  return std::ranges::any_of(names, [&](const char* name) { return file.has(name); });
}

std::string kind_of(const TextModelSummary& m) {
  if (m.filter) return "a filter by cross-attention and the encoder of its prompts";
  if (m.parameters.contains("decoder")) return "CLIPSeg";
  if (m.text && m.vision) return "CLIP";
  return m.text ? "an encoder of text" : "an encoder of pictures";
}

std::string counted(const TextModelSummary& m, const std::string& part) {
  return formatted("%lld parameters", static_cast<long long>(m.parameters.at(part)));
}

}  // namespace

std::string shown(const std::string& text) { return json_text(json(text)); }

std::string weights_in(const std::string& folder) { return Checkpoint(folder).first_file(); }

std::optional<TextModelSummary> summarise_text_model(const std::string& path) {
  const Checkpoint file(path);
  TextModelSummary m;
  m.path = path;
  if (has_any(file, {"token_embedding.weight", "text_model.final_layer_norm.weight",
                     "clip.text_model.final_layer_norm.weight"})) {
    const TextEncoder encoder(path);
    m.text = {encoder.layers(),          encoder.width(),          encoder.context(),
              encoder.vocabulary_size(), encoder.embedding_size(), encoder.tokenizer() != nullptr};
  }
  if (has_any(file, {"visual.conv1.weight", "vision_model.embeddings.class_embedding",
                     "clip.vision_model.embeddings.class_embedding"})) {
    const VisionEncoder encoder(path);
    m.vision = {encoder.layers(), encoder.width(), encoder.patch_size(), encoder.image_size(),
                encoder.embedding_size()};
  }
  if (!m.text && !m.vision) return std::nullopt;
  if (file.metadata("format") == "nonlocal.cross_attention_filter") {
    const CrossAttentionModel filter(file.first_file());
    m.filter = {filter.layers(), filter.heads()};
  }
  m.parameters = parameters_in(file);
  m.metadata = file.metadata();
  for (const char* told : {"config", "tokenizer", "words", "layers", "heads"}) m.metadata.erase(told);
  return m;
}

void print_text_model(const TextModelSummary& m) {
  std::cout << m.path << ": " << kind_of(m) << "\n";
  if (m.text) {
    std::cout << formatted(
                     "text        %d layers of %d channels, up to %d tokens of %d%s, embeddings of %d, ",
                     m.text->layers, m.text->width, m.text->context, m.text->vocabulary,
                     m.text->has_tokenizer ? "" : " (no tokenizer)", m.text->embedding)
              << counted(m, "text") << "\n";
  }
  if (m.vision) {
    std::cout << formatted(
                     "vision      %d layers of %d channels, patches of %dx%d, pictures of %dx%d, "
                     "embeddings of %d, ",
                     m.vision->layers, m.vision->width, m.vision->patch, m.vision->patch, m.vision->side,
                     m.vision->side, m.vision->embedding)
              << counted(m, "vision") << "\n";
  }
  if (m.parameters.contains("decoder")) {
    std::cout << "decoder     masks, " << counted(m, "decoder") << "\n";
  }
  if (m.filter) {
    std::cout << formatted("filter      %d layers of %d heads, ", m.filter->layers, m.filter->heads)
              << counted(m, "filter") << "\n";
  }
  for (const auto& [key, value] : m.metadata) {
    std::cout << shown(key) << ": " << shown(value) << "\n";
  }
}

json text_model_json(const TextModelSummary& m) {
  json text, vision, filter;
  if (m.text) {
    text = {{"layers", m.text->layers},       {"width", m.text->width},
            {"context", m.text->context},     {"vocabulary", m.text->vocabulary},
            {"embedding", m.text->embedding}, {"has_tokenizer", m.text->has_tokenizer}};
  }
  if (m.vision) {
    vision = {{"layers", m.vision->layers},
              {"width", m.vision->width},
              {"patch", m.vision->patch},
              {"side", m.vision->side},
              {"embedding", m.vision->embedding}};
  }
  if (m.filter) {
    filter = {{"layers", m.filter->layers}, {"heads", m.filter->heads}};
  }
  return {{"file", m.path},
          {"kind", kind_of(m)},
          {"text", text},
          {"vision", vision},
          {"filter", filter},
          {"has_decoder", m.parameters.contains("decoder")},
          {"parameters", m.parameters},
          {"metadata", m.metadata}};
}

}  // namespace nonlocal::tools
