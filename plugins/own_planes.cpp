#include "own_planes.h"

#include <cstdint>
#include <cstring>

namespace nonlocal {
namespace {

template <typename Sample>
void copy_row(const Plane& from, const Plane& to, int y) {
  const auto* source = reinterpret_cast<const Sample*>(from.row(y));
  auto* samples = reinterpret_cast<Sample*>(to.row(y));
  for (int x = 0; x < to.width; ++x) {
    samples[x] = source[static_cast<std::ptrdiff_t>(x) * from.step];
  }
}

}  // namespace

void OwnPlanes::copy(const PlaneGroup& from, PlaneGroup& to, std::vector<std::byte>* memory) {
  to = from;
  for (int i = 0; i < from.count; ++i) {
    const Plane& source = from.planes[i];
    Plane& plane = to.planes[i];
    plane.step = 1;
    plane.stride = static_cast<std::ptrdiff_t>(plane.width) * plane.bytes_per_sample();
    memory[i].resize(static_cast<std::size_t>(plane.stride) * plane.height);
    plane.data = memory[i].data();
    for (int y = 0; y < plane.height; ++y) {
      if (source.step == 1) {
        std::memcpy(plane.row(y), source.row(y), static_cast<std::size_t>(plane.stride));
      } else if (plane.bytes_per_sample() == 1) {
        copy_row<std::uint8_t>(source, plane, y);
      } else {
        copy_row<std::uint16_t>(source, plane, y);
      }
    }
  }
}

void OwnPlanes::copy(const FramePlanes& frame) {
  copy(frame.luma, planes_.luma, luma_);
  copy(frame.chroma, planes_.chroma, chroma_);
  planes_.is_subsampled = frame.is_subsampled;
}

}  // namespace nonlocal
