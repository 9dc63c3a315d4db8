// Attention compared with PyTorch, which made what is expected: tests/parity/attention.py.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "model/safetensors.h"
#include "nonlocal/multi_head_attention.h"
#include "nonlocal/positional_encoding.h"
#include "random_matrix.h"
#include "reference/attention.h"

namespace nonlocal {
namespace {

using testing::OwnMatrix;
using testing::relative_error;

constexpr double kNear = 1e-5;

class Fixture {
 public:
  explicit Fixture(const char* name) : file_(std::string(PARITY_FOLDER "/") + name + ".safetensors") {}

  [[nodiscard]] std::vector<float> values(const std::string& name) const {
    return file_.floats(name, file_.shape(name));
  }
  [[nodiscard]] OwnMatrix matrix(const std::string& name) const {
    const model::Shape shape = file_.shape(name);
    OwnMatrix matrix(static_cast<int>(shape.at(0)), static_cast<int>(shape.at(1)));
    std::copy_n(values(name).data(), shape[0] * shape[1], matrix.view().data);
    return matrix;
  }
  [[nodiscard]] std::vector<std::uint8_t> padding() const {
    const std::vector<float> all = values("padding");
    return {all.begin(), all.end()};
  }

 private:
  model::Safetensors file_;
};

struct NamedMask {
  const char* name;
  AttentionMask mask;
  AttentionGrid grid;
  int radius;
  int frame_radius;
};
const NamedMask kMasks[] = {{"none", AttentionMask::kNone, {}, 0, 0},
                            {"bias", AttentionMask::kNone, {}, 0, 0},
                            {"padding", AttentionMask::kNone, {}, 0, 0},
                            {"causal", AttentionMask::kCausal, {}, 0, 0},
                            {"sequence", AttentionMask::kWindow, {24, 1, 1}, 3, 0},
                            {"frame", AttentionMask::kWindow, {6, 4, 1}, 1, 0},
                            {"frames", AttentionMask::kWindow, {3, 4, 2}, 1, 1}};

// Both the reference and the library are PyTorch's.
void expect_pytorchs(const Fixture& file, const std::string& relevance, AttentionParameters p) {
  const OwnMatrix query = file.matrix("query");
  const OwnMatrix key = file.matrix("key");
  const OwnMatrix value = file.matrix("value");
  const OwnMatrix bias = file.matrix("bias");
  const std::vector<std::uint8_t> padding = file.padding();
  for (const NamedMask& m : kMasks) {
    const std::string mask = m.name;
    if (mask == "bias" && relevance != "scaled_dot_product") {
      continue;
    }
    p.mask = m.mask;
    p.grid = m.grid;
    p.radius = m.radius;
    p.frame_radius = m.frame_radius;
    AttentionInput in{query.view(), key.view(), value.view()};
    if (mask == "bias") {
      in.bias = bias.view();
    }
    if (mask == "padding") {
      in.padding = padding;
    }
    const std::vector<float> expected = file.values("expected." + relevance + "." + mask);
    EXPECT_LT(relative_error(reference::attention(p, in), expected), kNear) << relevance << " " << mask;
    OwnMatrix out(p.queries, p.heads * p.value_dim);
    p.precision = AttentionPrecision::kFloat32;
    Attention(p).run(in, out.view());
    EXPECT_LT(relative_error(out.values(), expected), kNear) << relevance << " " << mask;
    if (is_supported(AttentionPrecision::kBfloat16)) {
      p.precision = AttentionPrecision::kBfloat16;
      Attention(p).run(in, out.view());
      EXPECT_LT(relative_error(out.values(), expected), 2e-2) << relevance << " " << mask << ", bfloat16";
    }
  }
}

TEST(AttentionParity, RelevancesAndMasksArePyTorchs) {
  const Fixture file("attention");
  AttentionParameters p;
  p.queries = p.keys = 24;
  p.dim = 6;
  p.value_dim = 5;
  p.heads = 2;
  expect_pytorchs(file, "scaled_dot_product", p);
  p.relevance = Relevance::kGaussian;
  expect_pytorchs(file, "gaussian", p);
  p.relevance = Relevance::kDotProduct;
  expect_pytorchs(file, "dot_product", p);
  const std::vector<float> weight = file.values("weight");
  p.relevance = Relevance::kConcatenation;
  p.relevance_weight = weight;
  p.relevance_bias = 0.25;
  expect_pytorchs(file, "concatenation", p);
  p.relevance = Relevance::kAdditive;
  p.relevance_weight = p.relevance_weight.first(6);
  expect_pytorchs(file, "additive", p);
}

TEST(AttentionParity, MultiHeadAttentionIsPyTorchs) {
  const Fixture file("multi_head_attention");
  const OwnMatrix query = file.matrix("query");
  const OwnMatrix key = file.matrix("key");
  const OwnMatrix value = file.matrix("value");
  const std::vector<std::uint8_t> padding = file.padding();
  const OwnMatrix weight[] = {file.matrix("q.weight"), file.matrix("k.weight"), file.matrix("v.weight"),
                              file.matrix("o.weight")};
  const std::vector<float> bias[] = {file.values("q.bias"), file.values("k.bias"), file.values("v.bias"),
                                     file.values("o.bias")};
  const MultiHeadWeights weights{{weight[0].view(), bias[0]},
                                 {weight[1].view(), bias[1]},
                                 {weight[2].view(), bias[2]},
                                 {weight[3].view(), bias[3]}};
  for (const std::string name : {"none", "padding", "causal"}) {
    AttentionParameters p;
    p.queries = 11;
    p.keys = 9;
    p.dim = 4;
    p.heads = 3;
    p.mask = name == "causal" ? AttentionMask::kCausal : AttentionMask::kNone;
    AttentionInput in{query.view(), key.view(), value.view()};
    if (name == "padding") {
      in.padding = padding;
    }
    for (const auto& [precision, near] :
         {std::pair(AttentionPrecision::kFloat32, kNear), std::pair(AttentionPrecision::kBfloat16, 2e-2)}) {
      if (!is_supported(precision)) {
        continue;
      }
      p.precision = precision;
      OwnMatrix out(11, 12);
      MultiHeadAttention(p, weights).run(in, out.view());
      EXPECT_LT(relative_error(out.values(), file.values("expected." + name)), near) << name;
    }
  }
}

TEST(AttentionParity, EncodingsArePyTorchs) {
  const Fixture file("positional_encoding");
  const auto found = [](const AttentionGrid& grid, int axes, int channels) {
    OwnMatrix table(grid.width * grid.height * grid.frames, channels, 3);
    sinusoidal_encoding(grid, axes, table.view());
    return table.values();
  };
  EXPECT_LT(relative_error(found({40, 1, 1}, 1, 4), file.values("sequence")), 1e-6);
  EXPECT_LT(relative_error(found({7, 5, 1}, 2, 12), file.values("frame")), 1e-6);
  EXPECT_LT(relative_error(found({4, 3, 3}, 3, 12), file.values("frames")), 1e-6);
}

}  // namespace
}  // namespace nonlocal
