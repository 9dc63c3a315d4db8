#include "nonlocal/attention.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "attention/attention_tile.h"
#include "attention/matrix_check.h"
#include "core/rounding.h"
#include "core/workers.h"
#include "nonlocal/error.h"

namespace nonlocal {
namespace {

using attention::Call;
using attention::check_matrix;
using attention::Kernels;
using attention::Plan;
using attention::Scratch;

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
  require(!p.scale || (std::isfinite(*p.scale) && !is_concatenation && !is_additive),
          "a finite scale, and none for kConcatenation and kAdditive", p.scale.value_or(0));
  require(std::isfinite(p.relevance_bias), "a finite relevance_bias", p.relevance_bias);
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
    p.precision = is_supported(AttentionPrecision::kBfloat16) ? AttentionPrecision::kBfloat16
                                                              : AttentionPrecision::kFloat32;
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

struct Attention::State {
  explicit State(const AttentionParameters& parameters)
      : kernels(attention::kernels()), plan(checked(parameters), kernels.block) {
    const auto heads = static_cast<std::size_t>(plan.heads);
    const std::size_t pairs = static_cast<std::size_t>(ceil_divide(plan.keys, 2));
    if (plan.is_bfloat16) {
      packed_key.allocate(heads * 2 * pairs * static_cast<std::size_t>(plan.score_depth));
      packed_value.allocate(heads * pairs * static_cast<std::size_t>(plan.value_dim));
    }
    if (plan.relevance == Relevance::kConcatenation) {
      key_score.allocate(heads * static_cast<std::size_t>(plan.keys));
    }
    if (plan.is_linear) {
      key_value.allocate(heads * static_cast<std::size_t>(chunks(plan)) * static_cast<std::size_t>(plan.dim) *
                         static_cast<std::size_t>(padded_value_dim(plan)));
    }
    if (parameters.has_bfloat16_input) {
      query.allocate(heads * static_cast<std::size_t>(plan.queries) * static_cast<std::size_t>(plan.dim));
      key.allocate(heads * static_cast<std::size_t>(plan.keys) * static_cast<std::size_t>(plan.dim));
      value.allocate(heads * static_cast<std::size_t>(plan.keys) * static_cast<std::size_t>(plan.value_dim));
    }
    scratch.resize(static_cast<std::size_t>(plan.threads));
    for (Scratch& s : scratch) {
      s.allocate(plan);
    }
  }

  void check_features(const auto& in) const;
  void check(const AttentionInput& in, const Matrix& out) const;
  void run(const AttentionInput& in, const Matrix& out);
  void prepare_keys(const Call& call);
  ConstMatrix widened(const ConstBfloat16Matrix& in, AlignedBuffer<float>& to);

  Kernels kernels;
  Plan plan;
  std::vector<Scratch> scratch;
  AlignedBuffer<float> packed_key;
  AlignedBuffer<float> packed_value;
  AlignedBuffer<float> key_score;
  AlignedBuffer<float> key_value;
  AlignedBuffer<float> query, key, value;  // inputs of bfloat16 as floats
};

void Attention::State::check_features(const auto& in) const {
  const Plan& p = plan;
  check_matrix("Attention", "query", in.query, p.queries, p.heads * p.dim);
  check_matrix("Attention", "key", in.key, p.keys, p.heads * p.dim);
  check_matrix("Attention", "value", in.value, p.keys, p.heads * p.value_dim);
}

void Attention::State::check(const AttentionInput& in, const Matrix& out) const {
  const Plan& p = plan;
  check_features(in);
  check_matrix("Attention", "out", out, p.queries, p.heads * p.value_dim);
  if (in.bias.data != nullptr) {
    if (!p.is_exponential) {
      throw InvalidArgument("Attention: expected no bias for kDotProduct and kConcatenation, got one");
    }
    const std::int64_t of_heads = static_cast<std::int64_t>(p.heads) * p.queries;
    const bool is_shared = in.bias.rows == p.queries;
    check_matrix("Attention", "bias", in.bias, static_cast<int>(is_shared ? p.queries : of_heads), p.keys);
  }
  if (!in.padding.empty() && in.padding.size() != static_cast<std::size_t>(p.keys)) {
    refuse("padding of " + std::to_string(p.keys) + " keys, or none", std::to_string(in.padding.size()));
  }
  for (const ConstMatrix& m : {in.query, in.key, in.value, in.bias}) {
    if (attention::overlap(m, out)) {
      throw InvalidArgument("Attention: expected out to share no memory with the inputs");
    }
  }
}

void Attention::State::prepare_keys(const Call& call) {
  const int across = ceil_divide(plan.keys, attention::kPackedKeys);
  Workers::shared().run(plan.heads * across, plan.threads, [&](int i, int) {
    const int first = i % across * attention::kPackedKeys;
    kernels.prepare_keys(call, i / across, first, std::min(first + attention::kPackedKeys, plan.keys));
  });
}

void Attention::State::run(const AttentionInput& in, const Matrix& out) {
  const auto padded = std::count_if(in.padding.begin(), in.padding.end(), [](auto p) { return p != 0; });
  const Call call{plan,
                  in,
                  out,
                  plan.keys - static_cast<int>(padded),
                  packed_key.data(),
                  packed_value.data(),
                  key_score.data(),
                  key_value.data()};
  Workers& workers = Workers::shared();
  if (plan.is_linear) {
    const int count = chunks(plan);
    workers.run(plan.heads * count, plan.threads, [&](int i, int slot) {
      kernels.sum_key_values(call, i / count, i % count, scratch[static_cast<std::size_t>(slot)]);
    });
    workers.run(plan.heads, plan.threads, [&](int head, int) { kernels.add_chunks(call, head); });
  } else if (plan.is_bfloat16 || plan.relevance == Relevance::kConcatenation) {
    prepare_keys(call);
  }
  workers.run(plan.tasks(), plan.threads, [&](int task, int slot) {
    kernels.attend(call, task, scratch[static_cast<std::size_t>(slot)]);
  });
}

ConstMatrix Attention::State::widened(const ConstBfloat16Matrix& in, AlignedBuffer<float>& to) {
  constexpr int kRows = 256;
  const Matrix out{to.data(), in.rows, in.columns, in.columns};
  Workers::shared().run(ceil_divide(in.rows, kRows), plan.threads, [&](int i, int) {
    for (int r = i * kRows; r < std::min((i + 1) * kRows, in.rows); ++r) {
      std::transform(in.row(r), in.row(r) + in.columns, out.row(r), [](std::uint16_t upper) {
        return std::bit_cast<float>(static_cast<std::uint32_t>(upper) << 16);
      });
    }
  });
  return out;
}

Attention::Attention(const AttentionParameters& parameters) : state_(std::make_unique<State>(parameters)) {}
Attention::~Attention() = default;
Attention::Attention(Attention&&) noexcept = default;
Attention& Attention::operator=(Attention&&) noexcept = default;

void Attention::run(const AttentionInput& input, const Matrix& out) {
  state_->check(input, out);
  state_->run(input, out);
}

void Attention::run(const Bfloat16AttentionInput& input, const Matrix& out) {
  State& s = *state_;
  if (s.query.data() == nullptr) {
    throw InvalidArgument("Attention: expected has_bfloat16_input in the parameters, for bfloat16 matrices");
  }
  s.check_features(input);
  run({s.widened(input.query, s.query), s.widened(input.key, s.key), s.widened(input.value, s.value),
       input.bias, input.padding},
      out);
}

AttentionPrecision Attention::precision() const {
  return state_->plan.is_bfloat16 ? AttentionPrecision::kBfloat16 : AttentionPrecision::kFloat32;
}

double Attention::operations() const {
  const Plan& p = state_->plan;
  if (p.is_linear) {
    return 2.0 * p.heads * p.dim * p.value_dim * (static_cast<double>(p.keys) + p.queries);
  }
  double pairs = static_cast<double>(p.queries) * p.keys;
  if (p.has_box) {
    pairs = 0;
    for (int query = 0; query < p.queries; ++query) {
      const attention::Box b = p.box_of_query(query);
      pairs += (b.last_x - b.first_x + 1.0) * (b.last_y - b.first_y + 1.0) * (b.last_t - b.first_t + 1.0);
    }
  }
  return 2 * pairs * p.heads * (p.dim + p.value_dim);
}

std::size_t Attention::working_bytes() const {
  std::size_t bytes = sizeof(float) * (state_->packed_key.size() + state_->packed_value.size() +
                                       state_->key_score.size() + state_->key_value.size() +
                                       state_->query.size() + state_->key.size() + state_->value.size());
  for (const Scratch& s : state_->scratch) {
    bytes += s.bytes();
  }
  return bytes;
}

}  // namespace nonlocal
