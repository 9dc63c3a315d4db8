#include "filter_run.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>

#include "before_after.h"
#include "failure.h"
#include "frame_times.h"
#include "join.h"
#include "partial_file.h"
#include "png_file.h"
#include "segment_job.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

namespace fs = std::filesystem;

// In the work's folder: what there was by then lies beside the output.
constexpr const char* kCutShort = "cut-short";

// What can be known to go wrong before the work begins.
void check(const FilterRequest& request) {
  PartialFile::check(request.job.output);
  for (const std::string& written :
       {request.job.output, name_of_partial(request.job.output), request.picture}) {
    PartialFile::check_is_not(written, request.job.input, "input");
    PartialFile::check_is_not(written, request.reference, "reference");
  }
  if (request.picture.empty()) return;
  check_png_name(request.picture);
  PartialFile::check(request.picture);
}

void check_reference(const FilterRequest& request, const MediaFile& media) {
  if (request.reference.empty()) return;
  const MediaFile clean = inspect(request.reference);
  if (clean.width != media.width || clean.height != media.height)
    throw Failure(formatted("%s: the reference is %dx%d, the input %dx%d", request.reference.c_str(),
                            clean.width, clean.height, media.width, media.height));
}

std::string frames_text(int64_t frames, int64_t of) {
  return formatted("%ld of %ld frames", long(frames), long(of));
}

class Run {
 public:
  Run(const FilterRequest& request, FilterListener& listener)
      : request_(request),
        listener_(listener),
        plan_(make_plan(request.job, request.segment_seconds, [&](int64_t n) { listener.indexed(n); })) {
    check_reference(request, plan_.media);
    work_.emplace(WorkFolder::beside(request.job.output), plan_, request.resume);
    if (!request.reference.empty()) reference_.emplace(request.reference);
  }

  FilterResult filter() {
    try {
      return filter_all();
    } catch (const Interrupted&) {
      work_->remove_if_empty(plan_);
      throw;
    } catch (const Failure& error) {
      const int64_t frames = frames_finished();
      work_->remove_if_empty(plan_);
      const std::string kept =
          frames > 0 ? "; " + frames_text(frames, plan_.frames) + " are kept for --resume" : "";
      throw Failure(request_.job.input + ": " + error.what() + "; " + request_.job.output +
                    " was not written" + kept);
    }
  }

 private:
  FilterResult filter_all() {
    const Stopwatch clock;
    const PipelineText text = filter_pipeline(plan_.job, plan_.media);
    result_.plan = plan_;
    result_.description = text.description();
    result_.command = text.command(plugin_folder());
    listener_.begins(plan_, frames_finished());
    for (const Segment& segment : plan_.segments)
      work_->has(segment) && !lacks_picture(segment) ? take(work_->report(segment)) : run(segment);
    check_all_decoded();
    PartialFile video(request_.job.output, joined());
    join(plan_, *work_, video.path(), std::nullopt, [&](int64_t n) { listener_.joined(n); });
    commit_picture();
    video.commit();
    if (fs::exists(work_->path() / kCutShort)) fs::remove(name_of_partial(request_.job.output));
    work_->remove();
    result_.seconds = clock.ms() / 1000;
    return std::move(result_);
  }

  void run(const Segment& segment) {
    const auto tick = [&](const Observed& now) {
      listener_.filtered(result_.frames_out + now.report.frames_out(), now.noise);
    };
    SegmentResult done;
    try {
      done = run_segment(plan_, segment, *work_, {wishes(), tick, true});
    } catch (const Interrupted&) {  // before its first frame came
      stop_early({}, 0);
    }
    if (!done.seen.problem.empty())
      throw Failure(request_.reference + ": no use as a reference: " + done.seen.problem);
    if (!done.whole) stop_early({work_->partial(segment), done.seen.report}, done.seen.report.frames_out());
    if (done.picture_before && done.picture_after)
      write_png(picture(), before_after(to_bgr(done.picture_before.get()), to_bgr(done.picture_after.get())));
    take(done.seen.report);
    result_.frames_now += done.seen.report.frames_out();
  }

  void take(const SegmentReport& report) {
    result_.frames_out += report.frames_out();
    for (const GstClockTime time : report.times)
      result_.last_seconds = std::max(result_.last_seconds, static_cast<double>(time) / GST_SECOND);
    result_.all.add(report);
  }

  // Ctrl-C: what there is, to look at, beside the output.
  [[noreturn]] void stop_early(const CutSegment& cut, int64_t frames_of_it) {
    catch_interrupts();
    const int64_t frames = result_.frames_out + frames_of_it;
    if (frames == 0) throw Interrupted("interrupted: nothing was written");
    PartialFile video(name_of_partial(request_.job.output), joined());
    join(plan_, *work_, video.path(), cut, [](int64_t) {});
    if (!cut.coded.empty()) fs::remove(cut.coded);
    video.commit();
    std::ofstream(work_->path() / kCutShort);
    const std::string resumes =
        result_.frames_out == 0 ? ""
                                : formatted(", --resume goes on from frame %ld", long(result_.frames_out));
    throw Interrupted("interrupted: " + frames_text(frames, plan_.frames) + " are in " +
                      name_of_partial(request_.job.output) + resumes);
  }

  // Every frame must have come out, or the file is not what it seems.
  void check_all_decoded() {
    if (result_.frames_out == 0) throw Failure("no frame could be decoded");
    const int64_t lost = plan_.frames - result_.frames_out;
    if (!plan_.media.frame_by_frame || lost == 0) return;
    PartialFile video(name_of_partial(request_.job.output), joined());
    join(plan_, *work_, video.path(), std::nullopt, [&](int64_t n) { listener_.joined(n); });
    video.commit();
    work_->remove();
    throw Failure(frames_text(lost, plan_.frames) + " could not be decoded; the others are in " +
                  name_of_partial(request_.job.output));
  }

  [[nodiscard]] int64_t frames_finished() const {
    int64_t frames = 0;
    for (const Segment& segment : plan_.segments)
      if (work_->has(segment)) frames += work_->report(segment).frames_out();
    return frames;
  }

  [[nodiscard]] FrameWatch::Wishes wishes() {
    return {.picture_frame = request_.picture.empty() ? -1 : plan_.frames / 2,
            .reference = reference_ ? &*reference_ : nullptr};
  }

  // In the folder until all is whole.
  [[nodiscard]] fs::path joined() const {
    return work_->path() / ("joined" + fs::path(request_.job.output).extension().string());
  }
  [[nodiscard]] fs::path picture() const { return work_->path() / "picture.png"; }

  // One that was filtered without the wish for it, or before a run that was killed when it had put it in its
  // place, is filtered again.
  [[nodiscard]] bool lacks_picture(const Segment& segment) {
    const int64_t at = wishes().picture_frame - segment.first;
    return at >= 0 && at < segment.frames && !fs::exists(picture());
  }

  void commit_picture() {
    if (request_.picture.empty()) return;
    if (!fs::exists(picture())) throw Failure(request_.picture + ": the frame for it did not come");
    PartialFile(request_.picture, picture()).commit();
  }

  const FilterRequest& request_;
  FilterListener& listener_;
  const Plan plan_;
  std::optional<WorkFolder> work_;
  std::optional<Reference> reference_;
  FilterResult result_;
};

}  // namespace

FilterResult run_filter(const FilterRequest& request, FilterListener& listener) {
  check(request);
  return Run(request, listener).filter();
}

}  // namespace nonlocal::tools
