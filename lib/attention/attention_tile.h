// Attention of a few blocks of queries to all of their keys: the vectorised part. How it works: README.md in
// this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/aligned_buffer.h"
#include "nonlocal/attention.h"

namespace nonlocal::attention {

// Places on the grid, both ends included.
struct Box {
  int first_x, last_x;
  int first_y, last_y;
  int first_t, last_t;
};

// Keys side by side in one row of the grid.
struct KeyRun {
  int key;  // the first
  int count;
  int x, y, t;  // of the first; x is -1 where a run was extended to an even key
};

// What is the same for all calls. Blocks of queries are patches of the grid, so that windows around them
// overlap; without a grid they are pieces of the sequence.
struct Plan {
  Plan(const AttentionParameters& parameters, int block);

  int queries, keys, dim, value_dim, heads;
  Relevance relevance;
  bool is_exponential;  // C = sum of f, f = exp(score)
  bool is_bfloat16;     // keys, values, queries and weights are rounded to it, in pairs
  bool is_linear;       // Q (KᵀV)
  float scale;          // of the score; with log2(e) where it is an exponent
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
  int score_depth;  // cells of a key: floats, or pairs of bfloat16 in place of one

  [[nodiscard]] int tasks_a_head() const;
  [[nodiscard]] int tasks() const { return heads * tasks_a_head(); }
  [[nodiscard]] int query_at(int block, int lane) const;
  [[nodiscard]] Box box_of_query(int query) const;
};

// One thread's.
struct Scratch {
  void allocate(const Plan& plan);

  // Of each block of the task, a row of `block` lanes for every cell or channel.
  AlignedBuffer<float> query;
  AlignedBuffer<float> out;
  AlignedBuffer<float> most;        // the largest score so far
  AlignedBuffer<float> sum;         // of the weights so far; without exponentials their number
  AlignedBuffer<std::int32_t> box;  // of each lane: six rows, as in Box
  std::vector<Box> block_box;

  // A row of lanes for every key of a batch: scores, then weights.
  AlignedBuffer<float> score;
  AlignedBuffer<float> bias;
  AlignedBuffer<float> factor;  // for the sums so far
  std::vector<KeyRun> runs;
  std::vector<KeyRun> block_runs;

  [[nodiscard]] std::size_t bytes() const;
};

// One call's matrices.
struct Call {
  const Plan& plan;
  const AttentionInput& input;
  const Matrix& out;
  int keys_left;        // by padding
  float* packed_key;    // bfloat16: [heads][keys, rounded up to even][score_depth] cells
  float* packed_value;  // bfloat16: [heads][pairs of keys][value_dim] cells
  float* key_score;     // kConcatenation: [heads][keys], what the key adds to the score
  float* key_value;  // kDotProduct, linear: [heads][chunks][dim][padded value_dim], sums of k v over a chunk
};

// Keys that one packing task prepares.
inline constexpr int kPackedKeys = 512;
// Sums of products of keys and values are made in chunks, at most.
inline constexpr int kMostChunks = 8;

int chunks(const Plan& plan);
int padded_value_dim(const Plan& plan);

// What the instruction set in use has: its functions belong together, as the width of a block is its own.
struct Kernels {
  int block;  // lanes
  bool has_bfloat16;
  // The steps of a call, each step's tasks before those of the next. Where the plan needs them:
  void (*prepare_keys)(const Call& call, int head, int first, int last);
  void (*sum_key_values)(const Call& call, int head, int chunk, Scratch& scratch);
  void (*add_chunks)(const Call& call, int head);
  // And all of the queries.
  void (*attend)(const Call& call, int task, Scratch& scratch);
};

Kernels kernels();

}  // namespace nonlocal::attention
