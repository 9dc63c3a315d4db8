// nonlocal filter: a video file in, the same file filtered out.
#include <iostream>
#include <map>
#include <utility>

#include "commands.h"
#include "failure.h"
#include "filter_report.h"
#include "filter_run.h"
#include "filter_stream.h"
#include "gst.h"
#include "progress.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

struct FilterOptions {
  FilterRequest request;
  bool as_json = false;
  bool quiet = false;
};

constexpr const char* kDenoiser = "nonlocaldenoise";

// The filters as the command line names them, one after another, each with the options that follow it.
// Options before the first are the first's.
class ChainOptions {
 public:
  explicit ChainOptions(CLI::App& command) : command_(command) {}

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
    for (Filter& filter : chain)
      filter.properties.insert(filter.properties.end(), common_.begin(), common_.end());
    return chain;
  }

 private:
  // A filter that begins, with the property that its value sets, or, without an element, a property of it.
  struct Meaning {
    std::string element;
    std::string property;
  };

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

// A file that was cut off reads like a shorter one: nothing is lost, but its user should know.
void warn_if_short(FilterReport& report, const FilterRequest& request, const FilterResult& result) {
  constexpr double kUsual = 1;  // sound that goes on, a last frame's length
  if (result.plan.media.seconds - result.last_seconds < kUsual) return;
  report.warn(formatted("%s: its last frame is at %.2f s, though it says to be %.2f s long",
                        request.job.input.c_str(), result.last_seconds, result.plan.media.seconds));
}

// A report would stand among the frames: progress, and how it went, are on stderr.
void run_between_programs(const FilterOptions& options, const FilterRequest& request) {
  if (options.as_json || request.resume || !request.picture.empty() || !request.reference.empty())
    throw Failure("-: a stream goes without --json, --resume, --picture and --reference");
  int64_t frames = 0;
  {
    Progress progress(0, options.quiet);
    frames = run_stream(request.job, [&](int64_t n) { progress.show(n, ""); });
  }
  if (!options.quiet)
    std::cerr << request.job.input << " to " << request.job.output << ": " << frames << " frames"
              << std::endl;
}

void run(const FilterOptions& options, const ChainOptions& filters) {
  catch_interrupts();
  start_gstreamer();
  FilterRequest request = options.request;
  request.job.chain = filters.chain();
  if (is_stream(request.job)) return run_between_programs(options, request);
  const Report kind = options.as_json ? Report::kJson : options.quiet ? Report::kQuiet : Report::kText;
  const auto report = make_report(kind, request);
  const FilterResult result = run_filter(request, *report);
  warn_if_short(*report, request, result);
  report->end(request, result);
}

void add_filter_options(ChainOptions& filters) {
  filters
      .add_filter("--denoise", kDenoiser, "preset", "Non-local means; PRESET is fast, balanced or quality")
      ->expected(0, 1)
      ->option_text("[PRESET]");
  filters
      .add_filter("--attention", "selfattention", "model",
                  "A network with attention; MODEL is restore, gaussian or a file")
      ->expected(0, 1)
      ->option_text("[MODEL]");
  filters.add_filter("--prompt", "textcross", "prompt", "Grades as the text says: \"much warmer, darker\"")
      ->expected(1)
      ->option_text("TEXT");
  const auto property = [&](const std::string& flag, const std::string& name, const std::string& help) {
    filters.add_property(flag, name, help);
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
  filters.add_common_property("--threads", "n-threads", "Threads to filter with; 0: all");
}

}  // namespace

void add_filter(CLI::App& app) {
  auto* command = app.add_subcommand("filter", "Filter a video file; all else in it is kept");
  const auto options = std::make_shared<FilterOptions>();
  const auto filters = std::make_shared<ChainOptions>(*command);
  FilterRequest& request = options->request;
  command->add_option("IN", request.job.input, "Any video file that GStreamer reads; -: YUV4MPEG2 on stdin")
      ->required();
  command
      ->add_option(
          "OUT", request.job.output,
          "The file to write: .mkv, .mp4, .mov or .webm, replaced if it exists; -: YUV4MPEG2 on stdout")
      ->required();
  add_filter_options(*filters);
  command->add_option("--codec", request.job.codec, codec_names())->capture_default_str();
  command
      ->add_option("--quality", request.job.quality,
                   "From 0, the best, to the codec's worst: 50 for h264, usually 18")
      ->check(CLI::Range(0, 63));
  command->add_option("--picture", request.picture, "Write a before/after PNG of the middle frame here");
  command->add_option("--reference", request.reference, "The clean version of IN: measure PSNR against it");
  command->add_flag("--resume", request.resume, "Go on where a run that did not end stopped");
  command
      ->add_option("--segment-seconds", request.segment_seconds,
                   "How much is done again at the most after --resume")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_flag("--json", options->as_json, "Print events as JSON, one a line, the result last");
  command->add_flag("--quiet", options->quiet, "Show no progress");
  command->callback([options, filters] { run(*options, *filters); });
}

}  // namespace nonlocal::tools
