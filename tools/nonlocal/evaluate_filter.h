// What is evaluated: something that turns noisy frames into as many filtered ones.
#pragma once

#include <vector>

#include "evaluate_material.h"
#include "frame_times.h"

namespace nonlocal::tools {

struct Filtered {
  std::vector<Planes> frames;
  std::vector<double> ms;     // times a frame took; may be fewer than frames, or too small to be told from 0
  std::vector<double> noise;  // that the filter found in each frame, where it says
};

}  // namespace nonlocal::tools
