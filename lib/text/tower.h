// Transformer blocks with normalisation before each part, as both of CLIP's towers have them (A. Radford et
// al.: Learning transferable visual models from natural language supervision, ICML 2021; R. Xiong et al.: On
// layer normalization in the transformer architecture, ICML 2020):
//
//   x = x + attention(norm1(x)),  x = x + fc2(activation(fc1(norm2(x))))
//
// or after each part, as CLIPSeg's decoder has them (A. Vaswani et al.: Attention is all you need, NIPS
// 2017):
//
//   x = norm1(x + attention(x)),  x = norm2(x + fc2(activation(fc1(x))))
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "attention/attention_work.h"
#include "core/aligned_buffer.h"
#include "text/checkpoint.h"
#include "text/dense.h"
#include "text/stages.h"

namespace nonlocal::text {

struct TowerShape {
  int width;   // channels of a token
  int hidden;  // channels between fc1 and fc2
  int layers;
  int heads;
  Activation activation;
  float epsilon;
  bool is_causal;
};

// What a file calls a tower's parts.
struct TowerNames {
  std::string blocks;                                             // what comes before a block's number
  bool is_fused;                                                  // query, key and value are one tensor
  std::string norm1, norm2, query, key, value, output, fc1, fc2;  // within a block
};

TowerNames hugging_face_names(const std::string& blocks);
TowerNames openai_names(const std::string& blocks);

// A matrix of its own. Rows that lie a power of two apart share few places of the caches: some floats more.
class OwnRows {
 public:
  OwnRows(int rows, int columns) : rows_(rows), columns_(columns), stride_(columns + 16) {
    values_.allocate(static_cast<std::size_t>(rows) * static_cast<std::size_t>(stride_));
  }
  [[nodiscard]] Matrix view() { return {values_.data(), rows_, columns_, stride_}; }

 private:
  int rows_, columns_, stride_;
  AlignedBuffer<float> values_;
};

// Columns of a matrix.
inline Matrix columns(const Matrix& m, int first, int count) {
  return {m.data + first, m.rows, count, m.stride};
}

// A tensor [outputs, inputs] with its bias, or [inputs, outputs] where it is transposed.
Dense read_dense(const Checkpoint& file, const std::string& weight, const std::string& bias, int outputs,
                 int inputs, bool is_transposed, bool is_bfloat16);
Norm read_norm(const Checkpoint& file, const std::string& name, int width, float epsilon);

// Working memory for so many tokens.
struct TowerMemory {
  // `widest`: inputs of the widest layer there is beside the tower's own.
  TowerMemory(const TowerShape& shape, int rows, int widest, bool is_bfloat16, int threads);

  OwnRows x;        // tokens, in and out
  OwnRows normal;   // normalised tokens
  OwnRows parts;    // query, key and value side by side
  OwnRows average;  // what attention gives
  OwnRows hidden;
  OwnRows cells;  // a layer's input as pairs of bfloat16
  attention::Work attention;
  std::vector<AlignedBuffer<std::byte>> attention_scratch;  // of each thread
  std::vector<AlignedBuffer<float>> dense_scratch;
};

// Adds stages to those of one shape; what it is given must live as long as they do.
class StageBuilder {
 public:
  StageBuilder(Stages& stages, TowerMemory& memory) : stages_(stages), memory_(memory) {}

  void add(int tasks, Stages::Task task) { stages_.add(tasks, std::move(task)); }
  void add_norm(const Norm& norm, const ConstMatrix& in, const Matrix& out);
  void add_dense(const Dense& dense, const ConstMatrix& in, const Matrix& out, bool is_added = false);
  // Of the tower's heads; `out` shares no memory with the others.
  void add_attention(const ConstMatrix& query, const ConstMatrix& key, const ConstMatrix& value,
                     const Matrix& out);
  // Of the parts in memory, averaged into memory.average.
  void add_attention();

 private:
  Stages& stages_;
  TowerMemory& memory_;
};

class Tower {
 public:
  // Throws ModelError.
  Tower(const Checkpoint& file, const TowerNames& names, const TowerShape& shape, bool is_bfloat16);

  [[nodiscard]] const TowerShape& shape() const { return shape_; }
  [[nodiscard]] bool is_bfloat16() const { return is_bfloat16_; }

  // From memory.x to memory.x.
  void add_stages(StageBuilder& stages, TowerMemory& memory) const;

  // One block in two steps: query, key and value of memory.x into memory.parts; then the rest.
  void add_parts(StageBuilder& stages, TowerMemory& memory, int block) const;
  void add_rest(StageBuilder& stages, TowerMemory& memory, int block) const;

  // One block with normalisation after each part.
  void add_post_norm_block(StageBuilder& stages, TowerMemory& memory, int block) const;

  // A block's own output layer of attention.
  [[nodiscard]] const Dense& output(int block) const {
    return blocks_[static_cast<std::size_t>(block)].output;
  }

 private:
  struct Block {
    Norm norm1;
    Dense parts;
    Dense output;
    Norm norm2;
    Dense fc1;
    Dense fc2;
  };
  Block read_block(const Checkpoint& file, const TowerNames& names, const std::string& prefix) const;

  TowerShape shape_;
  bool is_bfloat16_;
  std::vector<Block> blocks_;
};

}  // namespace nonlocal::text
