// Line charts, drawn with nothing but OpenCV.
#pragma once

#include <opencv2/core.hpp>
#include <string>
#include <vector>

namespace nonlocal::tools {

struct Tick {
  double at;
  std::string label;
};

struct Series {
  std::string name;  // in the legend
  std::vector<cv::Point2d> points;
  cv::Scalar colour;        // BGR
  bool is_measured = true;  // points with a line; otherwise a thin line alone, for comparison
};

// Both axes are logarithmic: what grows in proportion is a straight line, whatever its range.
struct Chart {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<Tick> x_ticks;  // the y axis gets 1, 2 and 5 times the powers of ten
  std::vector<Series> series;
};

constexpr int kChartWidth = 900;
constexpr int kChartHeight = 640;

// 8-bit BGR, kChartWidth x kChartHeight each, side by side. All values must be above 0.
cv::Mat draw(const std::vector<Chart>& charts);

}  // namespace nonlocal::tools
