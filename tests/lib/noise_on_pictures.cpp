// Measures NoiseEstimator on a folder of clean pictures: seeded Gaussian noise of a known sigma is added to
// the luma (BT.601), rounded and clipped to 8 bits, and the estimate compared with it. Then the same of
// noise that depends on brightness. Not a test of ctest: it needs real pictures and a quiet machine. Usage:
// noise_on_pictures FOLDER [SEED]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <opencv2/imgcodecs.hpp>
#include <random>
#include <string>
#include <vector>

#include "nonlocal/noise_estimate.h"

namespace {

constexpr double sigmas[] = {3, 5, 10, 20, 25, 35, 50};

struct Luma {
  int width = 0;
  int height = 0;
  std::vector<double> values;
};

Luma read_luma(const std::string& path) {
  const cv::Mat picture = cv::imread(path, cv::IMREAD_COLOR);
  Luma luma{picture.cols, picture.rows, {}};
  for (int y = 0; y < picture.rows; ++y) {
    for (int x = 0; x < picture.cols; ++x) {
      const auto& bgr = picture.at<cv::Vec3b>(y, x);
      luma.values.push_back(std::round(0.114 * bgr[0] + 0.587 * bgr[1] + 0.299 * bgr[2]));
    }
  }
  return luma;
}

// Of variance a I + b.
struct Noise {
  double a;
  double b;

  [[nodiscard]] double sigma(double brightness) const { return std::sqrt(std::max(a * brightness + b, 0.0)); }
};

constexpr Noise sloped[] = {{0.05, 10}, {0.2, 2}, {1, 4}, {3, 20}, {-0.3, 100}};

std::vector<std::byte> add_noise(const Luma& luma, const Noise& noise, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<std::byte> noisy;
  for (const double value : luma.values) {
    const double with_noise = value + noise.sigma(value) * normal(random);
    noisy.push_back(static_cast<std::byte>(std::lround(std::clamp(with_noise, 0.0, 255.0))));
  }
  return noisy;
}

nonlocal::ConstPlane view(const std::vector<std::byte>& samples, int width, int height) {
  return {.data = samples.data(), .width = width, .height = height, .stride = width};
}

double worst_error = 0;

double quantile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
}

// The error of sigma at the picture's dark, middle and bright places, in percent.
void measure_sloped(const std::string& path, unsigned seed) {
  const Luma luma = read_luma(path);
  if (luma.values.empty()) {
    return;
  }
  std::printf("%-16s", path.substr(path.rfind('/') + 1).c_str());
  for (const Noise& noise : sloped) {
    nonlocal::NoiseEstimator estimator;
    estimator.estimate(view(add_noise(luma, noise, seed), luma.width, luma.height));
    for (const double part : {0.1, 0.5, 0.9}) {
      const double brightness = quantile(luma.values, part);
      const double found = std::sqrt(estimator.curve().variance(brightness));
      std::printf(" %+4.0f", 100 * (found / noise.sigma(brightness) - 1));
    }
    std::printf("  ");
  }
  std::printf("\n");
}

void measure(const std::string& path, unsigned seed) {
  const Luma luma = read_luma(path);
  if (luma.values.empty()) {
    return;  // not a picture
  }
  nonlocal::NoiseEstimator estimator;
  const auto estimate = [&](double sigma) {
    return estimator.estimate(view(add_noise(luma, {0, sigma * sigma}, seed), luma.width, luma.height));
  };
  std::printf("%-16s %6.2f", path.substr(path.rfind('/') + 1).c_str(), estimate(0));
  double worst = 0;
  for (const double sigma : sigmas) {
    const double estimated = estimate(sigma);
    worst = std::max(worst, std::abs(estimated / sigma - 1));
    std::printf(" %6.2f", estimated);
  }
  worst_error = std::max(worst_error, worst);
  std::printf("  %5.1f %%\n", 100 * worst);
}

void measure_time(int threads) {
  const Luma flat{1920, 1080, std::vector<double>(1920 * 1080, 128)};
  const auto noisy = add_noise(flat, {0, 100}, 1);
  nonlocal::NoiseEstimator estimator;
  std::vector<double> times;
  for (int i = 0; i < 30; ++i) {
    const auto start = std::chrono::steady_clock::now();
    estimator.estimate(view(noisy, flat.width, flat.height), threads);
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  std::printf("1920x1080, %d threads: median %.2f ms, fastest %.2f ms\n", threads, times[times.size() / 2],
              times[0]);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: noise_on_pictures FOLDER [SEED]\n");
    return 2;
  }
  std::vector<cv::String> files;
  cv::glob(std::string(argv[1]) + "/*", files);
  std::printf("%-16s %6s", "sigma", "clean");
  for (const double sigma : sigmas) {
    std::printf(" %6g", sigma);
  }
  std::printf("  worst\n");
  unsigned seed = argc > 2 ? static_cast<unsigned>(std::stoul(argv[2])) : 0;
  for (const auto& file : files) {
    measure(file, ++seed);
  }
  std::printf("worst of all: %.1f %%\n", 100 * worst_error);
  std::printf(
      "\nvariance a I + b; error of sigma in %%, at the 10th, 50th and 90th percentile of brightness\n%-16s",
      "");
  for (const Noise& noise : sloped) {
    std::printf("  %4g I + %-6g", noise.a, noise.b);
  }
  std::printf("\n");
  seed = 1000;
  for (const auto& file : files) {
    measure_sloped(file, ++seed);
  }
  measure_time(1);
  measure_time(2);
} catch (const std::exception& error) {
  std::fprintf(stderr, "noise_on_pictures: %s\n", error.what());
  return 1;
}
