#include "nonlocal/network.h"

#include <gtest/gtest.h>

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <new>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "float_planes.h"
#include "forced_instruction_set.h"
#include "image.h"
#include "model/safetensors.h"
#include "network/network_access.h"
#include "network_file.h"
#include "nonlocal/cpu.h"
#include "nonlocal/error.h"
#include "random_matrix.h"

#ifndef NONLOCAL_SANITIZED

// What a frame allocates is counted here, for the whole process: all that the library asks for, what oneDNN
// asks for itself apart. So are primitives.
namespace {

std::atomic<bool> is_counting = false;
std::atomic<int> allocations = 0;
std::atomic<int> primitives = 0;

// Whether the code at this address is oneDNN's.
bool is_onednn(const void* code) {
  Dl_info from;
  return dladdr(code, &from) != 0 && from.dli_fname != nullptr &&
         std::strstr(from.dli_fname, "libdnnl") != nullptr;
}

void* counted(std::size_t size, std::size_t alignment, const void* caller) {
  if (is_counting && !is_onednn(caller)) {
    ++allocations;
  }
  void* memory =
      std::aligned_alloc(alignment, (std::max<std::size_t>(size, 1) + alignment - 1) / alignment * alignment);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return counted(size, 16, __builtin_return_address(0)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return counted(size, static_cast<std::size_t>(alignment), __builtin_return_address(0));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

// In place of oneDNN's own, which it then calls.
extern "C" [[gnu::visibility("default")]] int dnnl_primitive_create(void** primitive,
                                                                    const void* description) {
  using Create = int (*)(void**, const void*);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "dnnl_primitive_create"));
  ++primitives;
  return create(primitive, description);
}

#endif

namespace nonlocal {
namespace {

namespace fs = std::filesystem;
using testing::Floats;
using testing::Image;

const std::string kFolder = PARITY_FOLDER "/";

std::string fixture(const std::string& name) {
  constexpr std::string_view kBundled = "bundled_";
  if (name.starts_with(kBundled)) {
    return find_model(name.substr(kBundled.size()));
  }
  return kFolder + "network_" + name + ".safetensors";
}

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
    if (file.has(name + ".rounded")) {
      rounded = file.floats(name + ".rounded", expected_shape);
    }
    if (file.has(name + ".condition")) {
      parameters.condition = file.floats(name + ".condition", {1})[0];
    }
  }

  std::vector<Floats> frames;
  model::Shape expected_shape;
  std::vector<float> expected;
  std::vector<float> rounded;  // in 8 bits, of those whose files tell ranges
  NetworkParameters parameters;
};

// Without a mean with the frame before, which has a fixture of its own: its planes are of 15 bits.
Network layers_of(const std::string& name, NetworkPrecision precision) {
  return Network(fixture(name), precision, summarise_model(fixture(name)).frames);
}

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
    Network network = layers_of(GetParam(), precision);
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

std::vector<float> difference(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> all(a.size());
  std::transform(a.begin(), a.end(), b.begin(), all.begin(), std::minus<>());
  return all;
}

double share_beyond(const std::vector<float>& values, float most) {
  const auto is_beyond = [most](float value) { return std::abs(value) > most; };
  return static_cast<double>(std::count_if(values.begin(), values.end(), is_beyond)) /
         static_cast<double>(values.size());
}

// PyTorch rounds what lies between layers, and the weights, in floating point: with VNNI alone its very
// values (see Network.OnCpu), but for what one or another value sees that lies half-way between two bytes:
// 255 in float has an error of 1e-5, and there are some 70,000 values. A weight that is rounded otherwise
// changes everything. What is not of bytes is bfloat16 where the CPU has that.
TEST_P(NetworkParity, Int8IsWhatPyTorchRounds) {
  Fixture data(GetParam());
  if (!is_supported(NetworkPrecision::kInt8) || data.rounded.empty()) {
    GTEST_SKIP() << "no ranges in the file, or no VNNI";
  }
  for (const std::string& isa : instruction_sets()) {
    const testing::ForcedInstructionSet forced(isa);
    if (!is_supported(NetworkPrecision::kInt8)) {
      continue;
    }
    Network network = layers_of(GetParam(), NetworkPrecision::kInt8);
    const std::vector<float> out = run(network, data.frames.back()).values;
    const double lost = root_mean_square(difference(data.rounded, data.expected));
    const std::vector<float> off = difference(out, data.rounded);
    EXPECT_LT(root_mean_square(off), 0.6 * lost) << isa;
    if (!is_supported(NetworkPrecision::kBfloat16)) {
      EXPECT_LT(share_beyond(off, 1e-6F), 0.25) << isa;
    }
    EXPECT_GT(lost, 1e-3);
  }
}

// A frame of any size: waves and noise, within the network's range.
Floats some_frame(int channels, int width, int height, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> noise(0, 0.3F);
  Floats frame(channels, width, height);
  for (std::size_t i = 0; i < frame.values.size(); ++i) {
    frame.values[i] = 0.35F + 0.3F * std::sin(0.1F * static_cast<float>(i % 977)) + noise(random);
  }
  return frame;
}

bool is_same(const Floats& a, const Floats& b) {
  return a.values.size() == b.values.size() &&
         std::memcmp(a.values.data(), b.values.data(), a.values.size() * sizeof(float)) == 0;
}

// Those that the CPU and the file have.
std::vector<NetworkPrecision> precisions(const std::string& path) {
  std::vector<NetworkPrecision> all = {NetworkPrecision::kFloat32};
  if (is_supported(NetworkPrecision::kBfloat16)) {
    all.push_back(NetworkPrecision::kBfloat16);
  }
  if (is_supported(NetworkPrecision::kInt8) && summarise_model(path).has_ranges) {
    all.push_back(NetworkPrecision::kInt8);
  }
  return all;
}

class NetworkFixtures : public ::testing::TestWithParam<std::string> {};
class LocalFixtures : public ::testing::TestWithParam<std::string> {};

// Where oneDNN has nothing better than products of whole matrices, their size may decide the order of sums.
bool sums_in_one_order() {
  return instruction_set().starts_with("AVX3") && std::getenv("DNNL_MAX_CPU_ISA") == nullptr;
}

float largest_difference(const Floats& a, const Floats& b) {
  float most = 0;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    most = std::max(most, std::abs(a.values[i] - b.values[i]));
  }
  return most;
}

// Local ones are cut into tiles, whose borders no one sees: not even in the last bit.
TEST_P(LocalFixtures, TilesAreWhole) {
  const ModelSummary summary = summarise_model(fixture(GetParam()));
  const auto up = [&](int side) {
    return (side + summary.multiple - 1) / summary.multiple * summary.multiple;
  };
  for (const NetworkPrecision precision : precisions(fixture(GetParam()))) {
    Network network = layers_of(GetParam(), precision);
    Floats frame = some_frame(network.input_channels(), 97, 74);
    NetworkAccess::set_tile(network, up(97), up(74));
    const Floats whole = run(network, frame);
    for (const auto& [width, height] :
         std::vector<std::pair<int, int>>{{16, 24}, {40, 8}, {97, 31}, {0, 0}}) {
      NetworkAccess::set_tile(network, up(width), up(height));
      const Floats tiled = run(network, frame);
      EXPECT_LT(largest_difference(tiled, whole), sums_in_one_order() ? 1e-30F : 1e-6F)
          << width << "x" << height;
    }
  }
}

TEST_P(NetworkFixtures, ThreadsGiveTheSameBytes) {
  for (const NetworkPrecision precision : precisions(fixture(GetParam()))) {
    Network network(fixture(GetParam()), precision);
    std::vector<Floats> frames;
    for (unsigned i = 0; i < 3; ++i) {
      frames.push_back(some_frame(network.input_channels(), 83, 66, i));
    }
    std::vector<Floats> first;
    for (const int threads : {1, 2, 3, 7}) {
      network.reset();
      for (std::size_t i = 0; i < frames.size(); ++i) {
        const Floats out = run(network, frames[i], {.condition = {}, .threads = threads});
        if (threads == 1) {
          first.push_back(out);
        }
        EXPECT_TRUE(is_same(out, first[i])) << threads << " threads, frame " << i;
      }
    }
  }
}

// Intel's AMX makes convolutions and attention of bfloat16 by itself where it is, in place of oneDNN's
// primitives.
TEST_P(NetworkFixtures, TilesGiveWhatPrimitivesGive) {
  if (!instruction_set().ends_with("_AMX")) {
    GTEST_SKIP() << "no AMX";
  }
  for (const auto& [width, height] : std::vector<std::pair<int, int>>{{1, 1}, {17, 9}, {61, 47}, {150, 33}}) {
    const auto frames = [&, width = width, height = height](const char* isa) {
      const testing::ForcedInstructionSet forced(isa);
      Network network(fixture(GetParam()), NetworkPrecision::kBfloat16);
      std::vector<float> values;
      for (unsigned i = 0; i < 2; ++i) {
        Floats frame = some_frame(network.input_channels(), width, height, i);
        const Floats out = run(network, frame);
        values.insert(values.end(), out.values.begin(), out.values.end());
      }
      return values;
    };
    const std::vector<float> in_tiles = frames("");
    const std::vector<float> expected = frames(instruction_sets()[1].c_str());
    EXPECT_LT(testing::relative_error(in_tiles, expected), 2e-2) << width << "x" << height;
  }
}

TEST_P(NetworkFixtures, EverySizeRuns) {
  for (const NetworkPrecision precision : precisions(fixture(GetParam()))) {
    Network network(fixture(GetParam()), precision);
    for (const auto& [width, height] :
         std::vector<std::pair<int, int>>{{1, 1}, {2, 1}, {1, 5}, {3, 2}, {17, 9}}) {
      Floats frame = some_frame(network.input_channels(), width, height);
      for (const float value : run(network, frame).values) {
        ASSERT_TRUE(std::isfinite(value)) << width << "x" << height;
      }
    }
  }
}

// Sanitizers count for themselves.
#ifndef NONLOCAL_SANITIZED

// The first frame makes primitives and memory, the others none.
TEST_P(NetworkFixtures, FramesAllocateNothing) {
  for (const NetworkPrecision precision : precisions(fixture(GetParam()))) {
    Network network(fixture(GetParam()), precision);
    Floats frame = some_frame(network.input_channels(), 61, 47);
    Floats out(network.output_channels(), network.output_size(61), network.output_size(47));
    const auto in_planes = frame.planes<ConstFloatPlane>();
    const auto out_planes = out.planes<FloatPlane>();
    const int before = primitives;
    network.run(in_planes, out_planes, {.condition = {}, .threads = 2});
    const int made = primitives;
    // With AMX bfloat16 may need none: see TilesGiveWhatPrimitivesGive.
    if (precision == NetworkPrecision::kFloat32 || !instruction_set().ends_with("_AMX")) {
      EXPECT_GT(made, before);
    }
    allocations = 0;
    is_counting = true;
    for (int i = 0; i < 5; ++i) {
      network.run(in_planes, out_planes, {.condition = {}, .threads = 2});
    }
    is_counting = false;
    EXPECT_EQ(allocations, 0);
    EXPECT_EQ(primitives, made);
  }
}

#endif

TEST_P(NetworkFixtures, ResetForgets) {
  Network network(fixture(GetParam()), NetworkPrecision::kFloat32);
  Floats first = some_frame(network.input_channels(), 40, 33, 1);
  Floats second = some_frame(network.input_channels(), 40, 33, 2);
  const Floats alone = run(network, second);
  network.reset();
  run(network, first);
  EXPECT_EQ(is_same(run(network, second), alone), network.frames() == 1);
  network.reset();
  EXPECT_TRUE(is_same(run(network, second), alone));
}

INSTANTIATE_TEST_SUITE_P(Fixtures, NetworkParity, ::testing::ValuesIn(fixtures()),
                         [](const auto& parameter) { return parameter.param; });

INSTANTIATE_TEST_SUITE_P(Fixtures, NetworkFixtures, ::testing::ValuesIn(fixtures()),
                         [](const auto& parameter) { return parameter.param; });

// Those that no layer needs the whole frame for.
std::vector<std::string> local_fixtures() {
  std::vector<std::string> names = fixtures();
  std::erase_if(names, [](const std::string& name) {
    return summarise_model(fixture(name)).layers.back().receptive_field == 0;
  });
  return names;
}

INSTANTIATE_TEST_SUITE_P(Fixtures, LocalFixtures, ::testing::ValuesIn(local_fixtures()),
                         [](const auto& parameter) { return parameter.param; });

class NetworkTest : public ::testing::Test {
 protected:
  NetworkTest() {
    std::string name = (fs::temp_directory_path() / "network_test.XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~NetworkTest() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string path() const { return (folder_ / "a.safetensors").string(); }
  void write(const std::vector<char>& bytes) const {
    std::ofstream(path(), std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  fs::path folder_;
};

using NetworkFile = NetworkTest;
using NetworkVideo = NetworkTest;
using nlohmann::json;
using Tensors = std::vector<model::NamedTensor>;

// As training begins.
TEST_F(NetworkFile, BlockOfZerosIsTheIdentity) {
  for (const char* mode : {"gaussian", "embedded_gaussian", "dot_product", "concatenation"}) {
    Tensors tensors;
    if (std::string(mode) != "gaussian") {
      testing::add_convolution("block.theta", 6, 3, 1, tensors);
      testing::add_convolution("block.phi", 6, 3, 1, tensors);
    }
    testing::add_convolution("block.g", 6, 3, 1, tensors);
    if (std::string(mode) == "concatenation") {
      tensors.push_back({"block.f.weight", {1, 6, 1, 1}, std::vector<float>(6, 0.5F)});
    }
    tensors.push_back({"block.z.weight", {6, 3, 1, 1}, std::vector<float>(18)});
    tensors.push_back({"block.z.bias", {6}, std::vector<float>(6)});
    testing::write_network(path(),
                           {{"input", {{"channels", 6}}},
                            {"layers", {{{"name", "block"}, {"type", "non_local"}, {"mode", mode}}}}},
                           tensors);
    Network network(path(), NetworkPrecision::kFloat32);
    Floats frame = some_frame(6, 21, 13);
    EXPECT_TRUE(is_same(run(network, frame), frame)) << mode;
  }
}

// What loading says is wrong with the file, without its name.
std::string problem(const std::string& path) {
  try {
    const Network network(path, NetworkPrecision::kFloat32);
  } catch (const ModelError& e) {
    const std::string text = e.what();
    EXPECT_EQ(text.find(path + ": "), 0U) << text;
    return text.substr(path.size() + 2);
  }
  return "";
}

std::vector<char> bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A table of 4 MB would be laid out in 4 GB.
TEST_F(NetworkFile, APositionBiasThatIsHugeIsRefused) {
  Tensors tensors;
  for (const char* part : {"query", "key", "value", "out"}) {
    testing::add_convolution(std::string("block.") + part, 64, 64, 1, tensors);
  }
  constexpr int kWays = 2 * 64 - 1;
  tensors.push_back({"block.relative_bias", {kWays * kWays, 64}, std::vector<float>(kWays * kWays * 64)});
  const json block = {{"name", "block"},
                      {"type", "window_attention"},
                      {"window", 64},
                      {"heads", 64},
                      {"relative_bias", true}};
  testing::write_network(path(), {{"input", {{"channels", 64}}}, {"layers", {block}}}, tensors);
  EXPECT_EQ(problem(path()),
            "layer \"block\": expected \"relative_bias\" of at most 16777216 pairs (heads window^4), found "
            "1073741824");
}

TEST_F(NetworkFile, CutAnywhereIsRefused) {
  for (const char* name : {"convolutions", "window_attention"}) {
    const std::vector<char> whole = bytes_of(fixture(name));
    for (std::size_t size = 0; size < whole.size(); size += 1000) {
      write({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)});
      EXPECT_NE(problem(path()), "") << size;
    }
    std::vector<char> longer = whole;
    longer.push_back(0);
    write(longer);
    EXPECT_NE(problem(path()), "");
  }
}

// It is refused, or it is a network, with other weights or fields: then it runs, whatever comes out.
TEST_F(NetworkFile, FlippedBitsAreRefusedOrRun) {
  for (const char* name : {"embedded_gaussian_norm", "restorer"}) {
    const std::vector<char> whole = bytes_of(fixture(name));
    const std::size_t header =
        8 + static_cast<unsigned char>(whole[0]) + 256U * static_cast<unsigned char>(whole[1]);
    std::mt19937 random(1);
    int refused = 0;
    for (int i = 0; i < 1000; ++i) {
      std::vector<char> flipped = whole;
      // Most of them where the header is.
      const std::size_t at = random() % (i % 4 == 0 ? whole.size() : header);
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << random() % 8));
      write(flipped);
      try {
        Network network(path(), precisions(path()).back());
        Floats frame = some_frame(network.input_channels(), 12, 9);
        run(network, frame, {.condition = {}, .threads = 1});
      } catch (const ModelError&) {
        ++refused;
      }
    }
    EXPECT_GT(refused, 500) << name;
    EXPECT_LT(refused, 1000) << name;
  }
}

// A sound description of 3 -> 4 -> 3 channels, to be spoilt.
struct Draft {
  Draft() {
    description = {{"input", {{"channels", 3}}}};
    json& layers = description["layers"];
    layers.push_back(testing::add_convolution("head", 3, 4, 3, tensors));
    layers.push_back({{"name", "relu"}, {"type", "relu"}});
    layers.push_back(testing::add_convolution("tail", 4, 3, 3, tensors));
  }
  json description;
  Tensors tensors;
};

class SpoiltFile : public NetworkTest {
 protected:
  std::string after(const std::function<void(Draft&)>& spoil) const {
    Draft draft;
    spoil(draft);
    testing::write_network(path(), draft.description, draft.tensors);
    return problem(path());
  }
  std::string after_layer(const std::function<void(json&)>& spoil, std::size_t i = 0) const {
    return after([&](Draft& d) { spoil(d.description["layers"][i]); });
  }
};

TEST_F(SpoiltFile, IsSoundBefore) {
  EXPECT_EQ(after([](Draft&) {}), "");
}

TEST_F(SpoiltFile, TensorsAreChecked) {
  EXPECT_EQ(after([](Draft& d) { d.tensors.pop_back(); }),
            "expected a tensor \"tail.bias\", found none of this name");
  EXPECT_EQ(after([](Draft& d) {
              d.tensors.push_back({"extra", {1}, {0}});
            }),
            "tensor \"extra\": no layer has a tensor of this name");
  EXPECT_EQ(after([](Draft& d) { std::swap(d.tensors[0].shape[0], d.tensors[0].shape[1]); }),
            "tensor \"head.weight\": expected the shape [4, 3, 3, 3], found [3, 4, 3, 3]");
  EXPECT_EQ(after([](Draft& d) { std::swap(d.tensors[0].name, d.tensors[2].name); }),
            "tensor \"head.weight\": expected the shape [4, 3, 3, 3], found [3, 4, 3, 3]");
  EXPECT_EQ(after([](Draft& d) { d.tensors[2].values[7] = std::nanf(""); }),
            "tensor \"tail.weight\": expected finite values, value 7 is not");
  EXPECT_EQ(after([](Draft& d) { d.tensors[3].values[1] = INFINITY; }),
            "tensor \"tail.bias\": expected finite values, value 1 is not");
}

TEST_F(SpoiltFile, RangesAreChecked) {
  const auto with_range = [&](const char* name, model::Shape shape, std::vector<float> values) {
    return after([&](Draft& d) { d.tensors.push_back({name, std::move(shape), std::move(values)}); });
  };
  EXPECT_EQ(with_range("relu.range", {2, 4}, {0, 0, 0, 0, 1, 1, 1, 0}), "");
  EXPECT_EQ(with_range("relu.range", {4, 2}, {0, 0, 0, 0, 1, 1, 1, 0}),
            "tensor \"relu.range\": expected the shape [2, 4], found [4, 2]");
  EXPECT_EQ(with_range("relu.range", {2, 4}, {0, 0, 0.5F, 0, 1, 1, 0.25F, 0}),
            "layer \"relu\": tensor \"relu.range\": expected the smallest values and then the largest, found "
            "0.500000 and 0.250000 of channel 2");
  EXPECT_NE(with_range("relu.range", {2, 4}, {0, 0, NAN, 0, 1, 1, 1, 1}), "");
  EXPECT_NE(with_range("nothing.range", {2, 4}, {0, 0, 0, 0, 1, 1, 1, 1}), "");
}

// All that a range may be: nothing, hardly anything, huge, of one sign, and of other channels' size.
TEST_F(NetworkFile, RangesOfAnySizeRun) {
  if (!is_supported(NetworkPrecision::kInt8)) {
    GTEST_SKIP() << "no VNNI";
  }
  const std::vector<std::pair<float, float>> limits = {{0, 0}, {-1e-30F, 1e-30F}, {-3e38F, 3e38F}, {-2, -1},
                                                       {1, 2}, {0, 3e38F},        {-1e-38F, 0},    {-1, 1}};
  for (std::size_t first = 0; first < 2 * limits.size(); ++first) {
    Draft draft;
    if (first >= limits.size()) {
      std::fill(draft.tensors[2].values.begin(), draft.tensors[2].values.end(), 1e5F);
    }
    std::vector<float> values(8);
    for (std::size_t c = 0; c < 4; ++c) {
      std::tie(values[c], values[c + 4]) = limits[(c < 2 ? first : first + c) % limits.size()];
    }
    draft.tensors.push_back({"relu.range", {2, 4}, values});
    testing::write_network(path(), draft.description, draft.tensors);
    Network network(path(), NetworkPrecision::kInt8);
    Floats frame = some_frame(3, 20, 14);
    for (const float value : run(network, frame).values) {
      ASSERT_TRUE(std::isfinite(value)) << first;
    }
  }
}

// Zeros beyond a frame's sides are zeros, too, where 0 lies between two of the 255 steps of its range.
TEST_F(NetworkFile, BytesOfAFrameArePaddedWithZeros) {
  if (!is_supported(NetworkPrecision::kInt8)) {
    GTEST_SKIP() << "no VNNI";
  }
  Tensors tensors;
  const json one = testing::add_convolution("one", 1, 1, 1, tensors);
  json nine = testing::add_convolution("nine", 1, 1, 3, tensors);
  nine["inputs"] = {"input"};
  for (model::NamedTensor& tensor : tensors) {
    std::fill(tensor.values.begin(), tensor.values.end(), tensor.name == "nine.weight" ? 1.0F : 0.0F);
  }
  tensors.push_back({"relu.range", {2, 1}, {0, 1}});
  testing::write_network(path(),
                         {{"input", {{"channels", 1}, {"range", {-0.5, 0.5}}}},
                          {"layers",
                           {one,
                            {{"name", "relu"}, {"type", "relu"}},
                            nine,
                            {{"name", "sum"}, {"type", "add"}, {"inputs", {"relu", "nine"}}}}}},
                         tensors);
  Floats bright(1, 8, 6);
  std::fill(bright.values.begin(), bright.values.end(), 0.5F);
  Network network(path(), NetworkPrecision::kInt8);
  const Floats out = run(network, bright);
  EXPECT_NEAR(out.values[0], 4 * 0.5, 1e-3);
  EXPECT_NEAR(out.values[1], 6 * 0.5, 1e-3);
  EXPECT_NEAR(out.values[9], 9 * 0.5, 1e-3);
}

// Whatever range a file tells for what is the frame, only rearranged, its values are the frame's.
TEST_F(NetworkFile, BytesOfAShuffledFrameAreTheFrames) {
  if (!is_supported(NetworkPrecision::kInt8)) {
    GTEST_SKIP() << "no VNNI";
  }
  struct Case {
    double low;
    std::vector<float> range;
  };
  for (const Case& c : {Case{-0.01, {-0.01F, 1}}, {0, {-10, 10}}, {0.1, {0, 0}}}) {
    Tensors tensors;
    const json head = testing::add_convolution("head", 1, 1, 1, tensors);
    const json tail = testing::add_convolution("tail", 1, 1, 1, tensors);
    for (model::NamedTensor& tensor : tensors) {
      std::fill(tensor.values.begin(), tensor.values.end(), tensor.name.ends_with("bias") ? 0.0F : 1.0F);
    }
    tensors.push_back({"back.range", {2, 1}, c.range});
    tensors.push_back({"relu.range", {2, 1}, {0, 1}});
    testing::write_network(path(),
                           {{"input", {{"channels", 1}, {"range", {c.low, 1}}}},
                            {"layers",
                             {{{"name", "apart"}, {"type", "pixel_unshuffle"}, {"factor", 2}},
                              {{"name", "back"}, {"type", "pixel_shuffle"}, {"factor", 2}},
                              head,
                              {{"name", "relu"}, {"type", "relu"}},
                              tail}}},
                           tensors);
    Floats frame(1, 8, 6);
    for (std::size_t i = 0; i < frame.values.size(); ++i) {
      frame.values[i] = static_cast<float>(c.low + (1 - c.low) * static_cast<double>(i % 16) / 15);
    }
    Network network(path(), NetworkPrecision::kInt8);
    const Floats out = run(network, frame);
    for (std::size_t i = 0; i < frame.values.size(); ++i) {
      EXPECT_NEAR(out.values[i], std::max(frame.values[i], 0.0F), 1.1 / 255) << c.low << " " << i;
    }
  }
}

// More products than 32 bits hold the sum of: these stay in floating point.
TEST_F(NetworkFile, SumsOfBytesDoNotOverflow) {
  if (!is_supported(NetworkPrecision::kInt8)) {
    GTEST_SKIP() << "no VNNI";
  }
  Tensors tensors;
  const json head = testing::add_convolution("head", 1, 32, 1, tensors);
  const json wide = testing::add_convolution("wide", 32, 1, 63, tensors);
  for (model::NamedTensor& tensor : tensors) {
    std::fill(tensor.values.begin(), tensor.values.end(), tensor.name.ends_with("bias") ? 0.0F : 1.0F);
  }
  tensors.push_back({"relu.range", {2, 32}, std::vector<float>(64, 1)});
  testing::write_network(
      path(), {{"input", {{"channels", 1}}}, {"layers", {head, {{"name", "relu"}, {"type", "relu"}}, wide}}},
      tensors);
  Floats white(1, 64, 64);
  std::fill(white.values.begin(), white.values.end(), 1.0F);
  Network network(path(), NetworkPrecision::kInt8);
  EXPECT_NEAR(run(network, white).values[32 * 64 + 32], 63 * 63 * 32, 0.01 * 63 * 63 * 32);
}

TEST_F(SpoiltFile, FieldsAreChecked) {
  EXPECT_EQ(after_layer([](json& l) { l["kernl"] = 3; }), "layer \"head\": unknown field \"kernl\"");
  EXPECT_EQ(after_layer([](json& l) { l["kernel"] = "3"; }),
            "layer \"head\": expected \"kernel\" to be a whole number from 1 to 63, found \"3\"");
  EXPECT_EQ(after_layer([](json& l) { l.erase("channels"); }),
            "layer \"head\": expected \"channels\" to be a whole number from 1 to 4096, found none");
  for (const json& value : std::vector<json>{0, -1, 5000, 1e30, 2.5, true, nullptr, json::array(),
                                             json::object(), 18446744073709551615U, -9223372036854775807LL}) {
    for (const char* key : {"channels", "kernel", "stride", "groups", "dilation"}) {
      EXPECT_NE(after_layer([&](json& l) { l[key] = value; }), "") << key << value;
    }
  }
  EXPECT_EQ(after_layer([](json& l) {
              l["type"] = "conv";
            }).find("layer \"head\": expected \"type\" to be one of add, "),
            0U);
  EXPECT_EQ(after_layer([](json& l) { l["name"] = "a/b"; }),
            "layer 0: expected \"name\" to be up to 100 letters, digits and _, found \"a/b\"");
  EXPECT_EQ(after_layer([](json& l) { l["name"] = "head"; }, 1), "layer 1: its name \"head\" is taken");
  EXPECT_EQ(after_layer([](json& l) { l["name"] = "input"; }, 1), "layer 1: its name \"input\" is taken");
  EXPECT_EQ(after_layer([](json& l) { l["name"] = "condition"; }, 1),
            "layer 1: its name \"condition\" is taken");
  EXPECT_EQ(after_layer([](json& l) { l["padding"] = 0; }).find("layer \"head\": expected twice the padding"),
            0U);
  EXPECT_EQ(
      after_layer([](json& l) { l["groups"] = 2; }),
      "layer \"head\": expected \"groups\" to divide the 3 channels that come and the 4 that go, found 2");
  EXPECT_EQ(after_layer([](json& l) { l = 7; }), "layer 0: expected a JSON object");
}

TEST_F(SpoiltFile, TheTemporalMeanIsChecked) {
  const auto after_mean = [&](const json& mean, int channels = 3) {
    return after([&](Draft& d) {
      d.tensors.clear();
      d.description["layers"] = {testing::add_convolution("head", 3, channels, 3, d.tensors)};
      d.description["temporal_mean"] = mean;
    });
  };
  EXPECT_EQ(after_mean({{"h", 4}}), "");
  EXPECT_EQ(
      after_mean({{"h", 0.4}}),
      "metadata \"network\", \"temporal_mean\": expected \"h\" to be a number from 0.5 to 255.0, found 0.4");
  EXPECT_NE(after_mean({{"h", "4"}}), "");
  EXPECT_NE(after_mean(json::object()), "");
  EXPECT_EQ(after_mean({{"h", 4}, {"radius", 2}}),
            "metadata \"network\", \"temporal_mean\": unknown field \"radius\"");
  EXPECT_NE(after_mean(4), "");
  EXPECT_EQ(
      after([](Draft& d) {
        d.description["input"]["frames"] = 64;
        d.description["temporal_mean"] = {{"h", 4}};
      }),
      "metadata \"network\": expected at most 63 frames with \"temporal_mean\", which looks at one more, "
      "found 64");
  EXPECT_EQ(after_mean({{"h", 4}}, 4),
            "metadata \"network\": expected an output of 1 to 3 channels and the frame's size, since "
            "\"temporal_mean\" moves it, found 4 channels at 1/1");
}

TEST_F(SpoiltFile, GraphsAreChecked) {
  EXPECT_EQ(after_layer([](json& l) { l["inputs"] = "tail"; }, 1),
            "layer \"relu\": expected an input, or a layer before this one, found \"tail\"");
  EXPECT_EQ(after_layer([](json& l) { l["inputs"] = "relu"; }, 1),
            "layer \"relu\": expected an input, or a layer before this one, found \"relu\"");
  EXPECT_EQ(after_layer(
                [](json& l) {
                  l["inputs"] = {"head", "head"};
                },
                1),
            "layer \"relu\": expected one input, found 2");
  EXPECT_EQ(after_layer([](json& l) { l["inputs"] = {1}; }, 1),
            "layer \"relu\": expected \"inputs\" to be a list of names");
  EXPECT_EQ(after_layer([](json& l) { l["inputs"] = "head"; }, 2),
            "layer \"relu\": nothing reads what it writes");
  EXPECT_EQ(
      after_layer(
          [](json& l) {
            l = {{"name", "relu"}, {"type", "add"}, {"inputs", {"head", "input"}}};
          },
          1),
      "layer \"relu\": expected inputs of one shape, found 4 channels at 1/1 of the frame and 3 channels at "
      "1/1 of the frame");
  EXPECT_NE(after([](Draft& d) { d.description["output"] = "input"; }), "");
  EXPECT_NE(after([](Draft& d) { d.description["output"] = "none"; }), "");
  EXPECT_NE(after([](Draft& d) { d.description["layers"] = json::array(); }), "");
  EXPECT_NE(after([](Draft& d) { d.description["layers"] = 1; }), "");
  EXPECT_NE(after([](Draft& d) { d.description.erase("input"); }), "");
  EXPECT_NE(after([](Draft& d) { d.description["inputs"] = 1; }), "");
  EXPECT_NE(after([](Draft& d) { d.description["input"]["frames"] = 1000; }), "");
  for (const std::array<double, 2>& range :
       std::vector<std::array<double, 2>>{{1.0, 0.0}, {0.0, 1e-300}, {999999.99, 1e6}, {-1e7, 1.0}}) {
    EXPECT_NE(after([&](Draft& d) { d.description["input"]["range"] = range; }).find("\"range\""),
              std::string::npos)
        << range[0] << " " << range[1];
  }
  EXPECT_NE(after([](Draft& d) {
              d.description["input"]["condition"] = {{"name", "sigma"}, {"maximum", 1}};
            }),
            "");
  EXPECT_NE(after([](Draft& d) {
              d.description["input"]["condition"] = {{"name", "sigma"}, {"maximum", 1}, {"power", -1}};
            }).find("expected \"power\" to be 1, or"),
            std::string::npos);
  EXPECT_NE(after([](Draft& d) {
              d.description["input"]["border"] = "black";
            }).find("expected \"border\" to be \"zero\" or \"mirror\", found \"black\""),
            std::string::npos);
  EXPECT_EQ(after([](Draft& d) {
              d.description["input"]["border"] = "mirror";
              d.description["layers"].insert(d.description["layers"].begin(),
                                             json{{"name", "first"}, {"type", "relu"}});
            }).find("layer \"first\": expected the input"),
            0U);
  EXPECT_NE(after([](Draft& d) { d.description["precision"] = "f64"; }), "");
  EXPECT_NE(after([](Draft& d) {
              d.description["residual"] = true;
              d.description["output"] = "relu";
              d.description["layers"].erase(2);
              d.tensors.resize(2);
            }),
            "");
}

TEST_F(SpoiltFile, SizesAreChecked) {
  // More operations, and more memory, than the limits.
  EXPECT_NE(after([](Draft& d) {
              d.description = {{"input", {{"channels", 1}}}};
              d.tensors.clear();
              d.description["layers"].push_back({{"name", "up"}, {"type", "up_sample"}, {"factor", 16}});
              for (int i = 0; i < 60; ++i) {
                d.description["layers"].push_back(testing::add_convolution(
                    std::string("c").append(std::to_string(i)), i == 0 ? 1 : 32, 32, 7, d.tensors));
              }
            }).find("operations a sample"),
            std::string::npos);
  EXPECT_NE(after([](Draft& d) {
              d.description = {{"input", {{"channels", 255}}}};
              d.tensors.clear();
              for (int i = 0; i < 900; ++i) {
                d.description["layers"].push_back({{"name", std::string("p").append(std::to_string(i))},
                                                   {"type", "max_pool"},
                                                   {"kernel", 63},
                                                   {"stride", 1},
                                                   {"padding", 31}});
              }
            }).find("operations a sample"),
            std::string::npos);
  // In bfloat16 groups of an odd number of channels are one, with zeros between them; not those of each
  // channel.
  const auto after_groups = [&](int count) {
    return after([&](Draft& d) {
      d.tensors.clear();
      json layer = testing::add_convolution("groups", 2049 / count, 2049, 7, d.tensors);
      layer["groups"] = count;
      d.description = {{"input", {{"channels", 2049}}}, {"layers", {layer}}};
    });
  };
  EXPECT_NE(after_groups(683).find("operations a sample"), std::string::npos);
  EXPECT_EQ(after_groups(2049).find("operations a sample"), std::string::npos);
  EXPECT_NE(after([](Draft& d) {
              json& layers = d.description["layers"];
              layers.push_back({{"name", "up"}, {"type", "up_sample"}, {"factor", 16}});
              layers.push_back({{"name", "again"}, {"type", "up_sample"}, {"factor", 16}});
            }).find("bytes a sample"),
            std::string::npos);
  EXPECT_NE(after([](Draft& d) {
              for (int i = 0; i < 3; ++i) {
                d.description["layers"].push_back(
                    {{"name", "up" + std::to_string(i)}, {"type", "up_sample"}, {"factor", 16}});
              }
            }).find("of the frame's sides"),
            std::string::npos);
}

TEST_F(NetworkFile, JsonIsChecked) {
  const auto after = [&](const std::string& description) {
    model::write_safetensors(
        path(), {{"format", "nonlocal.network"}, {"version", "2"}, {"network", description}}, {});
    return problem(path());
  };
  EXPECT_EQ(after("{"), "metadata \"network\" is not JSON, error 101");
  EXPECT_EQ(after("[]"), "metadata \"network\": expected a JSON object");
  EXPECT_EQ(after(R"({"layers":[],"layers":[]})"), "metadata \"network\" has \"layers\" twice");
  EXPECT_NE(after(std::string(100'000, '[')).find("nested too deeply"), std::string::npos);
  EXPECT_NE(after(std::string(2'000'000, ' ')).find("a description of up to"), std::string::npos);
  model::write_safetensors(path(), {{"format", "nonlocal.network"}, {"version", "3"}}, {});
  EXPECT_EQ(problem(path()), "expected metadata \"version\" to be \"2\", found \"3\"");
  EXPECT_EQ(problem(kFolder + "refinement_r2.safetensors"),
            "expected metadata \"format\" to be \"nonlocal.network\", found \"nonlocal.refinement\"");
}

// A gray frame in and out; what the network adds is nothing where its last weights are.
TEST_F(NetworkVideo, NothingAddedIsTheSameFrame) {
  testing::write_plain_network(path(), 2, 8, 3);
  const model::Safetensors file(path());
  Tensors tensors;
  for (const std::string& name : file.names()) {
    tensors.push_back({name, file.shape(name), file.floats(name, file.shape(name))});
    if (name.starts_with("conv2")) {
      std::fill(tensors.back().values.begin(), tensors.back().values.end(), 0.0F);
    }
  }
  for (const char* name : {"relu0.range", "relu1.range"}) {
    tensors.push_back({name, {2, 8}, std::vector<float>(16, 0)});
    std::fill_n(tensors.back().values.begin() + 8, 8, 3.0F);
  }
  testing::write_network(path(), json::parse(*file.metadata("network")), tensors);
  for (const NetworkPrecision precision : precisions(path())) {
    for (const int bit_depth : {8, 10, 16}) {
      Image in(37, 22, bit_depth, 1, {.step = 2, .padding = 3});
      Image out(37, 22, bit_depth, 1, {.padding = 1, .offset = 1, .upside_down = true});
      for (int i = 0; i < 37 * 22; ++i) {
        in.set(0, i % 37, i / 37, i * 977 % (1 << bit_depth));
      }
      Network network(path(), precision);
      network.run(std::as_const(in).views(), out.views());
      EXPECT_TRUE(in == out) << bit_depth;
    }
  }
}

// As PyTorch's values, rounded: of planes in the range that the file says.
TEST_F(NetworkVideo, PlanesAreFloatsInTheFilesRange) {
  Network network(fixture("refiner"), NetworkPrecision::kFloat32);
  Image in(45, 38, 8, 1);
  Floats floats(1, 45, 38);
  for (int i = 0; i < 45 * 38; ++i) {
    const int code = i * 7919 % 256;
    in.set(0, i % 45, i / 45, code);
    floats.values[static_cast<std::size_t>(i)] = static_cast<float>(code) / 255 * 2 - 1;
  }
  const NetworkParameters parameters{.condition = 10, .threads = 0};
  Image out(45, 38, 16, 1);
  network.run(std::as_const(in).views(), out.views(), parameters);
  const Floats expected = run(network, floats, parameters);
  for (int i = 0; i < 45 * 38; ++i) {
    const double code = (expected.values[static_cast<std::size_t>(i)] + 1) / 2 * 255 * 256;
    EXPECT_NEAR(out.get(0, i % 45, i / 45), std::clamp(code, 0.0, 65535.0), 0.6);
  }
  // In place.
  Image same(45, 38, 8, 1);
  network.run(std::as_const(in).views(), same.views(), parameters);
  network.run(std::as_const(in).views(), in.views(), parameters);
  EXPECT_TRUE(in == same);
}

// Of the block at (x, y), in code values, as the formula reads.
std::array<double, 4> gaussian_mean(const Image& frame, int x, int y, double h) {
  constexpr int kWindow = 32;
  const auto value = [&](int u, int v) {  // mirrored up to whole windows; mid-gray beyond them
    const auto inside = [](int i, int side) { return i < side ? i : 2 * side - 2 - i; };
    const auto whole = [](int side) { return (side + kWindow - 1) / kWindow * kWindow; };
    const bool is_beyond = u < 0 || v < 0 || u >= whole(frame.width()) || v >= whole(frame.height());
    return is_beyond ? 127.5 : frame.get(0, inside(u, frame.width()), inside(v, frame.height()));
  };
  std::array<double, 4> sum = {};
  double weights = 0;
  for (int v = y / kWindow * kWindow; v < (y / kWindow + 1) * kWindow; v += 2) {
    for (int u = x / kWindow * kWindow; u < (x / kWindow + 1) * kWindow; u += 2) {
      double distance = 0;
      for (int i = 0; i < 36; ++i) {
        const double difference = value(x + i % 6 - 2, y + i / 6 - 2) - value(u + i % 6 - 2, v + i / 6 - 2);
        distance += difference * difference / 36;
      }
      const double weight = std::exp(-distance / (h * h));
      weights += weight;
      for (int i = 0; i < 4; ++i) {
        sum[static_cast<std::size_t>(i)] += weight * value(u + i % 2, v + i / 2);
      }
    }
  }
  for (double& mean : sum) {
    mean /= weights;
  }
  return sum;
}

TEST_F(NetworkVideo, TheBundledGaussianIsTheNonLocalMeanOfItsWindow) {
  Network network(find_model("gaussian"));
  EXPECT_EQ(network.precision(), NetworkPrecision::kFloat32) << "its file asks for it";
  Image in(75, 50, 8, 1);
  std::mt19937 random(5);
  for (int i = 0; i < 75 * 50; ++i) {
    in.set(0, i % 75, i / 75, 40 + (i % 75 / 7 % 3) * 50 + static_cast<int>(random() % 30));
  }
  for (const double h : {0.5, 8.0, 25.0}) {
    Image out(75, 50, 16, 1);
    network.run(std::as_const(in).views(), out.views(), {.condition = h, .threads = 0});
    for (int y = 0; y + 1 < 50; y += 2) {
      for (int x = 0; x + 1 < 75; x += 2) {
        const std::array<double, 4> wanted = gaussian_mean(in, x, y, h);
        for (int i = 0; i < 4; ++i) {
          ASSERT_NEAR(out.get(0, x + i % 2, y + i / 2) / 256.0, wanted[static_cast<std::size_t>(i)], 0.02)
              << x << ", " << y << ", h " << h;
        }
      }
    }
  }
}

// The frame, the output, and what is between them.
TEST_F(NetworkVideo, StrengthLeadsFromTheFrameToTheOutput) {
  for (const char* name : {"refiner", "attention"}) {  // with the frame added, and without
    Network network(fixture(name), NetworkPrecision::kFloat32);
    Floats in = some_frame(network.input_channels(), 45, 38, 3);
    const Floats full = run(network, in);
    for (const double strength : {0.0, 0.25, 0.5, 1.0}) {
      const Floats out = run(network, in, {.condition = {}, .threads = 0, .strength = strength});
      for (std::size_t i = 0; i < in.values.size(); ++i) {
        const double x = in.values[i];
        ASSERT_NEAR(out.values[i], x + strength * (full.values[i] - x), 1e-5) << name << ", " << strength;
      }
    }
    Image frame(45, 38, 10, network.input_channels());
    for (int i = 0; i < 45 * 38; ++i) {
      for (int c = 0; c < network.input_channels(); ++c) {
        frame.set(c, i % 45, i / 45, (i * 977 + c) % 1024);
      }
    }
    Image same(45, 38, 10, network.input_channels());
    network.run(std::as_const(frame).views(), same.views(), {.condition = {}, .threads = 0, .strength = 0});
    EXPECT_TRUE(frame == same);
    for (const double strength : {-0.1, 1.1, std::nan("")}) {
      EXPECT_THROW(run(network, in, {.condition = {}, .threads = 0, .strength = strength}), InvalidArgument);
    }
  }
  Network features(fixture("resnet"));
  Floats in = some_frame(3, 20, 20);
  EXPECT_THROW(run(features, in, {.condition = {}, .threads = 0, .strength = 0.5}), InvalidArgument);
}

// A network that leaves frames as they are, but for its mean with the frame before.
void write_mean_alone(const std::string& path, int channels) {
  Tensors tensors;
  json description = {{"input", {{"channels", channels}}}, {"residual", true}, {"temporal_mean", {{"h", 8}}}};
  description["layers"] = {testing::add_convolution("none", channels, channels, 1, tensors)};
  for (model::NamedTensor& tensor : tensors) {
    std::fill(tensor.values.begin(), tensor.values.end(), 0.0F);
  }
  testing::write_network(path, description, tensors);
}

// Waves that move, clean, or with noise of sigma 4; in 8-bit code values.
double moving_code(int c, int x, int y, int t) {
  return 120 + 20 * c + 40 * std::sin((x + 3 * t) * 0.21) * std::cos((y - t) * 0.17) +
         20 * std::sin((x + 3 * t + y - t) * 0.5);
}

Image moving_frame(int bit_depth, int channels, int t, double sigma) {
  Image image(93, 71, bit_depth, channels, {.step = 1, .padding = 2});
  std::mt19937 random(static_cast<unsigned>(t) + 9);
  std::normal_distribution<double> noise(0, 1);
  for (int i = 0; i < channels * 93 * 71; ++i) {
    const int x = i % 93;
    const int y = i / 93 % 71;
    const int c = i / 93 / 71;
    const double code = moving_code(c, x, y, t) + sigma * noise(random);
    image.set(c, x, y, static_cast<int>(std::lround(std::ldexp(code, bit_depth - 8))));
  }
  return image;
}

double error_of(const Image& image, int t) {
  double sum = 0;
  for (int c = 0; c < image.planes(); ++c) {
    for (int i = 0; i < 93 * 71; ++i) {
      const double code = std::ldexp(image.get(c, i % 93, i / 93), 8 - image.bit_depth());
      sum += std::pow(code - moving_code(c, i % 93, i / 93, t), 2);
    }
  }
  return std::sqrt(sum / (93 * 71 * image.planes()));
}

TEST_F(NetworkVideo, TheTemporalMeanTakesFromTheFrameBefore) {
  for (const int channels : {1, 3}) {
    write_mean_alone(path(), channels);
    for (const int bit_depth : {8, 10, 15, 16}) {
      const Image first = moving_frame(bit_depth, channels, 0, 4);
      const Image second = moving_frame(bit_depth, channels, 1, 4);
      const auto after = [&](Network& network, const Image& in, double strength) {
        Image out(93, 71, bit_depth, channels);
        network.run(in.views(), out.views(), {.condition = {}, .threads = 0, .strength = strength});
        return out;
      };
      Network network(path(), NetworkPrecision::kFloat32);
      EXPECT_EQ(network.frames(), 2);
      EXPECT_NEAR(error_of(after(network, first, 1), 0), error_of(first, 0), 0.01) << bit_depth;
      const Image mean = after(network, second, 1);
      EXPECT_LT(error_of(mean, 1), 0.8 * error_of(second, 1)) << bit_depth;  // 0.71 at best
      // As much as is wanted of it.
      for (const double strength : {0.5, 0.0}) {
        network.reset();
        after(network, first, strength);
        const Image part = after(network, second, strength);
        for (int i = 0; i < 93 * 71; ++i) {
          const double own = second.get(0, i % 93, i / 93);
          const double wanted = own + strength * (mean.get(0, i % 93, i / 93) - own);
          ASSERT_NEAR(part.get(0, i % 93, i / 93), wanted, 1) << bit_depth << ", " << strength;
        }
      }
      network.reset();
      EXPECT_NEAR(error_of(after(network, second, 1), 1), error_of(second, 1), 0.01) << "behind a reset";
    }
    Network alone(path(), NetworkPrecision::kFloat32, 1);
    EXPECT_EQ(alone.frames(), 1);
    for (int t = 0; t < 2; ++t) {
      const Image in = moving_frame(8, channels, t, 4);
      Image out(93, 71, 8, channels);
      alone.run(in.views(), out.views());
      EXPECT_TRUE(in == out) << "one frame alone";
    }
  }
}

// Whatever shares memory with the output: the frame itself, rows of it, other planes.
TEST_F(NetworkVideo, TheTemporalMeanMayWriteWhereItReads) {
  write_mean_alone(path(), 3);
  constexpr int kWidth = 40;
  constexpr int kHeight = 30;
  const auto bytes_of_frame = [](int t) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(kWidth * 3 * (kHeight + 4)));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const int x = static_cast<int>(i) / 3 % kWidth;
      bytes[i] = static_cast<std::byte>(100 + x + t + static_cast<int>(i * 7919 % 9));
    }
    return bytes;
  };
  using Planes = std::array<Plane, 3>;
  const auto packed = [](std::byte* data, int row, std::array<int, 3> order) {
    Planes planes;
    for (std::size_t c = 0; c < 3; ++c) {
      planes[c] = {data + row * kWidth * 3 + order[c], kWidth, kHeight, kWidth * 3, 8, 3, 0};
    }
    return planes;
  };
  const auto run_on = [&](Network& network, const Planes& in, const Planes& out, double strength) {
    const std::array<ConstPlane, 3> read = {in[0], in[1], in[2]};
    network.run(read, out, {.condition = {}, .threads = 2, .strength = strength});
  };
  for (const double strength : {1.0, 0.4}) {
    for (const int row : {0, 1, 3}) {
      for (const std::array<int, 3> order : {std::array{0, 1, 2}, std::array{2, 0, 1}}) {
        Network network(path(), NetworkPrecision::kFloat32);
        Network other(path(), NetworkPrecision::kFloat32);
        for (int t = 0; t < 3; ++t) {
          std::vector<std::byte> frame = bytes_of_frame(t);
          std::vector<std::byte> apart(frame.size());
          run_on(other, packed(frame.data(), 0, {0, 1, 2}), packed(apart.data(), row, order), strength);
          run_on(network, packed(frame.data(), 0, {0, 1, 2}), packed(frame.data(), row, order), strength);
          const auto begin = static_cast<std::ptrdiff_t>(row * kWidth * 3);
          ASSERT_TRUE(std::equal(frame.begin() + begin, frame.begin() + begin + kWidth * 3 * kHeight,
                                 apart.begin() + begin))
              << strength << ", " << row << ", " << order[0] << ", " << t;
        }
      }
    }
  }
}

// What is refused is a new size all the same.
TEST_F(NetworkVideo, TheTemporalMeanForgetsWhereASizeIsRefused) {
  Tensors tensors;
  json description = {{"input", {{"channels", 1}}}, {"residual", true}, {"temporal_mean", {{"h", 8}}}};
  for (const char* part : {"theta", "phi", "g"}) {
    testing::add_convolution(std::string("block.") + part, 1, 1, 1, tensors);
  }
  testing::add_convolution("block.z", 1, 1, 1, tensors);
  description["layers"] = {{{"name", "block"}, {"type", "non_local"}},
                           testing::add_convolution("none", 1, 1, 1, tensors)};
  std::fill(tensors.rbegin()->values.begin(), tensors.rbegin()->values.end(), 0.0F);
  std::fill(tensors[tensors.size() - 2].values.begin(), tensors[tensors.size() - 2].values.end(), 0.0F);
  testing::write_network(path(), description, tensors);
  Network network(path(), NetworkPrecision::kFloat32);
  const auto behind = [&](const auto& between) {
    int middle = 0;
    for (const int gray : {100, 104}) {
      Image flat(64, 48, 8, 1);
      for (int i = 0; i < 64 * 48; ++i) {
        flat.set(0, i % 64, i / 64, gray);
      }
      network.run(std::as_const(flat).views(), flat.views());
      middle = flat.get(0, 32, 24);
      if (gray == 100) {
        between();
      }
    }
    network.reset();
    return middle;
  };
  EXPECT_LT(behind([] {}), 104);
  EXPECT_EQ(behind([&] { EXPECT_THROW(network.prepare(4096, 4096), InvalidArgument); }), 104);
}

TEST_F(NetworkVideo, WhatDoesNotFitIsRefused) {
  Network network(fixture("refiner"));
  const Image in(20, 10, 8, 1);
  Image out(20, 10, 8, 1);
  Image other(20, 11, 8, 1);
  Image colour(20, 10, 8, 3);
  EXPECT_THROW(network.run(in.views(), other.views()), InvalidArgument);
  EXPECT_THROW(network.run(std::as_const(colour).views(), colour.views()), InvalidArgument);
  EXPECT_THROW(network.run(in.views(), out.views(), {.condition = 101, .threads = 0}), InvalidArgument);
  EXPECT_THROW(network.run(in.views(), out.views(), {.condition = std::nan(""), .threads = 0}),
               InvalidArgument);
  EXPECT_THROW(network.run(in.views(), out.views(), {.condition = {}, .threads = -1}), InvalidArgument);
  EXPECT_THROW(network.prepare(0, 4), InvalidArgument);
  EXPECT_THROW(network.prepare(40000, 4), InvalidArgument);
  Network plain(fixture("dense"));
  EXPECT_THROW(plain.run(in.views(), out.views()), InvalidArgument);
  EXPECT_THROW(plain.run(std::as_const(colour).views(), colour.views(), {.condition = 1, .threads = 0}),
               InvalidArgument);
  Network features(fixture("resnet"));
  EXPECT_THROW(features.run(std::as_const(colour).views(), colour.views()), InvalidArgument);
  // Each position with each other, of 4096x4096.
  EXPECT_THROW(Network(fixture("embedded_gaussian")).prepare(4096, 4096), InvalidArgument);
  EXPECT_THROW(Network(fixture("dense"), NetworkPrecision::kInt8), InvalidArgument);  // tells no ranges
}

// Thirds of a frame's side, too, whose places are not all of its samples.
TEST_F(NetworkFile, TheReceptiveFieldOfAWholeFrameIsAll) {
  Tensors tensors;
  for (const char* part : {"query", "key", "value", "out"}) {
    testing::add_convolution(std::string("block.") + part, 9, 9, 1, tensors);
  }
  testing::write_network(path(),
                         {{"input", {{"channels", 1}}},
                          {"layers",
                           {{{"name", "down"}, {"type", "pixel_unshuffle"}, {"factor", 3}},
                            {{"name", "block"}, {"type", "attention"}},
                            {{"name", "up"}, {"type", "pixel_shuffle"}, {"factor", 3}}}}},
                         tensors);
  const ModelSummary summary = summarise_model(path());
  EXPECT_EQ(summary.layers[0].receptive_field, 3);
  EXPECT_EQ(summary.layers[1].receptive_field, 0);
}

TEST(NetworkSummary, SaysWhatTheFileHolds) {
  const ModelSummary u_net = summarise_model(fixture("u_net"));
  EXPECT_EQ(u_net.version, "2");
  EXPECT_EQ(u_net.multiple, 2);
  EXPECT_TRUE(u_net.residual);
  EXPECT_EQ(u_net.metadata.at("made_by"), "tests/parity/network.py");
  ASSERT_EQ(u_net.layers.size(), 9U);
  EXPECT_EQ(u_net.layers[0].name, "head");
  EXPECT_EQ(u_net.layers[0].parameters, 8 * 3 * 9 + 8);
  EXPECT_EQ(u_net.layers[0].operations, 2.0 * 8 * 3 * 9);
  EXPECT_EQ(u_net.layers[0].receptive_field, 3);
  EXPECT_EQ(u_net.layers[2].denominator, 2);
  EXPECT_EQ(u_net.layers[2].operations, 2.0 * 12 * 8 * 9 / 4);
  EXPECT_EQ(u_net.layers[2].receptive_field, 5);
  EXPECT_EQ(u_net.layers[4].receptive_field, 5 + 4 * 2);  // dilated, at half the size
  EXPECT_EQ(summarise_model(fixture("embedded_gaussian")).layers[1].receptive_field, 0);
  EXPECT_EQ(summarise_model(fixture("temporal")).layers[1].receptive_field,
            3);  // a convolution, then over time alone
  EXPECT_EQ(u_net.temporal_mean, std::nullopt);
  EXPECT_EQ(summarise_model(find_model("restore")).temporal_mean, 4);
  EXPECT_EQ(summarise_model(find_model("restore_noisy")).temporal_mean, 6);
  const ModelSummary refinement = summarise_model(find_model("refine_balanced"));
  EXPECT_EQ(refinement.version, "1");
  ASSERT_EQ(refinement.layers.size(), 4U);
  EXPECT_EQ(refinement.layers[3].channels, 4);
  EXPECT_EQ(refinement.layers[3].receptive_field, 18);
}

}  // namespace
}  // namespace nonlocal
