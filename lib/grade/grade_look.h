// What a baked look is made of.
#pragma once

#include <cstdint>

#include "core/aligned_buffer.h"
#include "grade/lattice_kernel.h"
#include "nonlocal/frame_grader.h"

namespace nonlocal {

namespace grade {

struct BakedLook {
  ColourFormat format;
  int n;
  int columns;
  int rows;
  AlignedBuffer<float> change;
  double error;
  std::uint64_t serial;  // of this look alone

  [[nodiscard]] Lattices lattices() const { return {change.data(), n, columns, rows}; }
};

}  // namespace grade

struct GradeLook::State {
  grade::BakedLook look;
};

}  // namespace nonlocal
