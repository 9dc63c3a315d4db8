// Convolutions of bfloat16, in Intel's AMX's tiles where the CPU has them: of every shape, against plain
// sums.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "float_planes.h"
#include "forced_instruction_set.h"
#include "network_file.h"
#include "nonlocal/network.h"
#include "random_matrix.h"

namespace nonlocal {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::Floats;
using Tensors = std::vector<model::NamedTensor>;

float rounded(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  bits = (bits + 0x8000) & 0xFFFF0000;
  std::memcpy(&value, &bits, sizeof bits);
  return value;
}

// Values that bfloat16 has.
Floats random_planes(int channels, int width, int height) {
  Floats planes(channels, width, height);
  std::mt19937 random(7);
  std::uniform_real_distribution<float> value(-1, 1);
  std::generate(planes.values.begin(), planes.values.end(), [&] { return rounded(value(random)); });
  return planes;
}

class TileConvolution : public ::testing::Test {
 protected:
  TileConvolution() {
    std::string name = (fs::temp_directory_path() / "tile_convolution_test.XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~TileConvolution() override { fs::remove_all(folder_); }
  void SetUp() override {
    if (!is_supported(NetworkPrecision::kBfloat16)) {
      GTEST_SKIP() << "no bfloat16";
    }
  }

  void write(int channels, const json& layers, const Tensors& tensors) const {
    testing::write_network(path(), {{"input", {{"channels", channels}}}, {"layers", layers}}, tensors);
  }
  [[nodiscard]] Floats run(Floats& in, NetworkPrecision precision = NetworkPrecision::kBfloat16) const {
    Network network(path(), precision);
    Floats out(network.output_channels(), network.output_size(in.width), network.output_size(in.height));
    network.run(in.planes<ConstFloatPlane>(), out.planes<FloatPlane>(), {.condition = {}, .threads = 2});
    return out;
  }
  // In tiles, where there are any, and without.
  void expect_alike(Floats& in) const {
    const std::vector<float> found = run(in).values;
    const testing::ForcedInstructionSet without(plain_set());
    EXPECT_LT(testing::relative_error(found, run(in).values), 1e-2);
  }
  static std::string plain_set() {
    const std::vector<std::string> sets = instruction_sets();
    return sets[sets.front().ends_with("_AMX") ? 1 : 0];
  }
  [[nodiscard]] std::string path() const { return (folder_ / "a.safetensors").string(); }

 private:
  fs::path folder_;
};

struct Shape {
  int in, out, kernel, stride;
};

// Zeros beyond the frame.
double plain_sum(const Floats& in, const model::NamedTensor& weight, const Shape& s, int channel, int x,
                 int y) {
  double sum = 0;
  for (int c = 0; c < s.in; ++c) {
    for (int i = 0; i < s.kernel; ++i) {
      for (int j = 0; j < s.kernel; ++j) {
        const int in_x = x * s.stride + j - s.kernel / 2;
        const int in_y = y * s.stride + i - s.kernel / 2;
        if (in_x >= 0 && in_y >= 0 && in_x < in.width && in_y < in.height) {
          const int tap = ((channel * s.in + c) * s.kernel + i) * s.kernel + j;
          sum += static_cast<double>(weight.values[static_cast<std::size_t>(tap)]) * in.at(c, in_x, in_y);
        }
      }
    }
  }
  return sum;
}

// Frames of even sides: others are mirrored up to the stride. Whole and partial tiles of channels, on both
// sides; strips of 16 pixels, whole, partial and beside the border.
TEST_F(TileConvolution, EveryShapeIsThePlainSum) {
  std::vector<Shape> shapes;
  for (const int out : {1, 4, 15, 16, 17, 32, 33, 48, 49, 64, 80, 100, 112}) {
    shapes.push_back({4, out, 3, 1});
    shapes.push_back({16, out, 1, 1});
  }
  for (const int in : {1, 2, 3, 5, 8, 16, 17, 31, 32, 34, 48, 50, 62, 64, 100}) {
    for (const int kernel : {1, 3, 5, 7}) {
      shapes.push_back({in, 20, kernel, 1});
    }
    shapes.push_back({in, 20, 3, 2});
  }
  for (const Shape& s : shapes) {
    Tensors tensors;
    json layer = testing::add_convolution("conv", s.in, s.out, s.kernel, tensors);
    layer["stride"] = s.stride;
    for (float& value : tensors[0].values) {
      value = rounded(value);
    }
    write(s.in, json::array({layer}), tensors);
    for (const auto& [width, height] : std::vector<std::pair<int, int>>{{54, 6}, {10, 4}}) {
      Floats in = random_planes(s.in, width, height);
      const Floats out = run(in);
      double most = 0;
      for (int c = 0; c < s.out; ++c) {
        for (int y = 0; y < out.height; ++y) {
          for (int x = 0; x < out.width; ++x) {
            const double expected = 0.01F + plain_sum(in, tensors[0], s, c, x, y);
            most = std::max(most, std::abs(out.at(c, x, y) - expected));
          }
        }
      }
      EXPECT_LT(most, 2e-5) << s.in << " to " << s.out << ", " << s.kernel << "x" << s.kernel << ", stride "
                            << s.stride << ", " << width << "x" << height;
    }
  }
}

// Activations and sums before and behind them, in bfloat16 between the layers.
TEST_F(TileConvolution, WhatFollowsIsAsWithout) {
  for (const int channels : {8, 24, 48, 72}) {
    for (const json& activation : std::vector<json>{{{"type", "relu"}},
                                                    {{"type", "leaky_relu"}},
                                                    {{"type", "leaky_relu"}, {"slope", 1.5}},
                                                    {{"type", "leaky_relu"}, {"slope", -0.5}},
                                                    {{"type", "gelu"}}}) {
      for (const bool is_sum_first : {true, false}) {
        Tensors tensors;
        json layers = json::array({testing::add_convolution("a", 3, channels, 3, tensors)});
        layers.push_back(testing::add_convolution("b", channels, channels, 3, tensors));
        json clip = activation;
        clip["name"] = "clip";
        const json sum = {{"name", "sum"}, {"type", "add"}, {"inputs", {is_sum_first ? "b" : "clip", "a"}}};
        layers.push_back(is_sum_first ? sum : clip);
        layers.push_back(is_sum_first ? clip : sum);
        layers.push_back(testing::add_convolution("c", channels, 3, 1, tensors));
        write(3, layers, tensors);
        Floats in = random_planes(3, 45, 23);
        SCOPED_TRACE(std::to_string(channels) + activation.dump() + (is_sum_first ? ", sum first" : ""));
        expect_alike(in);
      }
    }
  }
}

TEST_F(TileConvolution, NegativeInfinityIsClipped) {
  for (const char* activation : {"relu", "leaky_relu"}) {
    Tensors tensors;
    json layers = json::array({testing::add_convolution("a", 1, 20, 1, tensors)});
    std::fill(tensors[0].values.begin(), tensors[0].values.end(), -3e38F);
    layers.push_back({{"name", "clip"}, {"type", activation}});
    write(1, layers, tensors);
    Floats in(1, 20, 3);
    std::fill(in.values.begin(), in.values.end(), 3.0F);
    const bool is_relu = std::string(activation) == "relu";
    for (const float value : run(in).values) {
      EXPECT_EQ(value, is_relu ? 0 : -std::numeric_limits<float>::infinity());
    }
  }
}

// A fourth channel that fills up is 0.5 after the sigmoid. If sums and products kept it, it would end as
// infinity times a weight of 0.
TEST_F(TileConvolution, WhatFillsUpDoesNotGrow) {
  Tensors tensors;
  json layers = json::array({testing::add_convolution("a", 3, 3, 1, tensors)});
  std::fill(tensors[0].values.begin(), tensors[0].values.end(), -1.0F);
  layers.push_back({{"name", "l0"}, {"type", "sigmoid"}});
  for (int i = 1; i < 11; ++i) {
    const std::string before = std::string("l").append(std::to_string(i - 1));
    layers.push_back({{"name", std::string("l").append(std::to_string(i))},
                      {"type", i < 3 ? "add" : "multiply"},
                      {"inputs", {before, before}}});
  }
  layers.push_back(testing::add_convolution("c", 3, 3, 1, tensors));
  write(3, layers, tensors);
  Floats in(3, 7, 5);
  std::fill(in.values.begin(), in.values.end(), 1.0F);
  const std::vector<float> expected = run(in, NetworkPrecision::kFloat32).values;
  const std::vector<float> found = run(in).values;
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], 0.01);
  }
}

// The shuffle of many channels moves them as they are, in either precision.
TEST_F(TileConvolution, ShuffledChannelsAreWhereTheyBelong) {
  for (const int channels : {4, 8, 12, 16, 24}) {
    Tensors tensors;
    json layers = json::array({testing::add_convolution("a", 2, 4 * channels, 3, tensors)});
    layers.push_back({{"name", "shuffle"}, {"type", "pixel_shuffle"}, {"factor", 2}});
    layers.push_back(testing::add_convolution("b", channels, 3, 1, tensors));
    write(2, layers, tensors);
    Floats in = random_planes(2, 33, 9);
    EXPECT_LT(testing::relative_error(run(in).values, run(in, NetworkPrecision::kFloat32).values), 2e-2)
        << channels;
  }
}

}  // namespace
}  // namespace nonlocal
