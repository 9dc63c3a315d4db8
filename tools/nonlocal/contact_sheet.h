// Pictures beside each other, as photographers look them through.
#pragma once

#include <opencv2/core.hpp>
#include <string>

namespace nonlocal::tools {

// Rows of cells, each row under a label of its own.
class ContactSheet {
 public:
  ContactSheet(int rows, int columns, cv::Size cell);

  // Letters beyond ASCII are shown as question marks: OpenCV's fonts have no others.
  void label(int row, const std::string& text);

  // `picture` has 8 bits and three channels, and lies in the middle of its cell, which is as large or larger.
  void place(int row, int column, const cv::Mat& picture);

  [[nodiscard]] const cv::Mat& picture() const { return sheet_; }

 private:
  [[nodiscard]] cv::Point corner(int row, int column) const;

  cv::Size cell_;
  cv::Mat sheet_;
};

// The largest size of the same shape that a cell has room for.
cv::Size fitted(cv::Size picture, cv::Size cell);

}  // namespace nonlocal::tools
