// What is asked of a matrix before it is read or written.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "nonlocal/error.h"
#include "nonlocal/matrix.h"

namespace nonlocal::attention {

// Throws InvalidArgument, naming `who` and the matrix, unless it is rows x columns.
template <typename View>
void check_matrix(std::string_view who, std::string_view name, const View& m, int rows, int columns) {
  const auto expected = [&] { return std::string(who) + ": expected " + std::string(name); };
  const auto shape = [](int r, int c) { return std::to_string(r) + "x" + std::to_string(c); };
  if (m.rows != rows || m.columns != columns) {
    throw InvalidArgument(expected() + " as a matrix of " + shape(rows, columns) + ", got " +
                          shape(m.rows, m.columns));
  }
  if (m.data == nullptr || m.stride < columns) {
    throw InvalidArgument(expected() + " with data and a stride of " + std::to_string(columns) +
                          " or more, got " +
                          (m.data == nullptr ? "none" : "a stride of " + std::to_string(m.stride)));
  }
}

// Do they share memory? All counts from the first float to the last.
inline bool overlap(const ConstMatrix& a, const ConstMatrix& b) {
  if (a.data == nullptr || b.data == nullptr) {
    return false;
  }
  const auto end = [](const ConstMatrix& m) { return m.row(m.rows - 1) + m.columns; };
  const std::less<const float*> before;
  return before(a.data, end(b)) && before(b.data, end(a));
}

// May neighbours in a row be read together?
inline bool is_in_pairs(const ConstBfloat16Matrix& m) {
  return m.columns % 2 == 0 && m.stride % 2 == 0 && reinterpret_cast<std::uintptr_t>(m.data) % 4 == 0;
}

// The same as cells, each a pair in place of a float.
inline ConstMatrix as_cells(const ConstBfloat16Matrix& m) {
  return {reinterpret_cast<const float*>(m.data), m.rows, m.columns / 2, m.stride / 2};
}

}  // namespace nonlocal::attention
