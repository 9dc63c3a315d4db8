// nonlocal filter: a video file in, the same file denoised out.
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "before_after.h"
#include "commands.h"
#include "failure.h"
#include "filter_pipeline.h"
#include "frame_watch.h"
#include "gst.h"
#include "media_file.h"
#include "partial_file.h"
#include "png_file.h"
#include "progress.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct FilterOptions {
  FilterJob job;
  std::string picture;
  std::string reference;
  bool as_json = false;
  bool quiet = false;
};

struct FilterResult {
  MediaFile media;
  Observed seen;
  double seconds = 0;
  std::string description;
  std::string command;

  [[nodiscard]] double fps() const { return static_cast<double>(seen.frames_out) / seconds; }
};

// What can be known to go wrong before the work begins.
void check(const FilterOptions& options) {
  check_container(options.job.output);
  std::error_code error;
  if (fs::equivalent(options.job.input, options.job.output, error))
    throw Failure(options.job.output + ": the output is the input itself");
  if (!options.picture.empty()) check_png_name(options.picture);
}

void check_reference(const FilterOptions& options, const MediaFile& media) {
  if (options.reference.empty()) return;
  const MediaFile clean = inspect(options.reference);
  if (clean.width != media.width || clean.height != media.height)
    throw Failure(formatted("%s: the reference is %dx%d, the input %dx%d", options.reference.c_str(),
                            clean.width, clean.height, media.width, media.height));
}

// Every frame must have come out, or the file is not what it seems.
void check_complete(const FilterOptions& options, const Observed& seen) {
  if (seen.frames_in == 0) throw Failure(options.job.input + ": no frame could be decoded");
  if (seen.frames_in != seen.frames_filtered || seen.frames_in != seen.frames_out)
    throw Failure(formatted("%s: frames were lost: %ld in, %ld filtered, %ld out", options.job.output.c_str(),
                            long(seen.frames_in), long(seen.frames_filtered), long(seen.frames_out)));
  if (!seen.problem.empty()) throw Failure(options.reference + ": no use as a reference: " + seen.problem);
}

// A file that was cut off reads like a shorter one: nothing is lost, but its user should know.
void warn_if_short(const FilterOptions& options, const FilterResult& result) {
  constexpr double kUsual = 1;  // sound that goes on, a last frame's length
  if (result.media.seconds - result.seen.last_seconds < kUsual) return;
  std::cerr << formatted(
      "nonlocal: warning: %s: its last frame is at %.2f s, though it says to be %.2f s long\n",
      options.job.input.c_str(), result.seen.last_seconds, result.media.seconds);
}

FilterResult filter(const FilterOptions& options) {
  check(options);
  FilterResult result;
  result.media = inspect(options.job.input);
  check_reference(options, result.media);
  check_properties("nonlocaldenoise", options.job.properties);
  const PipelineText text = filter_pipeline(options.job, result.media);
  result.description = text.description();
  result.command = text.command(plugin_folder());

  PartialFile video(options.job.output);
  std::optional<PartialFile> picture;
  if (!options.picture.empty()) picture.emplace(options.picture);
  const int64_t expected = result.media.expected_frames();

  Pipeline pipeline(result.description);
  g_object_set(pipeline.element(kSinkName).get(), "location", video.path().c_str(), nullptr);
  FrameWatch watch(pipeline, {.picture_frame = picture ? expected / 2 : -1, .reference = options.reference});
  Progress progress(expected, options.quiet || options.as_json);
  try {
    pipeline.play();
    pipeline.wait_for_end([&] {
      const Observed now = watch.observed();
      progress.show(now.frames_out, formatted("noise %.1f", now.noise));
    });
  } catch (const Failure& error) {
    throw Failure(options.job.input + ": " + error.what() + "; " + options.job.output + " was not written");
  }
  result.seconds = progress.seconds();
  pipeline.stop();
  result.seen = watch.observed();
  check_complete(options, result.seen);
  if (picture)
    write_png(picture->path(), before_after(to_bgr(watch.picture_before()), to_bgr(watch.picture_after())));
  video.commit();
  if (picture) picture->commit();
  return result;
}

bool sigma_is_given(const FilterOptions& options) {
  for (const auto& [name, value] : options.job.properties)
    if (name == "sigma") return std::stod(value) >= 0;
  return false;
}

json psnr_json(const std::optional<Psnr>& psnr) {
  if (!psnr) return nullptr;
  return {{"luma", psnr->luma}, {"chroma", psnr->chroma}};
}

json as_json(const FilterOptions& options, const FilterResult& result) {
  return {
      {"input", options.job.input},
      {"output", options.job.output},
      {"picture", options.picture.empty() ? json() : json(options.picture)},
      {"width", result.media.width},
      {"height", result.media.height},
      {"format", result.seen.format},
      {"frames_in", result.seen.frames_in},
      {"frames_out", result.seen.frames_out},
      {"audio_streams", result.media.audio.size()},
      {"streams_left_out", result.media.other_streams},
      {"seconds", result.seconds},
      {"fps", result.fps()},
      {"noise", result.seen.mean_noise},
      {"noise_is_estimated", !sigma_is_given(options)},
      {"psnr", {{"before", psnr_json(result.seen.before)}, {"after", psnr_json(result.seen.after)}}},
      {"pipeline", result.description},
      {"command", result.command},
  };
}

std::string audio_text(const MediaFile& media) {
  if (media.audio.empty()) return "no audio";
  if (media.audio.size() == 1) return "audio copied";
  return std::to_string(media.audio.size()) + " audio streams copied";
}

void print(const FilterOptions& options, const FilterResult& result) {
  const Observed& seen = result.seen;
  std::printf("input     %s: %dx%d, %s\n", options.job.input.c_str(), result.media.width, result.media.height,
              seen.format.c_str());
  std::printf("output    %s: %ld frames in, %ld out, %s\n", options.job.output.c_str(), long(seen.frames_in),
              long(seen.frames_out), audio_text(result.media).c_str());
  if (result.media.other_streams > 0)
    std::printf("left out  %d further stream(s): subtitles or videos\n", result.media.other_streams);
  if (!options.picture.empty()) std::printf("picture   %s\n", options.picture.c_str());
  std::printf("speed     %.1f fps (%.1f s)\n", result.fps(), result.seconds);
  std::printf("noise     sigma %.1f of 255, %s\n", seen.mean_noise,
              sigma_is_given(options) ? "as given" : "estimated (mean over the frames)");
  if (seen.before && seen.after)
    std::printf("PSNR      luma %.2f -> %.2f dB, chroma %.2f -> %.2f dB (before encoding)\n",
                seen.before->luma, seen.after->luma, seen.before->chroma, seen.after->chroma);
  std::printf("pipeline  %s\n", result.command.c_str());
}

void run(const FilterOptions& options) {
  catch_interrupts();
  start_gstreamer();
  const FilterResult result = filter(options);
  warn_if_short(options, result);
  if (options.as_json)
    std::cout << as_json(options, result).dump(2) << std::endl;
  else
    print(options, result);
}

}  // namespace

void add_filter(CLI::App& app) {
  auto* command = app.add_subcommand("filter", "Denoise a video file; audio and timestamps are kept");
  const auto options = std::make_shared<FilterOptions>();
  command->add_option("IN", options->job.input, "Any video file that GStreamer reads")->required();
  command
      ->add_option("OUT", options->job.output, "The file to write: .mkv, .mp4 or .mov; replaced if it exists")
      ->required();

  const auto property = [&](const std::string& flag, const std::string& name, const std::string& help) {
    command->add_option_function<std::string>(
        flag,
        [options, name](const std::string& value) { options->job.properties.emplace_back(name, value); },
        help + " (element property " + name + ")");
  };
  property("--sigma", "sigma", "Standard deviation of the noise, of 255; -1: estimate it");
  property("--strength", "strength", "Strength on luma or RGB; 1 suits the noise, 0 leaves as is");
  property("--chroma-strength", "chroma-strength", "Strength on the chroma planes");
  property("--chroma", "chroma", "separate or joint: chroma by weights of its own or by luma's");
  property("--preset", "preset", "fast, balanced or quality");
  property("--patch-size", "patch-size", "Side of the patches compared, odd; 0: the preset's");
  property("--search-size", "search-size", "Side of the window searched, odd; 0: the preset's");
  property("--threads", "n-threads", "Threads to filter with; 0: all");

  command->add_option("--quality", options->job.quality, "H.264 rate factor: 0 lossless, 18 high, 50 worst")
      ->check(CLI::Range(0, 50))
      ->capture_default_str();
  command->add_option("--picture", options->picture, "Write a before/after PNG of the middle frame here");
  command->add_option("--reference", options->reference, "The clean version of IN: measure PSNR against it");
  command->add_flag("--json", options->as_json, "Print the result as one JSON object, and no progress");
  command->add_flag("--quiet", options->quiet, "Show no progress");
  command->callback([options] { run(*options); });
}

}  // namespace nonlocal::tools
