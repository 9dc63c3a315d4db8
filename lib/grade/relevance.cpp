#include "nonlocal/relevance.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "attention/matrix_check.h"
#include "core/aligned_buffer.h"
#include "core/anew.h"
#include "core/rounding.h"
#include "core/workers.h"
#include "grade/colour_space.h"
#include "grade/exact_kernel.h"
#include "grade/folded.h"
#include "grade/frame_check.h"
#include "nonlocal/error.h"

namespace nonlocal {
namespace {

constexpr const char* kRegions = "region_relevance";
constexpr const char* kMaps = "TokenMaps";
constexpr int kSide = 4;  // pixels of a cell along an axis
constexpr int kMostCells = 1024;

double score(const RegionRelevanceParameters& p, std::span<const float> query, const float* key,
             double scale) {
  double sum = 0;
  for (std::size_t c = 0; c < query.size(); ++c) {
    const double q = query[c];
    sum += p.relevance == Relevance::kAdditive ? p.relevance_weight[c] * std::tanh(q + key[c])
                                               : scale * q * key[c];
  }
  return sum;
}

void check(std::span<const float> query, const ConstMatrix& keys, const RegionRelevanceParameters& p,
           std::span<float> weights) {
  const auto fail = [](const std::string& problem) {
    throw InvalidArgument(std::string(kRegions) + ": " + problem);
  };
  const bool is_additive = p.relevance == Relevance::kAdditive;
  if (!is_additive && p.relevance != Relevance::kScaledDotProduct) {
    fail("expected the relevance kScaledDotProduct or kAdditive");
  }
  if (query.empty() || keys.rows < 1) {
    fail("expected a query and regions, got " + std::to_string(query.size()) + " values and " +
         std::to_string(keys.rows) + " regions");
  }
  attention::check_matrix(kRegions, "keys", keys, keys.rows, static_cast<int>(query.size()));
  if (p.relevance_weight.size() != (is_additive ? query.size() : 0)) {
    fail("expected " + std::to_string(is_additive ? query.size() : 0) + " relevance weights, got " +
         std::to_string(p.relevance_weight.size()));
  }
  if (p.scale && (is_additive || !(std::abs(*p.scale) <= 1e30))) {
    fail("expected a scale from -1e30 to 1e30, and only with kScaledDotProduct");
  }
  if (weights.size() != static_cast<std::size_t>(keys.rows)) {
    fail("expected room for " + std::to_string(keys.rows) + " weights, got " +
         std::to_string(weights.size()));
  }
}

}  // namespace

void region_relevance(std::span<const float> query, const ConstMatrix& keys,
                      const RegionRelevanceParameters& parameters, std::span<float> weights) {
  check(query, keys, parameters, weights);
  const double scale = parameters.scale.value_or(1 / std::sqrt(static_cast<double>(query.size())));
  double most = -HUGE_VAL;
  for (int i = 0; i < keys.rows; ++i) {
    weights[i] = static_cast<float>(score(parameters, query, keys.row(i), scale));
    most = std::max(most, static_cast<double>(weights[i]));
  }
  double sum = 0;
  for (float& weight : weights) {
    weight = static_cast<float>(std::exp(weight - most));
    sum += weight;
  }
  for (float& weight : weights) {
    weight = static_cast<float>(weight / sum);
  }
}

void pool_regions(std::span<const float> weights, const ConstMatrix& values, std::span<float> pooled) {
  attention::check_matrix("pool_regions", "values", values, static_cast<int>(weights.size()),
                          static_cast<int>(pooled.size()));
  for (int c = 0; c < values.columns; ++c) {
    double sum = 0;
    for (int i = 0; i < values.rows; ++i) {
      sum += static_cast<double>(weights[i]) * values.row(i)[c];
    }
    pooled[c] = static_cast<float>(sum);
  }
}

// ---------------------------------------------------------------------------------------------- token maps

namespace {

// Which pixels of an axis stand for its cells: kSide a cell, evenly spread.
int sample_of(int i, int cells, int size) {
  return std::min(size - 1,
                  static_cast<int>((2 * static_cast<std::int64_t>(i) + 1) * size / (2 * kSide * cells)));
}

float level_at(const ConstPlane& p, int x, int y, const grade::FloatScale& scale) {
  const std::byte* at = p.row(y) + static_cast<std::ptrdiff_t>(x) * p.step * p.bytes_per_sample();
  const int stored = p.bit_depth > 8 ? *reinterpret_cast<const std::uint16_t*>(at) : static_cast<int>(*at);
  return static_cast<float>(stored >> p.shift) * scale.by + scale.plus;
}

}  // namespace

struct TokenMaps::State {
  void run(const grade::FrameJob& frame, const grade::ExactJob& job, const TokenMapParameters& p);
  void add_row(const grade::FrameJob& frame, const grade::ExactJob& job, int row, float* memory);
  void make_places(const grade::FrameJob& frame, int frequencies);
  [[nodiscard]] std::size_t kernel_floats(const grade::Folded& folded) const {
    return round_up(kernels.scratch_floats(folded), std::size_t{16});
  }

  grade::ExactKernels kernels = grade::exact_kernels();
  int tokens = 0;
  int columns = 0;
  int rows = 0;
  int samples = 0;  // of a row of cells, whole chunks
  AlignedBuffer<float> maps;
  std::vector<float> x_places;  // [2 F][samples]
  std::vector<float> y_places;  // [rows * kSide][2 F]
  AlignedBuffer<float> scratch;
};

void TokenMaps::State::make_places(const grade::FrameJob& frame, int frequencies) {
  const int n = 2 * frequencies;
  double values[2 * grade::kMostFrequencies];
  const auto place = [](int i, int size) { return (2.0 * i + 1) / size - 1; };
  x_places.resize(static_cast<std::size_t>(n) * samples);
  for (int i = 0; n > 0 && i < samples; ++i) {
    grade::place_features(frequencies, place(sample_of(i, columns, frame.width), frame.width), values);
    for (int k = 0; k < n; ++k) {
      x_places[static_cast<std::size_t>(k) * samples + i] = static_cast<float>(values[k]);
    }
  }
  y_places.resize(static_cast<std::size_t>(n) * rows * kSide);
  for (int i = 0; i < rows * kSide; ++i) {
    grade::place_features(frequencies, place(sample_of(i, rows, frame.height), frame.height), values);
    std::copy_n(values, n, y_places.data() + static_cast<std::ptrdiff_t>(i) * n);
  }
}

void TokenMaps::State::run(const grade::FrameJob& frame, const grade::ExactJob& job,
                           const TokenMapParameters& p) {
  const grade::Folded& folded = *job.folded;
  const int threads = std::min(thread_count(p.threads), p.rows);
  tokens = folded.tokens;
  columns = p.columns;
  rows = p.rows;
  samples = round_up(columns * kSide, kernels.chunk);
  make_places(frame, folded.frequencies);
  const std::size_t needed = static_cast<std::size_t>(tokens) * rows * columns;
  if (maps.size() < needed) {
    maps.allocate(needed);
  }
  const std::size_t a_thread =
      kernel_floats(folded) + round_up((std::size_t{3} + tokens) * kernels.chunk, std::size_t{16});
  if (scratch.size() < a_thread * threads) {
    scratch.allocate(a_thread * threads);
  }
  Workers::shared().run(
      rows, threads, [&](int row, int slot) { add_row(frame, job, row, scratch.data() + a_thread * slot); });
}

void TokenMaps::State::add_row(const grade::FrameJob& frame, const grade::ExactJob& job, int row,
                               float* memory) {
  const int chunk = kernels.chunk;
  const int n = 2 * job.folded->frequencies;
  const auto cell = [&](int token, int column) -> float& {
    return maps.data()[(static_cast<std::size_t>(token) * rows + row) * columns + column];
  };
  for (int t = 0; t < tokens; ++t) {
    std::fill_n(&cell(t, 0), columns, 0.0F);
  }
  float* const effects = memory + kernel_floats(*job.folded);
  float* const first = effects + static_cast<std::ptrdiff_t>(tokens) * chunk;
  const std::array<float*, 3> level = {first, first + chunk, first + 2 * chunk};
  for (int i = 0; i < kSide; ++i) {
    const int y = sample_of(row * kSide + i, rows, frame.height);
    for (int from = 0; from < columns * kSide; from += chunk) {
      const int count = std::min(chunk, columns * kSide - from);
      for (int k = 0; k < count; ++k) {
        const int x = sample_of(from + k, columns, frame.width);
        for (int c = 0; c < 3; ++c) {
          const int plane = std::min(c, frame.planes - 1);
          level[c][k] = plane == 0
                            ? level_at(frame.in[0], x, y, frame.in_scale[0])
                            : level_at(frame.in[c], x >> frame.half_x, y >> frame.half_y, frame.in_scale[c]);
        }
      }
      kernels.token_effects(job, level, count, x_places.data() + from, samples,
                            y_places.data() + static_cast<std::ptrdiff_t>(row * kSide + i) * n, effects,
                            memory);
      for (int t = 0; t < tokens; ++t) {
        for (int k = 0; k < count; ++k) {
          cell(t, (from + k) / kSide) += effects[t * chunk + k] / (kSide * kSide);
        }
      }
    }
  }
}

TokenMaps::TokenMaps() : state_(std::make_unique<State>()) {}
TokenMaps::~TokenMaps() = default;
TokenMaps::TokenMaps(TokenMaps&&) noexcept = default;
TokenMaps& TokenMaps::operator=(TokenMaps&&) noexcept = default;

void TokenMaps::run(std::span<const ConstPlane> frame, const ColourFormat& format,
                    const CrossAttentionFilter& filter, const TokenMapParameters& parameters) {
  grade::check_frame(kMaps, frame, format);
  grade::check_threads(kMaps, parameters.threads);
  if (parameters.columns < 1 || parameters.rows < 1 ||
      parameters.columns > std::min(kMostCells, frame[0].width) ||
      parameters.rows > std::min(kMostCells, frame[0].height)) {
    throw InvalidArgument(std::string(kMaps) + ": expected 1x1 cells to one a pixel, up to 1024x1024, got " +
                          std::to_string(parameters.columns) + "x" + std::to_string(parameters.rows));
  }
  or_anew(*state_, [&] {
    state_->kernels = grade::exact_kernels();
    const grade::ExactJob job = make_exact_job(GradeAccess::folded(filter), grade::colour_space(format));
    state_->run(grade::make_frame_job(frame, {}, format, 1), job, parameters);
  });
}

int TokenMaps::tokens() const { return state_->tokens; }

ConstMatrix TokenMaps::map(int token) const {
  if (token < 0 || token >= state_->tokens) {
    throw InvalidArgument(std::string(kMaps) + ": expected a token of 0 to " +
                          std::to_string(state_->tokens - 1) + ", got " + std::to_string(token));
  }
  const std::ptrdiff_t size = static_cast<std::ptrdiff_t>(state_->rows) * state_->columns;
  return {state_->maps.data() + token * size, state_->rows, state_->columns, state_->columns};
}

}  // namespace nonlocal
