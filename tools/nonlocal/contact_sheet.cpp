#include "contact_sheet.h"

#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>

namespace nonlocal::tools {
namespace {

constexpr int kGap = 4;
constexpr int kLabelHeight = 22;
constexpr double kLabelScale = 0.45;
const cv::Scalar kPaper{255, 255, 255};
const cv::Scalar kInk{40, 40, 40};

}  // namespace

ContactSheet::ContactSheet(int rows, int columns, cv::Size cell)
    : cell_(cell),
      sheet_(rows * (cell.height + kLabelHeight + kGap) + kGap, columns * (cell.width + kGap) + kGap, CV_8UC3,
             kPaper) {}

cv::Point ContactSheet::corner(int row, int column) const {
  return {kGap + column * (cell_.width + kGap),
          kGap + row * (cell_.height + kLabelHeight + kGap) + kLabelHeight};
}

void ContactSheet::label(int row, const std::string& text) {
  cv::putText(sheet_, text, corner(row, 0) + cv::Point(2, -kLabelHeight / 3), cv::FONT_HERSHEY_SIMPLEX,
              kLabelScale, kInk, 1, cv::LINE_AA);
}

void ContactSheet::place(int row, int column, const cv::Mat& picture) {
  const cv::Size spare = cell_ - picture.size();
  picture.copyTo(
      sheet_({corner(row, column) + cv::Point(spare.width / 2, spare.height / 2), picture.size()}));
}

cv::Size fitted(cv::Size picture, cv::Size cell) {
  const double scale = std::min(static_cast<double>(cell.width) / picture.width,
                                static_cast<double>(cell.height) / picture.height);
  const auto scaled = [scale](int side) { return std::max(1, static_cast<int>(std::lround(side * scale))); };
  return {scaled(picture.width), scaled(picture.height)};
}

}  // namespace nonlocal::tools
