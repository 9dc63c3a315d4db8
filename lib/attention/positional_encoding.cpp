#include "nonlocal/positional_encoding.h"

#include <cmath>
#include <cstdint>
#include <string>

#include "attention/matrix_check.h"
#include "nonlocal/error.h"

namespace nonlocal {
namespace {

void encode(int position, int channels, float* to) {
  for (int c = 0; c < channels; c += 2) {
    const double angle = position * std::pow(10000.0, -static_cast<double>(c) / channels);
    to[c] = static_cast<float>(std::sin(angle));
    to[c + 1] = static_cast<float>(std::cos(angle));
  }
}

void check_grid(const AttentionGrid& grid, int axes, const Matrix& table) {
  const std::string who = "sinusoidal_encoding";
  const double positions = static_cast<double>(grid.width) * grid.height * grid.frames;
  if (grid.width < 1 || grid.height < 1 || grid.frames < 1 || positions > 1 << 28) {
    throw InvalidArgument(who + ": expected a grid of 1 position or more, got " + std::to_string(grid.width) +
                          "x" + std::to_string(grid.height) + "x" + std::to_string(grid.frames));
  }
  if (axes < 1 || axes > 3) {
    throw InvalidArgument(who + ": expected 1 to 3 axes, got " + std::to_string(axes));
  }
  attention::check_matrix(who, "table", table, static_cast<int>(positions), table.columns);
  if (table.columns < 1 || table.columns % (2 * axes) != 0) {
    throw InvalidArgument(who + ": expected a table with a multiple of " + std::to_string(2 * axes) +
                          " columns for " + std::to_string(axes) + " axes, got " +
                          std::to_string(table.columns));
  }
}

}  // namespace

void sinusoidal_encoding(const AttentionGrid& grid, int axes, const Matrix& table) {
  check_grid(grid, axes, table);
  const int channels = table.columns / axes;
  for (int p = 0; p < table.rows; ++p) {
    float* row = table.row(p);
    const int places[] = {axes == 1 ? p : p % grid.width, p / grid.width % grid.height,
                          p / grid.width / grid.height};
    for (int axis = 0; axis < axes; ++axis) {
      encode(places[axis], channels, row + axis * channels);
    }
  }
}

void add_encoding(const ConstMatrix& table, const Matrix& features) {
  attention::check_matrix("add_encoding", "features", features, features.rows, features.columns);
  attention::check_matrix("add_encoding", "table", table, features.rows, features.columns);
  for (int i = 0; i < features.rows; ++i) {
    const float* from = table.row(i);
    float* to = features.row(i);
    for (int c = 0; c < features.columns; ++c) {
      to[c] += from[c];
    }
  }
}

}  // namespace nonlocal
