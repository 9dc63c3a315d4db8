// nonlocal embed: a prompt's embedding, as a file.
#include <nonlocal/error.h>
#include <nonlocal/known_words.h>
#include <nonlocal/text_encoder.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "commands.h"
#include "failure.h"
#include "model/safetensors.h"
#include "model_file.h"
#include "partial_file.h"
#include "prompt.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWeights = ".safetensors";

struct EmbedOptions {
  std::string text;
  std::string model = kPromptModel;
  std::string output;
  std::string precision = "f32";
};

std::map<std::string, std::string> metadata_of(const EmbedOptions& options, const TextEmbedding& embedding) {
  std::string ids;
  for (const int id : embedding.ids) ids += (ids.empty() ? "" : " ") + std::to_string(id);
  return {{"format", "nonlocal.embedding"},  {"version", "1"},
          {"prompt", as_utf8(options.text)}, {"model", as_utf8(options.model)},
          {"precision", options.precision},  {"ids", ids}};
}

void write(const std::string& path, const EmbedOptions& options, const TextEmbedding& embedding) {
  const auto size = [](auto n) { return static_cast<std::uint64_t>(n); };
  try {
    model::write_safetensors(
        path, metadata_of(options, embedding),
        {{"tokens", {size(embedding.ids.size()), size(embedding.width)}, embedding.tokens},
         {"pooled", {size(embedding.pooled.size())}, embedding.pooled}});
  } catch (const ModelError&) {  // it names the part that is not renamed yet
    throw Failure(options.output + ": cannot be written");
  }
}

// None of a model in a folder.
std::optional<KnownWords> words_of(const std::string& model) {
  std::error_code error;
  return fs::is_directory(model, error) ? std::nullopt : std::optional<KnownWords>(model);
}

// Nor one of the files of a model: weights, an index, and what lies beside them, such as a configuration and
// a vocabulary. Nor a file that would keep the model from being read: where no name says which weights are
// the model's, there may be only these. Other weights beside a file, or beside model.safetensors, are not
// read.
void check_is_not_read(const fs::path& output, const fs::path& model) {
  PartialFile::check_is_not(output, model, "model");
  std::error_code error;
  const bool is_folder = fs::is_directory(model, error);
  const fs::path folder = is_folder ? model : model.has_parent_path() ? model.parent_path() : fs::path(".");
  const fs::path weights = is_folder ? folder / "model.safetensors" : model;
  const bool is_named = fs::exists(weights, error);
  bool has_weights = false;
  for (fs::directory_iterator at(folder, error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    if (is_named && at->path().extension() == kWeights && at->path() != weights) {
      continue;
    }
    has_weights = has_weights || at->path().extension() == kWeights;
    PartialFile::check_is_not(output, at->path(), "model's " + at->path().filename().string());
  }
  const fs::path beside = output.has_parent_path() ? output.parent_path() : fs::path(".");
  if (is_folder && !is_named && has_weights && output.extension() == kWeights &&
      fs::equivalent(beside, folder, error) && !fs::exists(folder / "model.safetensors.index.json", error)) {
    throw Failure(
        output.string() +
        ": beside the model's weights, which are not called model.safetensors, the model could not be "
        "read any more");
  }
}

void run(const EmbedOptions& options) {
  const std::string model = model_file(options.model);
  check_is_not_read(options.output, model);
  PartialFile::check(options.output);
  const auto precision =
      options.precision == "bf16" ? AttentionPrecision::kBfloat16 : AttentionPrecision::kFloat32;
  TextEncoder encoder(model, {.precision = precision});
  const std::optional<KnownWords> words = words_of(model);
  // As PromptReader reads it.
  const TextEmbedding embedding = encoder.encode(words ? words->corrected(options.text) : options.text);
  PartialFile file(options.output);
  write(file.path().string(), options, embedding);
  file.commit();
  std::cout << formatted("%s: %zu tokens of %d channels, pooled to %zu", options.output.c_str(),
                         embedding.ids.size(), embedding.width, embedding.pooled.size())
            << std::endl;
  warn_of(embedding.cut, encoder.tokenizer()->tokenize(options.text).invalid);
  if (words) warn_of_unknown(words->unknown_words(options.text));
}

}  // namespace

void add_embed(CLI::App& app) {
  auto* command = app.add_subcommand("embed", "Write a prompt's embedding: tokens and pooled");
  command->footer(
      "The file is a safetensors file with \"tokens\" (tokens x channels, after the last norm) and "
      "\"pooled\"\n"
      "(projected, not normalised), both F32; its metadata say the prompt, its tokens and the model.");
  const auto options = std::make_shared<EmbedOptions>();
  command->add_option("TEXT", options->text, "A prompt")->required();
  command
      ->add_option("--model", options->model,
                   "A folder as Hugging Face's, a .safetensors file, or the name of a model of the library")
      ->capture_default_str();
  command->add_option("-o,--output", options->output, "The .safetensors file to write")->required();
  command->add_option("--precision", options->precision, "What is multiplied; bf16 where the CPU has it")
      ->check(CLI::IsMember({"f32", "bf16"}))
      ->capture_default_str();
  command->callback([options] { run(*options); });
}

}  // namespace nonlocal::tools
