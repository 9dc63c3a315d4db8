// nonlocal filter: a video file in, the same file filtered out.
#include <iostream>

#include "commands.h"
#include "failure.h"
#include "filter_options.h"
#include "filter_report.h"
#include "filter_run.h"
#include "filter_stream.h"
#include "gst.h"
#include "plan.h"
#include "progress.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

struct FilterOptions {
  std::string input;
  std::string output;
  std::string plan;
  int segment = 0;
  FilterRequest request;
  bool as_json = false;
  bool quiet = false;
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

void run(const FilterOptions& options, const JobOptions& filters) {
  if (options.plan.empty() && options.output.empty()) throw CLI::RequiredError("IN and OUT, or --plan");
  catch_interrupts();
  start_gstreamer();
  if (!options.plan.empty()) return filter_segment(options.plan, options.segment, options.quiet);
  FilterRequest request = options.request;
  request.job = filters.job(options.input, options.output);
  if (is_stream(request.job)) return run_between_programs(options, request);
  const Report kind = options.as_json ? Report::kJson : options.quiet ? Report::kQuiet : Report::kText;
  const auto report = make_report(kind, request);
  const FilterResult result = run_filter(request, *report);
  warn_if_short(*report, request, result);
  report->end(request, result);
}

}  // namespace

void add_filter(CLI::App& app) {
  auto* command = app.add_subcommand("filter", "Filter a video file; all else in it is kept");
  const auto options = std::make_shared<FilterOptions>();
  FilterRequest& request = options->request;
  auto* input =
      command->add_option("IN", options->input, "Any video file that GStreamer reads; -: YUV4MPEG2 on stdin");
  command
      ->add_option(
          "OUT", options->output,
          "The file to write: .mkv, .mp4, .mov or .webm, replaced if it exists; -: YUV4MPEG2 on stdout")
      ->needs(input);
  const auto filters = std::make_shared<JobOptions>(*command);
  command->add_option("--picture", request.picture, "Write a before/after PNG of the middle frame here");
  command->add_option("--reference", request.reference, "The clean version of IN: measure PSNR against it");
  command->add_flag("--resume", request.resume, "Go on where a run that did not end stopped");
  command
      ->add_option("--segment-seconds", request.segment_seconds,
                   "How much is done again at the most after --resume")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  auto* plan =
      command->add_option("--plan", options->plan, "In place of IN and OUT: the folder that plan made")
          ->excludes(input);
  auto* segment =
      command->add_option("--segment", options->segment, "Filter this segment of the plan, from 0, alone");
  plan->needs(segment);
  segment->needs(plan);
  command->add_flag("--json", options->as_json, "Print events as JSON, one a line, the result last");
  command->add_flag("--quiet", options->quiet, "Show no progress");
  command->callback([options, filters] { run(*options, *filters); });
}

}  // namespace nonlocal::tools
