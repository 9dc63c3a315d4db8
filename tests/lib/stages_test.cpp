// Stages of tasks: each task once, no stage before the one before has ended, no slot twice at a time.
#include "text/stages.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
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

TEST(Stages, NoneIsNoWork) { Stages(2).run(); }

}  // namespace
}  // namespace nonlocal::text
