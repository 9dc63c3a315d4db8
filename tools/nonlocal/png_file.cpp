#include "png_file.h"

#include <fstream>
#include <opencv2/imgcodecs.hpp>

#include "failure.h"

namespace nonlocal::tools {

void check_png_name(const std::filesystem::path& path) {
  if (path.extension() != ".png") throw Failure(path.string() + ": the picture's name must end in .png");
}

void write_png(const std::filesystem::path& path, const cv::Mat& picture) {
  std::vector<unsigned char> png;
  if (!cv::imencode(".png", picture, png, {cv::IMWRITE_PNG_COMPRESSION, 9}))
    throw Failure("the picture could not be encoded");
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(png.data()), static_cast<std::streamsize>(png.size()));
  if (!out.flush()) throw Failure(path.string() + ": could not be written whole");
}

}  // namespace nonlocal::tools
