// Attention of a few blocks of queries to all of their keys: the vectorised part. How it works: README.md in
// this folder.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attention/attention_plan.h"
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

class KeyRuns {
 public:
  explicit KeyRuns(KeyRun* memory) : first_(memory) {}
  void clear() { count_ = 0; }
  void push_back(const KeyRun& run) { first_[count_++] = run; }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] const KeyRun* begin() const { return first_; }
  [[nodiscard]] const KeyRun* end() const { return first_ + count_; }

 private:
  KeyRun* first_;
  int count_ = 0;
};

// A task's working memory.
struct Scratch {
  // Of each block of the task, a row of `block` lanes for every cell or channel.
  float* query;
  float* out;
  float* most;        // the largest score so far
  float* sum;         // of the weights so far; without exponentials their number
  std::int32_t* box;  // of each lane: six rows, as in Box
  BlockBox* block_box;

  // A row of lanes for every key of a batch: scores, then weights.
  float* score;
  float* bias;
  float* factor;  // for the sums so far
  KeyRuns runs;
  KeyRuns block_runs;
};

// In `memory`, of scratch_bytes(), at a multiple of 64.
Scratch make_scratch(const Plan& plan, std::byte* memory);
std::size_t scratch_bytes(const Plan& plan);

// One call's matrices.
struct Call {
  const Plan& plan;
  AttentionInput input;
  Matrix out;
  // Where features are bfloat16, their matrices are such of cells: pairs of them in place of floats.
  bool has_pairs_in;
  bool has_pairs_out;
  const float* lane_bias;  // in place of input.bias, or none: see lay_out_bias
  int keys_left;           // by padding
  float* packed_key;       // bfloat16: [heads][padded_keys()][score_depth] cells, or none
  // bfloat16: [heads][pairs of keys][value_dim] cells; for tiles [heads][tiles][value_rows()][16 pairs of
  // keys].
  float* packed_value;
  float* key_score;  // kConcatenation: [heads][keys], what the key adds to the score
  float* key_value;  // kDotProduct, linear: [heads][chunks][dim][padded value_dim], sums of k v over a chunk
};

// Keys that one packing task prepares.
inline constexpr int kPackedKeys = 512;
// What the instruction set in use has: its functions belong together, as the width of a block is its own.
struct Kernels {
  int block;  // lanes
  bool has_bfloat16;
  bool has_tiles;
  // The steps of a call, each step's tasks before those of the next. Where the plan needs them:
  void (*prepare_keys)(const Call& call, int head, int first, int last);
  void (*sum_key_values)(const Call& call, int head, int chunk, Scratch& scratch);
  void (*add_chunks)(const Call& call, int head);
  // And all of the queries.
  void (*attend)(const Call& call, int task, Scratch& scratch);
  // Of a bias as AttentionInput has it, [heads][blocks][padded_keys()] rows of lanes, as scores
  // are summed: for calls that all have the same bias.
  void (*lay_out_bias)(const Plan& plan, const ConstMatrix& bias, float* lanes);
};

Kernels kernels();

}  // namespace nonlocal::attention
