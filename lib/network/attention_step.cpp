#include "network/attention_step.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>

#include "core/rounding.h"
#include "network/bfloat16.h"
#include "network/onednn.h"
#include "network/pixels.h"

namespace nonlocal::network {
namespace {

using dnnl::memory;
using Dims = memory::dims;
using Type = memory::data_type;

// Scores of a block of queries with all keys, in bytes: they stay in the cache while the keys are few.
constexpr std::size_t kScoreBytes = std::size_t{1} << 20;
constexpr int kMostRows = 64;
constexpr std::size_t kAlignment = 64;

Type type_of(const TensorView& view) { return view.is_wide ? Type::f32 : Type::bf16; }

// Tokens of which each has its channels side by side.
struct Tokens {
  int count;
  int channels;  // of all heads
  int pitch;
};

dnnl::primitive_attr attributes(float scale) {
  dnnl::primitive_attr made;
  made.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (scale != 1) {
    made.set_output_scales(0, {scale});
  }
  return made;
}

// A product of matrices whose places are told at each run.
class Product {
 public:
  Product(const memory::desc& a, const memory::desc& b, const memory::desc& out, float scale)
      : description_({a, b, out}, attributes(scale), cpu()),
        primitive_(description_),
        stream_(cpu()),
        memory_{memory(a, cpu(), nullptr), memory(b, cpu(), nullptr), memory(out, cpu(), nullptr),
                memory(description_.scratchpad_desc(), cpu(), nullptr)} {
    constexpr int kNames[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD};
    for (int i = 0; i < 4; ++i) {
      arguments_[i] = {kNames[i], memory_[i].get()};
    }
  }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  [[nodiscard]] std::size_t scratch_bytes() const { return description_.scratchpad_desc().get_size(); }

  bool run(const std::byte* a, const std::byte* b, std::byte* out, std::byte* scratch) {
    const std::byte* places[] = {a, b, out, scratch};
    for (int i = 0; i < 4; ++i) {
      dnnl_memory_set_data_handle(memory_[i].get(), const_cast<std::byte*>(places[i]));
    }
    return dnnl_primitive_execute(primitive_.get(), stream_.get(), 4, arguments_) == dnnl_success;
  }

 private:
  dnnl::matmul::primitive_desc description_;
  dnnl::matmul primitive_;
  dnnl::stream stream_;
  memory memory_[4];
  dnnl_exec_arg_t arguments_[4];
};

// exp(s - most) over their sum, along rows of `count`.
class Softmax {
 public:
  Softmax(int rows, int count)
      : description_({dnnl::prop_kind::forward_inference,
                      memory::desc({rows, count}, Type::f32, memory::format_tag::ab), 1},
                     attributes(1), cpu()),
        primitive_(description_),
        stream_(cpu()),
        scores_(description_.src_desc(), cpu(), nullptr),
        scratch_(description_.scratchpad_desc(), cpu(), nullptr) {}

  [[nodiscard]] std::size_t scratch_bytes() const { return description_.scratchpad_desc().get_size(); }

  bool run(float* scores, std::byte* scratch) {
    dnnl_memory_set_data_handle(scores_.get(), scores);
    dnnl_memory_set_data_handle(scratch_.get(), scratch);
    const dnnl_exec_arg_t arguments[] = {
        {DNNL_ARG_SRC, scores_.get()}, {DNNL_ARG_DST, scores_.get()}, {DNNL_ARG_SCRATCHPAD, scratch_.get()}};
    return dnnl_primitive_execute(primitive_.get(), stream_.get(), 3, arguments) == dnnl_success;
  }

 private:
  dnnl::softmax_forward::primitive_desc description_;
  dnnl::softmax_forward primitive_;
  dnnl::stream stream_;
  memory scores_;
  memory scratch_;
};

// A block of `rows` queries, of one head, against all keys.
class Block {
 public:
  Block(const Op& op, int rows, const Tokens& queries, const Tokens& keys, const Tokens& values,
        const Tokens& out, Type type, Type out_type)
      : op_(op), rows_(rows), keys_(keys.count), is_wide_(type == Type::f32) {
    const int d = queries.channels / op.heads;
    const int d_v = values.channels / op.heads;
    const float scale = op.function == AttentionFunction::kDotProduct ? 1.0F / static_cast<float>(keys.count)
                                                                      : op.score_scale;
    if (op.function != AttentionFunction::kSumRelu) {
      scores_ =
          std::make_unique<Product>(memory::desc({rows, d}, type, Dims{queries.pitch, 1}),
                                    memory::desc({d, keys.count}, type, Dims{1, keys.pitch}),
                                    memory::desc({rows, keys.count}, Type::f32, Dims{keys.count, 1}), scale);
    }
    if (op.function == AttentionFunction::kSoftmax) {
      softmax_ = std::make_unique<Softmax>(rows, keys.count);
    }
    sums_ = std::make_unique<Product>(memory::desc({rows, keys.count}, type, Dims{keys.count, 1}),
                                      memory::desc({keys.count, d_v}, type, Dims{values.pitch, 1}),
                                      memory::desc({rows, d_v}, out_type, Dims{out.pitch, 1}), 1);
  }

  [[nodiscard]] int rows() const { return rows_; }
  [[nodiscard]] std::size_t scratch_bytes() const {
    const std::size_t products = std::max(scores_ ? scores_->scratch_bytes() : 0, sums_->scratch_bytes());
    return score_bytes() + weight_bytes() + std::max(products, softmax_ ? softmax_->scratch_bytes() : 0);
  }

  // Where the head's channels of the first query, key, value and output are.
  bool run(int head, const std::byte* query, std::size_t query_bytes, const std::byte* key,
           std::size_t key_bytes, const std::byte* value, std::byte* out, std::byte* scratch) {
    auto* scores = reinterpret_cast<float*>(scratch);
    std::byte* weights = is_wide_ ? scratch : scratch + score_bytes();
    std::byte* rest = scratch + score_bytes() + weight_bytes();
    if (scores_ && !scores_->run(query, key, scratch, rest)) {
      return false;
    }
    if (!scores_) {
      sum_relu(query, query_bytes, key, key_bytes, scores);
    }
    if (!op_.position_bias.empty()) {
      const std::size_t count = static_cast<std::size_t>(rows_) * keys_;
      add(op_.position_bias.data() + head * count, static_cast<int>(count), scores);
    }
    if (softmax_ && !softmax_->run(scores, rest)) {
      return false;
    }
    if (!is_wide_) {
      convert(scores, 0, 1, rows_ * keys_, reinterpret_cast<std::uint16_t*>(weights));
    }
    return sums_->run(weights, value, out, rest);
  }

 private:
  [[nodiscard]] std::size_t score_bytes() const {
    return round_up(static_cast<std::size_t>(rows_) * keys_ * sizeof(float), kAlignment);
  }
  [[nodiscard]] std::size_t weight_bytes() const {
    return is_wide_ ? 0 : round_up(static_cast<std::size_t>(rows_) * keys_ * 2, kAlignment);
  }

  [[nodiscard]] float number(const std::byte* at) const {
    return is_wide_ ? *reinterpret_cast<const float*>(at) : *reinterpret_cast<const Bfloat16*>(at);
  }

  void sum_relu(const std::byte* query, std::size_t query_bytes, const std::byte* key, std::size_t key_bytes,
                float* scores) const {
    const float scale = 1.0F / static_cast<float>(keys_);
    for (int i = 0; i < rows_; ++i) {
      const float q = number(query + static_cast<std::size_t>(i) * query_bytes);
      for (int j = 0; j < keys_; ++j) {
        *scores++ = std::max(q + number(key + static_cast<std::size_t>(j) * key_bytes), 0.0F) * scale;
      }
    }
  }

  const Op& op_;
  int rows_;
  int keys_;
  bool is_wide_;
  std::unique_ptr<Product> scores_;
  std::unique_ptr<Softmax> softmax_;
  std::unique_ptr<Product> sums_;
};

// Bytes from a token's first channel to the first of each of its heads.
struct HeadBytes {
  HeadBytes(const Op& op, const StepPlace& place)
      : query(static_cast<std::size_t>(place.inputs[0].channels / op.heads * place.inputs[0].value_bytes())),
        value(static_cast<std::size_t>(place.inputs[2].channels / op.heads * place.inputs[2].value_bytes())),
        out(static_cast<std::size_t>(place.out.channels / op.heads * place.out.value_bytes())) {}
  std::size_t query, value, out;
};

Tokens tokens(const TensorView& view, int count) { return {count, view.channels, view.pitch}; }

// Zeros for the channels that fill up; the heads write the others.
void fill_up(const TensorView& out, std::byte* at, int count) {
  const std::size_t bytes = static_cast<std::size_t>(out.channels) * out.value_bytes();
  for (int i = 0; i < count && out.pitch > out.channels; ++i) {
    std::memset(at + static_cast<std::size_t>(i) * out.position_bytes() + bytes, 0,
                out.position_bytes() - bytes);
  }
}

Step frame_step(const Op& op, const StepPlace& place) {
  const TensorView& q = place.inputs[0];
  const TensorView& k = place.inputs[1];
  const TensorView& v = place.inputs[2];
  const int keys = k.rect.width() * k.rect.height() * k.frames;
  const int queries = place.part.width() * place.part.height();
  const int fitting = static_cast<int>(kScoreBytes / (4 * static_cast<std::size_t>(keys)));
  const int rows = std::min(std::clamp(fitting, 8, kMostRows), queries);
  std::vector<std::shared_ptr<Block>> blocks;
  std::size_t scratch_bytes = 0;
  for (const int count : {rows, queries % rows}) {
    if (count > 0) {
      blocks.push_back(std::make_shared<Block>(op, count, tokens(q, count), tokens(k, keys), tokens(v, keys),
                                               tokens(place.out, count), type_of(q), type_of(place.out)));
      scratch_bytes = std::max(scratch_bytes, blocks.back()->scratch_bytes());
    }
  }
  const HeadBytes head_bytes(op, place);
  return {scratch_bytes, [=, &op](std::byte* scratch) {
            for (int first = 0; first < queries; first += rows) {
              Block& block = queries - first >= rows ? *blocks.front() : *blocks.back();
              const auto at = static_cast<std::size_t>(first);
              const std::byte* query = q.at(place.part.x0, place.part.y0) + at * q.position_bytes();
              std::byte* out = place.out.at(place.part.x0, place.part.y0) + at * place.out.position_bytes();
              for (std::size_t head = 0; head < static_cast<std::size_t>(op.heads); ++head) {
                if (!block.run(static_cast<int>(head), query + head * head_bytes.query, q.position_bytes(),
                               k.data + head * head_bytes.query, k.position_bytes(),
                               v.data + head * head_bytes.value, out + head * head_bytes.out, scratch)) {
                  return false;
                }
              }
              fill_up(place.out, out, block.rows());
            }
            return true;
          }};
}

// A window's tokens side by side, there and back.
void copy_window(const TensorView& from, int x, int y, int w, std::byte* to) {
  copy_part(from, {x, y, x + w, y + w}, to);
}

Step window_step(const Op& op, const StepPlace& place) {
  const int w = op.window;
  const int count = w * w;
  const auto block = std::make_shared<Block>(
      op, count, tokens(place.inputs[0], count), tokens(place.inputs[1], count),
      tokens(place.inputs[2], count), tokens(place.out, count), type_of(place.inputs[0]), type_of(place.out));
  const auto bytes = [=](const TensorView& view) {
    return round_up(count * view.position_bytes(), kAlignment);
  };
  const std::size_t q_bytes = bytes(place.inputs[0]);
  const std::size_t k_bytes = bytes(place.inputs[1]);
  const std::size_t v_bytes = bytes(place.inputs[2]);
  const std::size_t out_bytes = bytes(place.out);
  const HeadBytes head_bytes(op, place);
  const auto run_window = [=, &op](int x, int y, std::byte* scratch) {
    std::byte* const q = scratch;
    std::byte* const k = q + q_bytes;
    std::byte* const v = k + k_bytes;
    std::byte* const out = v + v_bytes;
    copy_window(place.inputs[0], x, y, w, q);
    copy_window(place.inputs[1], x, y, w, k);
    copy_window(place.inputs[2], x, y, w, v);
    for (std::size_t head = 0; head < static_cast<std::size_t>(op.heads); ++head) {
      if (!block->run(static_cast<int>(head), q + head * head_bytes.query, place.inputs[0].position_bytes(),
                      k + head * head_bytes.query, place.inputs[1].position_bytes(),
                      v + head * head_bytes.value, out + head * head_bytes.out, out + out_bytes)) {
        return false;
      }
    }
    fill_up(place.out, out, count);
    // A part may end within a window.
    const int x0 = std::max(x, place.part.x0);
    const int x1 = std::min(x + w, place.part.x1);
    for (int row = std::max(y, place.part.y0); row < std::min(y + w, place.part.y1); ++row) {
      std::memcpy(place.out.at(x0, row), out + ((row - y) * w + x0 - x) * place.out.position_bytes(),
                  (x1 - x0) * place.out.position_bytes());
    }
    return true;
  };
  return {q_bytes + k_bytes + v_bytes + out_bytes + block->scratch_bytes(), [=](std::byte* scratch) {
            for (int y = place.part.y0 / w * w; y < place.part.y1; y += w) {
              for (int x = place.part.x0 / w * w; x < place.part.x1; x += w) {
                if (!run_window(x, y, scratch)) {
                  return false;
                }
              }
            }
            return true;
          }};
}

// A position's few keys: as the formula reads.
template <typename Value>
void attend_position(const Op& op, const StepPlace& place, int x, int y, float* scores) {
  const TensorView& k = place.inputs[1];
  const TensorView& v = place.inputs[2];
  const auto at = [](const TensorView& view, int column, int row, int frame) {
    return reinterpret_cast<const Value*>(view.at(column, row) +
                                          static_cast<std::size_t>(frame) * view.frame_bytes());
  };
  const auto* query = at(place.inputs[0], x, y, 0);
  auto* out = reinterpret_cast<Value*>(place.out.at(x, y));
  const int d = place.inputs[0].channels;
  float most = -INFINITY;
  for (int f = 0; f < k.frames; ++f) {
    const auto* key = at(k, x, y, f);
    float sum = 0;
    for (int c = 0; c < d; ++c) {
      sum += op.function == AttentionFunction::kSumRelu ? std::max(float(query[c]) + float(key[c]), 0.0F)
                                                        : float(query[c]) * float(key[c]);
    }
    scores[f] = op.function == AttentionFunction::kSoftmax ? op.score_scale * sum : sum;
    most = std::max(most, scores[f]);
  }
  auto total = static_cast<float>(k.frames);
  if (op.function == AttentionFunction::kSoftmax) {
    total = 0;
    for (int f = 0; f < k.frames; ++f) {
      scores[f] = std::exp(scores[f] - most);
      total += scores[f];
    }
  }
  for (int c = 0; c < place.out.pitch; ++c) {
    float sum = 0;
    for (int f = 0; f < v.frames && c < place.out.channels; ++f) {
      sum += scores[f] * float(at(v, x, y, f)[c]);
    }
    out[c] = Value(sum / total);
  }
}

Step position_step(const Op& op, const StepPlace& place) {
  const std::size_t bytes = static_cast<std::size_t>(place.inputs[1].frames) * sizeof(float);
  return {bytes, [&op, place](std::byte* scratch) {
            for (int y = place.part.y0; y < place.part.y1; ++y) {
              for (int x = place.part.x0; x < place.part.x1; ++x) {
                if (place.out.is_wide) {
                  attend_position<float>(op, place, x, y, reinterpret_cast<float*>(scratch));
                } else {
                  attend_position<Bfloat16>(op, place, x, y, reinterpret_cast<float*>(scratch));
                }
              }
            }
            return true;
          }};
}

}  // namespace

Step attention_step(const Op& op, const StepPlace& place) {
  switch (op.reach) {
    case AttentionReach::kFrame:
      return frame_step(op, place);
    case AttentionReach::kWindow:
      return window_step(op, place);
    default:
      return position_step(op, place);
  }
}

double attention_pairs(const Op& op, const TensorView& queries, const TensorView& keys) {
  const double positions = static_cast<double>(queries.rect.width()) * queries.rect.height();
  switch (op.reach) {
    case AttentionReach::kFrame:
      return positions * keys.rect.width() * keys.rect.height() * keys.frames;
    case AttentionReach::kWindow:
      return positions * op.window * op.window;
    default:
      return positions * keys.frames;
  }
}

}  // namespace nonlocal::network
