#include "denoise/block_dct.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace nonlocal {
namespace {

using Quarter = std::array<std::array<float, 4>, 4>;

// Half of a basis function of the orthonormal DCT each, at [position][function]: the other half is its mirror
// image, negated for the odd ones.
Quarter half_cosines(int first_frequency) {
  Quarter cosines{};
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < 4; ++k) {
      const int frequency = first_frequency + 2 * k;
      cosines[i][k] = static_cast<float>((frequency == 0 ? std::sqrt(0.125) : 0.5) *
                                         std::cos(std::numbers::pi * (2 * i + 1) * frequency / 16));
    }
  }
  return cosines;
}
const Quarter even_cosines = half_cosines(0);
const Quarter odd_cosines = half_cosines(1);

void transform_columns(Block& block) {
  Block out{};
  for (int i = 0; i < 4; ++i) {
    std::array<float, block_size> sum;
    std::array<float, block_size> difference;
    for (int x = 0; x < block_size; ++x) {
      sum[x] = block[i][x] + block[7 - i][x];
      difference[x] = block[i][x] - block[7 - i][x];
    }
    for (int k = 0; k < 4; ++k) {
      for (int x = 0; x < block_size; ++x) {
        out[k][x] += even_cosines[i][k] * sum[x];
        out[k + 4][x] += odd_cosines[i][k] * difference[x];
      }
    }
  }
  block = out;
}

void transform_rows(Block& block) {
  for (auto& row : block) {
    std::array<float, 4> even{};
    std::array<float, 4> odd{};
    for (int i = 0; i < 4; ++i) {
      const float sum = row[i] + row[7 - i];
      const float difference = row[i] - row[7 - i];
      for (int k = 0; k < 4; ++k) {
        even[k] += even_cosines[i][k] * sum;
        odd[k] += odd_cosines[i][k] * difference;
      }
    }
    std::copy(even.begin(), even.end(), row.begin());
    std::copy(odd.begin(), odd.end(), row.begin() + 4);
  }
}

}  // namespace

void transform(Block& block) {
  transform_columns(block);
  transform_rows(block);
}

}  // namespace nonlocal
