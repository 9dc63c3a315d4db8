// When does the search window shrink and grow?
#include "adaptive_search.h"

#include <gtest/gtest.h>

#include <vector>

namespace nonlocal::test {
namespace {

constexpr int kWanted = 21;
constexpr AdaptiveSearch::Frame kLate{.late = true};
constexpr AdaptiveSearch::Frame kIdle{};

// The sizes seen, without repetitions, over so many equal frames.
std::vector<int> sizes_over(AdaptiveSearch& search, int frames, const AdaptiveSearch::Frame& frame) {
  std::vector<int> sizes{search.search_size(kWanted)};
  for (int i = 0; i < frames; ++i) {
    search.update(kWanted, frame);
    if (search.search_size(kWanted) != sizes.back()) {
      sizes.push_back(search.search_size(kWanted));
    }
  }
  return sizes;
}

int frames_until_change(AdaptiveSearch& search, const AdaptiveSearch::Frame& frame) {
  const int before = search.search_size(kWanted);
  int frames = 0;
  while (search.search_size(kWanted) == before && frames < 10000) {
    search.update(kWanted, frame);
    ++frames;
  }
  return frames;
}

TEST(AdaptiveSearch, TakesWhatIsWantedWhileThereIsTime) {
  AdaptiveSearch search;
  EXPECT_EQ(sizes_over(search, 500, kIdle), std::vector<int>{kWanted});
  EXPECT_EQ(sizes_over(search, 500, {.load = 0.9}), std::vector<int>{kWanted});
}

TEST(AdaptiveSearch, GoesDownToTheSmallestWindowAndUpAgain) {
  AdaptiveSearch search;
  const std::vector<int> down = sizes_over(search, 200, kLate);
  EXPECT_EQ(down.front(), kWanted);
  EXPECT_EQ(down.back(), 3);
  EXPECT_FALSE(search.can_lower(kWanted));
  for (std::size_t i = 0; i < down.size(); ++i) {
    EXPECT_EQ(down[i] % 2, 1);
    if (i > 0) {
      EXPECT_LT(down[i], down[i - 1]);
      EXPECT_GE(2 * down[i], down[i - 1]) << "a step that is too long";
    }
  }
  const std::vector<int> up = sizes_over(search, 2000, kIdle);
  EXPECT_EQ(up, std::vector<int>(down.rbegin(), down.rend()));
}

TEST(AdaptiveSearch, EverySizeGoesDownInOddStepsAndNeverBelowThree) {
  for (int wanted = 3; wanted <= 63; wanted += 2) {
    AdaptiveSearch search;
    for (int i = 0; i < 400; ++i) {
      search.update(wanted, kLate);
      EXPECT_EQ(search.search_size(wanted) % 2, 1);
      EXPECT_LE(search.search_size(wanted), wanted);
    }
    EXPECT_EQ(search.search_size(wanted), 3);
  }
}

TEST(AdaptiveSearch, ReactsAtOnceAndThenWaitsForTheEffect) {
  AdaptiveSearch search;
  EXPECT_EQ(frames_until_change(search, kLate), 1);
  EXPECT_GT(frames_until_change(search, kLate), 4);
}

// What a smaller window does to the load is known at the next frame.
TEST(AdaptiveSearch, ATooHighLoadIsTroubleAndNeedsNoWaiting) {
  AdaptiveSearch search;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(frames_until_change(search, {.load = 1.3}), 1);
  }
  EXPECT_LT(search.search_size(kWanted), kWanted);
}

TEST(AdaptiveSearch, StaysWhereALargerWindowWouldBeTooSlow) {
  AdaptiveSearch search;
  search.update(kWanted, kLate);
  const int lowered = search.search_size(kWanted);
  EXPECT_EQ(sizes_over(search, 500, {.load = 0.65}), std::vector<int>{lowered});
  EXPECT_EQ(sizes_over(search, 500, {.load = 0.3}).back(), kWanted);
}

// Trying again in vain must become rarer, or the window would swing for ever.
TEST(AdaptiveSearch, StepsUpThatFailMakeItMorePatient) {
  AdaptiveSearch search;
  search.update(kWanted, kLate);
  const int first = frames_until_change(search, kIdle);
  search.update(kWanted, kLate);
  const int second = frames_until_change(search, kIdle);
  search.update(kWanted, kLate);
  const int third = frames_until_change(search, kIdle);
  EXPECT_LT(first, second);
  EXPECT_LT(second, third);
}

TEST(AdaptiveSearch, ResetForgets) {
  AdaptiveSearch search;
  sizes_over(search, 100, kLate);
  search.reset();
  EXPECT_EQ(search.search_size(kWanted), kWanted);
}

}  // namespace
}  // namespace nonlocal::test
