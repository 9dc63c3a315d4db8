#include "filter_options.h"

#include <filesystem>
#include <map>
#include <utility>

#include "codec.h"
#include "failure.h"
#include "model_file.h"

namespace nonlocal::tools {
namespace {

constexpr const char* kDenoiser = "nonlocaldenoise";
constexpr const char* kRegionInterval = "10";

// Without a model that finds it, a region would be the whole picture. Each run finds it in the same frames.
void complete_region(Filter& filter) {
  if (filter.element != "textcross" || value_of(filter, "region").empty()) return;
  const std::string model = value_of(filter, "model");
  if (!is_model_folder(model))
    throw Failure("--region: expected --model with the folder of a model of CLIP or CLIPSeg, got " +
                  (model.empty() ? "none" : model));
  if (value_of(filter, "region-interval").empty())
    filter.properties.emplace_back("region-interval", kRegionInterval);
}

}  // namespace

// The filters as the command line names them, one after another, each with the options that follow it.
// Options before the first are the first's.
class JobOptions::ChainOptions {
 public:
  explicit ChainOptions(CLI::App& command) : command_(command) {
    declare_filters();
    declare_properties();
  }

  // As given; one that denoises where no filter is named.
  [[nodiscard]] FilterChain chain() const {
    FilterChain chain;
    Properties before_first;
    std::map<const CLI::Option*, size_t> seen;
    for (const CLI::Option* option : command_.parse_order()) {
      const auto meaning = meanings_.find(option);
      if (meaning == meanings_.end()) continue;
      const auto& [element, property] = meaning->second;
      const std::string value = option->results().at(seen[option]++);
      if (!element.empty()) chain.push_back({element, std::exchange(before_first, {})});
      if (value.empty()) continue;
      (chain.empty() ? before_first : chain.back().properties).emplace_back(property, value);
    }
    if (chain.empty()) chain.push_back({kDenoiser, before_first});
    for (Filter& filter : chain) {
      complete_region(filter);
      filter.properties.insert(filter.properties.end(), common_.begin(), common_.end());
    }
    return chain;
  }

 private:
  // A filter that begins, with the property that its value sets, or, without an element, a property of it.
  struct Meaning {
    std::string element;
    std::string property;
  };

  void declare_filters() {
    add_filter("--denoise", kDenoiser, "preset", "Non-local means; PRESET is fast, balanced or quality")
        ->expected(0, 1)
        ->option_text("[PRESET]");
    add_filter("--attention", "selfattention", "model",
               "A network with attention; MODEL is restore, restore_noisy, gaussian or a file")
        ->expected(0, 1)
        ->option_text("[MODEL]");
    add_filter("--prompt", "textcross", "prompt", "Grades as the text says: \"much warmer, darker\"")
        ->expected(1)
        ->option_text("TEXT");
  }

  void declare_properties() {
    add_property("--sigma", "sigma", "Standard deviation of the noise, of 255; -1: estimate it");
    add_property("--strength", "strength",
                 "Strength; of --denoise on luma or RGB, 1 suits the noise; 0 leaves as is");
    add_property("--chroma-strength", "chroma-strength", "Strength on the chroma planes");
    add_property("--chroma", "chroma", "separate or joint: chroma by weights of its own or by luma's");
    add_property("--preset", "preset", "fast, balanced or quality");
    add_property("--patch-size", "patch-size", "Side of the patches compared, odd; 0: the preset's");
    add_property("--search-size", "search-size", "Side of the window searched, odd; 0: the preset's");
    add_property("--model", "model",
                 "Network of --attention, or filter of --prompt: a name or a file; with --region the folder "
                 "of a model that finds it");
    add_property("--region", "region",
                 "Limits what --prompt does to what this text says: \"the car\"; --model is a folder of "
                 "CLIP's or CLIPSeg's files");
    add_property("--region-interval", "region-interval",
                 "Every how many frames it is found, " + std::string(kRegionInterval) + " by default");
    add_common_property("--threads", "n-threads", "Threads to filter with; 0: all");
  }

  CLI::Option* add_filter(const std::string& flag, const std::string& element, const std::string& property,
                          const std::string& help) {
    return add(flag, {element, property}, help);
  }

  void add_property(const std::string& flag, const std::string& name, const std::string& help) {
    add(flag, {"", name}, help + " (element property " + name + ")");
  }

  // Of all filters, besides what is theirs.
  void add_common_property(const std::string& flag, const std::string& name, const std::string& help) {
    command_.add_option_function<std::string>(
        flag, [this, name](const std::string& value) { common_.emplace_back(name, value); },
        help + " (element property " + name + ")");
  }

  CLI::Option* add(const std::string& flag, const Meaning& meaning, const std::string& help) {
    CLI::Option* option =
        command_.add_option(flag, help)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    meanings_[option] = meaning;
    return option;
  }

  CLI::App& command_;
  std::map<const CLI::Option*, Meaning> meanings_;
  Properties common_;
};

JobOptions::JobOptions(CLI::App& command) : filters_(std::make_unique<ChainOptions>(command)) {
  command.add_option("--codec", job_.codec, codec_names())->capture_default_str();
  command
      .add_option("--quality", job_.quality,
                  "From 0, the best, to the codec's worst: 50 for h264, usually 18")
      ->check(CLI::Range(0, 63));
}

JobOptions::~JobOptions() = default;

FilterJob JobOptions::job(const std::string& input, const std::string& output) const {
  FilterJob job = job_;
  job.input = input;
  job.output = output;
  job.chain = filters_->chain();
  return job;
}

}  // namespace nonlocal::tools
