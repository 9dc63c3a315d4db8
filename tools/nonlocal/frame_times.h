// How long frames took.
#pragma once

#include <chrono>
#include <vector>

namespace nonlocal::tools {

class FrameTimes {
 public:
  void add(double ms) { ms_.push_back(ms); }

  [[nodiscard]] int count() const { return static_cast<int>(ms_.size()); }
  // Of at least one.
  [[nodiscard]] double median() const;
  [[nodiscard]] double min() const;

 private:
  std::vector<double> ms_;
};

class Stopwatch {
 public:
  [[nodiscard]] double ms() const {
    return std::chrono::duration<double, std::milli>(Clock::now() - start_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace nonlocal::tools
