// nonlocal evaluate: how good the element is on material of one's own, beside other denoisers.
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "commands.h"
#include "evaluate_report.h"
#include "evaluation.h"
#include "failure.h"
#include "gst.h"
#include "json_text.h"
#include "noise.h"
#include "option_checks.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

using nlohmann::json;

struct Options {
  EvaluationOptions evaluation;
  std::vector<std::string> set;  // "property=value property=value", each
  std::string report;
  bool as_json = false;
};

// Throws Failure for what is not NAME=VALUE.
Properties parsed_properties(const std::vector<std::string>& texts) {
  Properties properties;
  for (const std::string& text : texts) {
    std::istringstream words(text);
    for (std::string word; words >> word;) {
      const size_t equals = word.find('=');
      if (equals == 0 || equals == std::string::npos)
        throw Failure("--set takes property=value, not " + word);
      properties.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    }
  }
  return properties;
}

json or_null(const std::optional<double>& value) { return value ? json(*value) : json(); }

json row_json(const EvaluationRow& row, const Material& material, int64_t measure_from) {
  if (!row.is_installed) return nullptr;
  if (!row.is_measured()) return {{"title", row.title}, {"problem", row.problem}};
  json psnr;
  json ssim;
  const std::vector<std::string> planes = material.plane_names();
  for (size_t p = 0; p < planes.size(); ++p) {
    psnr[planes[p]] = row.mean_psnr(p, measure_from);
    ssim[planes[p]] = row.mean_ssim(p);
  }
  return {
      {"title", row.title},
      {"setting", row.setting},
      {"psnr", psnr},
      {"ssim", ssim},
      {"flicker", or_null(row.mean_flicker())},
      {"ms_median", or_null(row.median_ms())},
      {"ms_min", or_null(row.min_ms())},
      {"noise", or_null(row.mean_noise())},
      {"psnr_by_frame", row.psnr[0]},
  };
}

json as_json(const Options& options, const Evaluation& evaluation) {
  const EvaluationOptions& asked = options.evaluation;
  const Material& material = evaluation.material;
  json rows;
  for (const SigmaResult& result : evaluation.results)
    for (const EvaluationRow& row : result.rows)
      rows[formatted("%g", result.sigma)][row.name] = row_json(row, material, asked.measure_from);
  json names = json::array();
  for (const Sequence& sequence : material.sequences) names.push_back(sequence.name);
  return {
      {"input", asked.material.path},
      {"is_clip", material.is_clip},
      {"names", names},
      {"format", material.format},
      {"width", material.sequences[0].size().width},
      {"height", material.sequences[0].size().height},
      {"frames", material.count()},
      {"is_cut", material.is_cut},
      {"start", asked.material.start},
      {"scale", asked.material.scale},
      {"measure_from", asked.measure_from},
      {"sigmas", sigmas_of(asked, material)},
      {"noise", asked.noise},
      {"sigma_known", asked.sigma_known},
      {"seed", asked.seed},
      {"crf", or_null(asked.crf)},
      {"rows", rows},
      {"report", options.report.empty() ? json() : json(options.report)},
  };
}

std::string cell(const char* format, const std::optional<double>& value) {
  char text[32] = "-";
  if (value) std::snprintf(text, sizeof text, format, *value);
  return formatted(" %8s", text);
}

void print_row(const EvaluationRow& row, const Material& material, int64_t measure_from) {
  std::string line = formatted("%-38s", row.title.c_str());
  if (!row.is_installed || !row.problem.empty()) {
    std::printf("%s %s\n", line.c_str(), row.is_installed ? row.problem.c_str() : "not installed");
    return;
  }
  const size_t planes = material.plane_names().size();
  for (size_t p = 0; p < planes; ++p) line += cell("%.2f", row.mean_psnr(p, measure_from));
  for (size_t p = 0; p < planes; ++p) line += cell("%.4f", row.mean_ssim(p));
  if (material.is_clip) line += cell("%.2f", row.mean_flicker());
  line += cell("%.2f", row.median_ms()) + cell("%.1f", row.mean_noise());
  std::printf("%s  %s\n", line.c_str(), row.setting.c_str());
}

void print_heading(const Material& material) {
  std::string line = formatted("%-38s", "");
  for (const char* figure : {"PSNR", "SSIM"})
    for (const std::string& plane : material.plane_names())
      line += formatted(" %8s", (figure + (" " + plane)).c_str());
  if (material.is_clip) line += formatted(" %8s", "flicker");
  std::printf("%s %8s %8s  setting\n", line.c_str(), "ms", "noise");
}

void print(const Options& options, const Evaluation& evaluation) {
  const EvaluationOptions& asked = options.evaluation;
  const Material& material = evaluation.material;
  const cv::Size size = material.sequences[0].size();
  if (material.is_clip)
    std::printf("input   %s: frames %ld to %ld, %dx%d, %s; figures from frame %ld on\n",
                asked.material.path.c_str(), long(asked.material.start),
                long(asked.material.start + material.count() - 1), size.width, size.height,
                material.format.c_str(), long(asked.material.start + asked.measure_from));
  else
    std::printf("input   %s: %ld pictures, %s\n", asked.material.path.c_str(), long(material.count()),
                material.format.c_str());
  for (const SigmaResult& result : evaluation.results) {
    std::printf("\n%s noise, sigma %g, seed %lu%s\n", asked.noise.c_str(), result.sigma,
                static_cast<unsigned long>(asked.seed),
                asked.crf ? formatted(", coded by x264 at crf %g", *asked.crf).c_str() : "");
    print_heading(material);
    for (const EvaluationRow& row : result.rows) print_row(row, material, asked.measure_from);
  }
  if (!options.report.empty()) std::printf("\nreport  %s/index.html\n", options.report.c_str());
}

void run(Options options) {
  catch_interrupts();
  start_gstreamer();
  EvaluationOptions& asked = options.evaluation;
  asked.properties = parsed_properties(options.set);
  asked.keeps_pictures = !options.report.empty();
  asked.quiet = asked.material.quiet = asked.quiet || options.as_json;
  if (asked.presets.empty() && asked.models.empty()) asked.presets = {"fast", "balanced", "quality"};
  if (!options.report.empty()) check_report_folder(options.report, asked.material.path);
  const Evaluation evaluation = evaluate(asked);
  if (!options.report.empty()) write_report(options.report, asked, evaluation);
  if (evaluation.material.is_cut)
    std::cerr << formatted("nonlocal: warning: %s: only the first %ld frames fit into memory: see --frames",
                           asked.material.path.c_str(), long(evaluation.material.count()))
              << std::endl;
  if (options.as_json)
    std::cout << json_text(as_json(options, evaluation), 2) << std::endl;
  else
    print(options, evaluation);
}

constexpr const char* kFooter =
    R"(Noise of a fixed seed is added once to the clean material, to every plane, rounded and clipped to 8 bits;
every filter gets the same noisy frames. It is white; or a camera's, whose variance rises with luma, sigma² at 128;
or smooth, as after scaling: white through a Gaussian of 1 pixel, of the same sigma. With --crf x264 codes each
noisy clip or picture (preset medium, key frames 250 apart), and what is decoded is filtered. A clip goes through the
element as one stream; each picture of a folder is filtered by itself, from a fresh start.

PSNR     of each plane, in dB: the mean of the frames' own. Identical frames count as 100.
SSIM     of each plane, mean over the frames: Wang et al. 2004, Gaussian window of 11x11, sigma 1.5.
flicker  of luma, in code values: the root mean square over the pixels of
         (out_t - out_t-1) - (clean_t - clean_t-1), mean over the frames t; 0 where the filtered clip changes
         from frame to frame only as the clean one does.
ms       the median of the times that a frame took in the filter. A picture's includes what the element does
         once, at its start. FFmpeg: a run less one without a filter, over its frames, of runs below a second
         the shortest of four; none where that is too little to tell.
noise    the sigma that the element found (its noise-level), mean over the frames.

Peers (--peers): OpenCV's fastNlMeansDenoising, and fastNlMeansDenoisingMulti over 5 frames (clips only), in
process; FFmpeg's nlmeans, hqdn3d and bm3d where the command ffmpeg is installed. Each is told sigma, above 0, and runs at
its best strength: from the middle of a grid in proportion to sigma (non-local means: 0.3 to 1.3 in steps of 0.1;
hqdn3d: 0.1 to 11.2 by factors of about 1.4, over space and over time; bm3d, whose unit is another: 2 to 5 in
steps of 0.5, both stages) to where no neighbour has a better PSNR, on 5 frames of the clip (hqdn3d: 30) or 4 of
the pictures; chroma at its own best where the filter has a strength for it. Non-local means compare patches of 7
within 21.)";

}  // namespace

void add_evaluate(CLI::App& app) {
  auto* command = app.add_subcommand(
      "evaluate", "Measure the elements' quality on clean material with seeded noise, beside its peers'");
  command->footer(kFooter);
  const auto options = std::make_shared<Options>();
  EvaluationOptions& asked = options->evaluation;
  command->add_option("IN", asked.material.path, "A clean video file, or a folder of pictures (.png, .jpg)")
      ->required();
  command
      ->add_option(
          "--sigma", asked.sigmas,
          "Standard deviation of the noise, of 255; several: 10,25,50 [20; pictures: 10,25,50; 0 with --crf]")
      ->check(number_within(0, 100))
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--noise", asked.noise, "Kind of the noise: white, camera or smooth")
      ->check(CLI::IsMember(noise_kinds()))
      ->capture_default_str();
  command->add_option("--seed", asked.seed, "Of the noise")->capture_default_str();
  command
      ->add_option("--crf", asked.crf,
                   "Have x264 code what is noisy first (by FFmpeg), at this constant rate factor: 0 to 51")
      ->check(number_within(0, 51));
  command
      ->add_option("--preset", asked.presets,
                   "Preset of nonlocaldenoise; several: fast,quality [all of them; none with --model]")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      ->add_option(
          "--model", asked.models,
          "Evaluate selfattention with this model, a name or a file; several: restore,./mine.safetensors")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--set", options->set, "Further properties of the elements: \"property=value ...\"")
      ->allow_extra_args(false);
  command->add_flag("--sigma-known", asked.sigma_known, "Tell the element sigma [it estimates the noise]");
  command->add_flag("--peers", asked.peers, "Evaluate OpenCV's and FFmpeg's denoisers, too");
  command->add_option("--format", asked.material.format, "GRAY8 (luma alone) or I420 [I420; pictures: GRAY8]")
      ->check(CLI::IsMember({"GRAY8", "I420"}));
  command->add_option("--start", asked.material.start, "The first frame or picture, counted from 0")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      ->add_option("--frames", asked.material.frames,
                   "How many frames or pictures [all, as far as 512 MiB hold them]")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--scale", asked.material.scale,
                   "Scale down first, by area averaging: 0.5 makes camera clips nearly clean")
      ->check(number_within(0.01, 1))
      ->capture_default_str();
  command
      ->add_option(
          "--measure-from", asked.measure_from,
          "The first frame that counts in the means, from --start on: skips a recursive filter's start")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--report", options->report,
                      "Write a page to this folder: index.html, with figures, enlarged pictures and curves");
  command->add_flag("--json", options->as_json, "Print the result as one JSON object, and no progress");
  command->add_flag("--quiet", asked.quiet, "Show no progress");
  command->callback([options] { run(*options); });
}

}  // namespace nonlocal::tools
