// The upper half of a float, rounded to nearest, half to even.
#pragma once

#include <bit>
#include <cstdint>

namespace nonlocal::network {

struct Bfloat16 {
  Bfloat16() = default;
  explicit Bfloat16(float value) {
    const auto all = std::bit_cast<std::uint32_t>(value);
    const bool is_nan = (all & 0x7FFFFFFF) > 0x7F800000;
    bits = static_cast<std::uint16_t>(is_nan ? all >> 16 | 64 : (all + 0x7FFF + (all >> 16 & 1)) >> 16);
  }
  operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

  std::uint16_t bits = 0;
};

}  // namespace nonlocal::network
