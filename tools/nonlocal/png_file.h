#pragma once

#include <filesystem>
#include <opencv2/core.hpp>

namespace nonlocal::tools {

// Throws Failure where `path`'s name does not end in .png: before the work begins.
void check_png_name(const std::filesystem::path& path);

// Throws Failure if it cannot be written whole.
void write_png(const std::filesystem::path& path, const cv::Mat& picture);

}  // namespace nonlocal::tools
