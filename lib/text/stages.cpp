#include "text/stages.h"

#include <hwy/cache_control.h>

#include <thread>
#include <utility>

#include "core/workers.h"

namespace nonlocal::text {

void Stages::add(int tasks, Task run) {
  if (tasks > 0) {
    stages_.push_back({tasks, std::move(run)});
    started_ = std::vector<Counter>(stages_.size() * static_cast<std::size_t>(threads_));
    done_ = std::vector<Counter>(stages_.size());
  }
}

Stages::Counter& Stages::started(std::size_t stage, int part) {
  return started_[stage * static_cast<std::size_t>(threads_) + static_cast<std::size_t>(part)];
}

bool Stages::run(const std::stop_token& stop) {
  for (auto* counters : {&started_, &done_}) {
    for (Counter& counter : *counters) {
      counter.value.store(0, std::memory_order_relaxed);
    }
  }
  // Whoever comes takes what is left: nothing waits for a thread that has not begun.
  Workers::shared().run(threads_, threads_, [&](int, int slot) { take_part(slot, stop); });
  return !stop.stop_requested();
}

void Stages::work(std::size_t stage, int slot, const std::stop_token& stop) {
  const auto& [tasks, run] = stages_[stage];
  for (int n = 0; n < threads_; ++n) {
    const int part = (slot + n) % threads_;
    const int first = tasks * part / threads_;
    const int last = tasks * (part + 1) / threads_;
    for (int i = 0;
         (i = first + started(stage, part).value.fetch_add(1, std::memory_order_relaxed)) < last;) {
      if (!stop.stop_requested()) {
        run(i, slot);
      }
      done_[stage].value.fetch_add(1, std::memory_order_release);
    }
  }
}

void Stages::take_part(int slot, const std::stop_token& stop) {
  constexpr int kPauses = 4000;  // longer than tasks take, where their threads run
  for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
    work(stage, slot, stop);
    for (int n = 0; done_[stage].value.load(std::memory_order_acquire) < stages_[stage].tasks; ++n) {
      if (n < kPauses) {
        hwy::Pause();
      } else {
        std::this_thread::yield();
      }
    }
  }
}

}  // namespace nonlocal::text
