// nonlocal plan and nonlocal join.
#include "plan.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "commands.h"
#include "failure.h"
#include "filter_options.h"
#include "frame_index.h"
#include "gst.h"
#include "join.h"
#include "option_checks.h"
#include "partial_file.h"
#include "progress.h"
#include "segment_job.h"
#include "segments.h"
#include "text.h"
#include "work_folder.h"

namespace nonlocal::tools {
namespace {

namespace fs = std::filesystem;

// -------------------------------------------------------------------------------------------------- plan

struct PlanOptions {
  std::string input;
  std::string folder;
  std::string container = "mkv";
  int segments = 0;  // 0: as `seconds` say
  double seconds = kSegmentSeconds;
  bool quiet = false;
};

double segment_seconds(const PlanOptions& options) {
  if (options.segments == 0) return options.seconds;
  const double all = inspect(options.input).seconds;
  if (all <= 0) throw Failure(options.input + ": does not say how long it is: give --seconds");
  return all / options.segments;
}

void print(const PlanOptions& options, const Plan& plan) {
  const auto [shortest, longest] = std::ranges::minmax_element(plan.segments, {}, &Segment::frames);
  std::printf("plan      %s: %zu segments of %ld to %ld frames, %ld in all\n", options.folder.c_str(),
              plan.segments.size(), long(shortest->frames), long(longest->frames), long(plan.frames));
}

void make(const PlanOptions& options, const JobOptions& filters) {
  catch_interrupts();
  start_gstreamer();
  const FilterJob job = filters.job(options.input, "joined." + options.container);
  Progress progress(0, options.quiet);
  const auto tick = [&](int64_t frames) { progress.show(frames, "planned"); };
  const Plan plan = make_plan(job, segment_seconds(options), tick);
  const WorkFolder work(options.folder, plan, true);
  print(options, plan);
}

// -------------------------------------------------------------------------------------------------- join

struct JoinOptions {
  std::string folder;
  std::string output;
  bool missing = false;
  bool quiet = false;
};

std::vector<int> unfinished(const Plan& plan, const WorkFolder& work) {
  std::vector<int> segments;
  for (const Segment& segment : plan.segments)
    if (!work.has(segment)) segments.push_back(segment.index);
  return segments;
}

void check_finished(const JoinOptions& options, const Plan& plan, const WorkFolder& work) {
  const std::vector<int> missing = unfinished(plan, work);
  if (missing.empty()) return;
  throw Failure(formatted("%s: %zu of %zu segments are not finished, the first of them is %d",
                          options.folder.c_str(), missing.size(), plan.segments.size(), missing.front()));
}

void check_extension(const JoinOptions& options, const Plan& plan) {
  const std::string planned = fs::path(plan.job.output).extension();
  if (fs::path(options.output).extension() != planned)
    throw Failure(options.output + ": the plan is for files that end in " + planned);
}

// Each segment has the frames that the recording's index has there. Returns their times, rising.
std::vector<GstClockTime> checked_times(const Plan& plan, const WorkFolder& work) {
  std::vector<GstClockTime> all;
  for (const Segment& segment : plan.segments) {
    const std::vector<GstClockTime> times = work.report(segment).times;
    const auto count = static_cast<int64_t>(times.size());
    if (plan.media.frame_by_frame && count != segment.frames)
      throw Failure(formatted("%s: segment %d: %ld frames planned, %ld came", work.path().c_str(),
                              segment.index, long(segment.frames), long(count)));
    all.insert(all.end(), times.begin(), times.end());
  }
  std::ranges::sort(all);
  return all;
}

// What was written is read again: as many frames, at the same times. Containers round these: Matroska to 1
// ms.
void check_written(const fs::path& path, const std::vector<GstClockTime>& expected,
                   const std::function<void(int64_t)>& tick) {
  const FrameIndex written = index_frames(path.string(), inspect(path.string()), tick);
  if (written.frames != static_cast<int64_t>(expected.size()))
    throw Failure(formatted("%zu frames were to be written, %ld are in the file", expected.size(),
                            long(written.frames)));
  for (size_t i = 0; i < written.times.size(); ++i) {
    const GstClockTimeDiff off = GST_CLOCK_DIFF(expected[i], written.times[i]);
    if (std::abs(off) > static_cast<GstClockTimeDiff>(GST_MSECOND))
      throw Failure(formatted("frame %zu is at %.4f s, not at %.4f s", i,
                              static_cast<double>(written.times[i]) / GST_SECOND,
                              static_cast<double>(expected[i]) / GST_SECOND));
  }
}

void print_missing(const JoinOptions& options) {
  const WorkFolder work(options.folder);
  for (const int segment : unfinished(work.plan(), work)) std::printf("%d\n", segment);
}

void join(const JoinOptions& options) {
  catch_interrupts();
  start_gstreamer();
  if (options.missing) return print_missing(options);
  const WorkFolder work(options.folder);
  Plan plan = work.plan();
  check_extension(options, plan);
  PartialFile::check_is_not(options.output, plan.job.input, "input");
  check_finished(options, plan, work);
  const std::vector<GstClockTime> times = checked_times(plan, work);
  plan.job.output = options.output;
  PartialFile video(options.output);
  {
    Progress progress(static_cast<int64_t>(times.size()), options.quiet);
    join(plan, work, video.path(), std::nullopt, [&](int64_t n) { progress.show(n, "joined"); });
  }
  Progress progress(static_cast<int64_t>(times.size()), options.quiet);
  check_written(video.path(), times, [&](int64_t n) { progress.show(n, "checked"); });
  video.commit();
  std::printf("output    %s: %zu segments, %ld frames planned, %zu written, each in its place\n",
              options.output.c_str(), plan.segments.size(), long(plan.frames), times.size());
}

}  // namespace

// ----------------------------------------------------------------------------------------------- segments

void filter_segment(const std::string& folder, int index, bool quiet) {
  WorkFolder work(folder);
  const Plan plan = work.plan();
  const int count = static_cast<int>(plan.segments.size());
  if (index < 0 || index >= count)
    throw Failure(
        formatted("%s: expected a segment from 0 to %d, came %d", folder.c_str(), count - 1, index));
  const Segment& segment = plan.segments[index];
  if (work.has(segment)) {
    std::printf("segment   %d of %d: was finished before\n", index, count);
    return;
  }
  Progress progress(segment.frames, quiet);
  SegmentWishes wishes;
  wishes.tick = [&](const Observed& now) {
    progress.show(now.report.frames_out(), formatted("noise %.1f", now.noise));
  };
  const SegmentResult result = run_segment(plan, segment, work, wishes);
  const auto frames = result.seen.report.frames_out();
  std::printf("segment   %d of %d: %ld frames, %.1f fps\n", index, count, long(frames),
              progress.rate(frames));
}

void add_plan(CLI::App& app) {
  auto* command = app.add_subcommand("plan", "Cut a recording into segments that many may filter");
  const auto options = std::make_shared<PlanOptions>();
  command->add_option("IN", options->input, "Any video file that GStreamer reads")->required();
  command->add_option("-o,--output", options->folder, "The folder for the plan and the filtered segments")
      ->required();
  const auto filters = std::make_shared<JobOptions>(*command);
  auto* segments = command->add_option("--segments", options->segments, "How many, at the most")
                       ->check(CLI::PositiveNumber);
  command->add_option("--seconds", options->seconds, "How long each is, about")
      ->check(number_within(0.1, 1e6))
      ->capture_default_str()
      ->excludes(segments);
  command->add_option("--container", options->container, "What join writes: mkv, mp4, mov or webm")
      ->capture_default_str();
  command->add_flag("--quiet", options->quiet, "Show no progress");
  command->callback([options, filters] { make(*options, *filters); });
}

void add_join(CLI::App& app) {
  auto* command = app.add_subcommand("join", "Put the segments of a plan together in one file");
  const auto options = std::make_shared<JoinOptions>();
  command->add_option("PLAN", options->folder, "The folder that plan made; it stays")->required();
  auto* output = command->add_option("OUT", options->output, "The file to write; replaced if it exists");
  command->add_flag("--missing", options->missing, "Print the numbers of segments that are not finished")
      ->excludes(output);
  command->add_flag("--quiet", options->quiet, "Show no progress");
  command->callback([options] {
    if (options->output.empty() && !options->missing) throw CLI::RequiredError("OUT");
    join(*options);
  });
}

}  // namespace nonlocal::tools
