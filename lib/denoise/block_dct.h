// The discrete cosine transform of blocks of 8 x 8.
#pragma once

#include <array>

namespace nonlocal {

constexpr int block_size = 8;

using Block = std::array<std::array<float, block_size>, block_size>;

// Orthonormal, in place. It leaves row and column r with the frequency frequencies[r].
void transform(Block& block);
constexpr std::array<int, block_size> frequencies = {0, 2, 4, 6, 1, 3, 5, 7};
constexpr int order(int r, int c) { return frequencies[r] + frequencies[c]; }

}  // namespace nonlocal
