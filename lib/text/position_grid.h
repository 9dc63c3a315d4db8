// Positions of patches, for grids of any size.
#pragma once

#include <vector>

namespace nonlocal::text {

// `from`: [1 + side * side][width], the class token's first. The same for a grid of columns x rows.
std::vector<float> positions_on(const std::vector<float>& from, int side, int width, int columns, int rows);

}  // namespace nonlocal::text
