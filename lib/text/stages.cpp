#include "text/stages.h"

#include <hwy/cache_control.h>

#include <thread>
#include <utility>

#include "core/workers.h"

namespace nonlocal::text {

void Stages::add(int tasks, Task run) {
  if (tasks > 0) {
    stages_.push_back({tasks, std::move(run)});
    progress_ = std::vector<Progress>(stages_.size());
  }
}

void Stages::run() {
  for (Progress& progress : progress_) {
    progress.started.store(0, std::memory_order_relaxed);
    progress.done.store(0, std::memory_order_relaxed);
  }
  // Whoever comes takes what is left: nothing waits for a thread that has not begun.
  Workers::shared().run(threads_, threads_, [this](int, int slot) { take_part(slot); });
}

void Stages::take_part(int slot) {
  constexpr int kPauses = 4000;  // longer than tasks take, where their threads run
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const Stage& stage = stages_[s];
    Progress& progress = progress_[s];
    for (int i = 0; (i = progress.started.fetch_add(1, std::memory_order_relaxed)) < stage.tasks;) {
      stage.run(i, slot);
      progress.done.fetch_add(1, std::memory_order_release);
    }
    for (int n = 0; progress.done.load(std::memory_order_acquire) < stage.tasks; ++n) {
      if (n < kPauses) {
        hwy::Pause();
      } else {
        std::this_thread::yield();
      }
    }
  }
}

}  // namespace nonlocal::text
