#include "nonlocal/c.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "denoise/checks.h"
#include "nonlocal/error.h"
#include "nonlocal/video_denoiser.h"
#include "nonlocal/video_noise.h"

namespace {

using nonlocal::Plane;

thread_local std::string last_error;

// No exception may leave a function that C calls.
template <typename Function>
int guarded(Function function) noexcept {
  try {
    function();
    return 0;
  } catch (const std::exception& error) {
    last_error = error.what();
  } catch (...) {
    last_error = "unknown error";
  }
  return -1;
}

Plane plane_of(const nonlocal_plane& p) {
  if (p.data == nullptr) throw nonlocal::InvalidArgument("plane: expected data, came a null pointer");
  return {static_cast<std::byte*>(p.data), p.width, p.height, p.stride, p.bit_depth, p.step, p.shift};
}

}  // namespace

struct nonlocal_denoiser {
  nonlocal::VideoDenoiser denoiser;
  nonlocal::VideoNoiseEstimator estimator;
  double noise = 0;
  std::array<Plane, 3> planes;

  void filter(const nonlocal_plane* given, int count, const nonlocal_settings& settings);
};

void nonlocal_denoiser::filter(const nonlocal_plane* given, int count, const nonlocal_settings& settings) {
  if (given == nullptr || (count != 1 && count != 3))
    throw nonlocal::InvalidArgument("planes: expected 1 or 3, came " +
                                    (given == nullptr ? "a null pointer" : std::to_string(count)));
  std::transform(given, given + count, planes.begin(), plane_of);
  nonlocal::VideoDenoiserParameters parameters;
  parameters.strength = settings.strength;
  parameters.chroma_strength = settings.chroma_strength;
  parameters.patch_size = settings.patch_size;
  parameters.search_size = settings.search_size;
  parameters.temporal = settings.temporal != 0;
  parameters.threads = settings.threads;
  const bool is_estimated = settings.sigma < 0;
  if (!is_estimated) set_noise(parameters, settings.sigma);
  const std::span<const Plane> luma(planes.data(), 1);
  const std::span<const Plane> chroma(planes.data() + 1, static_cast<std::size_t>(count - 1));
  nonlocal::check_frame(luma, chroma, parameters);
  const nonlocal::VideoNoise found =
      is_estimated ? estimator.update(luma, chroma, parameters.threads) : settings.sigma;
  set_noise(parameters, found);
  noise = found.level;
  denoiser.filter(luma, chroma, parameters);
}

nonlocal_settings nonlocal_default_settings() { return {-1, 1, 1, 5, 11, 1, 0}; }

nonlocal_denoiser* nonlocal_denoiser_new() {
  nonlocal_denoiser* made = nullptr;
  guarded([&] { made = new nonlocal_denoiser; });
  return made;
}

void nonlocal_denoiser_free(nonlocal_denoiser* denoiser) { delete denoiser; }

int nonlocal_denoiser_refine_with(nonlocal_denoiser* denoiser, const char* model) {
  return guarded([&] {
    if (model == nullptr)
      denoiser->denoiser.do_not_refine();
    else
      denoiser->denoiser.refine_with(nonlocal::find_model(model));
  });
}

int nonlocal_denoiser_filter(nonlocal_denoiser* denoiser, const nonlocal_plane* planes, int count,
                             const nonlocal_settings* settings) {
  return guarded([&] {
    denoiser->filter(planes, count, settings != nullptr ? *settings : nonlocal_default_settings());
  });
}

double nonlocal_denoiser_noise(const nonlocal_denoiser* denoiser) { return denoiser->noise; }

void nonlocal_denoiser_reset(nonlocal_denoiser* denoiser) {
  denoiser->denoiser.reset();
  denoiser->estimator.reset();
}

const char* nonlocal_last_error() { return last_error.c_str(); }
