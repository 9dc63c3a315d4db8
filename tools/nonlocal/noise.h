// Seeded noise, the same on every machine.
#pragma once

#include <cstdint>
#include <opencv2/core.hpp>

namespace nonlocal::tools {

// The seed of frame `frame` of a clip with seed `seed`. Independent of the frames before: frame n of a seed
// is the same in a clip of any length.
uint64_t frame_seed(uint64_t seed, uint64_t frame);

// Adds Gaussian noise to 8-bit samples in place, rounded and clipped to 0 .. 255.
void add_noise(cv::Mat samples, double sigma, cv::RNG& rng);

}  // namespace nonlocal::tools
