// Planes in memory of one's own, like those of a frame.
#pragma once

#include <cstddef>
#include <vector>

#include "video_planes.h"

namespace nonlocal {

// Samples lie side by side, with the bit depth and the unused bits that they had. Memory is kept: a frame of
// the size and format of the one before allocates nothing.
class OwnPlanes {
 public:
  void copy(const FramePlanes& frame);
  [[nodiscard]] const FramePlanes& planes() const { return planes_; }

 private:
  void copy(const PlaneGroup& from, PlaneGroup& to, std::vector<std::byte>* memory);

  FramePlanes planes_;
  std::vector<std::byte> luma_[3];
  std::vector<std::byte> chroma_[3];
};

}  // namespace nonlocal
