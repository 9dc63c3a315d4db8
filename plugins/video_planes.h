// The planes of a GstVideoFrame as the views that the library filters.
#pragma once

#include <gst/video/video.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "nonlocal/plane.h"

namespace nonlocal {

// 0 to 3 planes of one size that are filtered together, with weights in common.
struct PlaneGroup {
  std::array<Plane, 3> planes;
  int count = 0;

  [[nodiscard]] bool empty() const { return count == 0; }
  [[nodiscard]] std::span<const Plane> all() const { return std::span(planes).first(count); }
};

// A frame's two groups: luma alone, or the three channels of packed RGB, and the two chroma planes where
// there are any. Alpha and padding bytes are in neither.
struct FramePlanes {
  PlaneGroup luma;
  PlaneGroup chroma;
  bool is_subsampled = false;  // chroma, in both directions
};

// Both groups: Y, Cb and Cr, or R, G and B, or gray alone.
PlaneGroup all_planes(const FramePlanes& frame);

// Up to 3 planes, to be read alone.
class ReadPlanes {
 public:
  explicit ReadPlanes(std::span<const Plane> planes) : count_(planes.size()) {
    std::copy(planes.begin(), planes.end(), planes_.begin());
  }
  [[nodiscard]] std::span<const ConstPlane> all() const { return std::span(planes_).first(count_); }

 private:
  std::array<ConstPlane, 3> planes_;
  std::size_t count_;
};

// Has a frame of this format a chroma group?
bool has_chroma(const GstVideoFormatInfo* format);

// The views of a mapped frame of any format whose samples lie in whole bytes. Addresses and strides are the
// frame's own, which GstVideoMeta may have set; a frame mapped for reading must only be read.
FramePlanes planes_of(const GstVideoFrame& frame);

// The alpha channel, where the format has one.
std::optional<Plane> alpha_of(const GstVideoFrame& frame);

// Are the frame's rows two fields in turn? Mixed streams say so frame by frame.
bool is_interlaced(const GstVideoFrame& frame);

// Every second row, from the first (field 0, the top one) or the second (field 1); a group that has no such
// row comes back empty.
FramePlanes field_of(const FramePlanes& frame, int field);

}  // namespace nonlocal
