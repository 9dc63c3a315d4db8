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
constexpr double kSecondsWithoutAny = 2;  // before it says so
constexpr const char* kClearLine = "\r\033[K";

std::string bar(double fraction) {
  const int full = static_cast<int>(std::lround(fraction * kBarWidth));
  return std::string("[").append(full, '#').append(kBarWidth - full, '.').append("] ");
}

}  // namespace

Progress::Progress(int64_t expected, bool quiet, std::string unit)
    : expected_(expected), quiet_(quiet), unit_(std::move(unit)), terminal_(isatty(STDERR_FILENO)) {}

Progress::~Progress() {
  if (drawn_) std::cerr << kClearLine << std::flush;
}

double Progress::seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

double Progress::rate(int64_t done) const { return static_cast<double>(done - before_) / seconds(); }

double Progress::seconds_left(int64_t done) const {
  return done > before_ ? static_cast<double>(std::max<int64_t>(expected_ - done, 0)) / rate(done) : 0;
}

std::string Progress::status(int64_t done, const std::string& details) const {
  std::string text = unit_ + " " + std::to_string(done);
  if (expected_ > 0) text += " of " + std::to_string(expected_);
  if (unit_ == "frame") {
    text += formatted(", %.1f fps", rate(done));
    if (expected_ > 0 && done > before_) text += formatted(", %.0f s left", seconds_left(done));
  } else {
    text += formatted(", %.0f s", seconds());
  }
  return details.empty() ? text : text + ", " + details;
}

void Progress::show(int64_t done, const std::string& details) {
  if (quiet_ || (done == 0 && seconds() < kSecondsWithoutAny)) return;
  if (terminal_) {
    const double fraction = expected_ > 0 ? std::min(1.0, static_cast<double>(done) / expected_) : 0;
    std::cerr << kClearLine << (expected_ > 0 ? bar(fraction) : "") << status(done, details) << std::flush;
    drawn_ = true;
  } else if (std::chrono::duration<double>(Clock::now() - shown_).count() >= kSecondsBetweenLines) {
    std::cerr << status(done, details) << std::endl;
    shown_ = Clock::now();
  }
}

}  // namespace nonlocal::tools
