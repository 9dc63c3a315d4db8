// Views of a cv::Mat, so that the filters work on OpenCV's pictures where they lie. Header-only, for programs
// that use OpenCV themselves: nothing else of the library includes or links it.
//
//   cv::Mat picture = cv::imread("noisy.png");
//   nonlocal::NonLocalMeans().filter(nonlocal::const_view(picture), nonlocal::view(picture), {.sigma = 12});
#pragma once

#include <array>
#include <cstddef>
#include <opencv2/core/check.hpp>
#include <opencv2/core/mat.hpp>
#include <string>

#include "nonlocal/error.h"
#include "nonlocal/plane.h"

namespace nonlocal {

// The channels of one picture, one view each, in the Mat's own order (blue first, where OpenCV read it).
// Converts to the std::span that the filters take. Like every view it holds no reference: the Mat's memory
// must outlive it.
template <typename View>
class Channels {
 public:
  static constexpr int kMost = 4;

  Channels(const View& first, int count) : count_(count) {
    views_.fill(first);
    for (int c = 0; c < count; ++c) views_[c].data += c * first.bytes_per_sample();
  }

  [[nodiscard]] const View* data() const { return views_.data(); }
  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] const View* begin() const { return data(); }
  [[nodiscard]] const View* end() const { return data() + size(); }
  [[nodiscard]] const View& operator[](std::size_t channel) const { return views_[channel]; }

 private:
  std::array<View, kMost> views_;
  std::size_t count_;
};

namespace detail {

// The bit depth that `bit_depth` asks for in a Mat that can be viewed; throws for all others.
inline int checked_depth(const cv::Mat& mat, int bit_depth) {
  const bool bytes = mat.depth() == CV_8U;
  if ((!bytes && mat.depth() != CV_16U) || mat.channels() > 4)
    throw InvalidArgument("cv::Mat: expected CV_8U or CV_16U with 1 to 4 channels, came " +
                          cv::typeToString(mat.type()));
  if (mat.dims != 2 || mat.empty())
    throw InvalidArgument("cv::Mat: expected a picture of two dimensions, came " +
                          (mat.empty() ? "an empty one" : std::to_string(mat.dims) + " dimensions"));
  if (bit_depth == 0) return bytes ? 8 : 16;
  if (bytes ? bit_depth != 8 : bit_depth < 9 || bit_depth > 16)
    throw InvalidArgument("cv::Mat: expected a bit depth of " + std::string(bytes ? "8" : "9 to 16") +
                          " for " + cv::typeToString(mat.type()) + ", came " + std::to_string(bit_depth));
  return bit_depth;
}

template <typename Byte>
Channels<BasicPlane<Byte>> channels(const cv::Mat& mat, Byte* data, int bit_depth) {
  const BasicPlane<Byte> first{.data = data,
                               .width = mat.cols,
                               .height = mat.rows,
                               .stride = static_cast<std::ptrdiff_t>(mat.step[0]),
                               .bit_depth = bit_depth,
                               .step = mat.channels()};
  return {first, mat.channels()};
}

}  // namespace detail

// The channels of `mat`, to be written (or to be filtered in place). Takes CV_8U and CV_16U with 1 to 4
// channels, whole pictures and regions of them. `bit_depth` is 8 for CV_8U, and for CV_16U the number of bits
// in use, 9 to 16, which are the lower ones; 0 stands for 8 and 16. Throws InvalidArgument for every other
// Mat or bit depth.
inline Channels<Plane> view(cv::Mat& mat, int bit_depth = 0) {
  bit_depth = detail::checked_depth(mat, bit_depth);
  return detail::channels(mat, reinterpret_cast<std::byte*>(mat.data), bit_depth);
}

// The same, to be read.
inline Channels<ConstPlane> const_view(const cv::Mat& mat, int bit_depth = 0) {
  bit_depth = detail::checked_depth(mat, bit_depth);
  return detail::channels(mat, reinterpret_cast<const std::byte*>(mat.data), bit_depth);
}

}  // namespace nonlocal
