// How noisy each place of a frame is, where noise depends on brightness.
#pragma once

#include <span>
#include <vector>

#include "core/aligned_buffer.h"
#include "nonlocal/noise_estimate.h"
#include "nonlocal/plane.h"

namespace nonlocal {

// Keeps its memory from frame to frame.
class NoiseMap {
 public:
  // Of planes of one size: luma, or R, G and B, whose variances are averaged. Each cell of 2 x 2 pixels gets
  // what `noise` tells of the brightness of the 6 x 6 around it, times `strength` for the deviation.
  void make(std::span<const ConstPlane> planes, const NoiseCurve& noise, double strength, int threads);

  // As TemporalFusion's of the same names: as a share of the largest variance in 65535ths, and as a standard
  // deviation in 8-bit code values at a bit depth of 16.
  [[nodiscard]] ConstPlane variance() const { return view(variance_); }
  [[nodiscard]] ConstPlane deviation() const { return view(deviation_); }

 private:
  void prepare(const ConstPlane& plane, int threads);
  [[nodiscard]] ConstPlane view(const AlignedBuffer<std::uint16_t>& map) const;
  void sum_cells(std::span<const ConstPlane> planes, int row, float* sums) const;

  int cells_ = 0;
  int cell_rows_ = 0;
  AlignedBuffer<std::uint16_t> variance_;
  AlignedBuffer<std::uint16_t> deviation_;
  std::vector<AlignedBuffer<float>>
      scratch_;  // of each thread: sums of three rows of cells, and of their sums
};

}  // namespace nonlocal
