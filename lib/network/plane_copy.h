// Planes that are read while the output overwrites them.
#pragma once

#include <cstddef>
#include <cstring>

#include "core/aligned_buffer.h"
#include "nonlocal/plane.h"

namespace nonlocal::network {

// A plane's samples, where the output overwrites them while neighbours still need them.
class PlaneCopy {
 public:
  ConstPlane of(const ConstPlane& plane) {
    const std::size_t bytes = static_cast<std::size_t>(plane.bytes_per_sample());
    const std::size_t row = plane.width * bytes;
    if (memory_.size() != row * plane.height) {
      memory_.allocate(row * plane.height);
    }
    for (int y = 0; y < plane.height; ++y) {
      copy_row(plane, y, bytes, memory_.data() + y * row);
    }
    ConstPlane copy = plane;
    copy.data = memory_.data();
    copy.stride = static_cast<std::ptrdiff_t>(row);
    copy.step = 1;
    return copy;
  }

 private:
  static void copy_row(const ConstPlane& plane, int y, std::size_t bytes, std::byte* to) {
    if (plane.step == 1) {
      std::memcpy(to, plane.row(y), plane.width * bytes);
      return;
    }
    for (int x = 0; x < plane.width; ++x) {
      std::memcpy(to + x * bytes, plane.row(y) + static_cast<std::ptrdiff_t>(x) * plane.step * bytes, bytes);
    }
  }

  AlignedBuffer<std::byte> memory_;
};

}  // namespace nonlocal::network
