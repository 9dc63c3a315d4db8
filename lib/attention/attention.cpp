#include "nonlocal/attention.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "attention/attention_work.h"
#include "attention/matrix_check.h"
#include "core/rounding.h"
#include "core/workers.h"
#include "nonlocal/error.h"

namespace nonlocal {

using attention::as_cells;
using attention::Call;
using attention::check_matrix;
using attention::Plan;
using attention::Work;

struct Attention::State {
  explicit State(const AttentionParameters& parameters) : work(parameters), plan(work.plan()) {
    const auto heads = static_cast<std::size_t>(plan.heads);
    if (parameters.has_bfloat16_input) {
      query.allocate(heads * static_cast<std::size_t>(plan.queries) * static_cast<std::size_t>(plan.dim));
      key.allocate(heads * static_cast<std::size_t>(plan.keys) * static_cast<std::size_t>(plan.dim));
      value.allocate(heads * static_cast<std::size_t>(plan.keys) * static_cast<std::size_t>(plan.value_dim));
    }
    scratch.resize(static_cast<std::size_t>(plan.threads));
    for (auto& s : scratch) {
      s.allocate(scratch_bytes(plan));
    }
  }

  void check_features(const auto& in) const;
  // And what else is the same for features of both types.
  void check_out(const AttentionInput& in, const Matrix& out) const;
  void run(const AttentionInput& in, bool has_pairs, const Matrix& out);
  ConstMatrix widened(const ConstBfloat16Matrix& in, AlignedBuffer<float>& to);

  Work work;
  const Plan& plan;
  std::vector<AlignedBuffer<std::byte>> scratch;  // of each thread
  AlignedBuffer<float> query, key, value;         // inputs of bfloat16 as floats
};

void Attention::State::check_features(const auto& in) const {
  const Plan& p = plan;
  check_matrix("Attention", "query", in.query, p.queries, p.heads * p.dim);
  check_matrix("Attention", "key", in.key, p.keys, p.heads * p.dim);
  check_matrix("Attention", "value", in.value, p.keys, p.heads * p.value_dim);
}

void Attention::State::check_out(const AttentionInput& in, const Matrix& out) const {
  const Plan& p = plan;
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
    throw InvalidArgument("Attention: expected padding of " + std::to_string(p.keys) +
                          " keys, or none, got " + std::to_string(in.padding.size()));
  }
  for (const ConstMatrix& m : {in.query, in.key, in.value, in.bias}) {
    if (attention::overlap(m, out)) {
      throw InvalidArgument("Attention: expected out to share no memory with the inputs");
    }
  }
}

void Attention::State::run(const AttentionInput& in, bool has_pairs, const Matrix& out) {
  const Call call = work.call(in, has_pairs, out, false);
  for (int stage = 0; stage < Work::kStages; ++stage) {
    Workers::shared().run(work.tasks(stage), plan.threads, [&](int task, int slot) {
      attention::Scratch s = make_scratch(plan, scratch[static_cast<std::size_t>(slot)].data());
      work.run(stage, task, call, s);
    });
  }
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
  state_->check_features(input);
  state_->check_out(input, out);
  state_->run(input, false, out);
}

void Attention::run(const Bfloat16AttentionInput& input, const Matrix& out) {
  State& s = *state_;
  if (s.query.data() == nullptr) {
    throw InvalidArgument("Attention: expected has_bfloat16_input in the parameters, for bfloat16 matrices");
  }
  s.check_features(input);
  if (s.work.takes_pairs() && attention::is_in_pairs(input.query) && attention::is_in_pairs(input.key) &&
      attention::is_in_pairs(input.value)) {
    const AttentionInput cells{as_cells(input.query), as_cells(input.key), as_cells(input.value), input.bias,
                               input.padding};
    s.check_out(cells, out);
    s.run(cells, true, out);
    return;
  }
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
  std::size_t bytes = state_->work.bytes() +
                      sizeof(float) * (state_->query.size() + state_->key.size() + state_->value.size());
  for (const auto& s : state_->scratch) {
    bytes += s.size();
  }
  return bytes;
}

}  // namespace nonlocal
