#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/attention_tile.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.
#include <algorithm>

#include "attention/attention_block-inl.h"
#include "attention/attention_tile.h"
#include "core/cpu_features.h"
#include "core/rounding.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace nonlocal::attention::HWY_NAMESPACE {

// Some blocks of one head, which share each batch of keys while it is in the cache.
class Task {
 public:
  Task(const Call& call, int number, Scratch& s)
      : call_(call),
        plan_(call.plan),
        s_(s),
        head_(number / plan_.tasks_a_head()),
        first_(number % plan_.tasks_a_head() * plan_.blocks_a_task),
        count_(std::min(plan_.blocks_a_task, plan_.blocks - first_)) {}

  void run() {
    each([](Block& block) { block.load(); });
    if (plan_.has_tiles) {
      const TileShapes shapes;
      add_all_keys();
    } else if (plan_.is_linear) {
      each([](Block& block) { block.add_key_values(); });
    } else {
      add_all_keys();
    }
    each([](Block& block) { block.store(); });
  }

 private:
  template <typename Work>
  void each(const Work& work) {
    for (int i = 0; i < count_; ++i) {
      Block block(call_, head_, first_ + i, i, s_);
      work(block);
    }
  }

  // The keys of all boxes, batch by batch.
  void add_all_keys() {
    Box box = s_.block_box[0].any;
    each([&](const Block& block) { box = box_around(box, block.box()); });
    s_.runs.clear();
    rows_ = 0;
    for (int t = box.first_t; t <= box.last_t; ++t) {
      for (int y = box.first_y; y <= box.last_y; ++y) {
        add_grid_row(y, t, box.first_x, box.last_x);
      }
    }
    add_batch();
  }

  void add_grid_row(int y, int t, int first_x, int last_x) {
    const int row = (t * plan_.key_grid.height + y) * plan_.key_grid.width;
    int first = row + first_x;
    int end = row + last_x + 1;
    if (plan_.is_bfloat16) {
      first -= first % 2;
      end += end % 2;
    }
    while (first < end) {
      const int count = std::min(end - first, plan_.key_block - rows_);
      s_.runs.push_back({first, count, first - row, y, t});
      rows_ += count;
      first += count;
      if (rows_ == plan_.key_block) {
        add_batch();
      }
    }
  }

  void add_batch() {
    if (rows_ > 0) {
      each([&](Block& block) { block.add(s_.runs); });
    }
    s_.runs.clear();
    rows_ = 0;
  }

  const Call& call_;
  const Plan& plan_;
  Scratch& s_;
  int head_;
  int first_;
  int count_;
  int rows_ = 0;
};

void attend(const Call& call, int task, Scratch& scratch) { Task(call, task, scratch).run(); }

// Without a second one, zeros.
void pack_values(const float* first, const float* second, int dim, uint32_t* to) {
  if (second == nullptr) {
    for (int c = 0; c < dim; ++c) {
      to[c] = bfloat16_pair(first[c], 0);
    }
    return;
  }
  for (int c = 0; c < dim; ++c) {
    to[c] = bfloat16_pair(first[c], second[c]);
  }
}

void score_keys(const Call& call, int head, int first, int last) {
  const Plan& p = call.plan;
  const float* weight = p.relevance_weight.data() + p.dim;
  for (int j = first; j < last; ++j) {
    const float* key = call.input.key.row(j) + static_cast<ptrdiff_t>(head) * p.dim;
    float sum = p.relevance_bias;
    for (int c = 0; c < p.dim; ++c) {
      sum += weight[c] * key[c];
    }
    call.key_score[static_cast<ptrdiff_t>(head) * p.keys + j] = sum;
  }
}

// The same of bfloat16: channel c of both side by side.
void zip_values(const float* first, const float* second, int dim, uint32_t* to) {
  const auto* a = reinterpret_cast<const uint32_t*>(first);
  const auto* b = reinterpret_cast<const uint32_t*>(second);
  for (int c = 0; c < dim / 2; ++c) {
    const uint32_t other = b == nullptr ? 0 : b[c];
    to[2 * c] = (a[c] & 0xFFFFu) | other << 16;
    to[2 * c + 1] = a[c] >> 16 | (other & 0xFFFF0000u);
  }
}

// Channels first_channel to first_channel + count - 1 of key j's value and the next one's.
void pack_value_pair(const Call& call, int head, int j, int first_channel, int count, float* to) {
  const Plan& p = call.plan;
  const int cell = call.has_pairs_in ? 2 : 1;
  const ptrdiff_t column = (static_cast<ptrdiff_t>(head) * p.value_dim + first_channel) / cell;
  const float* first = call.input.value.row(j) + column;
  const float* second = j + 1 < p.keys ? call.input.value.row(j + 1) + column : nullptr;
  const auto pack = call.has_pairs_in ? &zip_values : &pack_values;
  pack(first, second, count, reinterpret_cast<uint32_t*>(to));
}

// Tiles of 16 channels and 16 pairs of keys; a row of them has a tile for each 16 channels. What is beyond
// the last channel and the last key stays zero.
void pack_value_tiles(const Call& call, int head, int first, int last) {
  const Plan& p = call.plan;
  const ptrdiff_t rows = value_rows(p);
  const ptrdiff_t pairs = value_pairs(p);
  for (int j = first; j < last; j += 2 * kTile) {
    for (int c = 0; c < p.value_dim; c += kTile) {
      alignas(64) float pair[kTile * kTile] = {};
      for (int i = 0; i < kTile && j + 2 * i < last; ++i) {
        pack_value_pair(call, head, j + 2 * i, c, std::min(kTile, p.value_dim - c), pair + i * kTile);
      }
      transpose_tile(pair, call.packed_value + (head * pairs + j / 2) * rows + c * kTile);
    }
  }
}

void pack_keys(const Call& call, int head, int first, int last) {
  const Plan& p = call.plan;
  for (int j = first; call.packed_key != nullptr && j < last; ++j) {
    float* to = call.packed_key + (static_cast<ptrdiff_t>(head) * padded_keys(p) + j) * p.score_depth;
    if (call.has_pairs_in) {
      std::copy_n(call.input.key.row(j) + static_cast<ptrdiff_t>(head) * (p.dim / 2), p.dim / 2, to);
    } else {
      pack_pairs(call.input.key.row(j) + static_cast<ptrdiff_t>(head) * p.dim, p.dim, to);
    }
  }
}

// `first` is even.
void prepare_keys(const Call& call, int head, int first, int last) {
  const Plan& p = call.plan;
  if (p.relevance == Relevance::kConcatenation) {
    score_keys(call, head, first, last);
  }
  if (!p.is_bfloat16) {
    return;
  }
  pack_keys(call, head, first, last);
  if (p.has_tiles) {
    pack_value_tiles(call, head, first, last);
    return;
  }
  for (int j = first; j < last; j += 2) {
    float* to = call.packed_value + (head * static_cast<ptrdiff_t>(value_pairs(p)) + j / 2) * p.value_dim;
    pack_value_pair(call, head, j, 0, p.value_dim, to);
  }
}

// Sums of k_c v_c' over the keys of a chunk that are no padding, kBlock channels of the values side by side.
void sum_key_values(const Call& call, int head, int chunk, Scratch& s) {
  const Plan& p = call.plan;
  const int first = static_cast<int>(static_cast<int64_t>(p.keys) * chunk / chunks(p));
  const int last = static_cast<int>(static_cast<int64_t>(p.keys) * (chunk + 1) / chunks(p));
  const ptrdiff_t head_size = static_cast<ptrdiff_t>(padded_value_dim(p)) * p.dim;
  fill_row(s.factor, 1.0f);
  for (int c = 0; c < p.value_dim; c += kBlock) {
    float* to = call.key_value + (static_cast<ptrdiff_t>(head) * chunks(p) + chunk) * head_size +
                static_cast<ptrdiff_t>(c) * p.dim;
    std::fill_n(to, static_cast<size_t>(p.dim) * kBlock, 0.0f);
    for (int j = first; j < last; j += p.key_block) {
      const int count = std::min(p.key_block, last - j);
      for (int r = 0; r < count; ++r) {
        float* lanes = s.score + r * kBlock;
        const int channels = is_padding(call, j + r) ? 0 : std::min(kBlock, p.value_dim - c);
        std::copy_n(call.input.value.row(j + r) + static_cast<ptrdiff_t>(head) * p.value_dim + c, channels,
                    lanes);
        std::fill(lanes + channels, lanes + kBlock, 0.0f);
      }
      multiply<FloatProduct, true>(call.input.key.row(j) + static_cast<ptrdiff_t>(head) * p.dim,
                                   call.input.key.stride, s.score, count, to, s.factor, to, p.dim);
    }
  }
}

void add_chunks(const Call& call, int head) {
  const Plan& p = call.plan;
  const ptrdiff_t size = static_cast<ptrdiff_t>(padded_value_dim(p)) * p.dim;
  float* sum = call.key_value + static_cast<ptrdiff_t>(head) * chunks(p) * size;
  for (int chunk = 1; chunk < chunks(p); ++chunk) {
    const float* part = sum + chunk * size;
    for (ptrdiff_t i = 0; i < size; ++i) {
      sum[i] += part[i];
    }
  }
}

void lay_out_bias(const Plan& p, const ConstMatrix& bias, float* lanes) {
  const ptrdiff_t keys = padded_keys(p);
  for (int i = 0; i < p.heads * p.blocks; ++i, lanes += keys * kBlock) {
    const ptrdiff_t first_row = bias.rows == p.queries ? 0 : static_cast<ptrdiff_t>(i / p.blocks) * p.queries;
    for (ptrdiff_t key = 0; key < p.keys; ++key) {
      for (int lane = 0; lane < kBlock; ++lane) {
        lanes[key * kBlock + lane] = kLog2E * bias.row(first_row + p.query_at(i % p.blocks, lane))[key];
      }
    }
    std::fill_n(lanes + static_cast<ptrdiff_t>(p.keys) * kBlock, (keys - p.keys) * kBlock, 0.0f);
  }
}

bool has_bfloat16() {
#if NONLOCAL_ATTENTION_BFLOAT16
  return __builtin_cpu_supports("avx512bf16") != 0;
#else
  return false;
#endif
}

Kernels instruction_set_kernels() {
  return {kBlock,          has_bfloat16(), has_tiles(), &prepare_keys,
          &sum_key_values, &add_chunks,    &attend,     &lay_out_bias};
}

}  // namespace nonlocal::attention::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nonlocal::attention {

namespace {

// Pieces of working memory one after another.
class Pieces {
 public:
  explicit Pieces(std::byte* memory) : memory_(memory) {}

  template <typename T>
  T* take(std::size_t count) {
    std::byte* piece = memory_ == nullptr ? nullptr : memory_ + bytes_;
    bytes_ += round_up(count * sizeof(T), std::size_t{64});
    return reinterpret_cast<T*>(piece);
  }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  std::byte* memory_;
  std::size_t bytes_ = 0;
};

Scratch scratch_in(const Plan& p, Pieces& pieces) {
  const auto blocks = static_cast<std::size_t>(p.blocks_a_task);
  const auto lanes = static_cast<std::size_t>(p.block);
  const auto keys = static_cast<std::size_t>(p.key_block);
  return {.query = pieces.take<float>(blocks * lanes * static_cast<std::size_t>(query_rows(p))),
          .out = pieces.take<float>(blocks * lanes * static_cast<std::size_t>(value_rows(p))),
          .most = pieces.take<float>(blocks * lanes),
          .sum = pieces.take<float>(blocks * lanes),
          .box = pieces.take<std::int32_t>(blocks * lanes * 6),
          .block_box = pieces.take<BlockBox>(blocks),
          .score = pieces.take<float>(keys * lanes),
          .bias = pieces.take<float>(keys * lanes),
          .factor = pieces.take<float>(lanes),
          .runs = KeyRuns(pieces.take<KeyRun>(keys)),
          .block_runs = KeyRuns(pieces.take<KeyRun>(keys))};
}

}  // namespace

Scratch make_scratch(const Plan& plan, std::byte* memory) {
  Pieces pieces(memory);
  return scratch_in(plan, pieces);
}

std::size_t scratch_bytes(const Plan& plan) {
  Pieces pieces(nullptr);
  scratch_in(plan, pieces);
  return pieces.bytes();
}

HWY_EXPORT(instruction_set_kernels);

Kernels kernels() { return HWY_DYNAMIC_DISPATCH(instruction_set_kernels)(); }

}  // namespace nonlocal::attention
#endif
