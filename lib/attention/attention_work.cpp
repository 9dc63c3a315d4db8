#include "attention/attention_work.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "core/cpu_features.h"
#include "core/rounding.h"
#include "nonlocal/error.h"

namespace nonlocal {
namespace {

[[noreturn]] void refuse(const std::string& expected, const std::string& got) {
  throw InvalidArgument("Attention: expected " + expected + ", got " + got);
}

template <typename Number>
void require(bool good, const std::string& expected, Number got) {
  if (!good) {
    refuse(expected, std::to_string(got));
  }
}

void check_sizes(const AttentionParameters& p) {
  constexpr int kMost = 1 << 28;  // of positions, over all heads
  constexpr int kWidest = 1 << 16;
  const auto check = [](const char* name, int size, int least, int most) {
    require(size >= least && size <= most,
            std::string(name) + " from " + std::to_string(least) + " to " + std::to_string(most), size);
  };
  check("queries", p.queries, 1, kMost);
  check("keys", p.keys, 1, kMost);
  check("dim", p.dim, 1, kWidest);
  check("value_dim", p.value_dim, 0, kWidest);
  check("heads", p.heads, 1, kWidest);
  require(static_cast<std::int64_t>(p.heads) * std::max(p.dim, p.value_dim) <= kWidest,
          "heads * dim and heads * value_dim up to " + std::to_string(kWidest), p.heads);
  require(static_cast<std::int64_t>(p.heads) * p.queries <= kMost,
          "heads * queries up to " + std::to_string(kMost), p.queries);
  require(p.threads >= 0, "0 (all) or more threads", p.threads);
}

void check_relevance(const AttentionParameters& p) {
  const bool is_concatenation = p.relevance == Relevance::kConcatenation;
  const bool is_additive = p.relevance == Relevance::kAdditive;
  require(!p.scale || (std::abs(*p.scale) <= 1e30 && !is_concatenation && !is_additive),
          "a scale from -1e30 to 1e30, and none for kConcatenation and kAdditive", p.scale.value_or(0));
  require(std::abs(p.relevance_bias) <= 1e30, "a relevance_bias from -1e30 to 1e30", p.relevance_bias);
  const bool is_exponential = p.relevance != Relevance::kDotProduct && !is_concatenation;
  require(!p.ceiling || (std::abs(*p.ceiling) <= 1e30 && is_exponential),
          "a ceiling from -1e30 to 1e30, and none for kDotProduct and kConcatenation", p.ceiling.value_or(0));
  const std::size_t wanted = static_cast<std::size_t>(p.dim) * (is_concatenation ? 2 : is_additive ? 1 : 0);
  require(p.relevance_weight.size() == wanted,
          "relevance_weight of " + std::to_string(wanted) + " weights, for dim " + std::to_string(p.dim),
          p.relevance_weight.size());
}

void check_window(const AttentionParameters& p) {
  if (p.mask != AttentionMask::kWindow) {
    return;
  }
  const AttentionGrid& g = p.grid;
  const bool fits = g.width > 0 && g.height > 0 && g.frames > 0 &&
                    static_cast<double>(g.width) * g.height * g.frames == p.queries && p.queries == p.keys;
  if (!fits) {
    refuse("a grid of as many positions as there are queries and keys, " + std::to_string(p.queries) +
               " and " + std::to_string(p.keys),
           std::to_string(g.width) + "x" + std::to_string(g.height) + "x" + std::to_string(g.frames));
  }
  const auto is_radius = [](int r) { return r >= 0 && r <= 1 << 28; };
  require(is_radius(p.radius), "a radius of 0 or more", p.radius);
  require(is_radius(p.frame_radius), "a frame_radius of 0 or more", p.frame_radius);
}

AttentionParameters checked(AttentionParameters p) {
  check_sizes(p);
  check_relevance(p);
  check_window(p);
  if (!is_supported(p.precision)) {
    throw InvalidArgument("Attention: expected a CPU and an instruction set with AVX512_BF16 for kBfloat16");
  }
  if (p.precision == AttentionPrecision::kAutomatic) {
    const bool is_better = is_supported(AttentionPrecision::kBfloat16) && is_bfloat16_faster();
    p.precision = is_better ? AttentionPrecision::kBfloat16 : AttentionPrecision::kFloat32;
  }
  const bool is_linear = p.relevance == Relevance::kDotProduct && p.mask == AttentionMask::kNone;
  if (is_linear) {
    p.precision = AttentionPrecision::kFloat32;
  }
  return p;
}

}  // namespace

bool is_supported(AttentionPrecision precision) {
  return precision != AttentionPrecision::kBfloat16 || attention::kernels().has_bfloat16;
}

namespace attention {

LaneBias::LaneBias(const AttentionParameters& parameters, const ConstMatrix& bias) {
  const Kernels kernels = attention::kernels();
  const Plan plan(checked(parameters), kernels.block, kernels.has_tiles);
  block_ = plan.block;
  lanes_.allocate(static_cast<std::size_t>(plan.heads) * static_cast<std::size_t>(plan.blocks) *
                  static_cast<std::size_t>(padded_keys(plan)) * static_cast<std::size_t>(plan.block));
  kernels.lay_out_bias(plan, bias, lanes_.data());
}

Work::Work(const AttentionParameters& parameters)
    : kernels_(attention::kernels()), plan_(checked(parameters), kernels_.block, kernels_.has_tiles) {
  const auto heads = static_cast<std::size_t>(plan_.heads);
  if (plan_.is_bfloat16) {
    packed_key_.allocate(heads * static_cast<std::size_t>(padded_keys(plan_)) *
                         static_cast<std::size_t>(plan_.score_depth));
    packed_value_.allocate(heads * static_cast<std::size_t>(value_pairs(plan_)) *
                           static_cast<std::size_t>(plan_.has_tiles ? value_rows(plan_) : plan_.value_dim));
  }
  if (plan_.relevance == Relevance::kConcatenation) {
    key_score_.allocate(heads * static_cast<std::size_t>(plan_.keys));
  }
  if (plan_.is_linear) {
    key_value_.allocate(heads * static_cast<std::size_t>(chunks(plan_)) *
                        static_cast<std::size_t>(plan_.dim) *
                        static_cast<std::size_t>(padded_value_dim(plan_)));
  }
}

bool Work::takes_pairs() const {
  const bool is_product =
      plan_.relevance != Relevance::kConcatenation && plan_.relevance != Relevance::kAdditive;
  return plan_.is_bfloat16 && is_product && plan_.dim % 2 == 0 && plan_.value_dim % 2 == 0;
}

Call Work::call(const AttentionInput& input, bool has_pairs_in, const Matrix& out, bool has_pairs_out,
                const LaneBias* bias) {
  if (bias != nullptr && bias->block() != plan_.block) {
    throw InvalidArgument("Attention: expected a bias laid out for blocks of " + std::to_string(plan_.block) +
                          " queries, got one for " + std::to_string(bias->block()));
  }
  const auto padded =
      std::count_if(input.padding.begin(), input.padding.end(), [](auto p) { return p != 0; });
  // Keys come in pairs of neighbours, or in tiles: they are read where they lie if those are whole.
  const int together = plan_.has_tiles ? kTile : 2;
  const bool are_whole = plan_.keys % together == 0 && plan_.score_depth == ceil_divide(plan_.dim, 2);
  const bool reads_keys_there = !plan_.is_bfloat16 || (has_pairs_in && are_whole);
  return {.plan = plan_,
          .input = input,
          .out = out,
          .has_pairs_in = has_pairs_in,
          .has_pairs_out = has_pairs_out,
          .lane_bias = bias == nullptr ? nullptr : bias->data(),
          .keys_left = plan_.keys - static_cast<int>(padded),
          .packed_key = reads_keys_there ? nullptr : packed_key_.data(),
          .packed_value = packed_value_.data(),
          .key_score = key_score_.data(),
          .key_value = key_value_.data()};
}

bool Work::prepares_keys() const {
  return !plan_.is_linear && (plan_.is_bfloat16 || plan_.relevance == Relevance::kConcatenation);
}

int Work::tasks(int stage) const {
  switch (stage) {
    case 0:
      return plan_.is_linear   ? plan_.heads * chunks(plan_)
             : prepares_keys() ? plan_.heads * ceil_divide(plan_.keys, kPackedKeys)
                               : 0;
    case 1:
      return plan_.is_linear ? plan_.heads : 0;
    default:
      return plan_.tasks();
  }
}

void Work::run(int stage, int task, const Call& call, Scratch& scratch) const {
  if (stage == 2) {
    kernels_.attend(call, task, scratch);
  } else if (stage == 1) {
    kernels_.add_chunks(call, task);
  } else if (plan_.is_linear) {
    kernels_.sum_key_values(call, task / chunks(plan_), task % chunks(plan_), scratch);
  } else {
    const int across = ceil_divide(plan_.keys, kPackedKeys);
    const int first = task % across * kPackedKeys;
    kernels_.prepare_keys(call, task / across, first, std::min(first + kPackedKeys, plan_.keys));
  }
}

void Work::run(const Call& call, Scratch& scratch) const {
  for (int stage = 0; stage < kStages; ++stage) {
    for (int task = 0; task < tasks(stage); ++task) {
      run(stage, task, call, scratch);
    }
  }
}

std::size_t Work::bytes() const {
  return sizeof(float) * (packed_key_.size() + packed_value_.size() + key_score_.size() + key_value_.size());
}

}  // namespace attention
}  // namespace nonlocal
