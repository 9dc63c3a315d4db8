// Measures nonlocaldenoise, as it is with no property set, on a folder of clean pictures: seeded Gaussian
// noise is added to the luma (BT.601), rounded and clipped to 8 bits, filtered by the element and by OpenCV's
// fastNlMeansDenoising(7, 21) at the h that is best for the whole folder. Not a test of ctest: it needs real
// pictures. Usage: denoise_on_pictures FOLDER [SIGMA [PROPERTY=VALUE...]]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <opencv2/photo.hpp>
#include <random>
#include <string>
#include <vector>

#include "support.h"

namespace {

using namespace nonlocal::test;

struct Picture {
  std::string name;
  cv::Mat clean;
  cv::Mat noisy;
};

cv::Mat add_noise(const cv::Mat& clean, double sigma, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, sigma);
  cv::Mat noisy(clean.size(), CV_8U);
  for (int y = 0; y < clean.rows; ++y) {
    for (int x = 0; x < clean.cols; ++x) {
      noisy.at<uchar>(y, x) = cv::saturate_cast<uchar>(clean.at<uchar>(y, x) + normal(random));
    }
  }
  return noisy;
}

std::vector<Picture> read_pictures(const std::string& folder, double sigma) {
  std::vector<cv::String> paths;
  cv::glob(folder + "/*.png", paths);
  std::vector<Picture> pictures;
  for (const std::string& path : paths) {
    const cv::Mat bgr = cv::imread(path, cv::IMREAD_COLOR);
    if (bgr.empty()) {
      throw std::runtime_error(path + ": expected a PNG picture");
    }
    cv::Mat clean;
    cv::cvtColor(bgr, clean, cv::COLOR_BGR2GRAY);
    const auto seed = static_cast<unsigned>(pictures.size() + 1);
    pictures.push_back({path.substr(path.rfind('/') + 1), clean, add_noise(clean, sigma, seed)});
  }
  if (pictures.empty()) {
    throw std::runtime_error(folder + ": expected PNG pictures, found none");
  }
  return pictures;
}

// A buffer of GStreamer's layout, and back.
Buffer buffer_of(const cv::Mat& picture, const GstVideoInfo& info) {
  GstBuffer* buffer = gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&info), nullptr);
  for (int y = 0; y < picture.rows; ++y) {
    gst_buffer_fill(buffer, static_cast<gsize>(y) * GST_VIDEO_INFO_PLANE_STRIDE(&info, 0), picture.ptr(y),
                    static_cast<gsize>(picture.cols));
  }
  GST_BUFFER_PTS(buffer) = 0;
  GST_BUFFER_DURATION(buffer) = kFrameDuration;
  return Buffer(buffer);
}

cv::Mat picture_of(GstBuffer* buffer, const GstVideoInfo& info) {
  Bytes bytes = bytes_of(buffer);
  return cv::Mat(GST_VIDEO_INFO_HEIGHT(&info), GST_VIDEO_INFO_WIDTH(&info), CV_8U, bytes.data(),
                 static_cast<std::size_t>(GST_VIDEO_INFO_PLANE_STRIDE(&info, 0)))
      .clone();
}

struct Result {
  double psnr;
  double noise_level;
};

Result filter(const Picture& picture, const std::vector<std::string>& settings) {
  const GstVideoInfo info = video_info(GST_VIDEO_FORMAT_GRAY8, picture.clean.cols, picture.clean.rows);
  Harness harness(info);
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    harness.set(setting.substr(0, equals).c_str(), setting.substr(equals + 1));
  }
  const Buffer out = harness.filter(buffer_of(picture.noisy, info));
  return {cv::PSNR(picture.clean, picture_of(out.get(), info)), harness.number("noise-level")};
}

double opencv_average(const std::vector<Picture>& pictures, double h) {
  double sum = 0;
  for (const Picture& picture : pictures) {
    cv::Mat out;
    cv::fastNlMeansDenoising(picture.noisy, out, static_cast<float>(h), 7, 21);
    sum += cv::PSNR(picture.clean, out);
  }
  return sum / static_cast<double>(pictures.size());
}

void measure(const std::string& folder, double sigma, const std::vector<std::string>& settings) {
  const std::vector<Picture> pictures = read_pictures(folder, sigma);
  double noisy = 0;
  double ours = 0;
  std::printf("%-20s %8s %8s %8s\n", "picture", "noisy", "filtered", "sigma");
  for (const Picture& picture : pictures) {
    const double before = cv::PSNR(picture.clean, picture.noisy);
    const Result after = filter(picture, settings);
    std::printf("%-20s %8.2f %8.2f %8.2f\n", picture.name.c_str(), before, after.psnr, after.noise_level);
    noisy += before;
    ours += after.psnr;
  }
  double best = 0;
  double best_h = 0;
  for (double factor = 0.6; factor < 1.25; factor += 0.05) {
    const double psnr = opencv_average(pictures, factor * sigma);
    if (psnr > best) {
      best = psnr;
      best_h = factor * sigma;
    }
  }
  const auto count = static_cast<double>(pictures.size());
  std::printf(
      "average of %zu: noisy %.2f dB, nonlocaldenoise %.2f dB, OpenCV %.2f dB (h = %.2f), difference %+.2f "
      "dB\n",
      pictures.size(), noisy / count, ours / count, best, best_h, ours / count - best);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: denoise_on_pictures FOLDER [SIGMA [PROPERTY=VALUE...]]\n");
    return 2;
  }
  g_setenv("GST_PLUGIN_PATH_1_0", PLUGIN_DIR, TRUE);
  gst_init(nullptr, nullptr);
  try {
    const std::vector<std::string> settings(argv + std::min(argc, 3), argv + argc);
    measure(argv[1], argc > 2 ? std::stod(argv[2]) : 25, settings);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "denoise_on_pictures: %s\n", error.what());
    return 1;
  }
  return 0;
}
