// Other programs' non-local means, to compare with: OpenCV in process, FFmpeg and HandBrake by their
// commands.
#pragma once

#include <functional>
#include <memory>
#include <opencv2/core.hpp>
#include <string>
#include <vector>

#include "frame_times.h"

namespace nonlocal::tools {

// What every peer filters: 8-bit luma, the one thing that all of them take.
struct PeerJob {
  std::vector<cv::Mat> frames;  // CV_8U, of one size
  int patch_size = 7;
  int search_size = 21;
  double sigma = 25;
  int threads = 1;

  // The strength that OpenCV's users are told for this noise, in code values; each peer's own is set to the
  // same weights.
  [[nodiscard]] double h() const { return 0.9 * sigma; }
};

class Peer {
 public:
  virtual ~Peer() = default;

  // Runs once untimed: code, files and memory are in place afterwards. Throws Failure.
  virtual void warm_up() = 0;

  // Adds at least one frame's time. Throws Failure.
  virtual void measure(FrameTimes& times) = 0;
};

using MakePeer = std::function<std::unique_ptr<Peer>()>;

struct KnownPeer {
  std::string name;   // opencv, ffmpeg, handbrake
  std::string title;  // with what is run
  MakePeer make;      // null: not installed. Throws Failure, and what the standard library does
};

// `job` must outlive what they make.
std::vector<KnownPeer> known_peers(const PeerJob& job);

}  // namespace nonlocal::tools
