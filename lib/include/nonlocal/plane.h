// Views of image planes: they own nothing and are cheap to copy.
#pragma once

#include <cstddef>
#include <type_traits>

namespace nonlocal {

// A plane of width x height samples in somebody else's memory.
//
// Samples of 8 bits lie in one byte each, deeper ones in two bytes of the machine's order. Sample (x, y) is
// at data + y * stride + x * step * (bytes a sample); its value is (what is stored there >> shift).
template <typename Byte>
struct BasicPlane {
  Byte* data = nullptr;
  int width = 0;              // in samples, at least 1
  int height = 0;             // in samples, at least 1
  std::ptrdiff_t stride = 0;  // bytes from a row to the next; may be negative, or not a multiple of anything
  int bit_depth = 8;          // 8 to 16: values are 0 .. 2^bit_depth - 1
  int step = 1;   // samples from a value to its right-hand neighbour: 1 planar, 2 for NV12's UV, ...
  int shift = 0;  // unused low bits: 6 for P010, whose ten bits are the upper ones

  [[nodiscard]] int bytes_per_sample() const { return bit_depth > 8 ? 2 : 1; }
  [[nodiscard]] Byte* row(int y) const { return data + y * stride; }

  // A plane that may be written can be read.
  operator BasicPlane<const Byte>() const requires(!std::is_const_v<Byte>) {
    return {data, width, height, stride, bit_depth, step, shift};
  }
};

using Plane = BasicPlane<std::byte>;
using ConstPlane = BasicPlane<const std::byte>;

}  // namespace nonlocal
