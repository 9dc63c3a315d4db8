#include "nonlocal/attention.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "allocations.h"
#include "forced_instruction_set.h"
#include "nonlocal/cpu.h"
#include "nonlocal/error.h"
#include "random_matrix.h"
#include "reference/attention.h"

namespace nonlocal {
namespace {

using testing::OwnMatrix;
using testing::relative_error;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<AttentionPrecision> precisions() {
  std::vector<AttentionPrecision> supported{AttentionPrecision::kFloat32};
  if (is_supported(AttentionPrecision::kBfloat16)) {
    supported.push_back(AttentionPrecision::kBfloat16);
  }
  return supported;
}

// Of queries and keys of about 1: bfloat16's error grows with the scores, of which it keeps 8 bits.
double tolerance(AttentionPrecision precision) {
  return precision == AttentionPrecision::kBfloat16 ? 2e-2 : 1e-4;
}

const char* name_of(AttentionPrecision precision) {
  return precision == AttentionPrecision::kBfloat16 ? "bfloat16" : "float32";
}

// One call's matrices, whatever the parameters ask for.
struct Job {
  explicit Job(AttentionParameters parameters, double sigma = 1, int gap = 0)
      : p(std::move(parameters)),
        query(OwnMatrix::random(p.queries, p.heads * p.dim, sigma, 1, gap)),
        key(OwnMatrix::random(p.keys, p.heads * p.dim, sigma, 2, 2 * gap)),
        value(OwnMatrix::random(p.keys, p.heads * value_dim(), 1, 3, 3 * gap)),
        out(p.queries, p.heads * value_dim(), gap),
        weight(OwnMatrix::random(1, 2 * p.dim, 0.5, 4).values()) {
    if (p.relevance == Relevance::kAdditive) {
      weight.resize(static_cast<std::size_t>(p.dim));
    } else if (p.relevance != Relevance::kConcatenation) {
      weight.clear();
    }
    p.relevance_weight = weight;
  }

  [[nodiscard]] int value_dim() const { return p.value_dim == 0 ? p.dim : p.value_dim; }

  Job& with_bias(int rows) {
    bias = OwnMatrix::random(rows, p.keys, 1, 5, 3);
    return *this;
  }
  Job& with_padding() {
    for (int j = 0; j < p.keys; ++j) {
      padding.push_back(j % 3 == 1 || j > p.keys - 4 ? 1 : 0);
    }
    return *this;
  }

  [[nodiscard]] AttentionInput input() const {
    return {query.view(), key.view(), value.view(), bias ? bias->view() : ConstMatrix{}, padding};
  }

  std::vector<float> run(AttentionPrecision precision = AttentionPrecision::kFloat32, int threads = 1) {
    p.precision = precision;
    p.threads = threads;
    Attention(p).run(input(), out.view());
    return out.values();
  }

  void expect_right(const std::string& what) {
    const std::vector<double> expected = reference::attention(p, input());
    for (const AttentionPrecision precision : precisions()) {
      EXPECT_LT(relative_error(run(precision), expected), tolerance(precision))
          << what << ", " << name_of(precision);
    }
  }

  AttentionParameters p;
  OwnMatrix query, key, value, out;
  std::optional<OwnMatrix> bias;
  std::vector<std::uint8_t> padding;
  std::vector<float> weight;
};

struct NamedRelevance {
  const char* name;
  Relevance relevance;
  double bias = 0;
};
const NamedRelevance kRelevances[] = {{"scaled dot product", Relevance::kScaledDotProduct},
                                      {"gaussian", Relevance::kGaussian},
                                      {"dot product", Relevance::kDotProduct},
                                      {"concatenation", Relevance::kConcatenation, 0.3},
                                      {"additive", Relevance::kAdditive}};

AttentionParameters self_attention(int positions, int dim) {
  AttentionParameters p;
  p.queries = p.keys = positions;
  p.dim = dim;
  return p;
}

class EveryInstructionSet : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { force_instruction_set(GetParam()); }
  void TearDown() override { force_instruction_set(""); }
};
INSTANTIATE_TEST_SUITE_P(Attention, EveryInstructionSet, ::testing::ValuesIn(instruction_sets()),
                         [](const auto& info) { return info.param; });

TEST_P(EveryInstructionSet, RelevancesAreTheFormulas) {
  for (const NamedRelevance& r : kRelevances) {
    for (const int heads : {1, 3}) {
      Job job({.queries = 53,
               .keys = 301,
               .dim = 20,
               .value_dim = 13,
               .heads = heads,
               .relevance = r.relevance,
               .relevance_bias = r.bias},
              0.7);
      job.expect_right(r.name);
      job.with_padding().expect_right(std::string(r.name) + ", padding");
    }
  }
}

TEST_P(EveryInstructionSet, MasksAreTheFormulas) {
  for (const NamedRelevance& r : kRelevances) {
    const auto expect_right = [&](AttentionParameters p, const std::string& mask) {
      p.relevance = r.relevance;
      p.relevance_bias = r.bias;
      p.heads = 2;
      Job job(p, 0.7);
      job.expect_right(r.name + (", " + mask));
      if (reference::is_exponential(r.relevance)) {
        job.with_bias(p.queries).expect_right(r.name + (", bias, " + mask));
      }
      job.with_padding().expect_right(r.name + (", padding, " + mask));
    };
    AttentionParameters causal = self_attention(157, 7);
    causal.mask = AttentionMask::kCausal;
    expect_right(causal, "causal");
    causal.keys = 60;
    expect_right(causal, "causal, fewer keys");
    causal.keys = 211;
    expect_right(causal, "causal, more keys");
    for (const int radius : {0, 1, 20, 500}) {
      AttentionParameters p = self_attention(157, 7);
      p.mask = AttentionMask::kWindow;
      p.grid = {157, 1, 1};
      p.radius = radius;
      expect_right(p, "a sequence's window of " + std::to_string(radius));
      p = self_attention(17 * 11, 7);
      p.mask = AttentionMask::kWindow;
      p.grid = {17, 11, 1};
      p.radius = radius;
      expect_right(p, "a frame's window of " + std::to_string(radius));
      p = self_attention(9 * 5 * 4, 7);
      p.mask = AttentionMask::kWindow;
      p.grid = {9, 5, 4};
      p.radius = radius;
      p.frame_radius = radius < 20 ? 1 : 2;
      expect_right(p, "window of " + std::to_string(radius) + " in frames");
    }
  }
}

TEST_P(EveryInstructionSet, EverySizeServes) {
  for (int dim = 1; dim <= 80; ++dim) {
    Job({.queries = 13, .keys = 37, .dim = dim}, 0.7, 3).expect_right("dim " + std::to_string(dim));
  }
  for (const int value_dim : {1, 2, 3, 5, 47, 48, 49, 130}) {
    for (const Relevance relevance : {Relevance::kScaledDotProduct, Relevance::kDotProduct}) {
      Job({.queries = 5, .keys = 9, .dim = 8, .value_dim = value_dim, .relevance = relevance})
          .expect_right("value_dim " + std::to_string(value_dim));
    }
  }
  for (const int queries : {1, 2, 3, 47, 48, 49, 97, 211}) {
    for (const int keys : {1, 2, 3, 31, 255, 256, 257, 1031}) {
      Job({.queries = queries, .keys = keys, .dim = 5, .heads = 2}, 1, 1)
          .expect_right(std::to_string(queries) + " x " + std::to_string(keys));
    }
  }
}

TEST_P(EveryInstructionSet, BiasOfEachHeadIsItsOwn) {
  for (const int heads : {1, 4}) {
    Job job({.queries = 30, .keys = 71, .dim = 6, .heads = heads}, 1, 1);
    job.with_bias(30).expect_right("shared bias");
    job.with_bias(30 * heads).expect_right("bias of each head");
  }
}

// Ceilings that all, some and none of the scores reach, and the largest score on either side of it.
TEST_P(EveryInstructionSet, CeilingsAreTheFormula) {
  for (const NamedRelevance& r : kRelevances) {
    if (!reference::is_exponential(r.relevance)) {
      continue;
    }
    for (const double ceiling : {-30.0, -0.5, 0.0, 1.0, 30.0}) {
      AttentionParameters p = self_attention(19 * 17, 6);
      p.heads = 2;
      p.relevance = r.relevance;
      p.ceiling = ceiling;
      const std::string what = r.name + (", ceiling " + std::to_string(ceiling));
      Job job(p, 0.7);
      job.expect_right(what);
      job.with_bias(p.queries).expect_right(what + ", bias");
      job.with_padding().expect_right(what + ", padding");
      p.mask = AttentionMask::kWindow;
      p.grid = {19, 17, 1};
      p.radius = 3;
      Job(p, 0.7).expect_right(what + ", window");
    }
  }
}

// All keys that reach the ceiling have the same weight, whichever batch they come in.
TEST_P(EveryInstructionSet, ACeilingMakesEqual) {
  Job job({.queries = 3, .keys = 2000, .dim = 2, .scale = 1, .ceiling = 1});
  for (int j = 0; j < 2000; ++j) {
    job.key.at(j, 0) = static_cast<float>(j) / 16;
    job.key.at(j, 1) = 0;
  }
  job.query.at(0, 0) = 1;
  job.query.at(1, 0) = -1;
  job.query.at(2, 0) = 0.25;
  job.expect_right("rising");
  job.p.ceiling = -1000;  // below all scores: a plain mean
  const std::vector<float> mean = job.run();
  for (int c = 0; c < 2; ++c) {
    double sum = 0;
    for (int j = 0; j < 2000; ++j) {
      sum += job.value.at(j, c);
    }
    for (const int query : {0, 1, 2}) {
      EXPECT_NEAR(mean[static_cast<std::size_t>(2 * query + c)], sum / 2000, 1e-5);
    }
  }
}

// Of a query whose keys are all hidden, however they are, nothing is averaged.
TEST_P(EveryInstructionSet, NoKeysGiveZeros) {
  for (const NamedRelevance& r : kRelevances) {
    Job padded({.queries = 5, .keys = 300, .dim = 4, .relevance = r.relevance, .relevance_bias = r.bias});
    padded.padding.assign(300, 1);
    for (const AttentionPrecision precision : precisions()) {
      EXPECT_EQ(padded.run(precision), std::vector<float>(20, 0.0f)) << r.name << name_of(precision);
    }
  }
  Job job({.queries = 50, .keys = 300, .dim = 4});
  job.with_bias(50);
  for (int j = 0; j < 300; ++j) {
    job.bias->at(7, j) = -kInfinity;
    job.bias->at(8, j) = j == 299 ? 0 : -kInfinity;
  }
  job.expect_right("a row of the bias that hides all");
  for (int c = 0; c < 4; ++c) {
    EXPECT_EQ(job.out.at(7, c), 0);
    EXPECT_NE(job.out.at(8, c), 0);
  }
}

TEST_P(EveryInstructionSet, ExtremeScoresStayFinite) {
  for (const NamedRelevance& r : kRelevances) {
    for (const double score : {1e4, -1e4}) {
      Job job({.queries = 20, .keys = 600, .dim = 4, .relevance = r.relevance, .relevance_bias = r.bias});
      for (int c = 0; c < 4; ++c) {
        for (int i = 0; i < 20; ++i) {
          job.query.at(i, c) = i % 2 == 0 ? 100 : 1;
        }
        for (int j = 0; j < 600; ++j) {
          job.key.at(j, c) = static_cast<float>((j % 5 == 0 ? -1 : 1) * score / 400 * 2);
        }
      }
      for (const AttentionPrecision precision : precisions()) {
        const std::vector<float> out = job.run(precision);
        EXPECT_LT(relative_error(out, reference::attention(job.p, job.input())), tolerance(precision))
            << r.name << " " << score << " " << name_of(precision);
      }
    }
  }
}

// Scores that rise from batch to batch: what was summed before is scaled again and again.
TEST_P(EveryInstructionSet, RisingScoresAreRescaled) {
  Job job({.queries = 3, .keys = 2000, .dim = 2, .scale = 1});
  for (int j = 0; j < 2000; ++j) {
    job.key.at(j, 0) = static_cast<float>(j) / 16;
    job.key.at(j, 1) = 0;
  }
  job.query.at(0, 0) = 1;
  job.query.at(1, 0) = -1;
  job.query.at(2, 0) = 0.25;
  job.expect_right("rising");
}

TEST_P(EveryInstructionSet, AllOfOneValueGiveThatValue) {
  for (const AttentionPrecision precision : precisions()) {
    Job job({.queries = 40, .keys = 500, .dim = 16});
    for (int j = 0; j < 500; ++j) {
      for (int c = 0; c < 16; ++c) {
        job.value.at(j, c) = 2;
      }
    }
    for (const float y : job.run(precision)) {
      EXPECT_NEAR(y, 2, precision == AttentionPrecision::kFloat32 ? 1e-5 : 2e-3);
    }
  }
}

TEST(Attention, ThreadsDoNotMatter) {
  AttentionParameters window = self_attention(40 * 30, 24);
  window.mask = AttentionMask::kWindow;
  window.grid = {40, 30, 1};
  window.radius = 5;
  AttentionParameters dot = self_attention(3000, 24);
  dot.relevance = Relevance::kDotProduct;
  AttentionParameters capped = window;
  capped.ceiling = 0;
  for (const AttentionParameters& p : {self_attention(1500, 24), window, capped, dot}) {
    for (const AttentionPrecision precision : precisions()) {
      Job job(p);
      const std::vector<float> alone = job.run(precision, 1);
      for (const int threads : {2, 3, 8}) {
        EXPECT_EQ(job.run(precision, threads), alone) << threads << name_of(precision);
      }
    }
  }
}

TEST(Attention, CallsAllocateNothing) {
  AttentionParameters window = self_attention(30 * 20, 24);
  window.mask = AttentionMask::kWindow;
  window.grid = {30, 20, 1};
  window.radius = 3;
  std::vector<AttentionParameters> all{window};
  for (const NamedRelevance& r : kRelevances) {
    all.push_back(self_attention(600, 24));
    all.back().relevance = r.relevance;
  }
  for (const AttentionParameters& p : all) {
    for (const AttentionPrecision precision : precisions()) {
      Job job(p);
      if (reference::is_exponential(p.relevance)) {
        job.with_bias(600);
      }
      job.p.precision = precision;
      job.p.threads = 2;
      Attention attention(job.p);
      attention.run(job.input(), job.out.view());  // threads start with the first call
      const int before = testing::allocations();
      for (int i = 0; i < 10; ++i) {
        attention.run(job.input(), job.out.view());
      }
      EXPECT_EQ(testing::allocations() - before, 0) << name_of(precision);
    }
  }
}

TEST(Attention, InstructionSetIsThatOfItsMaking) {
  Job job({.queries = 70, .keys = 90, .dim = 12});
  const std::vector<float> expected = job.run();
  job.p.precision = AttentionPrecision::kFloat32;
  Attention attention(job.p);
  for (const std::string& name : instruction_sets()) {
    force_instruction_set(name);
    attention.run(job.input(), job.out.view());
    EXPECT_EQ(job.out.values(), expected) << name;
  }
  force_instruction_set("");
}

// The numbers that a float's upper half leaves, in matrices with gaps.
struct Bfloat16Copy {
  Bfloat16Copy(OwnMatrix& m, int gap)
      : rows(m.view().rows), columns(m.view().columns), stride(columns + gap) {
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < stride; ++j) {
        const auto bits = j < columns ? std::bit_cast<std::uint32_t>(m.at(i, j)) : 0x7FC00000u;
        values.push_back(static_cast<std::uint16_t>(bits >> 16));
        if (j < columns) {
          m.at(i, j) = std::bit_cast<float>(bits & 0xFFFF0000u);
        }
      }
    }
  }
  [[nodiscard]] ConstBfloat16Matrix view() const { return {values.data(), rows, columns, stride}; }

  int rows, columns, stride;
  std::vector<std::uint16_t> values;
};

// As they lie where neighbours come in pairs, else as floats: the same bytes.
void expect_takes_bfloat16(int keys, int dim, int value_dim, int gap) {
  for (const NamedRelevance& r : kRelevances) {
    Job job({.queries = 300,
             .keys = keys,
             .dim = dim,
             .value_dim = value_dim,
             .heads = 2,
             .relevance = r.relevance},
            0.7, 2);
    const Bfloat16Copy query(job.query, gap);
    const Bfloat16Copy key(job.key, gap);
    const Bfloat16Copy value(job.value, gap);
    job.with_padding();
    const Bfloat16AttentionInput input{query.view(), key.view(), value.view(), {}, job.padding};
    for (const AttentionPrecision precision : precisions()) {
      const std::vector<float> expected = job.run(precision, 2);
      OwnMatrix out(300, 2 * value_dim);
      EXPECT_THROW(Attention(job.p).run(input, out.view()), InvalidArgument);
      job.p.has_bfloat16_input = true;
      Attention attention(job.p);
      attention.run(input, out.view());
      EXPECT_EQ(out.values(), expected) << r.name << " " << name_of(precision);
      const int before = testing::allocations();
      attention.run(input, out.view());
      EXPECT_EQ(testing::allocations() - before, 0);
      job.p.has_bfloat16_input = false;
    }
  }
}

TEST_P(EveryInstructionSet, TakesBfloat16) {
  expect_takes_bfloat16(401, 6, 5, 3);
  expect_takes_bfloat16(401, 6, 4, 4);
  expect_takes_bfloat16(400, 6, 4, 0);
  expect_takes_bfloat16(400, 6, 4, 1);
  // Whole tiles, and what is left of one.
  expect_takes_bfloat16(400, 32, 32, 0);
  expect_takes_bfloat16(402, 64, 18, 4);
  expect_takes_bfloat16(288, 34, 34, 2);
}

// Where the CPU has tiles, they are used: exponentials and sums are as without them, products in another
// order.
TEST(Attention, TilesGiveWhatVectorsGive) {
  if (!instruction_set().ends_with("_AMX")) {
    GTEST_SKIP() << "no AMX";
  }
  Job job({.queries = 300, .keys = 777, .dim = 80, .value_dim = 48, .heads = 2}, 0.7, 2);
  const std::vector<float> in_tiles = job.run(AttentionPrecision::kBfloat16);
  const testing::ForcedInstructionSet without(instruction_sets()[1]);
  const std::vector<float> in_vectors = job.run(AttentionPrecision::kBfloat16);
  EXPECT_NE(in_tiles, in_vectors);
  EXPECT_LT(relative_error(in_tiles, in_vectors), 1e-3);
}

bool is_intel() {
#if defined(__x86_64__)
  return __builtin_cpu_is("intel") != 0;
#else
  return false;
#endif
}

TEST(Attention, PrecisionsAreSupportedOrRefused) {
  AttentionParameters p = self_attention(4, 4);
  const bool has_bfloat16 = is_supported(AttentionPrecision::kBfloat16);
  const bool is_faster = instruction_set().ends_with("_AMX") || !is_intel();
  EXPECT_EQ(Attention(p).precision(),
            has_bfloat16 && is_faster ? AttentionPrecision::kBfloat16 : AttentionPrecision::kFloat32);
  p.precision = AttentionPrecision::kBfloat16;
  for (const std::string& name : instruction_sets()) {
    force_instruction_set(name);
    if (is_supported(AttentionPrecision::kBfloat16)) {
      EXPECT_EQ(Attention(p).precision(), AttentionPrecision::kBfloat16);
    } else {
      EXPECT_THROW(Attention attention(p), InvalidArgument);
    }
  }
  force_instruction_set("");
  p.relevance = Relevance::kDotProduct;
  if (has_bfloat16) {
    EXPECT_EQ(Attention(p).precision(), AttentionPrecision::kFloat32);
  }
}

TEST(Attention, OperationsAreThoseOfTheKeysLeft) {
  AttentionParameters p = self_attention(12, 4);
  p.value_dim = 3;
  p.heads = 2;
  EXPECT_EQ(Attention(p).operations(), 2.0 * 2 * 12 * 12 * (4 + 3));
  p.mask = AttentionMask::kCausal;
  EXPECT_EQ(Attention(p).operations(), 2.0 * 2 * 78 * (4 + 3));
  p.mask = AttentionMask::kWindow;
  p.grid = {4, 3, 1};
  p.radius = 1;
  EXPECT_EQ(Attention(p).operations(), 2.0 * 2 * (4 * 4 + 6 * 6 + 2 * 9) * (4 + 3));
  p = self_attention(12, 4);
  p.relevance = Relevance::kDotProduct;
  EXPECT_EQ(Attention(p).operations(), 2.0 * 4 * 4 * (12 + 12));
}

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const InvalidArgument& e) {
    return e.what();
  }
  return "nothing was thrown";
}

TEST(Attention, RefusesParametersThatMakeNoSense) {
  const auto message = [](const std::function<void(AttentionParameters&)>& spoil) {
    AttentionParameters p = self_attention(12, 4);
    spoil(p);
    return message_of([&] { Attention attention(p); });
  };
  using P = AttentionParameters;
  EXPECT_EQ(message([](P&) {}), "nothing was thrown");
  EXPECT_EQ(message([](P& p) { p.queries = 0; }), "Attention: expected queries from 1 to 268435456, got 0");
  for (const auto& spoil : std::vector<std::function<void(P&)>>{
           [](P& p) { p.keys = -1; }, [](P& p) { p.dim = 0; }, [](P& p) { p.value_dim = -1; },
           [](P& p) { p.heads = 0; }, [](P& p) { p.heads = p.dim = 1 << 15; }, [](P& p) { p.threads = -1; },
           [](P& p) { p.ceiling = NAN; }, [](P& p) { p.ceiling = INFINITY; },
           [](P& p) {
             p.relevance = Relevance::kDotProduct;
             p.ceiling = 0;
           },
           [](P& p) { p.scale = NAN; }, [](P& p) { p.scale = 1e39; },
           [](P& p) { p.relevance_bias = INFINITY; },
           [](P& p) { p.relevance_bias = -1e39; }}) {  // which a float does not hold
    EXPECT_NE(message(spoil), "nothing was thrown");
  }
  const std::vector<float> three(3);
  EXPECT_EQ(message([&](P& p) {
              p.relevance = Relevance::kConcatenation;
              p.relevance_weight = three;
            }),
            "Attention: expected relevance_weight of 8 weights, for dim 4, got 3");
  EXPECT_NE(message([&](P& p) { p.relevance_weight = three; }), "nothing was thrown");
  EXPECT_NE(message([&](P& p) {
              p.relevance = Relevance::kAdditive;
              p.relevance_weight = std::span(three).first(2);
            }),
            "nothing was thrown");
  const auto window = [&](AttentionGrid grid, int radius, int frame_radius) {
    return message([&](P& p) {
      p.mask = AttentionMask::kWindow;
      p.grid = grid;
      p.radius = radius;
      p.frame_radius = frame_radius;
    });
  };
  EXPECT_EQ(window({4, 3, 1}, 1, 0), "nothing was thrown");
  EXPECT_EQ(window({5, 3, 1}, 1, 0),
            "Attention: expected a grid of as many positions as there are queries and keys, 12 and 12, got "
            "5x3x1");
  EXPECT_NE(window({-4, -3, 1}, 1, 0), "nothing was thrown");
  EXPECT_NE(window({4, 3, 1}, -1, 0), "nothing was thrown");
  EXPECT_NE(window({4, 3, 1}, 1, -1), "nothing was thrown");
}

TEST(Attention, RefusesMatricesThatDoNotFit) {
  const AttentionParameters p{.queries = 12, .keys = 7, .dim = 4, .value_dim = 3, .heads = 2};
  const auto message = [&](const std::function<void(AttentionInput&, Matrix&)>& spoil) {
    Job job(p);
    Attention attention(p);
    AttentionInput input = job.input();
    Matrix out = job.out.view();
    spoil(input, out);
    return message_of([&] { attention.run(input, out); });
  };
  using In = AttentionInput;
  EXPECT_EQ(message([](In&, Matrix&) {}), "nothing was thrown");
  EXPECT_EQ(message([](In& in, Matrix&) { in.query.rows = 11; }),
            "Attention: expected query as a matrix of 12x8, got 11x8");
  EXPECT_EQ(message([](In& in, Matrix&) { in.key.columns = 4; }),
            "Attention: expected key as a matrix of 7x8, got 7x4");
  EXPECT_EQ(message([](In& in, Matrix&) { in.value.rows = 12; }),
            "Attention: expected value as a matrix of 7x6, got 12x6");
  EXPECT_EQ(message([](In&, Matrix& out) { out.columns = 8; }),
            "Attention: expected out as a matrix of 12x6, got 12x8");
  EXPECT_EQ(message([](In& in, Matrix&) { in.key.stride = 7; }),
            "Attention: expected key with data and a stride of 8 or more, got a stride of 7");
  EXPECT_EQ(message([](In& in, Matrix&) { in.value.data = nullptr; }),
            "Attention: expected value with data and a stride of 6 or more, got none");
  const OwnMatrix bias = OwnMatrix::random(13, 7);
  EXPECT_EQ(message([&](In& in, Matrix&) { in.bias = bias.view(); }),
            "Attention: expected bias as a matrix of 24x7, got 13x7");
  const std::vector<std::uint8_t> padding(6);
  EXPECT_EQ(message([&](In& in, Matrix&) { in.padding = padding; }),
            "Attention: expected padding of 7 keys, or none, got 6");
  EXPECT_EQ(message([](In& in, Matrix& out) {
              in.query = {out.data, 12, 8, 8};
            }),
            "Attention: expected out to share no memory with the inputs");
}

}  // namespace
}  // namespace nonlocal
