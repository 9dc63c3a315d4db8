// The clean material that filters are evaluated on, and its noisy version.
#pragma once

#include <gst/video/video.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "planes.h"

namespace nonlocal::tools {

// Called now and then in long work, with the frames done since the last call: 0 is a sign of life.
using Tick = std::function<void(int64_t frames)>;

// Frames that follow each other: a clip, or one still picture.
struct Sequence {
  std::string name;
  GstVideoInfo info;  // of each frame
  std::vector<Planes> frames;

  [[nodiscard]] cv::Size size() const { return {info.width, info.height}; }
};

struct MaterialOptions {
  std::string path;    // a video file, or a folder of .png, .jpg and .jpeg pictures
  std::string format;  // GRAY8 or I420; empty: I420 for a clip, GRAY8 for pictures
  int64_t start = 0;   // the first frame, or picture in the order of their names, counted from 0
  int64_t frames = 0;  // how many at most; 0: all that kMemory holds
  double scale = 1;    // of width and height, by area averaging; above 0, at most 1
  bool quiet = false;
};

struct Material {
  bool is_clip = false;
  std::string format;
  std::vector<Sequence> sequences;  // one for a clip, one a picture otherwise
  bool is_cut = false;              // there was more than kMemory holds

  [[nodiscard]] int64_t count() const;  // of frames or pictures
  [[nodiscard]] std::vector<std::string> plane_names() const;
};

// Bytes of clean frames; three times as many are in use while a filter runs.
constexpr size_t kMemory = size_t{512} << 20;

// Y is the clip's own luma; a picture's is BT.601's, of full range, for GRAY8 and BT.709's, of video range,
// for I420. Throws Failure where there is nothing to read, or frames are smaller than 32 x 32.
Material read_material(const MaterialOptions& options);

// Every plane of every frame with noise of `sigma` and one of noise_kinds(), rounded and clipped to 8 bits:
// once, whoever filters it.
std::vector<Sequence> with_noise(const std::vector<Sequence>& clean, const std::string& kind, double sigma,
                                 uint64_t seed, const Tick& tick);

}  // namespace nonlocal::tools
