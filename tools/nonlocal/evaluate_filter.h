// What is evaluated: something that turns noisy frames into as many filtered ones.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "evaluate_material.h"
#include "frame_times.h"

namespace nonlocal::tools {

struct Filtered {
  std::vector<Planes> frames;
  std::vector<double> ms;     // times a frame took; may be fewer than frames, or too small to be told from 0
  std::vector<double> noise;  // that the filter found in each frame, where it says
};

// Called now and then while a filter works, with the frames done since the last call: 0 is a sign of life.
using Tick = std::function<void(int64_t frames)>;

}  // namespace nonlocal::tools
