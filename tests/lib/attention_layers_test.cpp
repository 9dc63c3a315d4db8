// What stands around attention: projections, positional encodings.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "allocations.h"
#include "nonlocal/cpu.h"
#include "nonlocal/error.h"
#include "nonlocal/multi_head_attention.h"
#include "nonlocal/positional_encoding.h"
#include "random_matrix.h"
#include "reference/attention.h"

namespace nonlocal {
namespace {

using testing::OwnMatrix;
using testing::relative_error;

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const InvalidArgument& e) {
    return e.what();
  }
  return "nothing was thrown";
}

// y = W x + b in double precision, rounded once.
OwnMatrix projected(const OwnMatrix& in, const LinearLayer& layer) {
  const ConstMatrix x = in.view();
  OwnMatrix out(x.rows, layer.weight.rows);
  for (int i = 0; i < x.rows; ++i) {
    for (int o = 0; o < layer.weight.rows; ++o) {
      double sum = layer.bias.empty() ? 0 : layer.bias[o];
      for (int c = 0; c < x.columns; ++c) {
        sum += static_cast<double>(layer.weight.row(o)[c]) * x.row(i)[c];
      }
      out.at(i, o) = static_cast<float>(sum);
    }
  }
  return out;
}

// Inputs and weights of one shape.
struct MultiHead {
  MultiHead(int queries, int keys, int heads, int dim, int width, bool has_bias = true)
      : query(OwnMatrix::random(queries, width, 1, 1, 3)),
        key(OwnMatrix::random(keys, width + 1, 1, 2, 2)),
        value(OwnMatrix::random(keys, width + 2, 1, 3, 1)),
        out(queries, width, 5) {
    p.queries = queries;
    p.keys = keys;
    p.dim = dim;
    p.value_dim = dim + 1;
    p.heads = heads;
    const int sizes[4][2] = {{heads * dim, width},
                             {heads * dim, width + 1},
                             {heads * (dim + 1), width + 2},
                             {width, heads * (dim + 1)}};
    for (const auto& size : sizes) {
      const auto seed = static_cast<unsigned>(weight.size());
      weight.push_back(OwnMatrix::random(size[0], size[1], 1 / std::sqrt(size[1]), 10 + seed, 2));
      bias.push_back(has_bias ? OwnMatrix::random(1, size[0], 0.3, 20 + seed).values()
                              : std::vector<float>());
    }
  }

  [[nodiscard]] LinearLayer layer(int i) const { return {weight[i].view(), bias[i]}; }
  [[nodiscard]] MultiHeadWeights weights() const { return {layer(0), layer(1), layer(2), layer(3)}; }
  [[nodiscard]] AttentionInput input() const { return {query.view(), key.view(), value.view()}; }

  [[nodiscard]] std::vector<float> expected() const {
    const OwnMatrix q = projected(query, layer(0));
    const OwnMatrix k = projected(key, layer(1));
    const OwnMatrix v = projected(value, layer(2));
    const std::vector<double> y = reference::attention(p, {q.view(), k.view(), v.view()});
    OwnMatrix average(p.queries, p.heads * p.value_dim);
    std::copy(y.begin(), y.end(), average.view().data);
    return projected(average, layer(3)).values();
  }

  std::vector<float> run(AttentionPrecision precision, int threads = 1) {
    p.precision = precision;
    p.threads = threads;
    MultiHeadAttention(p, weights()).run(input(), out.view());
    return out.values();
  }

  AttentionParameters p;
  OwnMatrix query, key, value, out;
  std::vector<OwnMatrix> weight;
  std::vector<std::vector<float>> bias;
};

TEST(MultiHeadAttention, IsTheFormula) {
  for (const std::string& name : instruction_sets()) {
    force_instruction_set(name);
    for (const bool has_bias : {true, false}) {
      for (MultiHead& m :
           std::vector{MultiHead(1, 1, 1, 1, 1, has_bias), MultiHead(53, 90, 3, 7, 20, has_bias),
                       MultiHead(130, 7, 2, 16, 33, has_bias),
                       // Whole tiles of products, and outputs beyond them.
                       MultiHead(130, 90, 2, 15, 32, has_bias), MultiHead(70, 40, 3, 20, 64, has_bias)}) {
        const std::vector<float> expected = m.expected();
        EXPECT_LT(relative_error(m.run(AttentionPrecision::kFloat32), expected), 1e-4) << name;
        if (is_supported(AttentionPrecision::kBfloat16)) {
          EXPECT_LT(relative_error(m.run(AttentionPrecision::kBfloat16), expected), 2e-2) << name;
        }
      }
    }
  }
  force_instruction_set("");
}

TEST(MultiHeadAttention, ThreadsDoNotMatter) {
  MultiHead m(500, 300, 3, 8, 24);
  const std::vector<float> alone = m.run(AttentionPrecision::kAutomatic);
  EXPECT_EQ(m.run(AttentionPrecision::kAutomatic, 2), alone);
  EXPECT_EQ(m.run(AttentionPrecision::kAutomatic, 5), alone);
}

TEST(MultiHeadAttention, OutputMayReplaceTheQuery) {
  MultiHead m(100, 30, 2, 8, 16);
  const std::vector<float> expected = m.run(AttentionPrecision::kAutomatic);
  MultiHeadAttention(m.p, m.weights()).run(m.input(), m.query.view());
  EXPECT_EQ(m.query.values(), expected);
}

TEST(MultiHeadAttention, CallsAllocateNothing) {
  MultiHead m(200, 300, 3, 8, 24);
  m.p.threads = 2;
  MultiHeadAttention attention(m.p, m.weights());
  attention.run(m.input(), m.out.view());
  const int before = testing::allocations();
  attention.run(m.input(), m.out.view());
  EXPECT_EQ(testing::allocations() - before, 0);
}

TEST(MultiHeadAttention, RefusesWhatDoesNotFit) {
  const auto making = [](const std::function<void(MultiHead&, MultiHeadWeights&)>& spoil) {
    MultiHead m(20, 30, 3, 8, 24);
    MultiHeadWeights weights = m.weights();
    spoil(m, weights);
    return message_of([&] { MultiHeadAttention attention(m.p, weights); });
  };
  using M = MultiHead;
  using W = MultiHeadWeights;
  EXPECT_EQ(making([](M&, W&) {}), "nothing was thrown");
  EXPECT_EQ(making([](M&, W& w) { w.key.weight.rows = 23; }),
            "MultiHeadAttention: expected the weight of key as a matrix of 24x25, got 23x25");
  EXPECT_EQ(making([](M&, W& w) { w.output.weight.columns = 26; }),
            "MultiHeadAttention: expected the weight of output as a matrix of 24x27, got 24x26");
  EXPECT_EQ(making([](M&, W& w) { w.value.bias = w.value.bias.first(2); }),
            "MultiHeadAttention: value: expected a bias of 27 values, or none, got 2");
  EXPECT_NE(making([](M&, W& w) { w.query.weight.columns = 0; }), "nothing was thrown");
  EXPECT_NE(making([](M& m, W&) { m.p.queries = 0; }), "nothing was thrown");
  const auto running = [](const std::function<void(AttentionInput&, Matrix&)>& spoil) {
    MultiHead m(20, 30, 3, 8, 24);
    MultiHeadAttention attention(m.p, m.weights());
    AttentionInput input = m.input();
    Matrix out = m.out.view();
    spoil(input, out);
    return message_of([&] { attention.run(input, out); });
  };
  using In = AttentionInput;
  EXPECT_EQ(running([](In& in, Matrix&) { in.key.columns = 24; }),
            "MultiHeadAttention: expected key as a matrix of 30x25, got 30x24");
  EXPECT_EQ(running([](In&, Matrix& out) { out.rows = 21; }),
            "MultiHeadAttention: expected out as a matrix of 20x24, got 21x24");
}

TEST(PositionalEncoding, IsTheFormula) {
  OwnMatrix table(30, 4, 2);
  sinusoidal_encoding({30, 1, 1}, 1, table.view());
  for (int c = 0; c < 4; ++c) {
    EXPECT_EQ(table.at(0, c), c % 2);
    const double expected[] = {std::sin(1), std::cos(1), std::sin(0.01), std::cos(0.01)};
    EXPECT_NEAR(table.at(1, c), expected[c], 1e-7);
  }
  // One axis numbers the positions of any grid.
  OwnMatrix same(30, 4);
  sinusoidal_encoding({5, 3, 2}, 1, same.view());
  EXPECT_EQ(same.values(), table.values());
}

TEST(PositionalEncoding, AxesShareTheChannels) {
  const AttentionGrid grid{5, 4, 3};
  OwnMatrix table(60, 18);
  sinusoidal_encoding(grid, 3, table.view());
  for (int p = 0; p < 60; ++p) {
    const int places[] = {p % 5, p / 5 % 4, p / 20};
    for (int c = 0; c < 18; ++c) {
      const double angle = places[c / 6] / std::pow(10000.0, 2 * (c % 6 / 2) / 6.0);
      EXPECT_NEAR(table.at(p, c), c % 2 == 0 ? std::sin(angle) : std::cos(angle), 1e-6) << p << " " << c;
    }
  }
}

TEST(PositionalEncoding, IsAdded) {
  OwnMatrix features = OwnMatrix::random(7, 5, 1, 1, 3);
  const OwnMatrix before = features;
  const OwnMatrix table = OwnMatrix::random(7, 5, 1, 2, 1);
  add_encoding(table.view(), features.view());
  for (int i = 0; i < 7; ++i) {
    for (int c = 0; c < 5; ++c) {
      EXPECT_EQ(features.at(i, c), before.at(i, c) + table.at(i, c));
    }
  }
}

TEST(PositionalEncoding, RefusesWhatDoesNotFit) {
  OwnMatrix table(6, 12);
  const auto message = [&](const AttentionGrid& grid, int axes, int columns) {
    Matrix t = table.view();
    t.columns = columns;
    return message_of([&] { sinusoidal_encoding(grid, axes, t); });
  };
  EXPECT_EQ(message({3, 2, 1}, 2, 12), "nothing was thrown");
  EXPECT_EQ(message({3, 3, 1}, 2, 12), "sinusoidal_encoding: expected table as a matrix of 9x12, got 6x12");
  EXPECT_EQ(message({3, 2, 1}, 2, 6),
            "sinusoidal_encoding: expected a table with a multiple of 4 columns for 2 axes, got 6");
  EXPECT_EQ(message({3, 2, 1}, 4, 12), "sinusoidal_encoding: expected 1 to 3 axes, got 4");
  EXPECT_NE(message({0, 2, 1}, 1, 12), "nothing was thrown");
  OwnMatrix features(5, 12);
  EXPECT_EQ(message_of([&] { add_encoding(table.view(), features.view()); }),
            "add_encoding: expected table as a matrix of 5x12, got 6x12");
}

}  // namespace
}  // namespace nonlocal
