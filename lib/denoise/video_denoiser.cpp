#include "nonlocal/video_denoiser.h"

#include <algorithm>
#include <array>
#include <string>

#include "nonlocal/error.h"
#include "nonlocal/non_local_means.h"
#include "nonlocal/temporal_fusion.h"

namespace nonlocal {
namespace {

constexpr std::size_t kMostPlanes = 4;

// Planes to be read.
class Input {
 public:
  explicit Input(std::span<const Plane> planes) : count_(std::min(planes.size(), kMostPlanes)) {
    std::copy_n(planes.begin(), count_, planes_.begin());
  }
  [[nodiscard]] std::span<const ConstPlane> all() const { return std::span(planes_).first(count_); }

 private:
  std::array<ConstPlane, kMostPlanes> planes_;
  std::size_t count_;
};

NonLocalMeansParameters luma_parameters(const VideoDenoiserParameters& p) {
  return {p.patch_size, p.search_size, p.sigma, p.strength, p.threads};
}

bool is_half(int size, int whole) { return whole > 1 && size < whole; }

NonLocalMeansParameters parameters_of_chroma(const VideoDenoiserParameters& p, const ConstPlane& luma,
                                             const ConstPlane& chroma) {
  NonLocalMeansParameters own = luma_parameters(p);
  own.sigma = p.chroma_sigma;
  own.strength = p.chroma_strength;
  return chroma_parameters(own, is_half(chroma.width, luma.width) && is_half(chroma.height, luma.height));
}

// The variance of a plane's noise: the last row of a field may have no chroma.
ConstPlane variance_of(ConstPlane variance, const ConstPlane& plane) {
  variance.height = variance.height == plane.height + 1 ? plane.height : variance.height;
  return variance;
}

void check(std::span<const Plane> luma, std::span<const Plane> chroma) {
  if (luma.empty() || luma.size() > kMostPlanes || chroma.size() == 1 || chroma.size() > 2) {
    throw InvalidArgument("VideoDenoiser: expected 1 to 4 planes of luma or RGB and 0 or 2 of chroma, got " +
                          std::to_string(luma.size()) + " and " + std::to_string(chroma.size()));
  }
}

}  // namespace

struct VideoDenoiser::State {
  NonLocalMeans luma;
  NonLocalMeans chroma;
  TemporalFusion fusion;

  void filter_frame(std::span<const Plane> luma_planes, std::span<const Plane> chroma_planes,
                    const VideoDenoiserParameters& p);
  void filter_fused(std::span<const Plane> luma_planes, std::span<const Plane> chroma_planes,
                    const VideoDenoiserParameters& p);
};

// By itself.
void VideoDenoiser::State::filter_frame(std::span<const Plane> luma_planes,
                                        std::span<const Plane> chroma_planes,
                                        const VideoDenoiserParameters& p) {
  const Input luma_in(luma_planes);
  const Input chroma_in(chroma_planes);
  const bool filters_luma = p.sigma > 0 && p.strength > 0;
  const bool filters_chroma = !chroma_planes.empty() && p.chroma_strength > 0;
  if (p.joint_chroma && filters_luma && filters_chroma) {
    luma.filter({luma_in.all(), luma_planes, chroma_in.all(), chroma_planes, {}}, luma_parameters(p));
    return;
  }
  if (filters_luma) {
    luma.filter(luma_in.all(), luma_planes, luma_parameters(p));
  }
  if (filters_chroma && p.chroma_sigma > 0) {
    chroma.filter(chroma_in.all(), chroma_planes,
                  parameters_of_chroma(p, luma_in.all()[0], chroma_in.all()[0]));
  }
}

// Fused with those before.
void VideoDenoiser::State::filter_fused(std::span<const Plane> luma_planes,
                                        std::span<const Plane> chroma_planes,
                                        const VideoDenoiserParameters& p) {
  const bool filters_chroma = !chroma_planes.empty() && p.chroma_strength > 0 && p.chroma_sigma > 0;
  const Input luma_in(luma_planes);
  const Input chroma_in(filters_chroma ? chroma_planes : chroma_planes.first(0));
  fusion.fuse(luma_in.all(), chroma_in.all(),
              {p.sigma, filters_chroma ? p.chroma_sigma : p.sigma, p.threads});
  const ConstPlane variance = fusion.variance();
  if (p.joint_chroma && filters_chroma) {
    luma.filter({fusion.guides(), luma_planes, fusion.others(), chroma_planes, variance}, luma_parameters(p));
  } else {
    luma.filter({fusion.guides(), luma_planes, {}, {}, variance}, luma_parameters(p));
    if (filters_chroma) {
      const ConstPlane& first = fusion.others()[0];
      chroma.filter({fusion.others(), chroma_planes, {}, {}, variance_of(variance, first)},
                    parameters_of_chroma(p, fusion.guides()[0], first));
    }
  }
  fusion.remember(luma_in.all());
}

VideoDenoiser::VideoDenoiser() : state_(std::make_unique<State>()) {}
VideoDenoiser::~VideoDenoiser() = default;
VideoDenoiser::VideoDenoiser(VideoDenoiser&&) noexcept = default;
VideoDenoiser& VideoDenoiser::operator=(VideoDenoiser&&) noexcept = default;

void VideoDenoiser::filter(std::span<const Plane> luma, std::span<const Plane> chroma,
                           const VideoDenoiserParameters& parameters) {
  check(luma, chroma);
  if (parameters.temporal && parameters.sigma > 0 && parameters.strength > 0) {
    state_->filter_fused(luma, chroma, parameters);
  } else {
    state_->fusion.reset();
    state_->filter_frame(luma, chroma, parameters);
  }
}

void VideoDenoiser::reset() { state_->fusion.reset(); }

}  // namespace nonlocal
