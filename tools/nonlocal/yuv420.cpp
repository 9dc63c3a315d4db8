#include "yuv420.h"

#include <opencv2/imgproc.hpp>

namespace nonlocal::tools {

Yuv420 to_yuv420(const cv::Mat& bgr) {
  const cv::Matx34f matrix(0.0620f, 0.6142f, 0.1826f, 16,      // Y' of B', G', R' in 0 .. 255
                           0.4392f, -0.3386f, -0.1006f, 128,   // Cb
                           -0.0403f, -0.3989f, 0.4392f, 128);  // Cr
  cv::Mat exact;
  bgr.convertTo(exact, CV_32F);
  cv::transform(exact, exact, matrix);
  cv::Mat planes[3];
  cv::split(exact, planes);
  Yuv420 yuv(bgr.size());
  planes[0].convertTo(yuv.y, CV_8U);
  for (const auto& [from, to] : {std::pair{planes[1], yuv.u}, std::pair{planes[2], yuv.v}}) {
    cv::Mat halved;
    cv::resize(from, halved, to.size(), 0, 0, cv::INTER_AREA);
    halved.convertTo(to, CV_8U);
  }
  return yuv;
}

}  // namespace nonlocal::tools
