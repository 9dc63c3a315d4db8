#include "core/workers.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <limits>
#include <thread>
#include <vector>

namespace nonlocal {
namespace {

TEST(Workers, DoEveryTaskOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    for (const int count : {0, 1, 2, 7, 1000}) {
      std::vector<int> done(static_cast<std::size_t>(count));
      Workers::shared().run(count, threads, [&](int i, int) { ++done[static_cast<std::size_t>(i)]; });
      EXPECT_EQ(done, std::vector<int>(static_cast<std::size_t>(count), 1)) << threads << " threads";
    }
  }
}

TEST(Workers, SlotsAreBelowTheNumberOfThreadsAndNeverShared) {
  constexpr int kThreads = 3;
  std::array<std::atomic<int>, kThreads> busy{};
  std::atomic<int> wrong = 0;
  Workers::shared().run(200, kThreads, [&](int, int slot) {
    if (slot < 0 || slot >= kThreads || busy[static_cast<std::size_t>(slot)]++ != 0) {
      ++wrong;
      return;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    --busy[static_cast<std::size_t>(slot)];
  });
  EXPECT_EQ(wrong, 0);
}

TEST(Workers, HelpIndeed) {
  // Two tasks that wait for each other: one thread alone would never end.
  std::atomic<int> there = 0;
  Workers::shared().run(2, 2, [&](int, int) {
    ++there;
    while (there < 2) {
      std::this_thread::yield();
    }
  });
  EXPECT_EQ(there, 2);
}

TEST(Workers, ServeSeveralCallersAtOnce) {
  std::array<long, 4> sums{};
  std::vector<std::thread> callers;
  for (std::size_t c = 0; c < sums.size(); ++c) {
    callers.emplace_back([&sums, c] {
      for (int round = 0; round < 50; ++round) {
        std::atomic<long> sum = 0;
        Workers::shared().run(40, 3, [&](int i, int) { sum += i; });
        sums[c] += sum;
      }
    });
  }
  for (std::thread& caller : callers) {
    caller.join();
  }
  for (const long sum : sums) {
    EXPECT_EQ(sum, 50 * 780);
  }
}

TEST(Workers, ZeroThreadsMeansTheMachines) {
  EXPECT_GE(thread_count(0), 1);
  EXPECT_EQ(thread_count(5), 5);
  EXPECT_EQ(thread_count(kMostThreads), kMostThreads);
  EXPECT_EQ(thread_count(std::numeric_limits<int>::max()), kMostThreads);
}

}  // namespace
}  // namespace nonlocal
