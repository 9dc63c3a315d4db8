// nonlocal tokenize: the tokens of a text.
#include <nonlocal/tokenizer.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "commands.h"
#include "json_text.h"
#include "model_file.h"
#include "prompt.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

using nlohmann::json;

struct TokenizeOptions {
  std::string text;
  std::string model = kPromptModel;
  int context = 0;
  bool as_json = false;
};

void print_json(const TokenizeOptions& options, const Tokenizer& tokenizer, const TokenizedText& found) {
  json pieces = json::array();
  for (const int id : found.ids) pieces.push_back(tokenizer.piece(id));
  const json result = {{"text", options.text},
                       {"ids", found.ids},
                       {"pieces", pieces},
                       {"cut", found.cut},
                       {"invalid_utf8", found.invalid},
                       {"vocabulary", tokenizer.size()}};
  std::cout << json_text(result, 2) << std::endl;
}

// A vocabulary's file may hold anything: what a terminal would obey is escaped, as JSON does.
std::string printable(const std::string& piece) {
  const bool has_controls = std::ranges::any_of(piece, [](unsigned char c) { return c < ' ' || c == 0x7F; });
  return has_controls ? json(piece).dump(-1, ' ', true, json::error_handler_t::replace) : piece;
}

std::string context_problem(const std::string& text) {
  int tokens = 0;
  const bool is_count = CLI::detail::lexical_cast(text, tokens) && tokens <= 1000000;
  return is_count && (tokens == 0 || tokens >= 2) ? "" : text + " is neither 0 nor from 2 to 1000000";
}

void run(const TokenizeOptions& options) {
  const Tokenizer tokenizer(model_file(options.model));
  const TokenizedText found = tokenizer.tokenize(options.text, options.context);
  if (options.as_json) {
    print_json(options, tokenizer, found);
    return;
  }
  for (const int id : found.ids)
    std::cout << formatted("%7d  %s", id, printable(tokenizer.piece(id)).c_str()) << "\n";
  std::cout.flush();
  // No model's limit, but the user's.
  if (found.cut > 0)
    std::cerr << formatted("nonlocal: --context %d leaves out the prompt's last %zu token%s", options.context,
                           found.cut, found.cut == 1 ? "" : "s")
              << std::endl;
  warn_of(0, found.invalid);
}

}  // namespace

void add_tokenize(CLI::App& app) {
  auto* command = app.add_subcommand("tokenize", "Print the tokens of a text, as text encoders take them");
  const auto options = std::make_shared<TokenizeOptions>();
  command->add_option("TEXT", options->text, "A prompt")->required();
  command
      ->add_option(
          "--model", options->model,
          "A folder with tokenizer.json, vocab.json and merges.txt or a list of merges, one of these "
          "files, a model's .safetensors, or the name of a model of the library")
      ->capture_default_str();
  command->add_option("--context", options->context, "Tokens at the most, with start and end; 0: all")
      ->check(CLI::Validator(context_problem, "0 or 2 - 1000000"))
      ->capture_default_str();
  command->add_flag("--json", options->as_json, "As JSON");
  command->callback([options] { run(*options); });
}

}  // namespace nonlocal::tools
