#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/attention_tile.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.
#include <algorithm>

#include "attention/attention_block-inl.h"
#include "attention/attention_tile.h"
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
    if (plan_.is_linear) {
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

// `first` is even.
void prepare_keys(const Call& call, int head, int first, int last) {
  const Plan& p = call.plan;
  if (p.relevance == Relevance::kConcatenation) {
    score_keys(call, head, first, last);
  }
  if (!p.is_bfloat16) {
    return;
  }
  const ptrdiff_t pairs = ceil_divide(p.keys, 2);
  const auto key = [&](int j) { return call.input.key.row(j) + static_cast<ptrdiff_t>(head) * p.dim; };
  const auto value = [&](int j) {
    return j < p.keys ? call.input.value.row(j) + static_cast<ptrdiff_t>(head) * p.value_dim : nullptr;
  };
  for (int j = first; j < last; ++j) {
    pack_pairs(key(j), p.dim, call.packed_key + (head * 2 * pairs + j) * p.score_depth);
  }
  for (int j = first; j < last; j += 2) {
    pack_values(value(j), value(j + 1), p.value_dim,
                reinterpret_cast<uint32_t*>(call.packed_value + (head * pairs + j / 2) * p.value_dim));
  }
}

// Sums of k_c v_c' over the keys of a chunk that are no padding, kBlock channels of the values side by side.
void sum_key_values(const Call& call, int head, int chunk, Scratch& s) {
  const Plan& p = call.plan;
  const int first = static_cast<int>(static_cast<int64_t>(p.keys) * chunk / chunks(p));
  const int last = static_cast<int>(static_cast<int64_t>(p.keys) * (chunk + 1) / chunks(p));
  const ptrdiff_t head_size = static_cast<ptrdiff_t>(padded_value_dim(p)) * p.dim;
  fill_row(s.factor.data(), 1.0f);
  for (int c = 0; c < p.value_dim; c += kBlock) {
    float* to = call.key_value + (static_cast<ptrdiff_t>(head) * chunks(p) + chunk) * head_size +
                static_cast<ptrdiff_t>(c) * p.dim;
    std::fill_n(to, static_cast<size_t>(p.dim) * kBlock, 0.0f);
    for (int j = first; j < last; j += p.key_block) {
      const int count = std::min(p.key_block, last - j);
      for (int r = 0; r < count; ++r) {
        float* lanes = s.score.data() + r * kBlock;
        const int channels = is_padding(call, j + r) ? 0 : std::min(kBlock, p.value_dim - c);
        std::copy_n(call.input.value.row(j + r) + static_cast<ptrdiff_t>(head) * p.value_dim + c, channels,
                    lanes);
        std::fill(lanes + channels, lanes + kBlock, 0.0f);
      }
      multiply<FloatProduct, true>(call.input.key.row(j) + static_cast<ptrdiff_t>(head) * p.dim,
                                   call.input.key.stride, s.score.data(), count, s.factor.data(), to, p.dim);
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

bool has_bfloat16() {
#if NONLOCAL_ATTENTION_BFLOAT16
  return __builtin_cpu_supports("avx512bf16") != 0;
#else
  return false;
#endif
}

Kernels instruction_set_kernels() {
  return {kBlock, has_bfloat16(), &prepare_keys, &sum_key_values, &add_chunks, &attend};
}

}  // namespace nonlocal::attention::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nonlocal::attention {

void Scratch::allocate(const Plan& p) {
  const auto rows = [&](int count) {
    return static_cast<std::size_t>(p.blocks_a_task) * p.block * static_cast<std::size_t>(count);
  };
  query.allocate(rows(round_up(p.dim, 2)));
  out.allocate(rows(p.value_dim));
  most.allocate(rows(1));
  sum.allocate(rows(1));
  box.allocate(rows(6));
  block_box.resize(static_cast<std::size_t>(p.blocks_a_task));
  score.allocate(static_cast<std::size_t>(p.key_block) * p.block);
  bias.allocate(static_cast<std::size_t>(p.key_block) * p.block);
  factor.allocate(static_cast<std::size_t>(p.block));
  runs.reserve(static_cast<std::size_t>(p.key_block));
  block_runs.reserve(static_cast<std::size_t>(p.key_block));
}

std::size_t Scratch::bytes() const {
  const std::size_t floats =
      query.size() + out.size() + most.size() + sum.size() + score.size() + bias.size() + factor.size();
  return sizeof(float) * floats + sizeof(std::int32_t) * box.size();
}

HWY_EXPORT(instruction_set_kernels);

Kernels kernels() { return HWY_DYNAMIC_DISPATCH(instruction_set_kernels)(); }

}  // namespace nonlocal::attention
#endif
