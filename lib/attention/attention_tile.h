// Attention of a few blocks of queries to all of their keys: the vectorised part. How it works: README.md in
// this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "attention/attention_plan.h"
#include "core/aligned_buffer.h"
#include "nonlocal/attention.h"

namespace nonlocal::attention {

// Keys side by side in one row of the grid.
struct KeyRun {
  int key;  // the first
  int count;
  int x, y, t;  // of the first; x is -1 where a run was extended to an even key
};

// Where a block of queries has keys: any of its queries, and all of them.
struct BlockBox {
  Box any, all;
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
  std::vector<BlockBox> block_box;

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
