#include "denoise/attention_means.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "core/mirror.h"
#include "core/rounding.h"
#include "core/workers.h"
#include "denoise/weight_law.h"

namespace nonlocal::denoise {
namespace {

constexpr float kCentre = 128;
constexpr double kEmbeddingBytes = 16 << 20;  // of queries and keys
constexpr int kLowestTile = 32;

// The side of a square tile whose embeddings, halo included, just fit.
int most_of_a_tile(int dim, int search_radius) {
  const double positions = kEmbeddingBytes / (2 * sizeof(float) * dim);
  return std::max(static_cast<int>(std::sqrt(positions)) - 2 * search_radius, kLowestTile);
}

// Tiles of equal size, as few as there can be of at most this size.
int tiles(int size, int most) { return ceil_divide(size, most); }

int sample_of(const ConstPlane& p, int x, int y) {
  const std::byte* at = p.row(y) + static_cast<std::ptrdiff_t>(x) * p.step * p.bytes_per_sample();
  const int stored =
      p.bytes_per_sample() == 2 ? *reinterpret_cast<const std::uint16_t*>(at) : static_cast<int>(*at);
  return stored >> p.shift;
}

void set_sample(const Plane& p, int x, int y, int value) {
  std::byte* at = p.row(y) + static_cast<std::ptrdiff_t>(x) * p.step * p.bytes_per_sample();
  if (p.bytes_per_sample() == 2) {
    *reinterpret_cast<std::uint16_t*>(at) = static_cast<std::uint16_t>(value << p.shift);
  } else {
    *at = static_cast<std::byte>(value);
  }
}

}  // namespace

AttentionMeans::Geometry::Geometry(const ConstPlane& first, int plane_count, const NonLocalMeansParameters& p)
    : planes(plane_count),
      patch_radius(p.patch_size / 2),
      search_radius(p.search_size / 2),
      threads(thread_count(p.threads)) {
  const int most = most_of_a_tile(dim(), search_radius);
  across = tiles(first.width, most);
  down = tiles(first.height, most);
  tile_width = ceil_divide(first.width, across);
  tile_height = ceil_divide(first.height, down);
}

void AttentionMeans::prepare(const Geometry& g) {
  if (g == geometry_) {
    return;
  }
  geometry_ = {};  // until all is there
  AttentionParameters p;
  p.queries = p.keys = g.grid_width() * g.grid_height();
  p.dim = g.dim();
  p.value_dim = g.planes;
  p.relevance = Relevance::kGaussian;
  p.ceiling = 0;
  p.mask = AttentionMask::kWindow;
  p.grid = {g.grid_width(), g.grid_height(), 1};
  p.radius = g.search_radius;
  p.precision = AttentionPrecision::kFloat32;
  p.threads = g.threads;
  attention_.emplace(p);
  const auto positions = static_cast<std::size_t>(p.queries);
  samples_.allocate(static_cast<std::size_t>(g.sample_width()) * g.sample_height() * g.planes);
  query_.allocate(positions * g.dim());
  key_.allocate(positions * g.dim());
  average_.allocate(positions * g.planes);
  geometry_ = g;
}

// The samples that a tile reaches, of which `left` and `top` are the first; the picture is mirrored.
void AttentionMeans::load(std::span<const ConstPlane> in, int left, int top) {
  const Geometry& g = geometry_;
  const float scale = std::ldexp(1.0f, 8 - in[0].bit_depth);
  Workers::shared().run(g.sample_height(), g.threads, [&](int row, int) {
    float* to = samples_.data() + static_cast<std::ptrdiff_t>(row) * g.sample_width() * g.planes;
    const int y = mirror(top + row, in[0].height);
    for (int i = 0; i < g.sample_width(); ++i) {
      const int x = mirror(left + i, in[0].width);
      for (const ConstPlane& plane : in) {
        *to++ = static_cast<float>(sample_of(plane, x, y)) * scale - kCentre;
      }
    }
  });
}

void AttentionMeans::embed(double sigma, double h) {
  const Geometry& g = geometry_;
  const int terms = g.terms();
  const double share = 1 / (terms * std::max(h * h, kLeastSquareOfH));
  const double of_noise = 2 * sigma * sigma * terms;
  Workers::shared().run(g.grid_height(), g.threads, [&](int y, int) {
    const std::ptrdiff_t sample_row = static_cast<std::ptrdiff_t>(g.sample_width()) * g.planes;
    for (int x = 0; x < g.grid_width(); ++x) {
      const std::ptrdiff_t position = static_cast<std::ptrdiff_t>(y) * g.grid_width() + x;
      float* query = query_.data() + position * g.dim();
      float* key = key_.data() + position * g.dim();
      const float* from = samples_.data() + y * sample_row + static_cast<std::ptrdiff_t>(x) * g.planes;
      for (int row = 0; row <= 2 * g.patch_radius; ++row) {
        std::copy_n(from + row * sample_row, g.patch_row(), key + 1 + row * g.patch_row());
      }
      double norm = 0;
      for (int i = 1; i <= terms; ++i) {
        norm += static_cast<double>(key[i]) * key[i];
        query[i] = static_cast<float>(2 * share * key[i]);
      }
      key[0] = 1;
      key[terms + 1] = static_cast<float>(norm);
      query[0] = static_cast<float>(share * (of_noise - norm));
      query[terms + 1] = static_cast<float>(-share);
    }
  });
}

// What of the tile lies within the frame.
void AttentionMeans::store(std::span<const Plane> out, int left, int top) const {
  const Geometry& g = geometry_;
  const int depth = out[0].bit_depth;
  const float scale = std::ldexp(1.0f, depth - 8);
  const int most = (1 << depth) - 1;
  const int width = std::min(g.tile_width, out[0].width - left);
  Workers::shared().run(std::min(g.tile_height, out[0].height - top), g.threads, [&](int y, int) {
    const std::ptrdiff_t first =
        static_cast<std::ptrdiff_t>(y + g.search_radius) * g.grid_width() + g.search_radius;
    const float* from = average_.data() + first * g.planes;
    for (int x = 0; x < width; ++x) {
      for (const Plane& plane : out) {
        const auto sample = static_cast<int>(std::lround((*from++ + kCentre) * scale));
        set_sample(plane, left + x, top + y, std::clamp(sample, 0, most));
      }
    }
  });
}

void AttentionMeans::filter(std::span<const ConstPlane> in, std::span<const Plane> out,
                            const NonLocalMeansParameters& parameters) {
  const int planes = static_cast<int>(in.size());
  prepare({in[0], planes, parameters});
  const Geometry& g = geometry_;
  const int positions = g.grid_width() * g.grid_height();
  const ConstMatrix key = {key_.data(), positions, g.dim(), g.dim()};
  // The samples in the middle of the patches.
  const std::ptrdiff_t middle = 1 + g.patch_radius * g.patch_row() + g.patch_radius * planes;
  const AttentionInput input = {
      {query_.data(), positions, g.dim(), g.dim()}, key, {key_.data() + middle, positions, planes, g.dim()}};
  const int reach = g.search_radius + g.patch_radius;
  for (int tile = 0; tile < g.across * g.down; ++tile) {
    const int left = tile % g.across * g.tile_width;
    const int top = tile / g.across * g.tile_height;
    load(in, left - reach, top - reach);
    embed(parameters.sigma, filter_h(parameters, planes));
    attention_->run(input, {average_.data(), positions, planes, planes});
    store(out, left, top);
  }
}

}  // namespace nonlocal::denoise
