// A frame's samples as plain planes, which the library can filter without the elements.
#pragma once

#include <gst/video/video.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nonlocal/plane.h"

namespace nonlocal::test {

// Samples as planes of their own, two bytes each where they are deep.
struct PlainPlane {
  PlainPlane(const std::vector<int>& samples, int width, int bit_depth)
      : width(width), height(static_cast<int>(samples.size()) / width), bit_depth(bit_depth) {
    const int bytes = bit_depth > 8 ? 2 : 1;
    data.resize(samples.size() * bytes);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (bytes == 1) {
        data[i] = static_cast<std::byte>(samples[i]);
      } else {
        reinterpret_cast<std::uint16_t*>(data.data())[i] = static_cast<std::uint16_t>(samples[i]);
      }
    }
  }
  Plane view() { return {data.data(), width, height, width * (bit_depth > 8 ? 2 : 1), bit_depth}; }
  std::vector<int> samples() const {
    std::vector<int> all;
    const auto count = static_cast<std::size_t>(width) * height;
    for (std::size_t i = 0; i < count; ++i) {
      all.push_back(bit_depth > 8 ? reinterpret_cast<const std::uint16_t*>(data.data())[i]
                                  : std::to_integer<int>(data[i]));
    }
    return all;
  }
  std::vector<std::byte> data;
  int width;
  int height;
  int bit_depth;
};

// Components first .. first + count - 1 as planes.
struct Components {
  Components(const std::vector<std::vector<int>>& samples, const GstVideoInfo& info, int first_one, int count)
      : first(first_one) {
    for (int i = first; i < first + count; ++i) {
      planes.emplace_back(samples[i], GST_VIDEO_INFO_COMP_WIDTH(&info, i),
                          GST_VIDEO_INFO_COMP_DEPTH(&info, i));
    }
    for (PlainPlane& plane : planes) {
      in.push_back(plane.view());
      out.push_back(plane.view());
    }
  }
  void store(std::vector<std::vector<int>>& samples) const {
    for (std::size_t i = 0; i < planes.size(); ++i) {
      samples[first + i] = planes[i].samples();
    }
  }
  int first;
  std::vector<PlainPlane> planes;
  std::vector<ConstPlane> in;
  std::vector<Plane> out;
};

}  // namespace nonlocal::test
