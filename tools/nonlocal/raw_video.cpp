#include "raw_video.h"

#include <istream>
#include <ostream>

namespace nonlocal::tools {

void write_planes(std::ostream& out, const Planes& planes) {
  for (const cv::Mat& plane : planes)
    out.write(reinterpret_cast<const char*>(plane.data), static_cast<std::streamsize>(plane.total()));
}

Planes read_planes(std::istream& in, const Planes& like) {
  Planes planes;
  for (const cv::Mat& plane : like) {
    planes.emplace_back(plane.size(), CV_8U);
    in.read(reinterpret_cast<char*>(planes.back().data), static_cast<std::streamsize>(plane.total()));
  }
  return planes;
}

}  // namespace nonlocal::tools
