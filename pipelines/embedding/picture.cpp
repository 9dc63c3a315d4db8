// Denoises a picture with the library alone: picture IN OUT
#include <nonlocal/noise_estimate.h>
#include <nonlocal/non_local_means.h>
#include <nonlocal/opencv.h>

#include <iostream>
#include <opencv2/imgcodecs.hpp>

int main(int argc, char** argv) {
  if (argc != 3) return std::cerr << "picture: expected IN OUT\n", 2;
  cv::Mat picture = cv::imread(argv[1], cv::IMREAD_COLOR);
  const double sigma = nonlocal::NoiseEstimator().estimate(nonlocal::const_view(picture)[1]);  // of green
  nonlocal::NonLocalMeans().filter(nonlocal::const_view(picture), nonlocal::view(picture), {.sigma = sigma});
  std::cout << "noise " << sigma << '\n';
  return cv::imwrite(argv[2], picture) ? 0 : 1;
}
