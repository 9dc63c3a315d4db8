#include "evaluate_search.h"

#include <algorithm>
#include <map>
#include <utility>

#include "image_metrics.h"

namespace nonlocal::tools {
namespace {

constexpr int64_t kTriedPictures = 4;

// The part of the material that settings are tried on.
struct Trial {
  std::vector<Sequence> clean;
  std::vector<Sequence> noisy;
  int64_t measure_from = 0;
};

Sequence piece(const Sequence& sequence, int64_t from, int64_t count) {
  const auto first = sequence.frames.begin() + from;
  return {sequence.name, sequence.info, std::vector<Planes>(first, first + count)};
}

Trial clip_trial(const EvaluatedPeer& peer, const Sequence& clean, const Sequence& noisy,
                 int64_t measure_from) {
  const int64_t all = std::ssize(clean.frames);
  const int64_t count = std::min(peer.tried_frames(), all);
  const int64_t from = std::clamp<int64_t>((measure_from + all - count) / 2, 0, all - count);
  return {
      {piece(clean, from, count)}, {piece(noisy, from, count)}, std::min(peer.settling_frames(), count - 1)};
}

Trial picture_trial(const std::vector<Sequence>& clean, const std::vector<Sequence>& noisy) {
  const int64_t all = std::ssize(clean);
  const int64_t count = std::min(kTriedPictures, all);
  Trial trial;
  for (int64_t i = 0; i < count; ++i) {
    trial.clean.push_back(clean[i * all / count]);
    trial.noisy.push_back(noisy[i * all / count]);
  }
  return trial;
}

class Search {
 public:
  Search(EvaluatedPeer& peer, const Trial& trial, double sigma, const Tick& tick)
      : peer_(peer), grid_(peer.settings()), trial_(trial), sigma_(sigma), tick_(tick) {}

  PeerSetting best_for_luma() {
    return climb([](const std::vector<double>& psnr) { return psnr[0]; });
  }
  PeerSetting best_for_chroma() {
    return climb([](const std::vector<double>& psnr) { return psnr[1] + psnr[2]; });
  }

 private:
  using Place = std::pair<int, int>;  // in the grid: strength, temporal

  template <typename Score>
  PeerSetting climb(Score score) {
    Place best{static_cast<int>(grid_.strength.size()) / 2, static_cast<int>(grid_.temporal.size()) / 2};
    for (bool climbs = true; climbs;) {
      climbs = false;
      for (const Place& neighbour : neighbours(best)) {
        if (score(psnr(neighbour)) <= score(psnr(best))) continue;
        best = neighbour;
        climbs = true;
      }
    }
    return setting(best);
  }

  [[nodiscard]] PeerSetting setting(Place place) const {
    return {grid_.strength[place.first], grid_.temporal[place.second]};
  }

  [[nodiscard]] std::vector<Place> neighbours(Place place) const {
    std::vector<Place> inside;
    for (int strength = place.first - 1; strength <= place.first + 1; ++strength)
      for (int temporal = place.second - 1; temporal <= place.second + 1; ++temporal)
        if (strength >= 0 && strength < std::ssize(grid_.strength) && temporal >= 0 &&
            temporal < std::ssize(grid_.temporal))
          inside.emplace_back(strength, temporal);
    return inside;
  }

  // The mean of each plane. No place is tried twice.
  const std::vector<double>& psnr(Place place) {
    std::vector<double>& means = known_[place];
    if (means.empty()) means = measured({setting(place), setting(place)});
    return means;
  }

  std::vector<double> measured(const PeerChoice& choice) {
    std::vector<double> sums(trial_.clean[0].frames[0].size());
    double frames = 0;
    for (size_t i = 0; i < trial_.clean.size(); ++i) {
      const Filtered filtered = peer_.filter(trial_.noisy[i], sigma_, choice, false, tick_);
      for (size_t t = trial_.measure_from; t < filtered.frames.size(); ++t, ++frames)
        for (size_t p = 0; p < sums.size(); ++p)
          sums[p] += plane_psnr(filtered.frames[t][p], trial_.clean[i].frames[t][p]);
    }
    for (double& sum : sums) sum /= frames;
    return sums;
  }

  EvaluatedPeer& peer_;
  SettingGrid grid_;
  const Trial& trial_;
  double sigma_;
  const Tick& tick_;
  std::map<Place, std::vector<double>> known_;
};

}  // namespace

PeerChoice best_choice(EvaluatedPeer& peer, const Material& material, const std::vector<Sequence>& noisy,
                       double sigma, int64_t measure_from, const Tick& tick) {
  const Trial trial = material.is_clip ? clip_trial(peer, material.sequences[0], noisy[0], measure_from)
                                       : picture_trial(material.sequences, noisy);
  Search search(peer, trial, sigma, tick);
  const PeerSetting luma = search.best_for_luma();
  const bool has_chroma = material.sequences[0].frames[0].size() > 1;
  return {luma, has_chroma && peer.parts_chroma() ? search.best_for_chroma() : luma};
}

int64_t expected_frames_tried(const EvaluatedPeer& peer, const Material& material) {
  constexpr int64_t kTries = 5;
  constexpr int64_t kTriesOverBoth = 40;
  const SettingGrid grid = peer.settings();
  const int64_t tries = grid.temporal.size() > 1 ? kTriesOverBoth : kTries;
  return tries * std::min(material.count(), material.is_clip ? peer.tried_frames() : kTriedPictures);
}

}  // namespace nonlocal::tools
