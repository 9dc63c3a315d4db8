// Non-local means by the attention core: the same averages as the kernel's (nlm_tile.h), with patches as
// queries and keys, and samples as values.
//
// Of single pixels (patch_size 1), with the embedding X(I) = [I², I, 1]:
//
//   -(I_i - I_j)² = -I_i² + 2 I_i I_j - I_j² = (W_Q X(I_i)) · (W_K X(I_j))
//   W_Q X(I) = [-I², 2 I, -1]      W_K X(I) = [1, I, I²]
//
// Of patches p of n samples (patch_size² on each plane), X(p) = [|p|², p, 1] of n + 2 numbers, and
// d² = |p_i - p_j|² / n. With what noise adds to d², 2 sigma² - d² over h² is the product of
//
//   q_i = [2 sigma² n - |p_i|², 2 p_i, -1] / (n h²)      k_j = [1, p_j, |p_j|²]
//
// W_Q and W_K only scale and put in order. So w(i, j) = exp(min(q_i·k_j, 0)), a Gaussian relevance with a
// ceiling, and non-local means is its attention y_i = sum_j w(i, j) v_j / sum_j w(i, j) to the keys of a
// window (A. Buades, B. Coll, J.-M. Morel, CVPR 2005; X. Wang et al., CVPR 2018, section 3).
//
// Products of 32 bits: q·k is a small difference of large numbers, which bfloat16 would lose. Samples are
// centred, and the product runs from -|p_i|² up by 2 p_i·p_j and down again by |p_j|²: its sums are never
// larger than they have to be. The score's error is at most about 0.1 / (n h²).
#pragma once

#include <optional>
#include <span>

#include "core/aligned_buffer.h"
#include "nonlocal/attention.h"
#include "nonlocal/non_local_means.h"

namespace nonlocal::denoise {

// A frame's tiles, each with what its windows and patches reach into, one after another: queries and keys
// take 16 MiB, or what tiles of 32 x 32 take with patches and windows for which that is too little (colour,
// patches of 15 in windows of 63: 46 MiB).
class AttentionMeans {
 public:
  // Planes as NonLocalMeans::filter() has checked them, which share no memory; sigma and strength above 0.
  // Allocates where planes, their size, patch_size, search_size or threads are not those of the frame before.
  void filter(std::span<const ConstPlane> in, std::span<const Plane> out,
              const NonLocalMeansParameters& parameters);

 private:
  struct Geometry {
    Geometry() = default;
    Geometry(const ConstPlane& first, int planes, const NonLocalMeansParameters& parameters);
    bool operator==(const Geometry&) const = default;

    // Positions of a tile and of all within reach of its windows, and samples within reach of their patches.
    [[nodiscard]] int grid_width() const { return tile_width + 2 * search_radius; }
    [[nodiscard]] int grid_height() const { return tile_height + 2 * search_radius; }
    [[nodiscard]] int sample_width() const { return grid_width() + 2 * patch_radius; }
    [[nodiscard]] int sample_height() const { return grid_height() + 2 * patch_radius; }
    [[nodiscard]] int patch_row() const { return (2 * patch_radius + 1) * planes; }  // samples
    [[nodiscard]] int terms() const { return (2 * patch_radius + 1) * patch_row(); }
    [[nodiscard]] int dim() const { return terms() + 2; }

    int planes = 0, patch_radius = 0, search_radius = 0, threads = 0;
    int tile_width = 0, tile_height = 0;
    int across = 0, down = 0;  // tiles
  };

  void prepare(const Geometry& geometry);
  void load(std::span<const ConstPlane> in, int left, int top);
  void embed(double sigma, double h);
  void store(std::span<const Plane> out, int left, int top) const;

  Geometry geometry_;
  std::optional<Attention> attention_;
  AlignedBuffer<float> samples_;  // centred 8-bit code values, [y][x][plane]
  AlignedBuffer<float> query_;
  AlignedBuffer<float> key_;
  AlignedBuffer<float> average_;  // [position][plane]
};

}  // namespace nonlocal::denoise
