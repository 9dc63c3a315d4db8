// Integers rounded up; for positive numbers.
#pragma once

namespace nonlocal {

template <typename Integer>
constexpr Integer ceil_divide(Integer a, Integer b) {
  return (a + b - 1) / b;
}

template <typename Integer>
constexpr Integer round_up(Integer n, Integer multiple) {
  return ceil_divide(n, multiple) * multiple;
}

}  // namespace nonlocal
