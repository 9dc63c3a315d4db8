#include "filter_options.h"

#include <utility>

#include "codec.h"

namespace nonlocal::tools {
namespace {

constexpr const char* kDenoiser = "nonlocaldenoise";

}  // namespace

JobOptions::JobOptions(CLI::App& command) {
  declare_filters(command);
  declare_properties(command);
  command.add_option("--codec", job_.codec, codec_names())->capture_default_str();
  command
      .add_option("--quality", job_.quality,
                  "From 0, the best, to the codec's worst: 50 for h264, usually 18")
      ->check(CLI::Range(0, 63));
}

void JobOptions::declare_filters(CLI::App& command) {
  const auto filter = [&](const std::string& flag, const std::string& element, const std::string& property,
                          const std::string& help) {
    return command.add_option_function<std::string>(
        flag, [this, element, property](const std::string& value) { add_filter(element, property, value); },
        help);
  };
  filter("--denoise", kDenoiser, "preset", "Non-local means; PRESET is fast, balanced or quality")
      ->expected(0, 1)
      ->option_text("[PRESET]");
  filter("--attention", "selfattention", "model", "A network with attention: restore, gaussian or a file")
      ->expected(0, 1)
      ->option_text("[MODEL]");
  filter("--prompt", "textcross", "prompt", "Grades as the text says: \"much warmer, darker\"")
      ->option_text("TEXT");
}

void JobOptions::declare_properties(CLI::App& command) {
  const auto property = [&](const std::string& flag, const std::string& name, const std::string& help) {
    command.add_option_function<std::string>(
        flag, [this, name](const std::string& value) { add_property(name, value); },
        help + " (element property " + name + ")");
  };
  property("--sigma", "sigma", "Standard deviation of the noise, of 255; -1: estimate it");
  property("--strength", "strength",
           "Strength; of --denoise on luma or RGB, 1 suits the noise; 0 leaves as is");
  property("--chroma-strength", "chroma-strength", "Strength on the chroma planes");
  property("--chroma", "chroma", "separate or joint: chroma by weights of its own or by luma's");
  property("--preset", "preset", "fast, balanced or quality");
  property("--patch-size", "patch-size", "Side of the patches compared, odd; 0: the preset's");
  property("--search-size", "search-size", "Side of the window searched, odd; 0: the preset's");
  property("--model", "model", "Network of --attention, or filter of --prompt: a name or a file");
  command.add_option("--threads", threads_, "Threads to filter with; 0: all (element property n-threads)");
}

void JobOptions::add_filter(const std::string& element, const std::string& property,
                            const std::string& value) {
  job_.chain.push_back({element, std::exchange(before_first_, {})});
  if (!value.empty()) job_.chain.back().properties.emplace_back(property, value);
}

void JobOptions::add_property(const std::string& name, const std::string& value) {
  (job_.chain.empty() ? before_first_ : job_.chain.back().properties).emplace_back(name, value);
}

FilterJob JobOptions::job(const std::string& input, const std::string& output) const {
  FilterJob job = job_;
  job.input = input;
  job.output = output;
  if (job.chain.empty()) job.chain.push_back({kDenoiser, before_first_});
  if (!threads_.empty())
    for (Filter& filter : job.chain) filter.properties.emplace_back("n-threads", threads_);
  return job;
}

}  // namespace nonlocal::tools
