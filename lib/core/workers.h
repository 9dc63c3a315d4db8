// Threads that all filters of the process share. They sleep when there is nothing to do: in a pipeline the
// cores belong to the decoder and the encoder then. OpenMP's threads spin for milliseconds after each
// parallel region, which made a pipeline that decodes, filters and encodes on two cores take 13.6 s instead
// of 6.0 s.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <type_traits>

namespace nonlocal {

// Filters keep memory for each thread that they are told of.
inline constexpr int kMostThreads = 1024;

// How many threads `wanted` stands for: 0 is as many as this process may use; more than kMostThreads are
// those.
int thread_count(int wanted);

class Workers {
 public:
  static Workers& shared();

  // Calls task(i, slot) for each i of 0 .. count - 1, on the calling thread and on at most threads - 1
  // others, and returns when all are done. No two tasks at a time have the same slot, a number below
  // `threads`: a thread's working memory. Tasks must not throw. Allocates nothing unless there have never
  // been that many threads.
  template <typename Task>
  void run(int count, int threads, Task&& task) {
    using Plain = std::remove_reference_t<Task>;
    run(
        count, threads, [](void* t, int i, int slot) { (*static_cast<Plain*>(t))(i, slot); }, &task);
  }

 private:
  using Call = void (*)(void* task, int i, int slot);

  struct Job {
    Call call;
    void* task;
    int count;
    int free_slots;   // that threads may still join with
    int slots = 1;    // given out; 0 is the caller's
    int helpers = 0;  // threads at work beside the caller
    Job* next = nullptr;
    std::atomic<int> started = 0;

    void work(int slot);
    [[nodiscard]] bool wants_help() const { return free_slots > 0 && started < count; }
  };

  void run(int count, int threads, Call call, void* task);
  void help();
  void start_threads(int wanted);
  void remove(Job& job);
  Job* first_that_wants_help();

  std::mutex mutex_;  // guards all that follows, and the jobs
  std::condition_variable work_;
  std::condition_variable done_;
  Job* jobs_ = nullptr;
  int threads_ = 0;
};

}  // namespace nonlocal
