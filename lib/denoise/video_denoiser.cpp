#include "nonlocal/video_denoiser.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "core/anew.h"
#include "core/planes.h"
#include "core/workers.h"
#include "denoise/checks.h"
#include "denoise/noise_map.h"
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

// Planes with memory of their own.
class OwnPlanes {
 public:
  // Of the size and depth of `planes`. Allocates nothing but for larger ones than ever.
  std::span<const Plane> like(std::span<const Plane> planes) {
    const Plane& first = planes[0];
    const std::ptrdiff_t stride = static_cast<std::ptrdiff_t>(first.width) * first.bytes_per_sample();
    const std::size_t bytes = static_cast<std::size_t>(stride) * first.height;
    if (bytes_.size() < bytes * planes.size()) {
      bytes_.resize(bytes * planes.size());
    }
    planes_.clear();
    for (std::size_t i = 0; i < planes.size(); ++i) {
      planes_.push_back({bytes_.data() + i * bytes, first.width, first.height, stride, first.bit_depth});
    }
    return planes_;
  }

 private:
  std::vector<std::byte> bytes_;
  std::vector<Plane> planes_;
};

// A frame with its noise; without data that is the same everywhere.
struct Noisy {
  std::span<const ConstPlane> luma;
  std::span<const ConstPlane> chroma;
  ConstPlane variance;
  ConstPlane deviation;
};

Noisy fused_by(const TemporalFusion& fusion) {
  return {fusion.guides(), fusion.others(), fusion.variance(), fusion.deviation()};
}

NonLocalMeansParameters luma_parameters(const VideoDenoiserParameters& p) {
  return {p.patch_size, p.search_size, p.sigma.largest(), p.strength, p.threads, p.method};
}

NonLocalMeansParameters parameters_of_chroma(const VideoDenoiserParameters& p, const ConstPlane& luma,
                                             const ConstPlane& chroma) {
  const NonLocalMeansParameters own = {p.patch_size,      p.search_size, p.chroma_sigma,
                                       p.chroma_strength, p.threads,     p.method};
  const auto is_half = [](int size, int whole) { return whole > 1 && size < whole; };
  return chroma_parameters(own, is_half(chroma.width, luma.width) && is_half(chroma.height, luma.height));
}

// Chroma's sides may be rounded down: the last row of an interlaced field may have none.
ConstPlane cropped(ConstPlane variance, const ConstPlane& plane) {
  variance.width = variance.width == plane.width + 1 ? plane.width : variance.width;
  variance.height = variance.height == plane.height + 1 ? plane.height : variance.height;
  return variance;
}

bool is_like(const ConstPlane& a, const ConstPlane& b) {
  return a.width == b.width && a.height == b.height && a.bit_depth == b.bit_depth;
}

// The first of them decides the size and depth of all.
void check_planes(std::span<const Plane> luma, std::span<const Plane> chroma) {
  const Plane& first = luma[0];
  const auto check_like = [&](const Plane& like, const Plane& plane, const char* which) {
    if (!is_like(plane, like)) {
      throw InvalidArgument("VideoDenoiser: expected every plane of " + std::string(which) + " to be " +
                            described(like) + " like the first, got " + described(plane));
    }
  };
  for (const Plane& plane : luma) {
    check_plane("VideoDenoiser", plane);
    check_like(first, plane, "luma or RGB");
  }
  for (const Plane& plane : chroma) {
    check_plane("VideoDenoiser", plane);
    check_like(chroma[0], plane, "chroma");
    if (!is_all_or_half(plane.width, first.width) || !is_all_or_half(plane.height, first.height) ||
        plane.bit_depth != first.bit_depth) {
      throw InvalidArgument("VideoDenoiser: expected chroma of the depth of luma, " + described(first) +
                            ", and of its width and height or half of each, got " + described(plane));
    }
  }
}

// Planes of a frame that follows, which are to be like this frame's.
void check_ahead(std::span<const ConstPlane> planes, std::span<const Plane> own, const char* which) {
  if (planes.size() != own.size()) {
    throw InvalidArgument("VideoDenoiser: expected " + std::to_string(own.size()) + " planes of " + which +
                          " of a frame ahead, as of this one, got " + std::to_string(planes.size()));
  }
  for (std::size_t i = 0; i < planes.size(); ++i) {
    check_plane("VideoDenoiser", planes[i]);
    if (!is_like(planes[i], own[i])) {
      throw InvalidArgument(std::string("VideoDenoiser: expected planes of ") + which +
                            " of a frame ahead to be " + described(own[i]) + " as of this one, got " +
                            described(planes[i]));
    }
  }
}

void check_grain(double grain, const char* which) {
  if (!(grain >= 1 && grain <= 64)) {
    throw InvalidArgument(std::string("VideoDenoiser: expected a ") + which + " of 1 to 64, got " +
                          std::to_string(grain));
  }
}

void check_method(const VideoDenoiserParameters& p) {
  const bool is_attention = p.method == NonLocalMeansMethod::kAttention;
  if (is_attention && (p.temporal || p.joint_chroma || !p.sigma.is_level())) {
    throw InvalidArgument(std::string("VideoDenoiser: expected one sigma, without temporal and joint_chroma, "
                                      "for kAttention, got ") +
                          (p.temporal       ? "temporal"
                           : p.joint_chroma ? "joint_chroma"
                                            : "a sigma by brightness"));
  }
}

}  // namespace

void check_frame(std::span<const Plane> luma, std::span<const Plane> chroma,
                 const VideoDenoiserParameters& p) {
  if (luma.empty() || luma.size() > kMostPlanes || chroma.size() == 1 || chroma.size() > 2) {
    throw InvalidArgument("VideoDenoiser: expected 1 to 4 planes of luma or RGB and 0 or 2 of chroma, got " +
                          std::to_string(luma.size()) + " and " + std::to_string(chroma.size()));
  }
  check_planes(luma, chroma);
  for (const double sigma : {p.sigma.dark, p.sigma.bright}) {
    check_parameters({p.patch_size, p.search_size, sigma, p.strength, p.threads, p.method});
  }
  check_parameters({p.patch_size, p.search_size, p.chroma_sigma, p.chroma_strength, p.threads, p.method});
  check_grain(p.grain, "grain");
  check_grain(p.chroma_grain, "chroma_grain");
  check_method(p);
}

struct VideoDenoiser::State {
  TemporalFusion fusion;
  TemporalFusion backwards;  // of the frames ahead, the last first, and of this frame
  double fused_chroma = 0;   // sigma of the last chroma that had noise; 0: none since the first frame
  NonLocalMeans luma;
  NonLocalMeans chroma;
  NoiseMap noise;
  std::optional<RefinementNetwork> network;
  OwnPlanes estimates;  // what the network refines

  Noisy with_noise(std::span<const ConstPlane> luma, std::span<const ConstPlane> chroma,
                   const VideoDenoiserParameters& p);
  Noisy fuse(const Noisy& frame, std::span<const VideoFrame> ahead, const VideoDenoiserParameters& p);
  void filter_luma(const Noisy& noisy, std::span<const Plane> out, std::span<const Plane> joint_out,
                   const VideoDenoiserParameters& p);
  void filter_chroma(const Noisy& noisy, std::span<const Plane> out, const VideoDenoiserParameters& p);
  void forget();
};

Noisy VideoDenoiser::State::with_noise(std::span<const ConstPlane> luma_planes,
                                       std::span<const ConstPlane> chroma_planes,
                                       const VideoDenoiserParameters& p) {
  if (p.sigma.is_level()) {
    return {luma_planes, chroma_planes, {}, {}};
  }
  or_anew(noise, [&] { noise.make(luma_planes, p.sigma, p.strength, thread_count(p.threads)); });
  return {luma_planes, chroma_planes, noise.variance(), noise.deviation()};
}

// The map of the noise, like each frame's, lasts until the next.
Noisy VideoDenoiser::State::fuse(const Noisy& frame, std::span<const VideoFrame> ahead,
                                 const VideoDenoiserParameters& p) {
  // An estimate may be 0 in one frame and not in the next: fusion forgets all where its planes change.
  fused_chroma = p.chroma_sigma > 0 ? p.chroma_sigma : fused_chroma;
  const bool with_chroma = fused_chroma > 0 && p.chroma_strength > 0;
  TemporalFusionParameters own;
  own.sigma = p.sigma.largest();
  own.other_sigma = with_chroma ? fused_chroma : own.sigma;
  own.grain = p.grain;
  own.other_grain = p.chroma_grain;
  own.deviation_scale = p.strength;
  own.threads = p.threads;
  own.variance = frame.variance;
  fusion.fuse(frame.luma, with_chroma ? frame.chroma : std::span<const ConstPlane>(), own);
  if (ahead.empty()) {
    return fused_by(fusion);
  }
  backwards.reset();
  for (std::size_t i = ahead.size(); i-- > 0;) {
    own.variance = with_noise(ahead[i].luma, ahead[i].chroma, p).variance;
    backwards.fuse(ahead[i].luma, with_chroma ? ahead[i].chroma : std::span<const ConstPlane>(), own);
  }
  own.variance = fusion.variance();
  backwards.fuse(fusion.guides(), fusion.others(), own);
  return fused_by(backwards);
}

// And chroma, where it is to have the same weights.
void VideoDenoiser::State::filter_luma(const Noisy& noisy, std::span<const Plane> out,
                                       std::span<const Plane> joint_out, const VideoDenoiserParameters& p) {
  const std::span<const Plane> estimate = network ? estimates.like(out) : out;
  const auto joint_in = joint_out.empty() ? std::span<const ConstPlane>() : noisy.chroma;
  luma.filter({noisy.luma, estimate, joint_in, joint_out, noisy.variance}, luma_parameters(p));
  for (std::size_t i = 0; network && i < out.size(); ++i) {
    if (noisy.deviation.data != nullptr) {
      network->refine(noisy.luma[i], estimate[i], noisy.deviation, out[i], p.threads);
    } else {
      const double sigma = std::min(p.sigma.largest() * p.strength, 255.0);
      network->refine(noisy.luma[i], estimate[i], sigma, out[i], p.threads);
    }
  }
}

void VideoDenoiser::State::filter_chroma(const Noisy& noisy, std::span<const Plane> out,
                                         const VideoDenoiserParameters& p) {
  const ConstPlane variance =
      noisy.variance.data != nullptr ? cropped(noisy.variance, noisy.chroma[0]) : noisy.variance;
  chroma.filter({noisy.chroma, out, {}, {}, variance},
                parameters_of_chroma(p, noisy.luma[0], noisy.chroma[0]));
}

VideoDenoiser::VideoDenoiser() : state_(std::make_unique<State>()) {}
VideoDenoiser::~VideoDenoiser() = default;
VideoDenoiser::VideoDenoiser(VideoDenoiser&&) noexcept = default;
VideoDenoiser& VideoDenoiser::operator=(VideoDenoiser&&) noexcept = default;

void VideoDenoiser::refine_with(const std::string& model_file, NetworkPrecision precision) {
  state_->network = RefinementNetwork(model_file, precision);
}

void VideoDenoiser::do_not_refine() { state_->network.reset(); }

void VideoDenoiser::filter(std::span<const Plane> luma, std::span<const Plane> chroma,
                           const VideoDenoiserParameters& p, std::span<const VideoFrame> ahead) {
  check_frame(luma, chroma, p);
  for (const VideoFrame& frame : ahead) {
    check_ahead(frame.luma, luma, "luma or RGB");
    check_ahead(frame.chroma, chroma, "chroma");
  }
  State& s = *state_;
  const Input luma_in(luma);
  const Input chroma_in(chroma);
  const bool filters_luma = p.sigma.largest() > 0 && p.strength > 0;
  const bool is_joint = p.joint_chroma && filters_luma && p.chroma_strength > 0;
  const bool filters_chroma =
      !chroma.empty() && p.chroma_strength > 0 && (p.chroma_sigma > 0 || (is_joint && !p.temporal));
  Noisy noisy = filters_luma ? s.with_noise(luma_in.all(), chroma_in.all(), p)
                             : Noisy{luma_in.all(), chroma_in.all(), {}, {}};
  const bool fuses = p.temporal && filters_luma;
  if (fuses) {
    noisy = s.fuse(noisy, ahead, p);
  } else {
    s.forget();
  }
  if (filters_luma) {
    s.filter_luma(noisy, luma, is_joint && filters_chroma ? chroma : std::span<const Plane>(), p);
  }
  if (filters_chroma && !is_joint) {
    s.filter_chroma(noisy, chroma, p);
  }
  if (fuses) {
    s.fusion.remember(luma_in.all());
  }
}

void VideoDenoiser::State::forget() {
  fusion.reset();
  fused_chroma = 0;
}

void VideoDenoiser::reset() { state_->forget(); }

}  // namespace nonlocal
