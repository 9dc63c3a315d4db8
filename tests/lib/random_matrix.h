// Matrices of random numbers for tests, in any layout that a view can have.
#pragma once

#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

#include "nonlocal/matrix.h"

namespace nonlocal::testing {

// Memory between rows is not a number; there is none beyond the last row, so that sanitizers see reads there.
class OwnMatrix {
 public:
  OwnMatrix(int rows, int columns, int gap = 0) : rows_(rows), columns_(columns), stride_(columns + gap) {
    values_.assign(static_cast<std::size_t>(rows - 1) * stride_ + columns, std::nanf(""));
  }

  // Gaussian, of this standard deviation.
  static OwnMatrix random(int rows, int columns, double sigma = 1, unsigned seed = 1, int gap = 0) {
    OwnMatrix matrix(rows, columns, gap);
    std::mt19937 generator(seed);
    std::normal_distribution<double> normal(0, sigma);
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < columns; ++j) {
        matrix.at(i, j) = static_cast<float>(normal(generator));
      }
    }
    return matrix;
  }

  [[nodiscard]] float& at(int i, int j) { return values_[static_cast<std::size_t>(i) * stride_ + j]; }
  [[nodiscard]] float at(int i, int j) const { return values_[static_cast<std::size_t>(i) * stride_ + j]; }
  [[nodiscard]] ConstMatrix view() const { return {values_.data(), rows_, columns_, stride_}; }
  [[nodiscard]] Matrix view() { return {values_.data(), rows_, columns_, stride_}; }

  // All that it holds, without gaps.
  [[nodiscard]] std::vector<float> values() const {
    std::vector<float> all;
    for (int i = 0; i < rows_; ++i) {
      all.insert(all.end(), values_.data() + static_cast<std::ptrdiff_t>(i) * stride_,
                 values_.data() + static_cast<std::ptrdiff_t>(i) * stride_ + columns_);
    }
    return all;
  }

 private:
  int rows_;
  int columns_;
  int stride_;
  std::vector<float> values_;
};

// The largest difference, relative to the largest of what is expected. Not a number if any is.
template <typename Found, typename Expected>
double relative_error(const std::vector<Found>& found, const std::vector<Expected>& expected) {
  double largest = 0;
  double difference = found.size() == expected.size() ? 0 : HUGE_VAL;
  for (std::size_t i = 0; i < found.size() && i < expected.size(); ++i) {
    largest = std::fmax(largest, std::abs(static_cast<double>(expected[i])));
    const double d = std::abs(static_cast<double>(found[i]) - static_cast<double>(expected[i]));
    difference = std::isnan(d) || d > difference ? d : difference;
  }
  return difference == 0 ? 0 : difference / largest;
}

}  // namespace nonlocal::testing
