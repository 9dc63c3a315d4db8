// Something of each part of the installed library, with the models that are installed: consumer
//
// Prints the file of the model that reads prompts, and ends with 1 where something does not do what it says.
#include <nonlocal/attention.h>
#include <nonlocal/cross_attention_filter.h>
#include <nonlocal/error.h>
#include <nonlocal/frame_grader.h>
#include <nonlocal/network.h>
#include <nonlocal/non_local_means.h>
#include <nonlocal/refinement.h>
#include <nonlocal/text_encoder.h>
#include <nonlocal/video_denoiser.h>
#include <nonlocal/video_noise.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <iostream>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr int kSize = 96;

bool has_failed = false;

void expect(bool condition, const std::string& what) {
  if (condition) return;
  std::cerr << "expected " << what << '\n';
  has_failed = true;
}

// Gray of one value with noise.
struct Picture {
  std::vector<std::byte> samples = std::vector<std::byte>(std::size_t{kSize} * kSize);

  Picture(double value, double sigma) {
    std::mt19937 random(3);
    std::normal_distribution<double> normal;
    for (std::byte& sample : samples) sample = std::byte(std::lround(value + sigma * normal(random)));
  }
  [[nodiscard]] nonlocal::Plane plane() {
    return {.data = samples.data(), .width = kSize, .height = kSize, .stride = kSize};
  }
  [[nodiscard]] double mean() const {
    double sum = 0;
    for (const std::byte sample : samples) sum += std::to_integer<int>(sample);
    return sum / static_cast<double>(samples.size());
  }
  [[nodiscard]] double deviation() const {
    const double middle = mean();
    double squares = 0;
    for (const std::byte sample : samples) squares += std::pow(std::to_integer<int>(sample) - middle, 2);
    return std::sqrt(squares / static_cast<double>(samples.size()));
  }
};

void denoise() {
  Picture picture(120, 12);
  const nonlocal::Plane plane = picture.plane();
  const nonlocal::VideoNoise noise = nonlocal::VideoNoiseEstimator().update({&plane, 1});
  expect(std::abs(noise.level - 12) < 2, "noise of about 12");
  nonlocal::VideoDenoiser denoiser;
  denoiser.refine_with(nonlocal::find_model("refine_balanced"));
  nonlocal::VideoDenoiserParameters parameters;
  set_noise(parameters, noise);
  denoiser.filter({&plane, 1}, {}, parameters);
  expect(picture.deviation() < 4, "a denoised picture");
}

// Keys that are all the same: the mean of the values.
void attend() {
  const std::array<float, 2> query = {1, 2};
  const std::array<float, 6> keys = {1, 1, 1, 1, 1, 1};
  const std::array<float, 6> values = {0, 3, 3, 6, 6, 9};
  std::array<float, 2> out = {};
  nonlocal::AttentionParameters parameters;
  parameters.queries = 1;
  parameters.keys = 3;
  parameters.dim = 2;
  parameters.precision = nonlocal::AttentionPrecision::kFloat32;
  nonlocal::AttentionInput input;
  input.query = {query.data(), 1, 2, 2};
  input.key = {keys.data(), 3, 2, 2};
  input.value = {values.data(), 3, 2, 2};
  nonlocal::Attention(parameters).run(input, {out.data(), 1, 2, 2});
  expect(std::abs(out[0] - 3) < 1e-5 && std::abs(out[1] - 6) < 1e-5, "the mean of the values");
}

void run_network() {
  Picture picture(120, 4);
  const auto before = picture.samples;
  const nonlocal::Plane plane = picture.plane();
  const nonlocal::ConstPlane in = plane;
  nonlocal::Network(nonlocal::find_model("restore")).run({&in, 1}, {&plane, 1});
  expect(std::abs(picture.mean() - 120) < 2, "a picture as bright as before");
  expect(picture.samples != before, "a picture that the network has changed");
}

void grade_by_prompt() {
  const std::string file = nonlocal::find_model("grade");
  std::cout << file << '\n';
  const nonlocal::TextEmbedding text = nonlocal::TextEncoder(file).encode("much darker");
  const nonlocal::ConstMatrix tokens{text.tokens.data(), static_cast<int>(text.ids.size()), text.width,
                                     text.width};
  const nonlocal::CrossAttentionFilter filter(nonlocal::CrossAttentionModel(file), tokens);
  nonlocal::ColourFormat format;
  format.range = nonlocal::ColourRange::kFull;
  const auto look = nonlocal::GradeLook::bake(filter, format);
  std::array<Picture, 3> rgb = {Picture(140, 0), Picture(140, 0), Picture(140, 0)};
  const std::array<nonlocal::Plane, 3> out = {rgb[0].plane(), rgb[1].plane(), rgb[2].plane()};
  const std::array<nonlocal::ConstPlane, 3> in = {out[0], out[1], out[2]};
  nonlocal::FrameGrader().run(in, out, format, *look);
  expect(rgb[1].mean() < 130, "a darker picture");
}

// Types of exceptions are shared with the library.
void refuse() {
  try {
    nonlocal::NonLocalMeans().filter({}, {}, {});
    expect(false, "an error where there is no plane");
  } catch (const nonlocal::InvalidArgument&) {
  }
}

}  // namespace

int main() try {
  denoise();
  attend();
  run_network();
  grade_by_prompt();
  refuse();
  return has_failed ? 1 : 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
