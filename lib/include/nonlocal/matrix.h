// Views of row-major matrices of floats, as attention takes them: a row a position (token, pixel), its
// channels side by side.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nonlocal {

struct ConstMatrix {
  const float* data = nullptr;
  int rows = 0;
  int columns = 0;
  std::ptrdiff_t stride = 0;  // numbers from one row to the next, at least `columns`

  [[nodiscard]] const float* row(std::ptrdiff_t i) const { return data + i * stride; }
};

// Of bfloat16: the upper halves of floats.
struct ConstBfloat16Matrix {
  const std::uint16_t* data = nullptr;
  int rows = 0;
  int columns = 0;
  std::ptrdiff_t stride = 0;

  [[nodiscard]] const std::uint16_t* row(std::ptrdiff_t i) const { return data + i * stride; }
};

struct Matrix {
  float* data = nullptr;
  int rows = 0;
  int columns = 0;
  std::ptrdiff_t stride = 0;

  [[nodiscard]] float* row(std::ptrdiff_t i) const { return data + i * stride; }
  operator ConstMatrix() const { return {data, rows, columns, stride}; }  // NOLINT: a view of the same
};

}  // namespace nonlocal
