// nonlocal filter: videos and pictures in, the same filtered out.
#include <gst/video/video.h>

#include <iostream>
#include <string>
#include <vector>

#include "codec.h"
#include "commands.h"
#include "failure.h"
#include "filter_files.h"
#include "filter_options.h"
#include "filter_pictures.h"
#include "filter_report.h"
#include "filter_run.h"
#include "filter_stream.h"
#include "gst.h"
#include "option_checks.h"
#include "plan.h"
#include "progress.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

struct FilterOptions {
  std::vector<std::string> files;  // IN..., then OUT
  std::string plan;
  int segment = 0;
  FilterRequest request;
  bool as_json = false;
  bool quiet = false;
};

Report kind_of(const FilterOptions& options) {
  return options.as_json ? Report::kJson : options.quiet ? Report::kQuiet : Report::kText;
}

FilterRequest request_for(const FilePair& files, const FilterOptions& options, const JobOptions& filters) {
  FilterRequest request = options.request;
  request.job = filters.job(files.input, files.output);
  return request;
}

// A file that was cut off reads like a shorter one: nothing is lost, but its user should know.
void warn_if_short(FilterReport& report, const FilterRequest& request, const FilterResult& result) {
  constexpr double kUsual = 1;  // sound that goes on, a last frame's length
  if (result.plan.media.seconds - result.last_seconds < kUsual) return;
  report.warn(formatted("%s: its last frame is at %.2f s, though it says to be %.2f s long",
                        request.job.input.c_str(), result.last_seconds, result.plan.media.seconds));
}

const GstVideoFormatInfo* info_of(const std::string& format) {
  return gst_video_format_get_info(gst_video_format_from_string(format.c_str()));
}

int bits_of(const std::string& format) { return GST_VIDEO_FORMAT_INFO_DEPTH(info_of(format), 0); }

void warn_of_lost_samples(FilterReport& report, const FilterRequest& request, const SegmentReport& all) {
  const std::string& output = request.job.output;
  if (bits_of(all.coded) < bits_of(all.decoded))
    report.warn(formatted("%s: holds %d bits a sample, %s has %d", output.c_str(), bits_of(all.coded),
                          request.job.input.c_str(), bits_of(all.decoded)));
  if (GST_VIDEO_FORMAT_INFO_HAS_ALPHA(info_of(all.decoded)) &&
      !GST_VIDEO_FORMAT_INFO_HAS_ALPHA(info_of(all.coded)))
    report.warn(output + ": holds no alpha, " + request.job.input + " has it");
}

void warn_of_losses(FilterReport& report, const FilterRequest& request, const FilterResult& result) {
  warn_of_lost_samples(report, request, result.all);
  const std::string lost =
      lost_colours(request.job.output, codec_named(request.job.codec), result.plan.media);
  if (!lost.empty()) report.warn(lost);
  if (result.plan.media.chapters && !is_matroska(request.job.output))
    report.warn(request.job.output + ": chapters are left out: .mkv and .webm files hold them");
}

// A report would stand among the frames: progress, and how it went, are on stderr.
void run_between_programs(const FilterOptions& options, const FilterRequest& request) {
  if (options.as_json || request.resume || !request.picture.empty() || !request.reference.empty())
    throw Failure("-: a stream goes without --json, --resume, --picture and --reference");
  StreamResult done;
  {
    Progress progress(0, options.quiet);
    done = run_stream(request.job, [&](int64_t n) { progress.show(n, ""); });
  }
  if (done.is_uneven && request.job.output == kStandardStream)
    std::cerr << "nonlocal: warning: " << request.job.input
              << ": its frames do not come at an even rate, and a stream cannot say so: write a file"
              << std::endl;
  if (!options.quiet)
    std::cerr << request.job.input << " to " << request.job.output << ": " << done.frames << " frames"
              << std::endl;
}

FilterResult filter_picture_files(const FilterRequest& request, const FilePair& files, FilterReport& report) {
  if (request.resume || !request.picture.empty() || !request.reference.empty())
    throw Failure(files.input + ": pictures go without --resume, --picture and --reference");
  return filter_pictures(request, clip_of(files), report);
}

void filter_one(const FilterRequest& request, const FilePair& files, FilterReport& report) {
  const bool of_pictures = is_of_pictures(files);
  const FilterResult result =
      of_pictures ? filter_picture_files(request, files, report) : run_filter(request, report);
  if (!of_pictures) {
    warn_if_short(report, request, result);
    warn_of_losses(report, request, result);
  }
  report.end(request, result);
}

// One that fails does not stop the others.
void filter_each(const std::vector<FilePair>& all, const FilterOptions& options, const JobOptions& filters) {
  size_t failed = 0;
  for (const FilePair& files : all) {
    const FilterRequest request = request_for(files, options, filters);
    const auto report = make_report(kind_of(options), request);
    try {
      filter_one(request, files, *report);
    } catch (const Interrupted&) {
      throw;
    } catch (const std::exception& error) {
      const std::string text = error.what();
      report->fail(text.starts_with(files.input) ? text : files.input + ": " + text);
      ++failed;
    }
  }
  if (failed > 0)
    throw Failure(formatted("%zu of %zu files failed, the others are done", failed, all.size()));
}

// What the plan says already, a segment's options cannot say otherwise.
void check_options_of_segment(const CLI::App& command) {
  for (const CLI::Option* option : command.parse_order())
    if (const std::string name = option->get_name();
        name != "--plan" && name != "--segment" && name != "--quiet")
      throw CLI::ExcludesError("--plan", name);
}

void run(const FilterOptions& options, const JobOptions& filters) {
  if (options.plan.empty() && options.files.size() < 2) throw CLI::RequiredError("IN and OUT, or --plan");
  catch_interrupts();
  start_gstreamer();
  if (!options.plan.empty()) return filter_segment(options.plan, options.segment, options.quiet);
  const std::vector<FilePair> all = pairs_of(options.files);
  const FilterRequest request = request_for(all[0], options, filters);
  if (is_stream(request.job)) return run_between_programs(options, request);
  if (all.size() == 1) return filter_one(request, all[0], *make_report(kind_of(options), request));
  if (!request.picture.empty() || !request.reference.empty())
    throw Failure("several files go without --picture and --reference");
  for (const Filter& filter : request.job.chain) check_properties(filter.element, filter.properties);
  filter_each(all, options, filters);
}

}  // namespace

void add_filter(CLI::App& app) {
  auto* command = app.add_subcommand(
      "filter", "Filter videos and pictures; sound, subtitles, times, titles and chapters are kept");
  command->footer(
      "nonlocal filter film.mp4 out.mkv --denoise quality\n"
      "nonlocal filter photo.jpg scan.png film.mp4 filtered/\n"
      "nonlocal filter frame_%04d.png filtered/ --prompt \"much warmer\"");
  const auto options = std::make_shared<FilterOptions>();
  FilterRequest& request = options->request;
  auto* input = command->add_option(
      "IN", options->files,
      "IN: any video file that GStreamer reads, a picture (.png, .jpg, .tif, .webp), or pictures in numbered "
      "files that are a clip, frame_%04d.png; -: YUV4MPEG2 on stdin. OUT: the file to write, replaced if it "
      "exists: .mkv, .mp4, .mov or .webm for a video; a picture for a picture, with a number for numbered "
      "ones; a folder (one that ends with / is made) for files of the same names, which several INs need; -: "
      "YUV4MPEG2 on stdout. Pictures keep gray, alpha and 16 bits where OUT can hold them, not EXIF data and "
      "profiles; 16-bit colour is filtered with 10");
  input->option_text("... OUT");
  const auto filters = std::make_shared<JobOptions>(*command);
  command->add_option("--picture", request.picture, "Write a before/after PNG of the middle frame here");
  command->add_option("--reference", request.reference, "The clean version of IN: measure PSNR against it");
  command->add_flag("--resume", request.resume, "Go on where a run that did not end stopped");
  command
      ->add_option("--segment-seconds", request.segment_seconds,
                   "How much is done again at the most after --resume")
      ->check(number_within(0.1, 1e6))
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
  command->callback([options, filters, command] {
    if (!options->plan.empty()) check_options_of_segment(*command);
    run(*options, *filters);
  });
}

}  // namespace nonlocal::tools
