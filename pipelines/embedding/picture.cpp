// Denoises a picture with the library alone: picture IN OUT
#include <nonlocal/noise_estimate.h>
#include <nonlocal/non_local_means.h>
#include <nonlocal/opencv.h>

#include <iostream>
#include <opencv2/imgcodecs.hpp>

int main(int argc, char** argv) {
  if (argc != 3) return std::cerr << "picture: expected IN OUT\n", 2;
  cv::Mat picture = cv::imread(argv[1], cv::IMREAD_COLOR);
  if (picture.empty()) return std::cerr << "picture: " << argv[1] << " cannot be read as a picture\n", 1;
  const double sigma = nonlocal::NoiseEstimator().estimate(nonlocal::const_view(picture)[1]);  // of green
  nonlocal::NonLocalMeans().filter(nonlocal::const_view(picture), nonlocal::view(picture), {.sigma = sigma});
  std::cout << "noise " << sigma << '\n';
  try {
    if (cv::imwrite(argv[2], picture)) return 0;
  } catch (const cv::Exception&) {  // an ending that no format has
  }
  std::cerr << "picture: " << argv[2] << " cannot be written\n";
  return 1;
}
