#include "noise.h"

namespace nonlocal::tools {

uint64_t frame_seed(uint64_t seed, uint64_t frame) {
  uint64_t z = seed * 0x9E3779B97F4A7C15u + frame + 1;  // SplitMix64
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

void add_noise(cv::Mat samples, double sigma, cv::RNG& rng) {
  cv::Mat noise(samples.size(), CV_32F);
  rng.fill(noise, cv::RNG::NORMAL, 0, sigma);
  cv::add(samples, noise, samples, cv::noArray(), CV_8U);
}

}  // namespace nonlocal::tools
