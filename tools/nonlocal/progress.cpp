#include "progress.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "text.h"

namespace nonlocal::tools {
namespace {

constexpr int kBarWidth = 24;
constexpr double kSecondsBetweenLines = 5;
constexpr const char* kClearLine = "\r\033[K";

std::string bar(double fraction) {
  const int full = static_cast<int>(std::lround(fraction * kBarWidth));
  return std::string("[").append(full, '#').append(kBarWidth - full, '.').append("] ");
}

}  // namespace

Progress::Progress(int64_t expected_frames, bool quiet)
    : expected_(expected_frames), quiet_(quiet), terminal_(isatty(STDERR_FILENO)) {}

Progress::~Progress() {
  if (drawn_) std::cerr << kClearLine << std::flush;
}

double Progress::seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

std::string Progress::status(int64_t frames, const std::string& details) const {
  const double fps = static_cast<double>(frames) / seconds();
  std::string text = "frame " + std::to_string(frames);
  if (expected_ > 0) {
    const double left = static_cast<double>(std::max<int64_t>(expected_ - frames, 0)) / fps;
    text += " of " + std::to_string(expected_) + formatted(", %.1f fps, %.0f s left", fps, left);
  } else {
    text += formatted(", %.1f fps", fps);
  }
  return details.empty() ? text : text + ", " + details;
}

void Progress::show(int64_t frames, const std::string& details) {
  if (quiet_ || frames == 0) return;
  if (terminal_) {
    const double fraction = expected_ > 0 ? std::min(1.0, static_cast<double>(frames) / expected_) : 0;
    std::cerr << kClearLine << (expected_ > 0 ? bar(fraction) : "") << status(frames, details) << std::flush;
    drawn_ = true;
  } else if (std::chrono::duration<double>(Clock::now() - shown_).count() >= kSecondsBetweenLines) {
    std::cerr << status(frames, details) << std::endl;
    shown_ = Clock::now();
  }
}

}  // namespace nonlocal::tools
