#include "grade/place_basis.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace nonlocal::grade {
namespace {

constexpr int kPlaces = 60;
constexpr int kValues = 24;

// Sums of `rank` random patterns over the values, of sizes that fall by `fall`.
std::vector<double> changes_of_rank(int rank, double fall = 1) {
  std::mt19937 random(rank);
  const auto uniform = [&random] { return static_cast<double>(random()) / 2147483648.0 - 1; };
  std::vector<double> changes(kPlaces * kValues);
  for (int k = 0; k < rank; ++k) {
    std::vector<double> pattern(kValues);
    for (double& v : pattern) {
      v = uniform();
    }
    for (int p = 0; p < kPlaces; ++p) {
      const double share = uniform() * std::pow(fall, k);
      for (int i = 0; i < kValues; ++i) {
        changes[p * kValues + i] += share * pattern[i];
      }
    }
  }
  return changes;
}

// What the weighted sums of the basis's places miss, root mean square.
double missing(const std::vector<double>& changes, const PlaceBasis& basis) {
  double squares = 0;
  for (int p = 0; p < kPlaces; ++p) {
    for (int i = 0; i < kValues; ++i) {
      double sum = 0;
      for (std::size_t k = 0; k < basis.places.size(); ++k) {
        sum += basis.weights[p * basis.places.size() + k] * changes[basis.places[k] * kValues + i];
      }
      squares += std::pow(sum - changes[p * kValues + i], 2);
    }
  }
  return std::sqrt(squares / (kPlaces * kValues));
}

TEST(PlaceBasis, HasAsManyPlacesAsThereArePatterns) {
  for (const int rank : {1, 2, 5, 9}) {
    const std::vector<double> changes = changes_of_rank(rank);
    const PlaceBasis basis = find_place_basis(changes, kPlaces, 1e-6, 24);
    EXPECT_EQ(basis.places.size(), static_cast<std::size_t>(rank));
    EXPECT_LT(missing(changes, basis), 1e-5) << rank;
    EXPECT_LE(basis.remainder, 1e-6) << rank;
  }
}

TEST(PlaceBasis, TellsWhatItMisses) {
  const std::vector<double> changes = changes_of_rank(20, 0.6);
  std::size_t before = 0;
  for (const double tolerance : {0.1, 0.01, 0.001}) {
    const PlaceBasis basis = find_place_basis(changes, kPlaces, tolerance, 24);
    EXPECT_LE(basis.remainder, tolerance);
    EXPECT_NEAR(missing(changes, basis), basis.remainder, 1e-5);
    EXPECT_GT(basis.places.size(), before);
    before = basis.places.size();
    // One place fewer would not have been enough.
    const PlaceBasis less = find_place_basis(changes, kPlaces, tolerance, static_cast<int>(before) - 1);
    EXPECT_GT(less.remainder, tolerance);
    EXPECT_NEAR(missing(changes, less), less.remainder, 1e-5);
  }
}

TEST(PlaceBasis, PlacesOfTheBasisAreThemselves) {
  const PlaceBasis basis = find_place_basis(changes_of_rank(12), kPlaces, 0.1, 6);
  ASSERT_EQ(basis.places.size(), 6U);
  for (std::size_t k = 0; k < 6; ++k) {
    for (std::size_t i = 0; i < 6; ++i) {
      EXPECT_NEAR(basis.weights[basis.places[k] * 6 + i], i == k ? 1 : 0, 1e-6);
    }
  }
}

TEST(PlaceBasis, NothingIsASumOfNothing) {
  const PlaceBasis basis = find_place_basis(std::vector<double>(kPlaces * kValues), kPlaces, 0.1, 24);
  EXPECT_EQ(basis.places.size(), 1U);
  EXPECT_EQ(basis.weights, std::vector<float>(kPlaces, 0.0F));
  EXPECT_EQ(basis.remainder, 0);
}

}  // namespace
}  // namespace nonlocal::grade
