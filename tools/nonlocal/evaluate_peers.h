// Other programs' denoisers, each at its best setting for the material: OpenCV in process, FFmpeg's filters
// by its command.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "evaluate_filter.h"

namespace nonlocal::tools {

// In multiples of the noise's sigma.
struct PeerSetting {
  double strength = 0;
  double temporal = 0;  // where the filter has a strength over time of its own
};

// What is searched for the best setting, from the middle: both ascending.
struct SettingGrid {
  std::vector<double> strength;
  std::vector<double> temporal{0};
};

struct PeerChoice {
  PeerSetting luma;
  PeerSetting chroma;
};

class EvaluatedPeer {
 public:
  virtual ~EvaluatedPeer() = default;

  [[nodiscard]] virtual SettingGrid settings() const = 0;

  // Whether chroma can have a setting of its own.
  [[nodiscard]] virtual bool parts_chroma() const = 0;

  // How many frames of a clip each setting is tried on, and how many of the first of them do not count.
  [[nodiscard]] virtual int64_t tried_frames() const { return 5; }
  [[nodiscard]] virtual int64_t settling_frames() const { return 0; }

  // Times are measured where `timed`, which may take further runs. Throws Failure.
  virtual Filtered filter(const Sequence& noisy, double sigma, const PeerChoice& choice, bool timed,
                          const Tick& tick) = 0;

  // The filter with its parameters, for people: "h=16".
  [[nodiscard]] virtual std::string text(double sigma, const PeerChoice& choice, bool has_chroma) const = 0;
};

struct NamedEvaluatedPeer {
  std::string name;                     // opencv, opencv-multi, ffmpeg-nlmeans, ffmpeg-hqdn3d, ffmpeg-bm3d
  std::string title;                    // for people
  std::unique_ptr<EvaluatedPeer> peer;  // null: not installed
};

// opencv-multi, which filters over time, only for clips.
std::vector<NamedEvaluatedPeer> make_evaluated_peers(bool is_clip);

}  // namespace nonlocal::tools
