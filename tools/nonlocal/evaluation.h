// Filters on clean material with seeded noise, and how near to the clean material they come back.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "evaluate_element.h"
#include "evaluate_material.h"

namespace nonlocal::tools {

struct EvaluationOptions {
  MaterialOptions material;
  std::vector<double> sigmas;        // empty: 20 for a clip, 10, 25 and 50 for pictures; 0 with a crf
  std::string noise = "white";       // one of noise_kinds()
  std::optional<double> crf;         // x264 codes what is noisy, before anything filters it
  std::vector<std::string> presets;  // of nonlocaldenoise, one row each
  std::vector<std::string> models;   // of selfattention, one row each
  Properties properties;             // of the elements, for all of them
  bool sigma_known = false;          // the element is told sigma
  bool peers = false;
  int64_t measure_from = 0;  // the first frame that counts in the means, counted from the first one read
  uint64_t seed = 1;
  bool keeps_pictures = false;  // for a report
  bool quiet = false;
};

// What a report shows enlarged.
struct ShownRegion {
  size_t sequence = 0;
  size_t frame = 0;
  cv::Rect place;
  std::string why;  // "most detail"
};

// One filter at one sigma.
struct EvaluationRow {
  std::string name;
  std::string title;
  std::string setting;
  bool is_installed = true;
  std::string problem;                    // why there are no figures; empty if there are
  std::vector<std::vector<double>> psnr;  // of each plane, of each frame, those before measure_from included
  std::vector<std::vector<double>> ssim;  // of each plane, of each frame that counts
  std::vector<double> flicker;            // of luma, of each pair of frames that count; empty for pictures
  std::vector<double> ms;
  std::vector<double> noise;  // that the element found, of each frame that counts
  std::vector<Planes> shown;  // the whole frame of each ShownRegion

  [[nodiscard]] bool is_measured() const { return !psnr.empty() && problem.empty(); }
  [[nodiscard]] double mean_psnr(size_t plane, int64_t measure_from) const;
  [[nodiscard]] double mean_ssim(size_t plane) const;
  [[nodiscard]] std::optional<double> mean_flicker() const;
  // None where it is lost in what was subtracted from it.
  [[nodiscard]] std::optional<double> median_ms() const;
  [[nodiscard]] std::optional<double> min_ms() const;
  [[nodiscard]] std::optional<double> mean_noise() const;
};

struct SigmaResult {
  double sigma = 0;
  std::vector<EvaluationRow> rows;  // "noisy", the presets, the peers
};

struct Evaluation {
  Material material;
  std::vector<ShownRegion> regions;
  std::vector<SigmaResult> results;
};

// The sigmas of the options, or what they are by default.
std::vector<double> sigmas_of(const EvaluationOptions& options, const Material& material);

// Shows progress. Throws Failure for what the options ask in vain; a peer that fails has a problem in its
// row.
Evaluation evaluate(const EvaluationOptions& options);

}  // namespace nonlocal::tools
