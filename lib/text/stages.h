// Work in stages: a stage's tasks may run at the same time, after all of the stage before.
//
// An encoder has a hundred stages of some ten microseconds. Threads that slept between them would take longer
// to wake than to work, so those that help stay awake until the last stage, and no longer.
#pragma once

#include <atomic>
#include <functional>
#include <vector>

namespace nonlocal::text {

class Stages {
 public:
  // No two tasks at a time have the same slot, a number below `threads`.
  using Task = std::function<void(int task, int slot)>;

  explicit Stages(int threads) : threads_(threads) {}

  // Stages without tasks are left out.
  void add(int tasks, Task run);

  // Allocates nothing.
  void run();

  [[nodiscard]] int threads() const { return threads_; }

 private:
  struct Stage {
    int tasks;
    Task run;
  };
  struct alignas(64) Progress {
    std::atomic<int> started = 0;
    std::atomic<int> done = 0;
  };
  void take_part(int slot);

  int threads_;
  std::vector<Stage> stages_;
  std::vector<Progress> progress_;
};

}  // namespace nonlocal::text
