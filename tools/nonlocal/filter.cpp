// nonlocal filter: a video file in, the same file filtered out.
#include <iostream>

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

// The filters as the command line names them, one after another. Options before the first are the first's.
class ChainOptions {
 public:
  void add_filter(const std::string& element, const std::string& property, const std::string& value) {
    chain_.push_back({element, std::exchange(before_first_, {})});
    if (!value.empty()) chain_.back().properties.emplace_back(property, value);
  }

  void add_property(const std::string& name, const std::string& value) {
    (chain_.empty() ? before_first_ : chain_.back().properties).emplace_back(name, value);
  }

  // Of all filters.
  void set_threads(const std::string& threads) { threads_ = threads; }

  // Denoises where no filter is named.
  [[nodiscard]] FilterChain chain() const {
    FilterChain chain = chain_;
    if (chain.empty()) chain.push_back({kDenoiser, before_first_});
    if (!threads_.empty())
      for (Filter& filter : chain) filter.properties.emplace_back("n-threads", threads_);
    return chain;
  }

 private:
  FilterChain chain_;
  Properties before_first_;
  std::string threads_;
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

void add_filter_options(CLI::App& command, const std::shared_ptr<ChainOptions>& filters) {
  const auto filter = [&](const std::string& flag, const std::string& element, const std::string& property,
                          const std::string& help) {
    return command.add_option_function<std::string>(
        flag,
        [filters, element, property](const std::string& value) {
          filters->add_filter(element, property, value);
        },
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

  const auto property = [&](const std::string& flag, const std::string& name, const std::string& help) {
    command.add_option_function<std::string>(
        flag, [filters, name](const std::string& value) { filters->add_property(name, value); },
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
  command.add_option_function<std::string>(
      "--threads", [filters](const std::string& threads) { filters->set_threads(threads); },
      "Threads to filter with; 0: all (element property n-threads)");
}

}  // namespace

void add_filter(CLI::App& app) {
  auto* command = app.add_subcommand("filter", "Filter a video file; all else in it is kept");
  const auto options = std::make_shared<FilterOptions>();
  const auto filters = std::make_shared<ChainOptions>();
  FilterRequest& request = options->request;
  command->add_option("IN", request.job.input, "Any video file that GStreamer reads; -: YUV4MPEG2 on stdin")
      ->required();
  command
      ->add_option(
          "OUT", request.job.output,
          "The file to write: .mkv, .mp4, .mov or .webm, replaced if it exists; -: YUV4MPEG2 on stdout")
      ->required();
  add_filter_options(*command, filters);
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
