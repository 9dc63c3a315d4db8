#include "evaluate_report.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <opencv2/imgproc.hpp>

#include "failure.h"
#include "partial_file.h"
#include "png_file.h"
#include "svg_plot.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

namespace fs = std::filesystem;

constexpr int kZoom = 2;
constexpr int kAmplified = 4;

// The colours are the browser's own, for light or dark as its user has it.
constexpr const char* kHead = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1200px; margin: 2em auto; padding: 0 1em; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.25em 0.8em; text-align: right; border-bottom: 1px solid rgb(128 128 128 / 0.35); }
th { border-bottom-width: 2px; }
td:first-child, th:first-child, td:last-child, th:last-child { text-align: left; }
td:last-child { font-size: 0.85em; opacity: 0.8; }
.best { font-weight: 700; }
.wide { overflow-x: auto; }
.pictures { display: flex; flex-wrap: wrap; gap: 1em; }
figure { margin: 0; }
figure img { display: block; image-rendering: pixelated; max-width: 100%; }
figure img + img { margin-top: 3px; }
figcaption { font-size: 0.9em; }
svg { width: 100%; max-width: 960px; height: auto; }
code { font-size: 0.9em; }
</style>
)";

// What stands in a column, and which of its values is the best.
struct Column {
  std::string name;
  std::vector<std::optional<double>> values;
  const char* format;
  int better;  // 1: the largest, -1: the smallest, 0: none

  [[nodiscard]] std::string cell(size_t row) const {
    if (!values[row]) return "<td>–</td>";
    const std::string text = formatted("%s", number(*values[row]).c_str());
    return is_best(row) ? "<td class=\"best\">" + text + "</td>" : "<td>" + text + "</td>";
  }

 private:
  [[nodiscard]] std::string number(double value) const {
    char text[32];
    std::snprintf(text, sizeof text, format, value);
    return text;
  }
  [[nodiscard]] bool is_best(size_t row) const {
    if (better == 0) return false;
    return std::ranges::none_of(
        values, [&](const auto& other) { return other && better * *other > better * *values[row]; });
  }
};

template <typename Value>
Column column(const std::string& name, const SigmaResult& result, const char* format, int better,
              Value value) {
  Column column{name, {}, format, better};
  for (const EvaluationRow& row : result.rows)
    column.values.push_back(row.is_measured() ? std::optional<double>(value(row)) : std::nullopt);
  return column;
}

template <typename Value>
Column sparse_column(const std::string& name, const SigmaResult& result, const char* format, int better,
                     Value value) {
  Column column{name, {}, format, better};
  for (const EvaluationRow& row : result.rows)
    column.values.push_back(row.is_measured() ? value(row) : std::optional<double>());
  return column;
}

std::string last_cell(const EvaluationRow& row) {
  if (!row.is_installed) return "not installed";
  return html_escaped(row.problem.empty() ? row.setting : row.problem);
}

// Gray where they are the same.
cv::Mat amplified_difference(const cv::Mat& a, const cv::Mat& b) {
  cv::Mat apart;
  cv::subtract(a, b, apart, cv::noArray(), CV_16S);
  apart.convertTo(apart, CV_8U, kAmplified, 128);
  return apart;
}

class Report {
 public:
  Report(const fs::path& folder, const EvaluationOptions& options, const Evaluation& evaluation)
      : folder_(folder), options_(options), evaluation_(evaluation), material_(evaluation.material) {}

  void write() {
    const std::string title = "Evaluation on " + fs::path(options_.material.path).string();
    html_ = kHead;
    html_ +=
        "<title>" + html_escaped(title) + "</title>\n</head>\n<body>\n<h1>" + html_escaped(title) + "</h1>\n";
    introduction();
    for (const SigmaResult& result : evaluation_.results) section(result);
    html_ += "</body>\n</html>\n";
    PartialFile page(folder_ / "index.html");
    std::ofstream out(page.path(), std::ios::binary);
    out << html_;
    if (!out.flush()) throw Failure((folder_ / "index.html").string() + ": could not be written whole");
    out.close();
    page.commit();
  }

 private:
  void introduction() {
    const cv::Size size = material_.sequences[0].size();
    const int64_t start = options_.material.start;
    html_ += "<p>";
    if (material_.is_clip)
      html_ += formatted("%ld frames of %dx%d, %s; frames %ld to %ld count in the means.",
                         long(material_.count()), size.width, size.height, material_.format.c_str(),
                         long(start + options_.measure_from), long(start + material_.count() - 1));
    else
      html_ += formatted("%ld pictures, %s; each is filtered by itself, from a fresh start.",
                         long(material_.count()), material_.format.c_str());
    html_ += formatted(
        " Gaussian noise (%s), seed %lu, was added once, rounded and clipped to 8 bits%s. %s</p>\n<p>PSNR in "
        "dB and "
        "SSIM"
        " (Wang et al. 2004) are means over the %s; ms is the median time a frame took. ",
        options_.noise.c_str(), static_cast<unsigned long>(options_.seed),
        options_.crf ? formatted(", then coded by x264 at crf %g", *options_.crf).c_str() : "",
        options_.sigma_known ? "nonlocaldenoise was told the noise's sigma."
                             : "nonlocaldenoise estimates the noise by itself.",
        material_.is_clip ? "frames" : "pictures");
    if (material_.is_clip)
      html_ +=
          "Flicker is the root mean square of what changes from frame to frame in luma and does not in the "
          "clean clip, in code values. ";
    html_ += "Peers are at the best of the settings tried on a few of these frames.</p>\n";
  }

  void section(const SigmaResult& result) {
    html_ += formatted("<h2>sigma %g</h2>\n", result.sigma);
    table(result);
    for (size_t region = 0; region < evaluation_.regions.size(); ++region) pictures(result, region);
    curves(result);
  }

  void table(const SigmaResult& result) {
    std::vector<Column> columns;
    const std::vector<std::string> planes = material_.plane_names();
    for (size_t p = 0; p < planes.size(); ++p)
      columns.push_back(column("PSNR " + planes[p], result, "%.2f", 1, [&, p](const EvaluationRow& row) {
        return row.mean_psnr(p, options_.measure_from);
      }));
    for (size_t p = 0; p < planes.size(); ++p)
      columns.push_back(column("SSIM " + planes[p], result, "%.4f", 1,
                               [p](const EvaluationRow& row) { return row.mean_ssim(p); }));
    if (material_.is_clip)
      columns.push_back(sparse_column("flicker", result, "%.2f", -1,
                                      [](const EvaluationRow& row) { return row.mean_flicker(); }));
    columns.push_back(
        sparse_column("ms", result, "%.2f", -1, [](const EvaluationRow& row) { return row.median_ms(); }));
    columns.push_back(sparse_column("noise found", result, "%.1f", 0,
                                    [](const EvaluationRow& row) { return row.mean_noise(); }));
    html_ += "<div class=\"wide\"><table>\n<tr><th>filter</th>";
    for (const Column& column : columns) html_ += "<th>" + column.name + "</th>";
    html_ += "<th>setting</th></tr>\n";
    for (size_t i = 0; i < result.rows.size(); ++i) {
      html_ += "<tr><td>" + html_escaped(result.rows[i].title) + "</td>";
      for (const Column& column : columns) html_ += column.cell(i);
      html_ += "<td>" + last_cell(result.rows[i]) + "</td></tr>\n";
    }
    html_ += "</table></div>\n";
  }

  void pictures(const SigmaResult& result, size_t index) {
    const ShownRegion& region = evaluation_.regions[index];
    const Sequence& sequence = material_.sequences[region.sequence];
    html_ +=
        formatted("<h3>%s: %s%s, at %d, %d</h3>\n", html_escaped(region.why).c_str(),
                  html_escaped(sequence.name).c_str(),
                  material_.is_clip
                      ? formatted(" frame %ld", long(options_.material.start) + long(region.frame)).c_str()
                      : "",
                  region.place.x, region.place.y);
    html_ += formatted(
        "<p>Enlarged %d times, without smoothing. Below each, its difference to the clean one, luma, times "
        "%d,"
        " around gray.</p>\n<div class=\"pictures\">\n",
        kZoom, kAmplified);
    const Planes& clean = sequence.frames[region.frame];
    figure(result, index, "clean", "clean", clean);
    for (const EvaluationRow& row : result.rows)
      if (row.is_measured()) figure(result, index, row.name, row.title, row.shown[index]);
    html_ += "</div>\n";
  }

  void figure(const SigmaResult& result, size_t index, const std::string& name, const std::string& title,
              const Planes& planes) {
    const ShownRegion& region = evaluation_.regions[index];
    const Sequence& sequence = material_.sequences[region.sequence];
    const std::string stem = formatted("sigma%g-%zu-%s", result.sigma, index + 1, name.c_str());
    html_ += "<figure>";
    picture(stem + ".png", title, to_bgr(planes, sequence.info)(region.place));
    const cv::Mat& clean = sequence.frames[region.frame][0];
    if (planes[0].data != clean.data)
      picture(stem + "-difference.png", title + ": difference",
              amplified_difference(planes[0](region.place), clean(region.place)));
    html_ += "<figcaption>" + html_escaped(title) + "</figcaption></figure>\n";
  }

  void picture(const std::string& file, const std::string& alternative, const cv::Mat& region) {
    cv::Mat large;
    cv::resize(region, large, {}, kZoom, kZoom, cv::INTER_NEAREST);
    PartialFile png(folder_ / file);
    write_png(png.path(), large);
    png.commit();
    html_ += formatted("<img src=\"%s\" alt=\"%s\" width=\"%d\" height=\"%d\">", html_escaped(file).c_str(),
                       html_escaped(alternative).c_str(), large.cols, large.rows);
  }

  // Without the noisy frames, whose curve is flat and far below.
  void curves(const SigmaResult& result) {
    if (material_.count() < 2) return;
    SvgPlot plot{material_.is_clip ? "frame" : "picture, in the order of their names",
                 "PSNR of luma, dB",
                 static_cast<int>(options_.material.start),
                 {}};
    for (const EvaluationRow& row : result.rows)
      if (row.is_measured() && row.name != "noisy") plot.lines.push_back({row.title, row.psnr[0]});
    html_ += formatted("<h3>PSNR of each %s</h3>\n", material_.is_clip ? "frame" : "picture") + to_svg(plot);
  }

  const fs::path& folder_;
  const EvaluationOptions& options_;
  const Evaluation& evaluation_;
  const Material& material_;
  std::string html_;
};

}  // namespace

void check_report_folder(const fs::path& folder, const fs::path& input) {
  std::error_code ignored;
  if (fs::equivalent(folder, input, ignored))
    throw Failure(folder.string() + ": the report's pictures would be among those of the input");
  const bool exists = fs::exists(folder, ignored);
  if (exists && !fs::is_directory(folder, ignored)) throw Failure(folder.string() + ": is no folder");
  const fs::path parent = folder.has_parent_path() ? folder.parent_path() : fs::path(".");
  if (!exists && !fs::is_directory(parent, ignored))
    throw Failure(folder.string() + ": no such folder: " + parent.string());
  if (access((exists ? folder : parent).c_str(), W_OK) != 0)
    throw Failure(folder.string() + ": cannot be written");
}

void write_report(const fs::path& folder, const EvaluationOptions& options, const Evaluation& evaluation) {
  std::error_code error;
  fs::create_directory(folder, error);
  if (error) throw Failure(folder.string() + ": cannot be made: " + error.message());
  Report(folder, options, evaluation).write();
}

}  // namespace nonlocal::tools
