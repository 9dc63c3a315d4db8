// How far a run is: a bar that redraws itself on a terminal, else a line now and then; on stderr, so that
// stdout holds results only.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace nonlocal::tools {

class Progress {
 public:
  // `expected_frames` 0: not known. `quiet`: shows nothing.
  Progress(int64_t expected_frames, bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `details` follows the counts: "noise 9.8".
  void show(int64_t frames, const std::string& details);

  [[nodiscard]] double seconds() const;

 private:
  [[nodiscard]] std::string status(int64_t frames, const std::string& details) const;

  using Clock = std::chrono::steady_clock;
  int64_t expected_;
  bool quiet_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point shown_ = start_;
};

}  // namespace nonlocal::tools
