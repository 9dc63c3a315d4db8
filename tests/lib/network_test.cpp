#include "nonlocal/network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "image.h"
#include "model/safetensors.h"
#include "nonlocal/error.h"

namespace nonlocal {
namespace {

namespace fs = std::filesystem;
using testing::Image;

const std::string kFolder = PARITY_FOLDER "/";

std::string fixture(const std::string& name) { return kFolder + "network_" + name + ".safetensors"; }

// Names of the fixtures: see tests/parity/network.py.
std::vector<std::string> fixtures() {
  std::vector<std::string> names;
  for (const std::string& tensor : model::Safetensors(fixture("frames")).names()) {
    if (tensor.ends_with(".input")) {
      names.push_back(tensor.substr(0, tensor.size() - 6));
    }
  }
  return names;
}

// Planes of floats, one after another.
struct Floats {
  Floats(int channels, int width, int height)
      : channels(channels),
        width(width),
        height(height),
        values(static_cast<std::size_t>(channels) * width * height) {}

  template <typename PlaneType>
  [[nodiscard]] std::vector<PlaneType> planes() {
    std::vector<PlaneType> all;
    for (int c = 0; c < channels; ++c) {
      all.push_back({values.data() + static_cast<std::size_t>(c) * width * height, width, height, width});
    }
    return all;
  }

  int channels, width, height;
  std::vector<float> values;
};

Floats run(Network& network, Floats& in, const NetworkParameters& parameters = {}) {
  Floats out(network.output_channels(), network.output_size(in.width), network.output_size(in.height));
  network.run(in.planes<ConstFloatPlane>(), out.planes<FloatPlane>(), parameters);
  return out;
}

// What a fixture's frames are, and what PyTorch makes of the last.
struct Fixture {
  explicit Fixture(const std::string& name) {
    const model::Safetensors file(fixture("frames"));
    const model::Shape shape = file.shape(name + ".input");
    const std::vector<float> values = file.floats(name + ".input", shape);
    const auto side = [&](std::size_t i) { return static_cast<int>(shape[i]); };
    for (std::size_t i = 0; i < shape[0]; ++i) {
      Floats& frame = frames.emplace_back(side(1), side(3), side(2));
      std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(i * frame.values.size()), frame.values.size(),
                  frame.values.begin());
    }
    expected_shape = file.shape(name + ".expected");
    expected = file.floats(name + ".expected", expected_shape);
    if (file.has(name + ".condition")) {
      parameters.condition = file.floats(name + ".condition", {1})[0];
    }
  }

  std::vector<Floats> frames;
  model::Shape expected_shape;
  std::vector<float> expected;
  NetworkParameters parameters;
};

double root_mean_square(const std::vector<float>& values) {
  double sum = 0;
  for (const float v : values) {
    sum += static_cast<double>(v) * v;
  }
  return std::sqrt(sum / static_cast<double>(values.size()));
}

class NetworkParity : public ::testing::TestWithParam<std::string> {
 protected:
  // Of the last frame: against the size of what is expected.
  static void expect_near(NetworkPrecision precision, double most, double most_mean) {
    Fixture fixture_data(GetParam());
    Network network(fixture(GetParam()), precision);
    std::vector<float> out;
    for (Floats& frame : fixture_data.frames) {
      out = run(network, frame, fixture_data.parameters).values;
    }
    ASSERT_EQ(out.size(), fixture_data.expected.size());
    ASSERT_EQ(network.output_size(fixture_data.frames[0].width),
              static_cast<int>(fixture_data.expected_shape[2]));
    const double size = root_mean_square(fixture_data.expected);
    std::vector<float> error(out.size());
    float largest = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      error[i] = out[i] - fixture_data.expected[i];
      largest = std::isnan(error[i]) ? INFINITY : std::max(largest, std::abs(error[i]));
    }
    EXPECT_LT(largest / size, most);
    EXPECT_LT(root_mean_square(error) / size, most_mean);
    RecordProperty("largest", std::to_string(largest / size));
    RecordProperty("mean", std::to_string(root_mean_square(error) / size));
  }
};

// PyTorch made what is expected, in double precision.
TEST_P(NetworkParity, Float32IsPyTorchs) { expect_near(NetworkPrecision::kFloat32, 1e-4, 2e-5); }

TEST_P(NetworkParity, Bfloat16IsNearPyTorchs) {
  if (!is_supported(NetworkPrecision::kBfloat16)) {
    GTEST_SKIP() << "this CPU has no AVX512_BF16";
  }
  expect_near(NetworkPrecision::kBfloat16, 8e-2, 2e-2);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, NetworkParity, ::testing::ValuesIn(fixtures()),
                         [](const auto& parameter) { return parameter.param; });

}  // namespace
}  // namespace nonlocal
