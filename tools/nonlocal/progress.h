// How far a run is: a bar that redraws itself on a terminal, else a line now and then; on stderr, so that
// stdout holds results only.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace nonlocal::tools {

class Progress {
 public:
  // `expected` 0: not known. `quiet`: shows nothing. `unit`: what is counted; units other than frames may
  // differ in length, so that no rate is shown for them.
  Progress(int64_t expected, bool quiet, std::string unit = "frame");

  // Of what follows, so many were done before this began: they count, but for the rate.
  void begin_at(int64_t done) { before_ = done; }

  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `details` follows the counts: "noise 9.8".
  void show(int64_t done, const std::string& details);

  [[nodiscard]] double seconds() const;

  // Of those done here, a second; 0 as long as there are none. And how long the rest will take, in seconds.
  [[nodiscard]] double rate(int64_t done) const;
  [[nodiscard]] double seconds_left(int64_t done) const;

 private:
  [[nodiscard]] std::string status(int64_t done, const std::string& details) const;

  using Clock = std::chrono::steady_clock;
  int64_t expected_;
  int64_t before_ = 0;
  bool quiet_;
  std::string unit_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point shown_ = start_;
};

}  // namespace nonlocal::tools
