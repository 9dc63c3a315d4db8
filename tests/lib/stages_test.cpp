// Stages of tasks: each task once, no stage before the one before has ended, no slot twice at a time.
#include "text/stages.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <stop_token>
#include <vector>

namespace nonlocal::text {
namespace {

TEST(Stages, EachTaskRunsOnceAndInItsStage) {
  for (const int threads : {1, 2, 3, 8}) {
    for (const int tasks : {1, 2, 5, 64}) {
      Stages stages(threads);
      // Each stage adds up what the one before wrote, without atomics: a race would show.
      std::vector<std::vector<int>> written(6, std::vector<int>(static_cast<std::size_t>(tasks), 1));
      std::vector<std::atomic<int>> busy(static_cast<std::size_t>(threads));
      std::atomic<bool> is_shared = false;
      for (std::size_t s = 1; s < written.size(); ++s) {
        stages.add(0, [](int, int) { FAIL(); });
        stages.add(tasks, [&, s](int task, int slot) {
          auto& mine = busy[static_cast<std::size_t>(slot)];
          is_shared = is_shared || mine.exchange(1) != 0;
          const auto& before = written[s - 1];
          written[s][static_cast<std::size_t>(task)] +=
              std::accumulate(before.begin(), before.end(), 0) % 1000;
          mine = 0;
        });
      }
      for (int run = 0; run < 30; ++run) {
        for (auto& values : written) {
          std::ranges::fill(values, 1);
        }
        stages.run();
        int expected = 1;
        for (const auto& values : written) {
          ASSERT_EQ(values, std::vector<int>(static_cast<std::size_t>(tasks), expected)) << threads;
          expected = 1 + tasks * expected % 1000;
        }
      }
      EXPECT_FALSE(is_shared);
    }
  }
}

TEST(Stages, NoneIsNoWork) { EXPECT_TRUE(Stages(2).run()); }

TEST(Stages, StopsBetweenTasks) {
  for (const int threads : {1, 3}) {
    Stages stages(threads);
    std::stop_source stop;
    std::atomic<int> first = 0;
    std::atomic<int> second = 0;
    stages.add(100, [&](int task, int) {
      ++first;
      if (task == 10) {
        stop.request_stop();
      }
    });
    stages.add(100, [&](int, int) { ++second; });
    EXPECT_FALSE(stages.run(stop.get_token()));
    EXPECT_GE(first, 1);
    if (threads == 1) {  // others may have begun what follows
      EXPECT_EQ(first, 11);
    }
    EXPECT_EQ(second, 0);
    // And then all of it, from the start.
    first = 0;
    EXPECT_TRUE(stages.run());
    EXPECT_EQ(first, 100);
    EXPECT_EQ(second, 100);
  }
}

}  // namespace
}  // namespace nonlocal::text
