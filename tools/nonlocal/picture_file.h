// Still pictures as they lie in files.
#pragma once

#include <opencv2/core.hpp>
#include <string>

namespace nonlocal::tools {

// 8 or 16 bits a channel; blue, green, red and, where the file has it, alpha. Turned upright as its EXIF data
// say, unless it has alpha. Throws Failure.
cv::Mat read_picture(const std::string& path);

// The same, but of one channel where the file is gray.
cv::Mat read_picture_as_stored(const std::string& path);

// By the name's ending.
bool holds_16_bits(const std::string& path);
bool holds_alpha(const std::string& path);

// Throws Failure where OpenCV writes no files of such a name: before the work begins.
void check_picture_name(const std::string& path);

// In the place of an older file. What the format cannot hold is given up: 8 bits in place of 16, no alpha.
// Throws Failure if it cannot be written whole.
void write_picture(const std::string& path, const cv::Mat& picture);

}  // namespace nonlocal::tools
