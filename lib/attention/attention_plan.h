// What is known of attention before its first call: shapes, and how the work is cut.
#pragma once

#include <algorithm>
#include <vector>

#include "core/cpu_features.h"
#include "nonlocal/attention.h"

namespace nonlocal::attention {

// Places on the grid, both ends included.
struct Box {
  int first_x, last_x;
  int first_y, last_y;
  int first_t, last_t;
};

Box box_around(const Box& a, const Box& b);
Box common_box(const Box& a, const Box& b);

// What is the same for all calls. Blocks of queries are patches of the grid, so that windows around them
// overlap; without a grid they are pieces of the sequence.
struct Plan {
  // `with_tiles`: products of bfloat16 are to be made in tiles where they can be.
  Plan(const AttentionParameters& parameters, int block, bool with_tiles);

  int queries, keys, dim, value_dim, heads;
  Relevance relevance;
  bool is_exponential;  // C = sum of f, f = exp(score)
  bool is_bfloat16;     // keys, values, queries and weights are rounded to it, in pairs
  bool has_tiles;       // the products are made in tiles
  bool is_linear;       // Q (KᵀV)
  float scale;          // of the score; with log2(e) where it is an exponent
  bool has_ceiling;
  float ceiling;  // of the exponent of 2
  std::vector<float> relevance_weight;
  float relevance_bias;

  AttentionGrid query_grid, key_grid;
  bool has_box;  // else all keys serve all queries
  int reach_left, reach_right, reach_rows, reach_frames;

  int threads;
  int block;  // queries: lanes that one pass over the keys serves
  int patch_width, patch_height;
  int across, down;  // blocks of a frame
  int blocks;        // in all
  int blocks_a_task;
  int key_block;    // keys whose scores are held at once
  int score_depth;  // cells of a key: floats, or pairs of bfloat16 in place of one; whole tiles of them

  [[nodiscard]] int tasks_a_head() const;
  [[nodiscard]] int tasks() const { return heads * tasks_a_head(); }
  [[nodiscard]] int query_at(int number, int lane) const {
    const bool is_sequence = patch_height == 1 && across == blocks;
    return is_sequence ? std::min(number * block + lane, queries - 1) : query_in_grid(number, lane);
  }
  [[nodiscard]] Box box_of_query(int query) const;  // its keys

 private:
  [[nodiscard]] int query_in_grid(int number, int lane) const;
};

// Sums of products of keys and values are made in chunks, at most.
inline constexpr int kMostChunks = 8;

// Rows of lanes of a block's queries: as floats, and as cells.
int query_rows(const Plan& plan);
// Rows of packed keys and of a laid out bias: the last tile of keys is whole.
int padded_keys(const Plan& plan);
// Rows of a block's averages, of packed values' channels: whole tiles where there are tiles.
int value_rows(const Plan& plan);
// Pairs of keys of packed values.
int value_pairs(const Plan& plan);

int chunks(const Plan& plan);
int padded_value_dim(const Plan& plan);

}  // namespace nonlocal::attention
