// An image for tests, in any layout that a plane's view can have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nonlocal/plane.h"

namespace nonlocal::testing {

struct Layout {
  int step = 1;              // samples between neighbours
  int shift = 0;             // unused low bits
  int padding = 0;           // samples between rows
  int offset = 0;            // samples before the first
  bool upside_down = false;  // negative stride
};

// Planes of one size and bit depth; memory between samples is filled with a pattern.
class Image {
 public:
  Image(int width, int height, int bit_depth, int planes, const Layout& layout = {})
      : width_(width), height_(height), bit_depth_(bit_depth), layout_(layout) {
    const std::size_t size = static_cast<std::size_t>(row()) * height + layout.offset;
    planes_.assign(planes, std::vector<std::byte>(size * bytes(), std::byte{0xA5}));
  }

  [[nodiscard]] int width() const { return width_; }
  [[nodiscard]] int height() const { return height_; }
  [[nodiscard]] int bit_depth() const { return bit_depth_; }
  [[nodiscard]] int planes() const { return static_cast<int>(planes_.size()); }

  [[nodiscard]] std::vector<Plane> views() { return make_views<Plane>(planes_); }
  [[nodiscard]] std::vector<ConstPlane> views() const { return make_views<ConstPlane>(planes_); }

  [[nodiscard]] int get(int plane, int x, int y) const {
    const ConstPlane p = views()[plane];
    const std::byte* at = p.row(y) + static_cast<std::ptrdiff_t>(x) * p.step * bytes();
    return (bytes() == 2 ? *reinterpret_cast<const std::uint16_t*>(at) : static_cast<int>(*at)) >> p.shift;
  }
  void set(int plane, int x, int y, int value) {
    const Plane p = views()[plane];
    std::byte* at = p.row(y) + static_cast<std::ptrdiff_t>(x) * p.step * bytes();
    if (bytes() == 2) {
      *reinterpret_cast<std::uint16_t*>(at) = static_cast<std::uint16_t>(value << p.shift);
    } else {
      *at = static_cast<std::byte>(value);
    }
  }

  // Equal samples, whatever the layout; where both have gaps, the pattern in them must be whole.
  friend bool operator==(const Image& a, const Image& b) {
    if (a.width_ != b.width_ || a.height_ != b.height_ || a.planes() != b.planes()) {
      return false;
    }
    for (int c = 0; c < a.planes(); ++c) {
      for (int y = 0; y < a.height_; ++y) {
        for (int x = 0; x < a.width_; ++x) {
          if (a.get(c, x, y) != b.get(c, x, y)) {
            return false;
          }
        }
      }
    }
    return a.gaps_are_whole() && b.gaps_are_whole();
  }

 private:
  [[nodiscard]] int bytes() const { return bit_depth_ > 8 ? 2 : 1; }
  [[nodiscard]] int row() const { return width_ * layout_.step + layout_.padding; }

  template <typename View, typename Planes>
  std::vector<View> make_views(Planes& planes) const {
    std::vector<View> views;
    for (auto& plane : planes) {
      const std::ptrdiff_t stride = static_cast<std::ptrdiff_t>(row()) * bytes();
      auto* first = plane.data() + static_cast<std::ptrdiff_t>(layout_.offset) * bytes();
      views.push_back({layout_.upside_down ? first + stride * (height_ - 1) : first, width_, height_,
                       layout_.upside_down ? -stride : stride, bit_depth_, layout_.step, layout_.shift});
    }
    return views;
  }

  [[nodiscard]] bool gaps_are_whole() const {
    for (const auto& plane : planes_) {
      for (std::size_t i = 0; i < plane.size() / bytes(); ++i) {
        const std::size_t in_row =
            i < static_cast<std::size_t>(layout_.offset) ? row() : (i - layout_.offset) % row();
        const bool sample =
            in_row < static_cast<std::size_t>(width_ * layout_.step) && in_row % layout_.step == 0;
        if (!sample && plane[i * bytes()] != std::byte{0xA5}) {
          return false;
        }
      }
    }
    return true;
  }

  int width_;
  int height_;
  int bit_depth_;
  Layout layout_;
  std::vector<std::vector<std::byte>> planes_;
};

}  // namespace nonlocal::testing
