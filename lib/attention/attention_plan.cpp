#include "attention/attention_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/rounding.h"
#include "core/workers.h"

namespace nonlocal::attention {
namespace {

constexpr double kLog2E = 1.4426950408889634;
constexpr int kFar = std::numeric_limits<int>::max() / 2;

bool is_product(Relevance r) {
  return r == Relevance::kScaledDotProduct || r == Relevance::kGaussian || r == Relevance::kDotProduct;
}

bool is_exponential_relevance(Relevance r) {
  return r != Relevance::kDotProduct && r != Relevance::kConcatenation;
}

double scale_of(const AttentionParameters& p) {
  if (!is_product(p.relevance)) {
    return 1;
  }
  return p.scale.value_or(p.relevance == Relevance::kScaledDotProduct ? 1 / std::sqrt(p.dim) : 1);
}

// The narrowest patch that is not higher than wide.
int patch_width_of(int block) {
  int width = 1;
  while (block % width != 0 || width * width < block) {
    ++width;
  }
  return width;
}

// Keys of a batch: their values and their weights stay in the first two caches.
int key_block_of(int dim, int value_dim) {
  constexpr int kCells = 32768;
  constexpr int kWhole = 2 * kTile;  // values are packed in pairs
  return std::clamp(kCells / (dim + value_dim) / kWhole * kWhole, 64, 256);
}

// Blocks that share a batch of keys: many, as keys come from memory once for all of them, but no more than
// the second-level cache holds, and enough tasks for many threads first.
int blocks_a_task_of(int blocks, int heads, int block, int dim, int value_dim) {
  constexpr int kMost = 16;
  constexpr int kTasks = 24;
  constexpr int kCells = 98304;
  const int fitting = std::max(1, kCells / (block * (dim + value_dim)));
  return static_cast<int>(std::clamp<std::int64_t>(static_cast<std::int64_t>(blocks) * heads / kTasks, 1,
                                                   std::min(kMost, fitting)));
}

int score_depth_of(int dim, bool is_bfloat16, bool has_tiles) {
  const int cells = is_bfloat16 ? ceil_divide(dim, 2) : dim;
  return has_tiles ? round_up(cells, kTile) : cells;
}

}  // namespace

Box box_around(const Box& a, const Box& b) {
  return {std::min(a.first_x, b.first_x), std::max(a.last_x, b.last_x),   std::min(a.first_y, b.first_y),
          std::max(a.last_y, b.last_y),   std::min(a.first_t, b.first_t), std::max(a.last_t, b.last_t)};
}

Box common_box(const Box& a, const Box& b) {
  return {std::max(a.first_x, b.first_x), std::min(a.last_x, b.last_x),   std::max(a.first_y, b.first_y),
          std::min(a.last_y, b.last_y),   std::max(a.first_t, b.first_t), std::min(a.last_t, b.last_t)};
}

Plan::Plan(const AttentionParameters& p, int lanes, bool with_tiles)
    : queries(p.queries),
      keys(p.keys),
      dim(p.dim),
      value_dim(p.value_dim == 0 ? p.dim : p.value_dim),
      heads(p.heads),
      relevance(p.relevance),
      is_exponential(is_exponential_relevance(p.relevance)),
      is_bfloat16(p.precision == AttentionPrecision::kBfloat16),
      has_tiles(with_tiles && is_bfloat16 && p.mask == AttentionMask::kNone),
      is_linear(p.relevance == Relevance::kDotProduct && p.mask == AttentionMask::kNone),
      scale(static_cast<float>(is_exponential ? scale_of(p) * kLog2E : scale_of(p))),
      has_ceiling(p.ceiling.has_value()),
      ceiling(static_cast<float>(p.ceiling.value_or(0) * kLog2E)),
      relevance_weight(p.relevance_weight.begin(), p.relevance_weight.end()),
      relevance_bias(static_cast<float>(p.relevance_bias)),
      query_grid{p.queries, 1, 1},
      key_grid{p.keys, 1, 1},
      has_box(p.mask != AttentionMask::kNone),
      reach_left(kFar),
      reach_right(0),
      reach_rows(0),
      reach_frames(0),
      threads(thread_count(p.threads)),
      block(lanes),
      patch_width(lanes),
      patch_height(1) {
  if (p.mask == AttentionMask::kWindow) {
    query_grid = key_grid = p.grid;
    reach_left = reach_right = reach_rows = p.radius;
    reach_frames = p.frame_radius;
    if (p.grid.height > 1) {
      patch_width = patch_width_of(block);
      patch_height = block / patch_width;
    }
  }
  across = ceil_divide(query_grid.width, patch_width);
  down = ceil_divide(query_grid.height, patch_height);
  blocks = across * down * query_grid.frames;
  key_block = key_block_of(dim, value_dim);
  const bool is_patch = patch_height > 1 || query_grid.frames > 1;
  blocks_a_task = is_patch ? 1 : blocks_a_task_of(blocks, heads, block, dim, value_dim);
  score_depth = score_depth_of(dim, is_bfloat16, has_tiles);
}

int Plan::tasks_a_head() const { return ceil_divide(blocks, blocks_a_task); }

// Lanes beyond the grid are its last column's or row's.
int Plan::query_in_grid(int number, int lane) const {
  const int column = number % across * patch_width + lane % patch_width;
  const int row = number / across % down * patch_height + lane / patch_width;
  const int x = std::min(column, query_grid.width - 1);
  const int y = std::min(row, query_grid.height - 1);
  return (number / across / down * query_grid.height + y) * query_grid.width + x;
}

Box Plan::box_of_query(int query) const {
  const int x = query % query_grid.width;
  const int y = query / query_grid.width % query_grid.height;
  const int t = query / query_grid.width / query_grid.height;
  return {std::max(x - reach_left, 0),   std::min(x + reach_right, key_grid.width - 1),
          std::max(y - reach_rows, 0),   std::min(y + reach_rows, key_grid.height - 1),
          std::max(t - reach_frames, 0), std::min(t + reach_frames, key_grid.frames - 1)};
}

int query_rows(const Plan& plan) { return std::max(round_up(plan.dim, 2), plan.score_depth); }
int padded_keys(const Plan& plan) { return round_up(plan.keys, kTile); }
int value_rows(const Plan& plan) { return round_up(plan.value_dim, plan.has_tiles ? kTile : 2); }
int value_pairs(const Plan& plan) {
  const int pairs = ceil_divide(plan.keys, 2);
  return plan.has_tiles ? round_up(pairs, kTile) : pairs;
}

int chunks(const Plan& plan) { return std::clamp(plan.keys / 1024, 1, kMostChunks); }
int padded_value_dim(const Plan& plan) { return round_up(plan.value_dim, plan.block); }

}  // namespace nonlocal::attention
