#include "nonlocal/non_local_means.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "core/anew.h"
#include "core/planes.h"
#include "core/rounding.h"
#include "core/workers.h"
#include "denoise/attention_means.h"
#include "denoise/checks.h"
#include "denoise/nlm_tile.h"
#include "nonlocal/error.h"

namespace nonlocal {
namespace {

using denoise::NlmFrame;
using denoise::Tile;
using denoise::TileLayout;
using denoise::TileScratch;

constexpr int kMostPlanes = 4;
constexpr int kTilesAThread = 4;
constexpr int kLowestTile = 64;

// A sample of one depth as one of another, rounded.
struct DepthChange {
  DepthChange(int from, int to)
      : up(std::max(to - from, 0)), down(std::max(from - to, 0)), most((1 << to) - 1) {}
  int operator()(int sample) const { return std::min(((sample << up) + (1 << down >> 1)) >> down, most); }
  int up;
  int down;
  int most;
};

template <typename From, typename To>
void copy_samples(const ConstPlane& in, const Plane& out) {
  const bool is_plain = std::is_same_v<From, To> && in.bit_depth == out.bit_depth && in.step == 1 &&
                        out.step == 1 && in.shift == 0 && out.shift == 0;
  const DepthChange change(in.bit_depth, out.bit_depth);
  for (int y = 0; y < in.height; ++y) {
    const From* from = reinterpret_cast<const From*>(in.row(y));
    To* to = reinterpret_cast<To*>(out.row(y));
    if (is_plain) {
      std::copy_n(from, in.width, to);
      continue;
    }
    for (std::ptrdiff_t x = 0; x < in.width; ++x) {
      to[x * out.step] = static_cast<To>(change(from[x * in.step] >> in.shift) << out.shift);
    }
  }
}

void copy_plane(const ConstPlane& in, const Plane& out) {
  using Deep = std::uint16_t;
  using Shallow = std::uint8_t;
  if (in.bit_depth > 8) {
    out.bit_depth > 8 ? copy_samples<Deep, Deep>(in, out) : copy_samples<Deep, Shallow>(in, out);
  } else {
    out.bit_depth > 8 ? copy_samples<Shallow, Deep>(in, out) : copy_samples<Shallow, Shallow>(in, out);
  }
}

void copy_planes(std::span<const ConstPlane> in, std::span<const Plane> out) {
  for (std::size_t i = 0; i < in.size(); ++i) {
    copy_plane(in[i], out[i]);
  }
}

// Do the planes of any two share memory?
bool overlap(std::span<const ConstPlane> in, std::span<const Plane> out) {
  return std::any_of(in.begin(), in.end(), [&](const ConstPlane& i) {
    return std::any_of(out.begin(), out.end(), [&](const Plane& o) { return nonlocal::overlap(i, o); });
  });
}

// A frame's tiles, numbered row by row. Each has rows above to begin with, which cost time: so they are high,
// but there are several a thread, so that threads share the work evenly.
struct Tiling {
  Tiling(const NlmFrame& frame, int threads)
      : layout(frame), width(frame.in[0].width), height(frame.in[0].height) {
    across = ceil_divide(width, layout.tile_width);
    const int wanted = ceil_divide(kTilesAThread * threads, across);
    const int highest = std::max(ceil_divide(height, wanted), kLowestTile);
    tile_height = ceil_divide(height, ceil_divide(height, highest));
    tile_height += tile_height % 2;  // for joint planes
  }

  [[nodiscard]] int count() const { return across * ceil_divide(height, tile_height); }
  [[nodiscard]] Tile operator[](int i) const {
    const int x = i % across * layout.tile_width;
    const int y = i / across * tile_height;
    return {x, y, std::min(layout.tile_width, width - x), std::min(tile_height, height - y)};
  }

  TileLayout layout;
  int width;
  int height;
  int across = 0;
  int tile_height = 0;
};

// Joint planes have as many columns and rows as the others, or half of them.
void check_joint_size(const ConstPlane& joint, const ConstPlane& first) {
  if (!is_all_or_half(joint.width, first.width) || !is_all_or_half(joint.height, first.height) ||
      joint.bit_depth != first.bit_depth) {
    throw InvalidArgument("NonLocalMeans: expected joint planes of the depth of the first plane, " +
                          described(first) + ", and of its width and height or half of each, got " +
                          described(joint));
  }
}

void check_variance(const ConstPlane& v, const ConstPlane& first) {
  check_plane("NonLocalMeans", v);
  const auto fits = [](int size, int whole) { return size == whole || size == (whole + 1) / 2; };
  if (!fits(v.width, first.width) || !fits(v.height, first.height) || v.bit_depth != 16 || v.step != 1) {
    throw InvalidArgument("NonLocalMeans: expected the noise's variance as " + std::to_string(first.width) +
                          "x" + std::to_string(first.height) +
                          " samples, or half of each, of 16 bits side by side, got " +
                          std::to_string(v.width) + "x" + std::to_string(v.height) + " of " +
                          std::to_string(v.bit_depth) + " bits");
  }
}

void check_frame(const NonLocalMeansFrame& f, NonLocalMeansMethod method) {
  check_planes("NonLocalMeans", f.in, f.out, kMostPlanes);
  if (!f.joint_in.empty() || !f.joint_out.empty()) {
    check_planes("NonLocalMeans", f.joint_in, f.joint_out, kMostPlanes);
    check_joint_size(f.joint_in[0], f.in[0]);
  }
  if (f.variance.data != nullptr) {
    check_variance(f.variance, f.in[0]);
  }
  if (method == NonLocalMeansMethod::kAttention && (!f.joint_in.empty() || f.variance.data != nullptr)) {
    throw InvalidArgument(
        "NonLocalMeans: expected no joint planes and no variance of the noise with kAttention, got " +
        std::string(f.joint_in.empty() ? "a variance" : "joint planes"));
  }
}

}  // namespace

void check_parameters(const NonLocalMeansParameters& p) {
  const auto require = [](bool good, const char* expected, auto got) {
    if (!good) {
      throw InvalidArgument("NonLocalMeans: expected " + std::string(expected) + ", got " +
                            std::to_string(got));
    }
  };
  require(p.patch_size % 2 == 1 && p.patch_size >= 1 && p.patch_size <= 15, "an odd patch_size of 1 to 15",
          p.patch_size);
  require(p.search_size % 2 == 1 && p.search_size >= 3 && p.search_size <= 63,
          "an odd search_size of 3 to 63", p.search_size);
  require(p.sigma >= 0 && p.sigma <= 100, "a sigma of 0 to 100", p.sigma);
  require(p.strength >= 0 && p.strength <= 10, "a strength of 0 to 10", p.strength);
  require(p.threads >= 0, "0 (all) or more threads", p.threads);
}

double filter_h(const NonLocalMeansParameters& p, int planes) {
  const double terms = static_cast<double>(p.patch_size) * p.patch_size * planes;
  const double at_sigma_10 = 0.85 + 0.53 / terms;
  const double fall = std::max(0.0, 0.27 - 1.52 / terms);
  const double window = std::pow(15.0 / p.search_size, 0.25);
  return p.strength * p.sigma * window * (at_sigma_10 - fall * std::log(std::clamp(p.sigma, 3.0, 50.0) / 10));
}

NonLocalMeansParameters chroma_parameters(const NonLocalMeansParameters& luma, bool is_subsampled) {
  NonLocalMeansParameters chroma = luma;
  chroma.strength = std::min(10.0, luma.strength * std::min(0.65 + 0.0225 * luma.sigma, 1.8));
  if (is_subsampled) {
    chroma.search_size = std::max(3, luma.search_size * 3 / 4 | 1);
  }
  return chroma;
}

namespace {

// Samples of several planes side by side, as in packed formats and in NV12's UV.
bool are_interleaved(std::span<const ConstPlane> planes) {
  const ConstPlane& first = planes[0];
  return std::all_of(planes.begin(), planes.end(), [&](const ConstPlane& p) {
    return p.stride == first.stride && p.step == first.step &&
           std::abs(p.data - first.data) < static_cast<std::ptrdiff_t>(p.step) * p.bytes_per_sample();
  });
}

// Copies of planes that are to be overwritten. Rows are copied as they lie, what is between samples too:
// anything else would take a noticeable part of the filter's time.
class PlaneCopies {
 public:
  std::span<const ConstPlane> copy(std::span<const ConstPlane> in) {
    const std::size_t apart = are_interleaved(in) ? in.size() : 1;  // planes copied at once
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < in.size(); i += apart) {
      bytes += Rows(in.subspan(i, apart)).size();
    }
    bytes_.resize(bytes);
    planes_.assign(in.begin(), in.end());
    std::byte* to = bytes_.data();
    for (std::size_t i = 0; i < in.size(); i += apart) {
      to = Rows(in.subspan(i, apart)).copy(to, std::span(planes_).subspan(i, apart));
    }
    return planes_;
  }

 private:
  // The rows of interleaved planes.
  class Rows {
   public:
    explicit Rows(std::span<const ConstPlane> planes) : height_(planes[0].height), stride_(planes[0].stride) {
      const auto by_address = [](const ConstPlane& a, const ConstPlane& b) { return a.data < b.data; };
      const auto [first, last] = std::minmax_element(planes.begin(), planes.end(), by_address);
      begin_ = first->data;
      length_ = last->data - begin_ +
                (static_cast<std::ptrdiff_t>(first->width - 1) * first->step + 1) * first->bytes_per_sample();
    }
    [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(length_) * height_; }

    // Points `planes`, which were these, to the copy. Returns the byte after it.
    std::byte* copy(std::byte* to, std::span<ConstPlane> planes) const {
      for (ConstPlane& plane : planes) {
        plane.data = to + (plane.data - begin_);
        plane.stride = length_;
      }
      for (int y = 0; y < height_; ++y, to += length_) {
        std::memcpy(to, begin_ + y * stride_, length_);
      }
      return to;
    }

   private:
    const std::byte* begin_;
    std::ptrdiff_t length_;
    int height_;
    std::ptrdiff_t stride_;
  };

  std::vector<std::byte> bytes_;
  std::vector<ConstPlane> planes_;
};

}  // namespace

struct NonLocalMeans::State {
  TileLayout layout;
  std::vector<TileScratch> scratch;  // one a thread
  denoise::AttentionMeans attention;
  PlaneCopies own;
  PlaneCopies joint;

  void prepare(const TileLayout& wanted, int threads) {
    if (wanted != layout) {
      scratch.clear();
      layout = wanted;
    }
    while (static_cast<int>(scratch.size()) < threads) {
      scratch.emplace_back().allocate(layout);
    }
  }

  void filter_tiles(const NlmFrame& frame, int most_threads) {
    const Tiling tiles(frame, most_threads);
    const int threads = std::min(tiles.count(), most_threads);
    prepare(tiles.layout, threads);
    Workers::shared().run(tiles.count(), threads, [&](int i, int slot) {
      denoise::filter_tile(frame, tiles[i], layout, scratch[static_cast<std::size_t>(slot)]);
    });
  }

  void filter(const NonLocalMeansFrame& frame, const NonLocalMeansParameters& parameters);
};

NonLocalMeans::NonLocalMeans() : state_(std::make_unique<State>()) {}
NonLocalMeans::~NonLocalMeans() = default;
NonLocalMeans::NonLocalMeans(NonLocalMeans&&) noexcept = default;
NonLocalMeans& NonLocalMeans::operator=(NonLocalMeans&&) noexcept = default;

void NonLocalMeans::filter(std::span<const ConstPlane> in, std::span<const Plane> out,
                           const NonLocalMeansParameters& parameters) {
  filter({in, out, {}, {}, {}}, parameters);
}

void NonLocalMeans::filter(const NonLocalMeansFrame& frame, const NonLocalMeansParameters& parameters) {
  check_frame(frame, parameters.method);
  check_parameters(parameters);
  or_anew(*state_, [&] { state_->filter(frame, parameters); });
}

void NonLocalMeans::State::filter(const NonLocalMeansFrame& frame,
                                  const NonLocalMeansParameters& parameters) {
  auto [in, out, joint_in, joint_out, variance] = frame;
  // Tiles read what others write.
  if (overlap(in, out) || overlap(in, joint_out)) {
    in = own.copy(in);
  }
  if (overlap(joint_in, joint_out) || overlap(joint_in, out)) {
    joint_in = joint.copy(joint_in);
  }
  if (filter_h(parameters) == 0) {
    copy_planes(in, out);
    copy_planes(joint_in, joint_out);
    return;
  }
  if (parameters.method == NonLocalMeansMethod::kAttention) {
    attention.filter(in, out, parameters);
    return;
  }
  filter_tiles({in, out, joint_in, joint_out, variance, parameters.patch_size / 2, parameters.search_size / 2,
                denoise::make_weight_law(parameters, static_cast<int>(in.size()), in[0].bit_depth)},
               thread_count(parameters.threads));
}

}  // namespace nonlocal
