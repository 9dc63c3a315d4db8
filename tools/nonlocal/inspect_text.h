// What models hold that encode text: CLIP's and CLIPSeg's folders, prompts' encoders, filters with one.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace nonlocal::tools {

struct TextModelSummary {
  struct Text {
    int layers, width, context, vocabulary, embedding;
    bool has_tokenizer;
  };
  struct Vision {
    int layers, width, patch, side, embedding;
  };
  struct Filter {
    int layers, heads;
  };
  std::string path;
  std::optional<Text> text;
  std::optional<Vision> vision;
  std::optional<Filter> filter;                    // by cross-attention
  std::map<std::string, std::int64_t> parameters;  // of "text", "vision", "decoder", "filter", "other"
  std::map<std::string, std::string> metadata;     // without what is told otherwise
};

// None of a file that encodes neither text nor pictures. Throws ModelError.
std::optional<TextModelSummary> summarise_text_model(const std::string& path);

void print_text_model(const TextModelSummary& model);
nlohmann::json text_model_json(const TextModelSummary& model);

// Text from a file: control characters are escaped.
std::string shown(const std::string& text);

// The folder's weights, the first file of several.
std::string weights_in(const std::string& folder);

}  // namespace nonlocal::tools
