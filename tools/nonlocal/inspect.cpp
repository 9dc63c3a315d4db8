// nonlocal inspect: what a model file holds.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "commands.h"
#include "inspect_text.h"
#include "json_text.h"
#include "model/safetensors.h"
#include "model_file.h"
#include "nonlocal/network.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

using nlohmann::json;

struct InspectOptions {
  std::string model;
  bool as_json = false;
};

std::string size_of(const LayerSummary& layer) {
  return layer.numerator == layer.denominator ? "1" : formatted("%d/%d", layer.numerator, layer.denominator);
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " ") + name;
  return text;
}

struct Totals {
  explicit Totals(const ModelSummary& model) {
    for (const LayerSummary& layer : model.layers) {
      parameters += layer.parameters;
      operations += layer.operations;
    }
    receptive_field = model.layers.back().receptive_field;
  }
  std::int64_t parameters = 0;
  double operations = 0;
  int receptive_field = 0;
};

std::string field_of(int receptive_field) {
  return receptive_field == 0 ? "all" : std::to_string(receptive_field);
}

void print_text(const std::string& file, const ModelSummary& model) {
  const Totals totals(model);
  std::cout << file << ": " << shown(model.format) << ", version " << shown(model.version) << "\n";
  std::cout << formatted("input       %d channels%s, values %g to %g", model.input_channels,
                         model.frames > 1 ? formatted(" of %d frames", model.frames).c_str() : "",
                         model.range[0], model.range[1])
            << "\n";
  if (model.condition) {
    std::cout << formatted("condition   %s, %g to %g (%g)", model.condition->name.c_str(),
                           model.condition->minimum, model.condition->maximum, model.condition->value)
              << "\n";
  }
  std::cout << formatted("output      %d channels%s", model.output_channels,
                         model.residual ? ", added to the input" : "")
            << "\n";
  if (model.temporal_mean) {
    std::cout << formatted("in time     the mean with the frame before, h %g", *model.temporal_mean) << "\n";
  }
  if (model.has_ranges) {
    std::cout << "precision   int8 as well: the file tells what lies between layers\n";
  }
  std::cout << formatted("sides       mirrored up to a multiple of %d", model.multiple) << "\n\n";
  std::cout << formatted("%-24s %-16s %8s %6s %10s %10s %6s  %s", "layer", "type", "channels", "size",
                         "parameters", "FLOP/pixel", "field", "inputs")
            << "\n";
  for (const LayerSummary& layer : model.layers) {
    std::cout << formatted("%-24s %-16s %8d %6s %10lld %10.1f %6s  %s", layer.name.c_str(),
                           layer.type.c_str(), layer.channels, size_of(layer).c_str(),
                           static_cast<long long>(layer.parameters), layer.operations,
                           field_of(layer.receptive_field).c_str(), joined(layer.inputs).c_str())
              << "\n";
  }
  std::cout << formatted(
                   "\n%lld parameters, %.1f kFLOP a pixel without attention over the whole frame, "
                   "receptive field %s",
                   static_cast<long long>(totals.parameters), totals.operations / 1000,
                   field_of(totals.receptive_field).c_str())
            << "\n";
  for (const auto& [key, value] : model.metadata) {
    std::cout << shown(key) << ": " << shown(value) << "\n";
  }
}

json layer_json(const LayerSummary& layer) {
  return {{"name", layer.name},
          {"type", layer.type},
          {"inputs", layer.inputs},
          {"channels", layer.channels},
          {"size", {layer.numerator, layer.denominator}},
          {"parameters", layer.parameters},
          {"operations", layer.operations},
          {"receptive_field", layer.receptive_field == 0 ? json() : json(layer.receptive_field)}};
}

json model_json(const std::string& file, const ModelSummary& model) {
  const Totals totals(model);
  json layers = json::array();
  for (const LayerSummary& layer : model.layers) layers.push_back(layer_json(layer));
  json condition;
  if (model.condition) {
    condition = {{"name", model.condition->name},
                 {"minimum", model.condition->minimum},
                 {"maximum", model.condition->maximum},
                 {"default", model.condition->value}};
  }
  return {{"file", file},
          {"format", model.format},
          {"version", model.version},
          {"input", {{"channels", model.input_channels}, {"frames", model.frames}, {"range", model.range}}},
          {"condition", condition},
          {"output", {{"channels", model.output_channels}, {"residual", model.residual}}},
          {"temporal_mean", model.temporal_mean ? json{{"h", *model.temporal_mean}} : json()},
          {"has_ranges", model.has_ranges},
          {"multiple", model.multiple},
          {"layers", layers},
          {"parameters", totals.parameters},
          {"operations", totals.operations},
          {"receptive_field", totals.receptive_field == 0 ? json() : json(totals.receptive_field)},
          {"metadata", model.metadata}};
}

// A file that says so: what lies beside it, such as a config.json, is not its own.
bool is_network(const std::string& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return false;
  const std::string format = model::Safetensors(file).metadata("format").value_or("");
  return format == "nonlocal.network" || format == "nonlocal.refinement";
}

void run(const InspectOptions& options) {
  std::string file = model_file(options.model);
  if (const auto model = is_network(file) ? std::nullopt : summarise_text_model(file)) {
    if (options.as_json) {
      std::cout << json_text(text_model_json(*model), 2) << std::endl;
    } else {
      print_text_model(*model);
    }
    return;
  }
  if (std::filesystem::is_directory(file)) file = weights_in(file);
  const ModelSummary model = summarise_model(file);
  if (options.as_json) {
    std::cout << json_text(model_json(file, model), 2) << std::endl;
  } else {
    print_text(file, model);
  }
}

}  // namespace

void add_inspect(CLI::App& app) {
  auto* command = app.add_subcommand(
      "inspect",
      "Print what a model holds: a network's layers, shapes and operations a pixel; what encodes text and "
      "pictures; where it comes from");
  const auto options = std::make_shared<InspectOptions>();
  command
      ->add_option("MODEL", options->model,
                   "A .safetensors file, a folder as Hugging Face's, or the name of a model of the library")
      ->required();
  command->add_flag("--json", options->as_json, "As JSON; a receptive field of null is the whole frame");
  command->callback([options] { run(*options); });
}

}  // namespace nonlocal::tools
