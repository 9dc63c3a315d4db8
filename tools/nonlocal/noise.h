// Seeded noise, the same on every machine.
#pragma once

#include <cstdint>
#include <opencv2/core.hpp>
#include <string>
#include <vector>

namespace nonlocal::tools {

// The seed of frame `frame` of a clip with seed `seed`. Independent of the frames before: frame n of a seed
// is the same in a clip of any length.
uint64_t frame_seed(uint64_t seed, uint64_t frame);

// Adds Gaussian noise to 8-bit samples in place, rounded and clipped to 0 .. 255.
void add_noise(cv::Mat samples, double sigma, cv::RNG& rng);

// The kinds of noise that cameras and what comes after them leave.
const std::vector<std::string>& noise_kinds();

// The same to all planes of a frame, luma first; what is added to luma by
//   "white":  the standard deviation is sigma everywhere.
//   "camera": its variance is a line of the brightness I, sigma² (I + 16) / 144: sigma at 128, as shot noise
//             and read noise of a sensor together; chroma's goes with the brightness of luma there.
//   "smooth": white noise through a Gaussian of 1 pixel, as after scaling or demosaicing, of this sigma.
void add_noise(std::vector<cv::Mat>& planes, const std::string& kind, double sigma, cv::RNG& rng);

}  // namespace nonlocal::tools
