#include "evaluation.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <opencv2/imgproc.hpp>
#include <set>

#include "evaluate_codec.h"
#include "evaluate_peers.h"
#include "evaluate_search.h"
#include "failure.h"
#include "filter_chain.h"
#include "image_metrics.h"
#include "progress.h"
#include "region.h"
#include "subprocess.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

namespace fs = std::filesystem;

const cv::Size kRegion{160, 120};
constexpr const char* kUnfiltered = "noisy";  // the name of its row
constexpr const char* kDenoiser = "nonlocaldenoise";
constexpr const char* kNetwork = "selfattention";

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Counts the frames that noise was added to, that all filters have done, and that were measured.
class Work {
 public:
  Work(int64_t expected, bool quiet) : progress_(expected, quiet, "step") {}

  // For work that was not known beforehand: `frames` were planned for it, whatever it took.
  void finish_part(int64_t frames) {
    planned_ += frames;
    done_ = planned_;
  }

  Tick part(const std::string& name) {
    return [this, name](int64_t frames) {
      done_ += frames;
      progress_.show(done_, name);
    };
  }

 private:
  Progress progress_;
  int64_t done_ = 0;
  int64_t planned_ = 0;
};

// `row` gets the figures of one more sequence.
void measure(EvaluationRow& row, const Sequence& clean, const Filtered& filtered, int64_t measure_from,
             const Tick& tick) {
  const size_t planes = clean.frames[0].size();
  row.psnr.resize(planes);
  row.ssim.resize(planes);
  for (size_t t = 0; t < clean.frames.size(); ++t) {
    check_interrupted();
    const Planes& out = filtered.frames[t];
    const bool counts = static_cast<int64_t>(t) >= measure_from;
    for (size_t p = 0; p < planes; ++p) {
      row.psnr[p].push_back(plane_psnr(out[p], clean.frames[t][p]));
      if (counts) row.ssim[p].push_back(plane_ssim(out[p], clean.frames[t][p]));
    }
    if (counts && t < filtered.noise.size()) row.noise.push_back(filtered.noise[t]);
    if (static_cast<int64_t>(t) > measure_from)
      row.flicker.push_back(
          plane_flicker(out[0], filtered.frames[t - 1][0], clean.frames[t][0], clean.frames[t - 1][0]));
    tick(1);
  }
  row.ms.insert(row.ms.end(), filtered.ms.begin(), filtered.ms.end());
}

void keep_shown(EvaluationRow& row, const std::vector<ShownRegion>& regions, size_t sequence,
                const Filtered& filtered) {
  row.shown.resize(regions.size());
  for (size_t i = 0; i < regions.size(); ++i)
    if (regions[i].sequence == sequence) row.shown[i] = filtered.frames[regions[i].frame];
}

// Frames with a cut before them change all over: no motion to look at.
std::vector<double> changes(const std::vector<Planes>& frames) {
  std::vector<double> means{0};
  for (size_t t = 1; t < frames.size(); ++t)
    means.push_back(cv::norm(frames[t][0], frames[t - 1][0], cv::NORM_L1) /
                    static_cast<double>(frames[t][0].total()));
  return means;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

cv::Mat difference(const cv::Mat& a, const cv::Mat& b) {
  cv::Mat apart;
  cv::absdiff(a, b, apart);
  apart.convertTo(apart, CV_32F);
  return apart;
}

Properties with(Properties properties, const Property& more) {
  properties.push_back(more);
  return properties;
}

class Evaluator {
 public:
  Evaluator(const EvaluationOptions& options, Evaluation& evaluation)
      : options_(options),
        evaluation_(evaluation),
        material_(evaluation.material),
        peers_(options.peers ? make_evaluated_peers(material_.is_clip) : std::vector<NamedEvaluatedPeer>()),
        work_(expected_frames(), options.quiet) {}

  void run() {
    for (const double sigma : sigmas_of(options_, material_)) {
      sigma_ = sigma;
      noisy_ = with_noise(material_.sequences, options_.noise, sigma, options_.seed, tick("adding noise"));
      if (options_.crf) compress();
      work_.finish_part(material_.count());
      if (options_.keeps_pictures && evaluation_.regions.empty()) choose_regions();
      SigmaResult& result = evaluation_.results.emplace_back();
      result.sigma = sigma;
      result.rows.push_back(unfiltered());
      for (const ElementRow& element : elements()) result.rows.push_back(element_row(element));
      for (const NamedEvaluatedPeer& peer : peers_) result.rows.push_back(peer_row(peer));
    }
  }

 private:
  [[nodiscard]] int64_t expected_frames() const {
    int64_t frames = material_.count() * (2 + 2 * std::ssize(elements()));
    for (const NamedEvaluatedPeer& peer : peers_) frames += expected_frames(peer);
    return frames * std::ssize(sigmas_of(options_, material_)) + frames_to_choose_regions();
  }

  [[nodiscard]] int64_t expected_frames(const NamedEvaluatedPeer& peer) const {
    return peer.peer ? 2 * material_.count() + expected_frames_tried(*peer.peer, material_) : 0;
  }

  [[nodiscard]] int64_t frames_to_choose_regions() const {
    return options_.keeps_pictures && !material_.is_clip ? material_.count() : 0;
  }

  [[nodiscard]] Tick tick(const std::string& name) {
    return work_.part(formatted("sigma %g, %s", sigma_, name.c_str()));
  }

  // Sequence by sequence, so that only one's frames are in memory.
  template <typename Filter>
  void fill(EvaluationRow& row, Filter filter) {
    for (size_t i = 0; i < noisy_.size(); ++i) {
      const Filtered filtered = filter(noisy_[i]);
      measure(row, material_.sequences[i], filtered, options_.measure_from, tick(row.title));
      keep_shown(row, evaluation_.regions, i, filtered);
    }
  }

  EvaluationRow unfiltered() {
    EvaluationRow row{kUnfiltered, options_.crf ? "noisy, coded" : "noisy", "", true, "", {}, {}, {}, {}, {},
                      {}};
    fill(row, [](const Sequence& noisy) { return Filtered{noisy.frames, {}, {}}; });
    work_.finish_part(material_.count());
    return row;
  }

  void compress() {
    for (Sequence& sequence : noisy_) sequence = through_x264(sequence, *options_.crf, tick("coding"));
  }

  struct ElementRow {
    std::string name;
    ElementSetting setting;
  };

  [[nodiscard]] ElementRow row_of(const std::string& element, const char* property,
                                  const std::string& value) const {
    ElementRow row{fs::path(value).stem(), {element, {{property, value}}}};
    Properties& set = row.setting.properties;
    if (options_.sigma_known && element == kDenoiser) set.emplace_back("sigma", formatted("%g", sigma_));
    set.insert(set.end(), options_.properties.begin(), options_.properties.end());
    return row;
  }

  [[nodiscard]] std::vector<ElementRow> elements() const {
    std::vector<ElementRow> rows;
    for (const std::string& preset : options_.presets) rows.push_back(row_of(kDenoiser, "preset", preset));
    for (const std::string& model : options_.models) rows.push_back(row_of(kNetwork, "model", model));
    tell_apart(rows);
    return rows;
  }

  // By their names: rows of JSON and pictures of the page go by them.
  void tell_apart(std::vector<ElementRow>& rows) const {
    std::set<std::string> taken{kUnfiltered, "clean"};
    for (const NamedEvaluatedPeer& peer : peers_) taken.insert(peer.name);
    for (ElementRow& row : rows) {
      const std::string stem = row.name;
      for (int n = 2; !taken.insert(row.name).second; ++n) row.name = stem + "-" + std::to_string(n);
    }
  }

  EvaluationRow element_row(const ElementRow& element) {
    EvaluationRow row{element.name,
                      element.setting.element + " " + element.name,
                      element_text(element.setting),
                      true,
                      "",
                      {},
                      {},
                      {},
                      {},
                      {},
                      {}};
    fill(row, [&](const Sequence& noisy) { return run_element(noisy, element.setting, tick(row.title)); });
    work_.finish_part(2 * material_.count());
    return row;
  }

  // What fails is said in the row: the others still count.
  EvaluationRow peer_row(const NamedEvaluatedPeer& peer) {
    EvaluationRow row{peer.name, peer.title, "", peer.peer != nullptr, "", {}, {}, {}, {}, {}, {}};
    if (!peer.peer) return row;
    const Tick alive = tick(peer.title);
    try {
      const PeerChoice choice =
          best_choice(*peer.peer, material_, noisy_, sigma_, options_.measure_from, alive);
      row.setting = peer.peer->text(sigma_, choice, material_.sequences[0].frames[0].size() > 1);
      fill(row, [&](const Sequence& noisy) { return peer.peer->filter(noisy, sigma_, choice, true, alive); });
    } catch (const Failure& error) {
      row.problem = error.what();
    }
    work_.finish_part(expected_frames(peer));
    return row;
  }

  void choose_regions() {
    evaluation_.regions.push_back(most_detailed());
    evaluation_.regions.push_back(material_.is_clip ? most_moving() : most_wrong());
    work_.finish_part(frames_to_choose_regions());
  }

  [[nodiscard]] static cv::Size region_size(const Sequence& sequence) {
    return {std::min(kRegion.width, sequence.size().width), std::min(kRegion.height, sequence.size().height)};
  }

  // Of a clip's frame in the middle of those that count; of all pictures.
  [[nodiscard]] ShownRegion most_detailed() const {
    ShownRegion best{0, 0, {}, "most detail"};
    double most = -1;
    for (size_t i = 0; i < material_.sequences.size(); ++i) {
      const Sequence& sequence = material_.sequences[i];
      const size_t frame = material_.is_clip ? (options_.measure_from + material_.count()) / 2 : 0;
      const Region region = strongest(gradient_energy(sequence.frames[frame][0]), region_size(sequence));
      if (region.mean <= most) continue;
      most = region.mean;
      best.sequence = i;
      best.frame = frame;
      best.place = region.place;
    }
    return best;
  }

  [[nodiscard]] ShownRegion most_moving() const {
    constexpr double kCut = 3;  // times the usual change
    const Sequence& clip = material_.sequences[0];
    const std::vector<double> change = changes(clip.frames);
    ShownRegion best{0, clip.frames.size() - 1,
                     strongest(gradient_energy(clip.frames.back()[0]), region_size(clip)).place,
                     "most motion"};
    double most = 0;
    for (size_t t = std::max<int64_t>(1, options_.measure_from); t < clip.frames.size(); ++t) {
      if (change[t] > kCut * median(change)) continue;
      const Region region =
          strongest(difference(clip.frames[t][0], clip.frames[t - 1][0]), region_size(clip));
      if (region.mean <= most) continue;
      most = region.mean;
      best.frame = t;
      best.place = region.place;
    }
    return best;
  }

  // By the first of the elements.
  [[nodiscard]] ShownRegion most_wrong() {
    const ElementRow first = elements()[0];
    ShownRegion best{0, 0, {}, "largest error of " + first.name};
    double most = -1;
    for (size_t i = 0; i < noisy_.size(); ++i) {
      const Filtered filtered = run_element(noisy_[i], first.setting, tick("looking for the largest error"));
      const cv::Mat error = difference(filtered.frames[0][0], material_.sequences[i].frames[0][0]);
      const Region region = strongest(error.mul(error), region_size(noisy_[i]));
      if (region.mean <= most) continue;
      most = region.mean;
      best.sequence = i;
      best.place = region.place;
    }
    return best;
  }

  const EvaluationOptions& options_;
  Evaluation& evaluation_;
  const Material& material_;
  std::vector<NamedEvaluatedPeer> peers_;
  Work work_;
  double sigma_ = 0;
  std::vector<Sequence> noisy_;
};

}  // namespace

double EvaluationRow::mean_psnr(size_t plane, int64_t measure_from) const {
  return mean(std::vector<double>(psnr[plane].begin() + measure_from, psnr[plane].end()));
}

double EvaluationRow::mean_ssim(size_t plane) const { return mean(ssim[plane]); }

std::optional<double> EvaluationRow::mean_flicker() const {
  return flicker.empty() ? std::nullopt : std::optional(mean(flicker));
}

std::optional<double> EvaluationRow::median_ms() const {
  FrameTimes times;
  for (const double one : ms) times.add(one);
  return times.count() > 0 && times.median() > 0 ? std::optional(times.median()) : std::nullopt;
}

std::optional<double> EvaluationRow::min_ms() const {
  FrameTimes times;
  for (const double one : ms) times.add(one);
  return times.count() > 0 && times.min() > 0 ? std::optional(times.min()) : std::nullopt;
}

std::optional<double> EvaluationRow::mean_noise() const {
  return noise.empty() ? std::nullopt : std::optional(mean(noise));
}

std::vector<double> sigmas_of(const EvaluationOptions& options, const Material& material) {
  if (!options.sigmas.empty()) return options.sigmas;
  if (options.crf) return {0};
  return material.is_clip ? std::vector<double>{20} : std::vector<double>{10, 25, 50};
}

Evaluation evaluate(const EvaluationOptions& options) {
  for (const std::string& preset : options.presets)
    check_properties(kDenoiser, with(options.properties, {"preset", preset}));
  for (const std::string& model : options.models)
    check_properties(kNetwork, with(options.properties, {"model", model}));
  if (options.crf && !is_installed("ffmpeg"))
    throw Failure("--crf: x264 is run by the command ffmpeg, which is not installed");
  Evaluation evaluation;
  evaluation.material = read_material(options.material);
  if (options.peers && std::ranges::count(sigmas_of(options, evaluation.material), 0.0) > 0)
    throw Failure("--peers: their strengths are in proportion to sigma, which is 0: say --sigma, above 0");
  if (!evaluation.material.is_clip && options.measure_from > 0)
    throw Failure("--measure-from is for a clip: each picture is filtered by itself");
  if (options.measure_from >= evaluation.material.count())
    throw Failure(formatted("--measure-from %ld: there are only %ld frames", long(options.measure_from),
                            long(evaluation.material.count())));
  Evaluator(options, evaluation).run();
  return evaluation;
}

}  // namespace nonlocal::tools
