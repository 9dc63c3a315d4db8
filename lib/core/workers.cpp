#include "core/workers.h"

#include <algorithm>
#include <system_error>
#include <thread>

namespace nonlocal {

int thread_count(int wanted) {
  const int all = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return std::min(wanted > 0 ? wanted : all, kMostThreads);
}

// Never destroyed: its threads sleep until the process ends.
Workers& Workers::shared() {
  static auto* const workers = new Workers;
  return *workers;
}

void Workers::Job::work(int slot) {
  for (int i = started++; i < count; i = started++) {
    call(task, i, slot);
  }
}

void Workers::run(int count, int threads, Call call, void* task) {
  Job job{call, task, count, std::min(threads, count) - 1};
  if (job.free_slots <= 0) {
    job.work(0);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    start_threads(job.free_slots);
    job.next = jobs_;
    jobs_ = &job;
  }
  work_.notify_all();
  job.work(0);
  std::unique_lock lock(mutex_);
  remove(job);
  done_.wait(lock, [&job] { return job.helpers == 0; });
}

void Workers::start_threads(int wanted) {
  try {
    for (; threads_ < wanted; ++threads_) {
      std::thread(&Workers::help, this).detach();
    }
  } catch (const std::system_error&) {
    // The machine gives no more: those that are there do the work.
  }
}

void Workers::help() {
  std::unique_lock lock(mutex_);
  for (;;) {
    Job* job = nullptr;
    work_.wait(lock, [&] { return (job = first_that_wants_help()) != nullptr; });
    --job->free_slots;
    const int slot = job->slots++;
    ++job->helpers;
    lock.unlock();
    job->work(slot);
    lock.lock();
    if (--job->helpers == 0) {
      done_.notify_all();
    }
  }
}

Workers::Job* Workers::first_that_wants_help() {
  Job* job = jobs_;
  while (job != nullptr && !job->wants_help()) {
    job = job->next;
  }
  return job;
}

void Workers::remove(Job& job) {
  Job** at = &jobs_;
  while (*at != &job) {
    at = &(*at)->next;
  }
  *at = job.next;
}

}  // namespace nonlocal
