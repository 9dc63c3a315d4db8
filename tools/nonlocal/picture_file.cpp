#include "picture_file.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <opencv2/imgcodecs.hpp>
#include <span>
#include <string_view>

#include "failure.h"
#include "partial_file.h"

namespace nonlocal::tools {
namespace {

constexpr int kChannelsWithAlpha = 4;

bool ends_in(const std::string& path, std::span<const std::string_view> endings) {
  std::string ending = std::filesystem::path(path).extension().string();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return std::ranges::find(endings, ending) != endings.end();
}

enum class Gray { kAsColour, kAsStored };

cv::Mat read(const std::string& path, Gray gray) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) throw Failure(path + ": no such file");
  cv::Mat picture = cv::imread(path, cv::IMREAD_UNCHANGED);
  if (!picture.empty() && picture.channels() != kChannelsWithAlpha) {
    const bool stays_gray = gray == Gray::kAsStored && picture.channels() == 1;
    picture = cv::imread(path, (stays_gray ? cv::IMREAD_GRAYSCALE : cv::IMREAD_COLOR) | cv::IMREAD_ANYDEPTH);
  }
  if (picture.empty()) throw Failure(path + ": no picture that OpenCV reads");
  if (picture.depth() != CV_8U && picture.depth() != CV_16U)
    throw Failure(path + ": expected a picture of 8 or 16 bits a channel, found floating point");
  return picture;
}

}  // namespace

cv::Mat read_picture(const std::string& path) { return read(path, Gray::kAsColour); }

cv::Mat read_picture_as_stored(const std::string& path) { return read(path, Gray::kAsStored); }

bool holds_16_bits(const std::string& path) {
  constexpr std::array<std::string_view, 7> kEndings = {".png", ".tif", ".tiff", ".jp2",
                                                        ".ppm", ".pnm", ".pgm"};
  return ends_in(path, kEndings);
}

bool holds_alpha(const std::string& path) {
  constexpr std::array<std::string_view, 4> kEndings = {".png", ".tif", ".tiff", ".webp"};
  return ends_in(path, kEndings);
}

void check_picture_name(const std::string& path) {
  if (!cv::haveImageWriter(path))
    throw Failure(path + ": expected a name that ends in .png, .jpg or another that OpenCV writes");
}

void write_picture(const std::string& path, const cv::Mat& picture) {
  cv::Mat written = picture;
  if (picture.depth() == CV_16U && !holds_16_bits(path)) picture.convertTo(written, CV_8U, 1 / 257.0);
  PartialFile file(path);
  bool is_written = false;
  try {
    is_written = cv::imwrite(file.path().string(), written);
  } catch (const cv::Exception&) {  // its message is of many lines
  }
  if (!is_written) throw Failure(path + ": could not be written");
  file.commit();
}

}  // namespace nonlocal::tools
