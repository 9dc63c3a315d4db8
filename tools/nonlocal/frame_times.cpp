#include "frame_times.h"

#include <algorithm>

namespace nonlocal::tools {

double FrameTimes::median() const {
  std::vector<double> sorted = ms_;
  std::ranges::sort(sorted);
  const size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

double FrameTimes::min() const { return *std::ranges::min_element(ms_); }

}  // namespace nonlocal::tools
