#include "nonlocal/refinement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "image.h"
#include "nonlocal/cpu.h"
#include "nonlocal/error.h"
#include "random_model.h"
#include "reference/refinement.h"

namespace nonlocal {
namespace {

namespace fs = std::filesystem;
using reference::Picture;
using testing::Image;
using testing::Layout;
using testing::ModelShape;

// A folder of this test's own, gone with it.
class RefinementTest : public ::testing::Test {
 protected:
  RefinementTest() {
    std::string name = (fs::temp_directory_path() / "refinement_test.XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~RefinementTest() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string file(const std::string& name) const { return (folder_ / name).string(); }
  [[nodiscard]] std::string random_model(const ModelShape& shape) const {
    testing::write_random_model(file("model.safetensors"), shape);
    return file("model.safetensors");
  }

 private:
  fs::path folder_;
};

using Refinement = RefinementTest;

reference::RefinementLayers layers_of(const std::string& path) {
  const model::Safetensors file(path);
  reference::RefinementLayers network{std::stoi(*file.metadata("unshuffle")), {}};
  for (int i = 0; i < std::stoi(*file.metadata("layers")); ++i) {
    const std::string name = "conv" + std::to_string(i);
    const model::Shape shape = file.shape(name + ".weight");
    const std::vector<float> weight = file.floats(name + ".weight", shape);
    const std::vector<float> bias = file.floats(name + ".bias", {shape[0]});
    network.layers.push_back({static_cast<int>(shape[1]),
                              static_cast<int>(shape[0]),
                              {weight.begin(), weight.end()},
                              {bias.begin(), bias.end()}});
  }
  return network;
}

// Those of this CPU.
std::vector<NetworkPrecision> precisions() {
  std::vector<NetworkPrecision> supported;
  for (const NetworkPrecision precision :
       {NetworkPrecision::kFloat32, NetworkPrecision::kBfloat16, NetworkPrecision::kInt8}) {
    if (is_supported(precision)) {
      supported.push_back(precision);
    }
  }
  return supported;
}

double scale_of(int bit_depth) { return 1 << (bit_depth - 8); }

Picture picture_of(const Image& image) {
  Picture picture(image.width(), image.height());
  for (int y = 0; y < image.height(); ++y) {
    for (int x = 0; x < image.width(); ++x) {
      picture.at(x, y) = image.get(0, x, y) / scale_of(image.bit_depth());
    }
  }
  return picture;
}

Image image_of(const Picture& picture, int bit_depth, const Layout& layout = {}) {
  Image image(picture.width, picture.height, bit_depth, 1, layout);
  for (int y = 0; y < picture.height; ++y) {
    for (int x = 0; x < picture.width; ++x) {
      const double most = (1 << bit_depth) - 1;
      const double sample = std::clamp(picture.at(x, y) * scale_of(bit_depth), 0.0, most);
      image.set(0, x, y, static_cast<int>(std::lround(sample)));
    }
  }
  return image;
}

// What a frame is made of: waves and an edge, noise of a standard deviation that varies, little of it in the
// estimate.
struct Scene {
  Scene(int width, int height, double most_sigma = 30, unsigned seed = 1)
      : noisy(width, height), estimate(width, height), sigma(width, height) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        const double clean = 128 + 60 * std::sin(0.3 * x + 0.1 * y) + (x + 2 * y > height ? 40 : 0);
        sigma.at(x, y) = most_sigma * (1 + x + y) / (width + height);
        noisy.at(x, y) = clean + sigma.at(x, y) * normal(random);
        estimate.at(x, y) = clean + 0.2 * sigma.at(x, y) * normal(random);
      }
    }
  }
  Picture noisy;
  Picture estimate;
  Picture sigma;
};

Picture constant(int width, int height, double value) {
  Picture picture(width, height);
  std::fill(picture.sample.begin(), picture.sample.end(), value);
  return picture;
}

Picture halved(const Picture& p) {
  Picture half((p.width + 1) / 2, (p.height + 1) / 2);
  for (int y = 0; y < half.height; ++y) {
    for (int x = 0; x < half.width; ++x) {
      half.at(x, y) = p.at(2 * x, 2 * y);
    }
  }
  return half;
}

double largest_difference(const Picture& a, const Picture& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.sample.size(); ++i) {
    most = std::max(most, std::abs(a.sample[i] - b.sample[i]));
  }
  return most;
}

double psnr(const Picture& a, const Picture& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.sample.size(); ++i) {
    sum += (a.sample[i] - b.sample[i]) * (a.sample[i] - b.sample[i]);
  }
  return 10 * std::log10(255.0 * 255.0 * static_cast<double>(a.sample.size()) / sum);
}

void clamp_to_depth(Picture& picture, int bit_depth) {
  const double most = ((1 << bit_depth) - 1) / scale_of(bit_depth);
  std::transform(picture.sample.begin(), picture.sample.end(), picture.sample.begin(),
                 [=](double v) { return std::clamp(v, 0.0, most); });
}

// Half a step of 16 bits, and 1/1000 of a code value.
constexpr double kNear = 0.5 / 256 + 1e-3;

Picture pytorch_plane(const model::Safetensors& file, const std::string& name) {
  const model::Shape shape = file.shape(name);
  Picture picture(static_cast<int>(shape.at(1)), static_cast<int>(shape.at(0)));
  const std::vector<float> values = file.floats(name, shape);
  std::copy(values.begin(), values.end(), picture.sample.begin());
  return picture;
}

class ParityTest : public ::testing::TestWithParam<const char*> {};

// PyTorch made what is expected; see tests/parity/refinement.py.
TEST_P(ParityTest, ReferenceIsPyTorchs) {
  const std::string path = std::string(PARITY_FOLDER "/") + GetParam() + ".safetensors";
  const model::Safetensors file(path);
  const Picture out = reference::refined(pytorch_plane(file, "input.f"), pytorch_plane(file, "input.g"),
                                         pytorch_plane(file, "input.s"), layers_of(path));
  EXPECT_LT(largest_difference(out, pytorch_plane(file, "expected")), 1e-4);
}

TEST_P(ParityTest, NetworkIsPyTorchs) {
  const std::string path = std::string(PARITY_FOLDER "/") + GetParam() + ".safetensors";
  const model::Safetensors file(path);
  Picture expected = pytorch_plane(file, "expected");
  clamp_to_depth(expected, 16);
  const Image noisy = image_of(pytorch_plane(file, "input.f"), 16);
  const Image estimate = image_of(pytorch_plane(file, "input.g"), 16);
  const Image sigma = image_of(pytorch_plane(file, "input.s"), 16);
  Image out(noisy.width(), noisy.height(), 16, 1);
  RefinementNetwork(path, NetworkPrecision::kFloat32)
      .refine(noisy.views()[0], estimate.views()[0], sigma.views()[0], out.views()[0]);
  // The planes have steps of 1/256, which PyTorch's had not.
  EXPECT_LT(largest_difference(picture_of(out), expected), 0.02);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, ParityTest,
                         ::testing::Values("refinement_r2", "refinement_r2_even", "refinement_r4",
                                           "refinement_r4_odd"));

struct Depths {
  int noisy;
  int estimate;
  int sigma;
};

void expect_reference(const std::string& path, const Scene& scene, const Depths& depths, const Layout& layout,
                      bool is_half) {
  const Image noisy = image_of(scene.noisy, depths.noisy, layout);
  const Image estimate = image_of(scene.estimate, depths.estimate, layout);
  const Image sigma = image_of(is_half ? halved(scene.sigma) : scene.sigma, depths.sigma, layout);
  Image out(noisy.width(), noisy.height(), 16, 1);
  RefinementNetwork(path, NetworkPrecision::kFloat32)
      .refine(noisy.views()[0], estimate.views()[0], sigma.views()[0], out.views()[0]);
  Picture map = picture_of(sigma);
  if (is_half) {
    map = reference::doubled(map, noisy.width(), noisy.height());
  }
  Picture expected = reference::refined(picture_of(noisy), picture_of(estimate), map, layers_of(path));
  clamp_to_depth(expected, 16);
  EXPECT_LT(largest_difference(picture_of(out), expected), kNear)
      << noisy.width() << "x" << noisy.height() << (is_half ? ", half a map" : "");
}

TEST_F(Refinement, EverySizeIsTheReferences) {
  for (const ModelShape& shape :
       {ModelShape{2, 8, 3}, ModelShape{4, 16, 2}, ModelShape{2, 5, 1}, ModelShape{4, 3, 4}}) {
    const std::string path = random_model(shape);
    for (const auto& [width, height] : std::vector<std::pair<int, int>>{
             {1, 1}, {2, 1}, {1, 5}, {2, 3}, {3, 2}, {4, 4}, {7, 9}, {17, 33}, {64, 48}, {133, 71}}) {
      const Scene scene(width, height);
      expect_reference(path, scene, {16, 16, 16}, {}, false);
      expect_reference(path, scene, {16, 16, 16}, {}, true);
    }
  }
}

TEST_F(Refinement, EveryDepthAndLayoutIsTheReferences) {
  const std::string path = random_model({2, 8, 3});
  const Scene scene(45, 38);
  for (const Depths& depths : {Depths{8, 8, 8}, Depths{10, 8, 16}, Depths{8, 12, 10}, Depths{16, 16, 8}}) {
    for (const Layout& layout : {Layout{}, Layout{.step = 2}, Layout{.padding = 7, .offset = 3},
                                 Layout{.step = 3, .padding = 1, .upside_down = true}}) {
      expect_reference(path, scene, depths, layout, false);
      expect_reference(path, scene, depths, layout, true);
    }
  }
  // P010's ten bits are the upper ones.
  expect_reference(path, scene, {10, 10, 10}, {.step = 2, .shift = 6}, false);
}

TEST_F(Refinement, RowsAtOddAddressesAreTheReferences) {
  const std::string path = random_model({2, 8, 2});
  const Image noisy = image_of(Scene(31, 22).noisy, 16);
  const Image estimate = image_of(Scene(31, 22).estimate, 16);
  constexpr std::ptrdiff_t kStride = 2 * 31 + 1;
  std::vector<std::byte> odd(22 * kStride + 1);
  for (int y = 0; y < 22; ++y) {
    std::copy_n(noisy.views()[0].row(y), 62, odd.data() + 1 + y * kStride);
  }
  Image plain(31, 22, 16, 1);
  Image out(31, 22, 16, 1);
  RefinementNetwork network(path);
  network.refine(noisy.views()[0], estimate.views()[0], 10, plain.views()[0]);
  network.refine({odd.data() + 1, 31, 22, kStride, 16}, estimate.views()[0], 10, out.views()[0]);
  EXPECT_TRUE(out == plain);
}

TEST_F(Refinement, OneSigmaIsAMapOfIt) {
  const std::string path = random_model({4, 16, 3});
  const Scene scene(61, 50);
  const Image noisy = image_of(scene.noisy, 8);
  const Image estimate = image_of(scene.estimate, 8);
  const Image map = image_of(constant(61, 50, 12.5), 16);
  for (const NetworkPrecision precision : precisions()) {
    Image one(61, 50, 8, 1);
    Image mapped(61, 50, 8, 1);
    RefinementNetwork network(path, precision);
    network.refine(noisy.views()[0], estimate.views()[0], 12.5, one.views()[0]);
    network.refine(noisy.views()[0], estimate.views()[0], map.views()[0], mapped.views()[0]);
    EXPECT_TRUE(one == mapped);
  }
}

// Rounded to each depth's nearest, in every layout, nothing written between the samples.
TEST_F(Refinement, OutputIsRoundedToItsDepth) {
  const std::string path = random_model({2, 8, 3});
  const Scene scene(45, 38);
  const Image noisy = image_of(scene.noisy, 8);
  const Image estimate = image_of(scene.estimate, 8);
  Picture expected =
      reference::refined(picture_of(noisy), picture_of(estimate), constant(45, 38, 10), layers_of(path));
  RefinementNetwork network(path, NetworkPrecision::kFloat32);
  for (const int bit_depth : {8, 9, 10, 12, 16}) {
    Image plain(45, 38, bit_depth, 1);
    network.refine(noisy.views()[0], estimate.views()[0], 10, plain.views()[0]);
    Picture clamped = expected;
    clamp_to_depth(clamped, bit_depth);
    EXPECT_LT(largest_difference(picture_of(plain), clamped), 0.5 / scale_of(bit_depth) + 1e-3);
    for (const Layout& layout : {Layout{.step = 2}, Layout{.padding = 5, .offset = 1, .upside_down = true}}) {
      Image out(45, 38, bit_depth, 1, layout);
      network.refine(noisy.views()[0], estimate.views()[0], 10, out.views()[0]);
      EXPECT_TRUE(out == plain);
    }
  }
}

// Black and white, with a network that goes beyond both.
TEST_F(Refinement, OutputIsClamped) {
  const ModelShape shape{2, 4, 1};
  for (const float bias : {-2.0F, 2.0F, -1e30F, 1e30F}) {
    auto tensors = testing::random_tensors(shape);
    std::fill(tensors[1].values.begin(), tensors[1].values.end(), bias);
    model::write_safetensors(file("far"), testing::model_metadata(shape), tensors);
    const Image in = image_of(Scene(20, 20).noisy, 8);
    for (const int bit_depth : {8, 10, 16}) {
      Image out(20, 20, bit_depth, 1);
      RefinementNetwork(file("far")).refine(in.views()[0], in.views()[0], 5, out.views()[0]);
      EXPECT_EQ(out.get(0, 7, 7), bias < 0 ? 0 : (1 << bit_depth) - 1);
      EXPECT_EQ(out.get(0, 19, 19), bias < 0 ? 0 : (1 << bit_depth) - 1);
    }
  }
}

TEST_F(Refinement, ThreadsGiveTheSameBytes) {
  const std::string path = random_model({2, 16, 3});
  const Scene scene(300, 170);
  const Image noisy = image_of(scene.noisy, 10);
  const Image estimate = image_of(scene.estimate, 10);
  const Image sigma = image_of(halved(scene.sigma), 16);
  for (const NetworkPrecision precision : precisions()) {
    std::optional<Image> first;
    for (const int threads : {1, 2, 4, 0}) {
      Image out(300, 170, 10, 1);
      RefinementNetwork(path, precision)
          .refine(noisy.views()[0], estimate.views()[0], sigma.views()[0], out.views()[0], threads);
      first = first.value_or(out);
      EXPECT_TRUE(out == *first) << threads << " threads";
    }
  }
}

TEST_F(Refinement, InstructionSetsGiveTheSameBytes) {
  const std::string path = random_model({2, 8, 2});
  const Scene scene(91, 57);
  for (const int bit_depth : {8, 12}) {
    const Image noisy = image_of(scene.noisy, bit_depth);
    const Image estimate = image_of(scene.estimate, bit_depth);
    const Image sigma = image_of(scene.sigma, 16);
    for (const NetworkPrecision precision : precisions()) {
      RefinementNetwork network(path, precision);
      Image best(91, 57, bit_depth, 1);
      network.refine(noisy.views()[0], estimate.views()[0], sigma.views()[0], best.views()[0]);
      for (const std::string& set : instruction_sets()) {
        Image out(91, 57, bit_depth, 1);
        force_instruction_set(set);
        network.refine(noisy.views()[0], estimate.views()[0], sigma.views()[0], out.views()[0]);
        force_instruction_set("");
        EXPECT_TRUE(out == best) << set;
      }
    }
  }
}

std::ptrdiff_t threads_of_this_process() {
  return std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator());
}

TEST_F(Refinement, OneThreadIsOne) {
  const std::string path = random_model({2, 32, 3});
  const std::ptrdiff_t before = threads_of_this_process();
  RefinementNetwork network(path);
  const Image in = image_of(Scene(200, 160).noisy, 8);
  Image out(200, 160, 8, 1);
  network.refine(in.views()[0], in.views()[0], 10, out.views()[0], 1);
  EXPECT_EQ(threads_of_this_process(), before);
  network.refine(in.views()[0], in.views()[0], 10, out.views()[0], 2);
  EXPECT_LE(threads_of_this_process(), std::max<std::ptrdiff_t>(before, 4));
}

TEST_F(Refinement, InPlaceIsTheSame) {
  const std::string path = random_model({4, 16, 3});
  const Scene scene(150, 130);
  for (const Layout& layout : {Layout{}, Layout{.step = 2, .padding = 3}, Layout{.upside_down = true}}) {
    const Image noisy = image_of(scene.noisy, 8, layout);
    const Image estimate = image_of(scene.estimate, 8, layout);
    const Image sigma = image_of(scene.sigma, 8, layout);
    Image out(150, 130, 8, 1, layout);
    RefinementNetwork network(path);
    network.refine(noisy.views()[0], estimate.views()[0], sigma.views()[0], out.views()[0]);
    Image over_estimate = estimate;
    network.refine(noisy.views()[0], over_estimate.views()[0], sigma.views()[0], over_estimate.views()[0]);
    EXPECT_TRUE(over_estimate == out);
    Image over_noisy = noisy;
    network.refine(over_noisy.views()[0], estimate.views()[0], sigma.views()[0], over_noisy.views()[0]);
    EXPECT_TRUE(over_noisy == out);
    Image over_sigma = sigma;
    network.refine(noisy.views()[0], estimate.views()[0], over_sigma.views()[0], over_sigma.views()[0]);
    EXPECT_TRUE(over_sigma == out);
  }
}

TEST_F(Refinement, SizesMayChange) {
  const std::string path = random_model({2, 8, 2});
  RefinementNetwork network(path);
  for (const int size : {64, 20, 64, 150}) {
    const Image in = image_of(Scene(size, size).noisy, 8);
    Image kept(size, size, 8, 1);
    Image fresh(size, size, 8, 1);
    network.refine(in.views()[0], in.views()[0], 10, kept.views()[0], size % 3 + 1);
    RefinementNetwork(path).refine(in.views()[0], in.views()[0], 10, fresh.views()[0]);
    EXPECT_TRUE(kept == fresh);
  }
}

struct Precision {
  NetworkPrecision precision;
  double least_psnr;
};

// How far the fast types are from 32 bits, for inputs of 8 and of 16 bits.
TEST_F(Refinement, PrecisionsAreNear) {
  const Scene scene(256, 192, 25);
  for (const ModelShape& shape : {ModelShape{4, 64, 4}, ModelShape{2, 32, 4}, ModelShape{2, 32, 10}}) {
    const std::string path = random_model(shape);
    for (const int bit_depth : {8, 16}) {
      const Image noisy = image_of(scene.noisy, bit_depth);
      const Image estimate = image_of(scene.estimate, bit_depth);
      const auto run = [&](NetworkPrecision precision) {
        Image out(256, 192, 16, 1);
        RefinementNetwork(path, precision).refine(noisy.views()[0], estimate.views()[0], 15, out.views()[0]);
        return picture_of(out);
      };
      const Picture exact = run(NetworkPrecision::kFloat32);
      // It must do something.
      EXPECT_LT(psnr(exact, picture_of(estimate)), 40);
      for (const Precision& p :
           {Precision{NetworkPrecision::kBfloat16, 68}, Precision{NetworkPrecision::kInt8, 56}}) {
        if (!is_supported(p.precision)) {
          continue;
        }
        const double found = psnr(run(p.precision), exact);
        EXPECT_GT(found, p.least_psnr) << shape.unshuffle << " " << shape.channels << " " << shape.layers;
      }
    }
  }
}

TEST_F(Refinement, PrecisionsAreSupportedOrRefused) {
  const std::string path = random_model({2, 8, 2});
  EXPECT_EQ(RefinementNetwork(path).precision(), is_supported(NetworkPrecision::kBfloat16)
                                                     ? NetworkPrecision::kBfloat16
                                                     : NetworkPrecision::kFloat32);
  for (const NetworkPrecision precision :
       {NetworkPrecision::kFloat32, NetworkPrecision::kBfloat16, NetworkPrecision::kInt8}) {
    if (is_supported(precision)) {
      EXPECT_EQ(RefinementNetwork(path, precision).precision(), precision);
    } else {
      EXPECT_THROW(RefinementNetwork(path, precision), InvalidArgument);
    }
  }
}

TEST_F(Refinement, KnowsItsShape) {
  RefinementNetwork network(random_model({4, 12, 3}));
  EXPECT_EQ(network.unshuffle(), 4);
  EXPECT_EQ(network.layers(), 3);
  EXPECT_EQ(network.channels(), 12);
  EXPECT_NE(network.precision(), NetworkPrecision::kAutomatic);
  // 10 x 10 pixels, multiplications of the three layers.
  EXPECT_EQ(network.operations(40, 37), 100 * 18.0 * (33 * 12 + 12 * 12 + 12 * 16));
}

template <typename Thrown>
std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Thrown& e) {
    return e.what();
  }
  return "nothing was thrown";
}

TEST_F(Refinement, RefusesPlanesThatDoNotFit) {
  RefinementNetwork network(random_model({2, 8, 2}));
  const Image in(20, 10, 8, 1);
  const Image other(20, 11, 8, 1);
  Image out(20, 10, 8, 1);
  Image other_out(19, 10, 8, 1);
  const auto refuses = [&](const ConstPlane& noisy, const ConstPlane& estimate, double sigma, const Plane& to,
                           int threads) {
    EXPECT_THROW(network.refine(noisy, estimate, sigma, to, threads), InvalidArgument);
  };
  const ConstPlane plane = in.views()[0];
  refuses(plane, other.views()[0], 1, out.views()[0], 0);
  refuses(plane, plane, 1, other_out.views()[0], 0);
  refuses(plane, plane, -1, out.views()[0], 0);
  refuses(plane, plane, 256, out.views()[0], 0);
  refuses(plane, plane, std::nan(""), out.views()[0], 0);
  refuses(plane, plane, 1, out.views()[0], -1);
  refuses({}, plane, 1, out.views()[0], 0);
  EXPECT_THROW(network.refine(plane, plane, other.views()[0], out.views()[0]), InvalidArgument);
  EXPECT_THROW(network.prepare(0, 4), InvalidArgument);
  EXPECT_THROW(network.prepare(4, 4, -1), InvalidArgument);
  EXPECT_EQ(
      message_of<InvalidArgument>([&] { network.refine(plane, plane, other.views()[0], out.views()[0]); }),
      "RefinementNetwork: expected a map of sigma of 20x10 samples or half of it, rounded up, got 20x11");
}

// Model files that are sound safetensors files, but no such network.
TEST_F(Refinement, RefusesOtherModels) {
  const ModelShape shape{2, 8, 3};
  using Metadata = std::map<std::string, std::string>;
  using Tensors = std::vector<model::NamedTensor>;
  const auto message = [&](const std::function<void(Metadata&, Tensors&)>& spoil) {
    Metadata metadata = testing::model_metadata(shape);
    Tensors tensors = testing::random_tensors(shape);
    spoil(metadata, tensors);
    model::write_safetensors(file("spoilt"), metadata, tensors);
    const std::string text = message_of<ModelError>([&] { RefinementNetwork network(file("spoilt")); });
    return text.starts_with(file("spoilt") + ": ") ? text.substr(file("spoilt").size() + 2) : text;
  };
  EXPECT_EQ(message([](Metadata&, Tensors&) {}), "nothing was thrown");
  for (const char* key : {"format", "version", "unshuffle", "layers", "channels"}) {
    EXPECT_NE(message([=](Metadata& m, Tensors&) { m.erase(key); }).find(key), std::string::npos);
    for (const char* value : {"", "-1", "33", "0", "99999999999999999999", "2x", " 2", "1e1", "8.0", "64"}) {
      EXPECT_NE(message([=](Metadata& m, Tensors&) { m[key] = value; }), "nothing was thrown")
          << key << value;
    }
  }
  EXPECT_EQ(message([](Metadata& m, Tensors&) { m["version"] = "2"; }),
            "expected metadata \"version\" to be \"1\", found another");
  EXPECT_EQ(message([](Metadata& m, Tensors&) { m["channels"] = "16"; }),
            "tensor \"conv0.weight\": expected the shape [16, 9, 3, 3], found [8, 9, 3, 3]");
  EXPECT_EQ(message([](Metadata&, Tensors& t) { t.pop_back(); }),
            "expected a tensor \"conv2.bias\", found none of this name");
  EXPECT_EQ(message([](Metadata&, Tensors& t) { t[2].values[5] = std::nanf(""); }),
            "tensor \"conv1.weight\": expected finite values, value 5 is not");
  EXPECT_EQ(message([](Metadata&, Tensors& t) { t[3].values[1] = INFINITY; }),
            "tensor \"conv1.bias\": expected finite values, value 1 is not");
  EXPECT_EQ(message([](Metadata&, Tensors& t) {
              t.push_back({"conv0.maximum", {3}, {1, 2, 3}});
            }),
            "tensor \"conv0.maximum\": expected the shape [8], found [3]");
  EXPECT_THROW(RefinementNetwork(file("absent")), ModelError);
}

TEST_F(Refinement, ModelsAreFound) {
  ASSERT_EQ(setenv("NONLOCAL_MODELS", fs::path(random_model({2, 8, 2})).parent_path().c_str(), 1), 0);
  EXPECT_EQ(find_model("model"), file("model.safetensors"));
  EXPECT_EQ(find_model("./some/file"), "./some/file");
  const std::string message = message_of<ModelError>([] { find_model("absent"); });
  EXPECT_EQ(message.find("absent.safetensors: expected in one of these folders"), 0U) << message;
  unsetenv("NONLOCAL_MODELS");
  EXPECT_THROW(find_model("model"), ModelError);
}

}  // namespace
}  // namespace nonlocal
