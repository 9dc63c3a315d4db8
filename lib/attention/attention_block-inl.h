// A block of queries, one in each lane, and its averages as batches of keys come. Included once for every
// instruction set.
#if defined(NONLOCAL_ATTENTION_BLOCK_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef NONLOCAL_ATTENTION_BLOCK_INL_H
#undef NONLOCAL_ATTENTION_BLOCK_INL_H
#else
#define NONLOCAL_ATTENTION_BLOCK_INL_H
#endif

#include <algorithm>
#include <limits>

#include "attention/attention_amx-inl.h"
#include "attention/attention_kernels-inl.h"
#include "attention/attention_tile.h"
#include "core/rounding.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace nonlocal::attention::HWY_NAMESPACE {

constexpr float kLog2E = 1.4426950408889634f;
constexpr float kHidden = -std::numeric_limits<float>::infinity();
// Below every score, and still something to subtract from.
constexpr float kNone = -3e38f;

void fill_row(float* row, float value) {
  for (int v = 0; v < kVectors; ++v) {
    hn::Store(hn::Set(kFloats, value), kFloats, row + v * kLanes);
  }
}

// Also of the key that makes an odd number even.
bool is_padding(const Call& call, int key) {
  const auto& padding = call.input.padding;
  return key >= call.plan.keys || (!padding.empty() && padding[static_cast<size_t>(key)] != 0);
}

// One block of queries and what has come together for them.
class Block {
 public:
  Block(const Call& call, int head, int number, int place, Scratch& s)
      : call_(call),
        plan_(call.plan),
        s_(s),
        head_(head),
        number_(number),
        query_(s.query + static_cast<ptrdiff_t>(place) * query_rows(plan_) * kBlock),
        out_(s.out + static_cast<ptrdiff_t>(place) * value_rows(plan_) * kBlock),
        most_(s.most + static_cast<ptrdiff_t>(place) * kBlock),
        sum_(s.sum + static_cast<ptrdiff_t>(place) * kBlock),
        lane_box_(s.box + static_cast<ptrdiff_t>(place) * 6 * kBlock),
        box_(s.block_box[place]) {}

  // Where any of its queries has keys.
  [[nodiscard]] const Box& box() const { return box_.any; }

  void load() {
    const float* rows[kBlock];
    const int cells = call_.has_pairs_in ? plan_.dim / 2 : plan_.dim;
    for (int lane = 0; lane < kBlock; ++lane) {
      rows[lane] = call_.input.query.row(plan_.query_at(number_, lane)) + head_ * cells;
    }
    rows_to_lanes(rows, cells, query_);
    prepare_queries();
    std::fill_n(out_, static_cast<size_t>(value_rows(plan_)) * kBlock, 0.0f);
    fill_row(most_, kNone);
    fill_row(sum_, 0);
    load_box();
  }

  // Adds the keys of the runs, those in them that the mask leaves.
  void add(const KeyRuns& runs) {
    clip(runs);
    if (s_.block_runs.empty()) {
      return;
    }
    int row = 0;
    for (const KeyRun& run : s_.block_runs) {
      float* scores = s_.score + static_cast<ptrdiff_t>(row) * kBlock;
      find_scores(run, scores);
      if (call_.input.bias.data != nullptr && call_.lane_bias == nullptr) {
        add_bias(run, scores);
      }
      hide(run, scores);
      row += run.count;
    }
    if (!plan_.is_exponential) {
      weigh_as_is(row);
    } else {
      plan_.has_ceiling ? weigh<true>(row) : weigh<false>(row);
    }
    row = 0;
    for (const KeyRun& run : s_.block_runs) {
      average(run, row);
      row += run.count;
    }
  }

  // The whole average by the sums of keys times values.
  void add_key_values() {
    for (int c = 0; c < plan_.value_dim; c += kBlock) {
      const ptrdiff_t head_size = static_cast<ptrdiff_t>(padded_value_dim(plan_)) * plan_.dim;
      const float* m =
          call_.key_value + head_ * chunks(plan_) * head_size + static_cast<ptrdiff_t>(c) * plan_.dim;
      attention::HWY_NAMESPACE::multiply<FloatProduct, true>(m, kBlock, query_, plan_.dim, nullptr, nullptr,
                                                             out_ + static_cast<ptrdiff_t>(c) * kBlock,
                                                             std::min(kBlock, plan_.value_dim - c));
    }
    fill_row(sum_, static_cast<float>(call_.keys_left));
  }

  void store() {
    float* rows[kBlock];
    const int cells = call_.has_pairs_out ? plan_.value_dim / 2 : plan_.value_dim;
    for (int lane = 0; lane < kBlock; ++lane) {
      rows[lane] = call_.out.row(plan_.query_at(number_, lane)) + head_ * cells;
    }
    for (int v = 0; v < kVectors; ++v) {
      const Vec sum = hn::Load(kFloats, sum_ + v * kLanes);
      const Vec zero = hn::Zero(kFloats);
      const Vec inverse = hn::IfThenZeroElse(hn::Eq(sum, zero), hn::Div(hn::Set(kFloats, 1.0f), sum));
      for (int c = 0; c < plan_.value_dim; ++c) {
        float* at = out_ + c * kBlock + v * kLanes;
        hn::Store(hn::Mul(hn::Load(kFloats, at), inverse), kFloats, at);
      }
    }
    if (call_.has_pairs_out) {
      lanes_to_pairs(out_, plan_.value_dim);
    }
    lanes_to_rows(out_, cells, rows);
  }

 private:
  // Cells as the products take them; for kConcatenation, in their place, what the query adds to the score.
  void prepare_queries() {
    switch (plan_.relevance) {
      case Relevance::kConcatenation:
        return score_queries();
      case Relevance::kAdditive:
        return;
      default:
        scale_queries();
    }
  }

  void score_queries() {
    for (int v = 0; v < kVectors; ++v) {
      float* q = query_ + v * kLanes;
      Vec sum = hn::Zero(kFloats);
      for (int c = 0; c < plan_.dim; ++c) {
        sum = hn::MulAdd(hn::Set(kFloats, plan_.relevance_weight[static_cast<size_t>(c)]),
                         hn::Load(kFloats, q + c * kBlock), sum);
      }
      hn::Store(sum, kFloats, q);
    }
  }

  void scale_queries() {
    if (call_.has_pairs_in) {
      scale_pairs(query_, plan_.dim / 2, plan_.scale);
      fill_last_tile();
      return;
    }
    for (int i = 0; i < plan_.dim * kBlock; i += kLanes) {
      const Vec scaled = hn::Mul(hn::Load(kFloats, query_ + i), hn::Set(kFloats, plan_.scale));
      hn::Store(scaled, kFloats, query_ + i);
    }
    if (plan_.is_bfloat16) {
      lanes_to_pairs(query_, plan_.dim);
      fill_last_tile();
    }
  }

  // Keys have zeros there, too.
  void fill_last_tile() {
    for (int row = ceil_divide(plan_.dim, 2); row < plan_.score_depth; ++row) {
      fill_row(query_ + row * kBlock, 0);
    }
  }

  void load_box() {
    const Box every = {0, plan_.key_grid.width - 1, 0, plan_.key_grid.height - 1,
                       0, plan_.key_grid.frames - 1};
    box_ = {every, every};
    if (!plan_.has_box) {
      return;
    }
    for (int lane = 0; lane < kBlock; ++lane) {
      const Box b = plan_.box_of_query(plan_.query_at(number_, lane));
      const int ends[6] = {b.first_x, b.last_x, b.first_y, b.last_y, b.first_t, b.last_t};
      for (int i = 0; i < 6; ++i) {
        lane_box_[i * kBlock + lane] = ends[i];
      }
      box_ = lane == 0 ? BlockBox{b, b} : BlockBox{box_around(box_.any, b), common_box(box_.all, b)};
    }
  }

  // Do all of its queries have all of these keys?
  [[nodiscard]] bool is_common(const KeyRun& run) const {
    const Box& b = box_.all;
    return run.x >= b.first_x && run.x + run.count - 1 <= b.last_x && run.y >= b.first_y &&
           run.y <= b.last_y && run.t >= b.first_t && run.t <= b.last_t;
  }

  // Of the runs what lies in this block's box; pairs of keys stay whole.
  void clip(const KeyRuns& runs) {
    const Box& b = box_.any;
    s_.block_runs.clear();
    for (const KeyRun& run : runs) {
      if (run.y < b.first_y || run.y > b.last_y || run.t < b.first_t || run.t > b.last_t) {
        continue;
      }
      const int row = run.key - run.x;
      int first = std::max(run.x, b.first_x) + row;
      int end = std::min(run.x + run.count - 1, b.last_x) + 1 + row;
      if (first >= end) {
        continue;
      }
      if (plan_.is_bfloat16) {
        first -= first % 2;
        end += end % 2;
      }
      s_.block_runs.push_back({first, end - first, first - row, run.y, run.t});
    }
  }

  [[nodiscard]] const float* key_row(int key) const {
    return call_.input.key.row(std::min(key, plan_.keys - 1)) + static_cast<ptrdiff_t>(head_) * plan_.dim;
  }

  void find_scores(const KeyRun& run, float* scores) {
    switch (plan_.relevance) {
      case Relevance::kConcatenation:
        return find_concatenation_scores(run, scores);
      case Relevance::kAdditive:
        return find_additive_scores(run, scores);
      default:
        return find_product_scores(run, scores);
    }
  }

  void find_product_scores(const KeyRun& run, float* scores) {
    const ptrdiff_t keys = padded_keys(plan_);
    const bool is_packed = call_.packed_key != nullptr;
    const float* a = is_packed ? call_.packed_key + (head_ * keys + run.key) * plan_.score_depth
                               : call_.input.key.row(run.key) + head_ * plan_.score_depth;
    const ptrdiff_t stride = is_packed ? plan_.score_depth : call_.input.key.stride;
    const float* bias = call_.lane_bias == nullptr
                            ? nullptr
                            : call_.lane_bias + ((head_ * plan_.blocks + number_) * keys + run.key) * kBlock;
    if (plan_.has_tiles) {
      multiply_scores(a, stride, query_, plan_.score_depth, bias, scores, round_up(run.count, kTile));
    } else {
      multiply<false>(plan_.is_bfloat16, a, stride, query_, plan_.score_depth, bias, nullptr, scores,
                      run.count);
    }
  }

  void find_concatenation_scores(const KeyRun& run, float* scores) {
    const float* key_score = call_.key_score + static_cast<ptrdiff_t>(head_) * plan_.keys;
    for (int r = 0; r < run.count; ++r) {
      const Vec key = hn::Set(kFloats, key_score[std::min(run.key + r, plan_.keys - 1)]);
      for (int v = 0; v < kVectors; ++v) {
        const Vec sum = hn::Add(key, hn::Load(kFloats, query_ + v * kLanes));
        hn::Store(hn::Max(sum, hn::Zero(kFloats)), kFloats, scores + r * kBlock + v * kLanes);
      }
    }
  }

  void find_additive_scores(const KeyRun& run, float* scores) {
    for (int r = 0; r < run.count; ++r) {
      const float* key = key_row(run.key + r);
      for (int v = 0; v < kVectors; ++v) {
        Vec sum = hn::Zero(kFloats);
        for (int c = 0; c < plan_.dim; ++c) {
          const Vec x =
              hn::Add(hn::Set(kFloats, key[c]), hn::Load(kFloats, query_ + c * kBlock + v * kLanes));
          sum = hn::MulAdd(hn::Set(kFloats, plan_.relevance_weight[static_cast<size_t>(c)]), tanh_of(x), sum);
        }
        hn::Store(hn::Mul(sum, hn::Set(kFloats, plan_.scale)), kFloats, scores + r * kBlock + v * kLanes);
      }
    }
  }

  // A run's first key may be one before its row, or the last one beyond the last key: hidden, but not read.
  void add_bias(const KeyRun& run, float* scores) {
    const ConstMatrix& bias = call_.input.bias;
    const ptrdiff_t first_row =
        bias.rows == plan_.queries ? 0 : static_cast<ptrdiff_t>(head_) * plan_.queries;
    const int count = std::min(run.count, plan_.keys - run.key);
    const float* rows[kBlock];
    for (int lane = 0; lane < kBlock; ++lane) {
      rows[lane] = bias.row(first_row + plan_.query_at(number_, lane)) + run.key;
    }
    rows_to_lanes(rows, count, s_.bias);
    for (int i = 0; i < count * kBlock; i += kLanes) {
      const Vec sum =
          hn::MulAdd(hn::Load(kFloats, s_.bias + i), hn::Set(kFloats, kLog2E), hn::Load(kFloats, scores + i));
      hn::Store(sum, kFloats, scores + i);
    }
  }

  // Scores that do not count become such that weigh nothing; where keys are counted, the others are.
  void hide(const KeyRun& run, float* scores) {
    const bool has_padding = !call_.input.padding.empty();
    const bool is_whole = is_common(run);
    if (is_whole && !has_padding && plan_.is_exponential) {
      return;
    }
    const float hidden = plan_.is_exponential ? kHidden : 0.0f;
    for (int r = 0; r < run.count; ++r) {
      float* row = scores + r * kBlock;
      if (is_padding(call_, run.key + r)) {
        fill_row(row, hidden);
        continue;
      }
      if (!is_whole && plan_.has_box) {
        hide_outside(run, run.x + r, hidden, row);
      } else if (!plan_.is_exponential) {
        count_key([](int) { return hn::Set(kFloats, 1.0f); });
      }
    }
  }

  void hide_outside(const KeyRun& run, int x, float hidden, float* row) {
    const auto inside = [&](int at) {
      return hn::RebindMask(
          kFloats, hn::And(is_inside(0, x, at), hn::And(is_inside(2, run.y, at), is_inside(4, run.t, at))));
    };
    for (int at = 0; at < kBlock; at += kLanes) {
      const Vec score = hn::Load(kFloats, row + at);
      hn::Store(hn::IfThenElse(inside(at), score, hn::Set(kFloats, hidden)), kFloats, row + at);
    }
    if (!plan_.is_exponential) {
      count_key([&](int at) { return hn::IfThenElseZero(inside(at), hn::Set(kFloats, 1.0f)); });
    }
  }

  template <typename Weight>
  HWY_INLINE void count_key(const Weight& weight) {
    for (int at = 0; at < kBlock; at += kLanes) {
      hn::Store(hn::Add(weight(at), hn::Load(kFloats, sum_ + at)), kFloats, sum_ + at);
    }
  }

  [[nodiscard]] hn::Mask<hn::ScalableTag<int32_t>> is_inside(int end, int place, int at) const {
    const hn::ScalableTag<int32_t> d;
    const auto p = hn::Set(d, place);
    const auto first = hn::Load(d, lane_box_ + end * kBlock + at);
    const auto last = hn::Load(d, lane_box_ + (end + 1) * kBlock + at);
    return hn::Not(hn::Or(hn::Lt(p, first), hn::Gt(p, last)));
  }

  template <bool kCapped>
  [[nodiscard]] HWY_INLINE Vec score_at(const float* score) const {
    const Vec s = hn::Load(kFloats, score);
    if constexpr (kCapped) {
      return hn::Min(s, hn::Set(kFloats, plan_.ceiling));
    } else {
      return s;
    }
  }

  // Scores become 2^(score - largest so far); what was summed for a smaller one is to be multiplied by
  // `factor`. None is above the ceiling, where there is one (kCapped).
  template <bool kCapped>
  void weigh(int rows) {
    float* score = s_.score;
    for (int v = 0; v < kVectors; ++v) {
      const int at = v * kLanes;
      const Vec before = hn::Load(kFloats, most_ + at);
      Vec most = before;
      for (int r = 0; r < rows; ++r) {
        most = hn::Max(most, score_at<kCapped>(score + r * kBlock + at));
      }
      hn::Store(most, kFloats, most_ + at);
      const Vec factor = exp2_of_negative(hn::Sub(before, most));
      hn::Store(factor, kFloats, s_.factor + at);
      hn::Store(hn::Mul(hn::Load(kFloats, sum_ + at), factor), kFloats, sum_ + at);
    }
    plan_.is_bfloat16 ? weigh_in_pairs<kCapped>(rows) : weigh_in_floats<kCapped>(rows);
  }

  template <bool kCapped>
  void weigh_in_floats(int rows) {
    float* score = s_.score;
    for (int v = 0; v < kVectors; ++v) {
      const int at = v * kLanes;
      const Vec most = hn::Load(kFloats, most_ + at);
      Vec sum = hn::Load(kFloats, sum_ + at);
      for (int r = 0; r < rows; ++r) {
        const Vec weight = exp2_of_negative(hn::Sub(score_at<kCapped>(score + r * kBlock + at), most));
        sum = hn::Add(sum, weight);
        hn::Store(weight, kFloats, score + r * kBlock + at);
      }
      hn::Store(sum, kFloats, sum_ + at);
    }
  }

  // Row r / 2 gets the weights of rows r and r + 1.
  template <bool kCapped>
  void weigh_in_pairs(int rows) {
    float* score = s_.score;
    Vec most[kVectors];
    Vec sum[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      most[v] = hn::Load(kFloats, most_ + v * kLanes);
      sum[v] = hn::Load(kFloats, sum_ + v * kLanes);
    }
    for (int r = 0; r < rows; r += 2) {
      for (int v = 0; v < kVectors; ++v) {
        const float* from = score + r * kBlock + v * kLanes;
        const Vec first = exp2_of_negative<true>(hn::Sub(score_at<kCapped>(from), most[v]));
        const Vec second = exp2_of_negative<true>(hn::Sub(score_at<kCapped>(from + kBlock), most[v]));
        sum[v] = hn::Add(sum[v], hn::Add(first, second));
        hn::Store(bfloat16_pair(first, second), kFloats, score + r / 2 * kBlock + v * kLanes);
      }
    }
    for (int v = 0; v < kVectors; ++v) {
      hn::Store(sum[v], kFloats, sum_ + v * kLanes);
    }
  }

  void weigh_as_is(int rows) {
    fill_row(s_.factor, 1.0f);
    float* score = s_.score;
    for (int r = 0; plan_.is_bfloat16 && r < rows; r += 2) {
      for (int v = 0; v < kVectors; ++v) {
        const float* from = score + r * kBlock + v * kLanes;
        hn::Store(bfloat16_pair(hn::Load(kFloats, from), hn::Load(kFloats, from + kBlock)), kFloats,
                  score + r / 2 * kBlock + v * kLanes);
      }
    }
  }

  // Adds values times weights; the sums so far get their factor with the batch's first.
  void average(const KeyRun& run, int row) {
    if (plan_.has_tiles) {
      average_in_tiles(run);
      return;
    }
    const int pair = plan_.is_bfloat16 ? 2 : 1;
    const ptrdiff_t pairs = value_pairs(plan_);
    const float* values =
        plan_.is_bfloat16 ? call_.packed_value + (head_ * pairs + run.key / 2) * plan_.value_dim
                          : call_.input.value.row(run.key) + static_cast<ptrdiff_t>(head_) * plan_.value_dim;
    const ptrdiff_t stride = plan_.is_bfloat16 ? plan_.value_dim : call_.input.value.stride;
    multiply<true>(plan_.is_bfloat16, values, stride, s_.score + static_cast<ptrdiff_t>(row / pair) * kBlock,
                   run.count / pair, out_, s_.factor, out_, plan_.value_dim);
    fill_row(s_.factor, 1.0f);
  }

  // Without a mask a batch is one run, and begins with a tile.
  void average_in_tiles(const KeyRun& run) {
    const int pairs = run.count / 2;
    const int tiles = ceil_divide(pairs, kTile);
    for (int row = pairs; row < tiles * kTile; ++row) {
      fill_row(s_.score + row * kBlock, 0);
    }
    const int rows = value_rows(plan_);
    const ptrdiff_t pair = static_cast<ptrdiff_t>(head_) * value_pairs(plan_) + run.key / 2;
    multiply_averages(call_.packed_value + pair * rows, s_.score, tiles, s_.factor, out_, rows);
  }

  const Call& call_;
  const Plan& plan_;
  Scratch& s_;
  ptrdiff_t head_;
  int number_;
  float* query_;
  float* out_;
  float* most_;
  float* sum_;
  int32_t* lane_box_;
  BlockBox& box_;
};

}  // namespace nonlocal::attention::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
