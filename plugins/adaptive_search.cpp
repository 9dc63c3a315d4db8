#include "adaptive_search.h"

#include <algorithm>

namespace nonlocal {
namespace {

// The work grows with the square of the size: this is about two thirds of it.
int smaller(int search_size) { return std::max(3, (search_size * 4 / 5 - 1) | 1); }

int step_down(int search_size, int steps) {
  for (; steps > 0; --steps) {
    search_size = smaller(search_size);
  }
  return search_size;
}

}  // namespace

int AdaptiveSearch::search_size(int wanted) const { return step_down(wanted, steps_); }

void AdaptiveSearch::update(int wanted, const Frame& frame) {
  ++frames_since_step_;
  const bool slow = frame.load > kHighLoad;
  if (slow || frame.late) {
    calm_frames_ = 0;
    if (can_lower(wanted) && (slow || steps_ == 0 || frames_since_step_ > kSettleFrames)) {
      lower();
    }
    return;
  }
  ++calm_frames_;
  if (steps_ == 0 || calm_frames_ < calm_needed_) {
    return;
  }
  const double growth = static_cast<double>(step_down(wanted, steps_ - 1)) / search_size(wanted);
  if (frame.load * growth * growth < kRoomyLoad) {
    raise();
  }
}

void AdaptiveSearch::lower() {
  // A step up that did not last was a mistake: be slower to repeat it.
  if (last_was_up_) {
    const bool failed = frames_since_step_ < calm_needed_;
    calm_needed_ = failed ? std::min(2 * calm_needed_, kMostCalmFrames) : kCalmFrames;
  }
  ++steps_;
  frames_since_step_ = 0;
  last_was_up_ = false;
}

void AdaptiveSearch::raise() {
  --steps_;
  frames_since_step_ = 0;
  calm_frames_ = 0;
  last_was_up_ = true;
}

}  // namespace nonlocal
