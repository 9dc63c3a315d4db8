// Work in stages: a stage's tasks may run at the same time, after all of the stage before.
//
// An encoder has a hundred stages of some ten microseconds. Threads that slept between them would take longer
// to wake than to work, so those that help stay awake until the last stage, and no longer.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <stop_token>
#include <vector>

namespace nonlocal::text {

class Stages {
 public:
  // No two tasks at a time have the same slot, a number below `threads`.
  using Task = std::function<void(int task, int slot)>;

  explicit Stages(int threads) : threads_(threads) {}

  // Stages without tasks are left out.
  void add(int tasks, Task run);

  // Allocates nothing. Asked to stop it begins no more tasks, and tells false: what they were to write is not
  // to be read.
  bool run(const std::stop_token& stop = {});

  [[nodiscard]] int threads() const { return threads_; }

 private:
  struct Stage {
    int tasks;
    Task run;
  };
  // Each thread has a part of a stage's tasks, side by side, as tasks side by side read memory side by side;
  // once it is done with its own it helps with the others'.
  struct alignas(64) Counter {
    std::atomic<int> value = 0;
  };
  [[nodiscard]] Counter& started(std::size_t stage, int part);
  void work(std::size_t stage, int slot, const std::stop_token& stop);
  void take_part(int slot, const std::stop_token& stop);

  int threads_;
  std::vector<Stage> stages_;
  std::vector<Counter> started_;  // [stages][threads]
  std::vector<Counter> done_;     // [stages]
};

}  // namespace nonlocal::text
