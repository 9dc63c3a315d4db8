#include "nonlocal/non_local_means.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/planes.h"
#include "core/workers.h"
#include "denoise/nlm_tile.h"
#include "nonlocal/error.h"

namespace nonlocal {
namespace {

using denoise::NlmFrame;
using denoise::Tile;
using denoise::TileLayout;
using denoise::TileScratch;

constexpr int kMostPlanes = 4;
// A tile's accumulators and samples should stay in a core's second-level cache.
constexpr int kTileBytes = 2560 << 10;

void check_parameters(const NonLocalMeansParameters& p) {
  const auto require = [](bool good, const std::string& expected, auto got) {
    if (!good) {
      throw InvalidArgument("NonLocalMeans: expected " + expected + ", got " + std::to_string(got));
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

void copy_plane(const ConstPlane& in, const Plane& out) {
  const auto copy = [&]<typename T>(T) {
    for (int y = 0; y < in.height; ++y) {
      const T* from = reinterpret_cast<const T*>(in.row(y));
      T* to = reinterpret_cast<T*>(out.row(y));
      for (std::ptrdiff_t x = 0; x < in.width; ++x) {
        to[x * out.step] = static_cast<T>(from[x * in.step] >> in.shift << out.shift);
      }
    }
  };
  if (in.bit_depth > 8) {
    copy(std::uint16_t{});
  } else {
    copy(std::uint8_t{});
  }
}

// The bytes from the plane's first to its last sample.
struct Extent {
  explicit Extent(const ConstPlane& p) {
    const std::byte* first = p.row(0);
    const std::byte* last = p.row(p.height - 1);
    begin = std::min(first, last);
    end = std::max(first, last) +
          (static_cast<std::ptrdiff_t>(p.width - 1) * p.step + 1) * p.bytes_per_sample();
  }
  const std::byte* begin;
  const std::byte* end;
};

bool overlap(std::span<const ConstPlane> in, std::span<const Plane> out) {
  return std::any_of(in.begin(), in.end(), [&](const ConstPlane& i) {
    return std::any_of(out.begin(), out.end(), [&](const Plane& o) {
      const Extent a(i);
      const Extent b(o);
      return a.begin < b.end && b.begin < a.end;
    });
  });
}

int ceil_divide(int a, int b) { return (a + b - 1) / b; }

// Tiles of one size, so that threads share the work evenly, as high as fits the cache.
TileLayout plan_tiles(const NlmFrame& frame) {
  const int height = frame.in[0].height;
  const int highest = std::clamp(kTileBytes / TileLayout(frame, 1).bytes_a_row(), 32, 160);
  return {frame, ceil_divide(height, ceil_divide(height, highest))};
}

}  // namespace

double filter_h(const NonLocalMeansParameters& p, int planes) {
  const double terms = static_cast<double>(p.patch_size) * p.patch_size * planes;
  const double at_sigma_10 = 0.75 + 1.5 / terms;
  const double fall = std::max(0.0, 0.25 - 1.25 / terms);
  return p.strength * p.sigma * (at_sigma_10 - fall * std::log(std::clamp(p.sigma, 3.0, 50.0) / 10));
}

struct NonLocalMeans::State {
  TileLayout layout;
  std::vector<TileScratch> scratch;  // one a thread
  std::vector<std::byte> copy;       // of an input that is to be overwritten
  std::vector<ConstPlane> copied;

  void prepare(const TileLayout& wanted, int threads) {
    if (wanted != layout) {
      scratch.clear();
      layout = wanted;
    }
    while (static_cast<int>(scratch.size()) < threads) {
      scratch.emplace_back().allocate(layout);
    }
  }

  std::span<const ConstPlane> copy_input(std::span<const ConstPlane> in) {
    const std::size_t row = static_cast<std::size_t>(in[0].width) * in[0].bytes_per_sample();
    const std::size_t plane = row * in[0].height;
    copy.resize(plane * in.size());
    copied.clear();
    for (std::size_t i = 0; i < in.size(); ++i) {
      const Plane to = {copy.data() + i * plane,
                        in[i].width,
                        in[i].height,
                        static_cast<std::ptrdiff_t>(row),
                        in[i].bit_depth,
                        1,
                        0};
      copy_plane(in[i], to);
      copied.push_back(to);
    }
    return copied;
  }
};

NonLocalMeans::NonLocalMeans() : state_(std::make_unique<State>()) {}
NonLocalMeans::~NonLocalMeans() = default;
NonLocalMeans::NonLocalMeans(NonLocalMeans&&) noexcept = default;
NonLocalMeans& NonLocalMeans::operator=(NonLocalMeans&&) noexcept = default;

void NonLocalMeans::filter(std::span<const ConstPlane> in, std::span<const Plane> out,
                           const NonLocalMeansParameters& parameters) {
  check_planes("NonLocalMeans", in, out, kMostPlanes);
  check_parameters(parameters);
  const bool same = overlap(in, out);
  if (filter_h(parameters) == 0) {
    const std::span<const ConstPlane> from = same ? state_->copy_input(in) : in;
    for (std::size_t i = 0; i < in.size(); ++i) {
      copy_plane(from[i], out[i]);
    }
    return;
  }

  const NlmFrame frame = {same ? state_->copy_input(in) : in, out, parameters.patch_size / 2,
                          parameters.search_size / 2,
                          denoise::make_weight_law(parameters, static_cast<int>(in.size()), in[0].bit_depth)};
  const TileLayout layout = plan_tiles(frame);
  const int across = ceil_divide(in[0].width, layout.tile_width);
  const int tiles = across * ceil_divide(in[0].height, layout.tile_height);
  const int threads = std::min(tiles, thread_count(parameters.threads));
  state_->prepare(layout, threads);
  Workers::shared().run(tiles, threads, [&](int i, int slot) {
    const int x = i % across * layout.tile_width;
    const int y = i / across * layout.tile_height;
    const Tile tile = {x, y, std::min(layout.tile_width, in[0].width - x),
                       std::min(layout.tile_height, in[0].height - y)};
    denoise::filter_tile(frame, tile, layout, state_->scratch[static_cast<std::size_t>(slot)]);
  });
}

}  // namespace nonlocal
