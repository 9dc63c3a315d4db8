// What refining a frame costs: refinement_cost MODEL [WIDTHxHEIGHT]
//
// MODEL is a file or the name of a bundled model, or "random:R,C,L" for random weights of that shape. For
// each precision and 1 and 2 threads: milliseconds a frame, the shortest of many taken in turn, and billions
// of operations a second; by the clock, and by the time of all threads on the cores together, which other
// programs at work disturb less.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "nonlocal/error.h"
#include "nonlocal/refinement.h"
#include "random_model.h"

namespace {

using namespace nonlocal;

constexpr int kRounds = 15;

struct Way {
  const char* name;
  NetworkPrecision precision;
};
constexpr Way kWays[] = {{"f32", NetworkPrecision::kFloat32},
                         {"bf16", NetworkPrecision::kBfloat16},
                         {"int8", NetworkPrecision::kInt8}};

std::string model_file(const std::string& name) {
  testing::ModelShape shape{};
  if (std::sscanf(name.c_str(), "random:%d,%d,%d", &shape.unshuffle, &shape.channels, &shape.layers) != 3) {
    return find_model(name);
  }
  const std::string file = (std::filesystem::temp_directory_path() / "refinement_cost.safetensors").string();
  testing::write_random_model(file, shape);
  return file;
}

// 8-bit planes of noise.
struct Planes {
  Planes(int width, int height)
      : noisy(static_cast<std::size_t>(width) * height),
        estimate(noisy),
        out(noisy),
        width(width),
        height(height) {
    std::srand(1);
    std::generate(noisy.begin(), noisy.end(), [] { return static_cast<std::byte>(std::rand() & 255); });
    std::generate(estimate.begin(), estimate.end(), [] { return static_cast<std::byte>(std::rand() & 255); });
  }
  [[nodiscard]] Plane view(std::vector<std::byte>& samples) const {
    return {samples.data(), width, height, width};
  }

  std::vector<std::byte> noisy, estimate, out;
  int width;
  int height;
};

// Milliseconds.
struct Time {
  double clock = 1e9;
  double cores = 1e9;
};

double cores_time() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

void measure_frame(RefinementNetwork& network, Planes& planes, int threads, Time& least) {
  const auto start = std::chrono::steady_clock::now();
  const double cores = cores_time();
  network.refine(planes.view(planes.noisy), planes.view(planes.estimate), 10, planes.view(planes.out),
                 threads);
  least.cores = std::min(least.cores, cores_time() - cores);
  const std::chrono::duration<double, std::milli> clock = std::chrono::steady_clock::now() - start;
  least.clock = std::min(least.clock, clock.count());
}

void measure(const std::string& file, int width, int height) {
  Planes planes(width, height);
  std::vector<RefinementNetwork> networks;
  std::vector<const char*> names;
  for (const Way& way : kWays) {
    if (is_supported(way.precision)) {
      networks.emplace_back(file, way.precision).prepare(width, height, 2);
      names.push_back(way.name);
    }
  }
  std::vector<std::vector<Time>> least(networks.size(), std::vector<Time>(3));
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < networks.size(); ++i) {
      for (const int threads : {1, 2}) {
        measure_frame(networks[i], planes, threads, least[i][threads]);
      }
    }
    std::fprintf(stderr, "\rround %d of %d", round + 1, kRounds);
  }
  std::fprintf(stderr, "\r                \r");
  const RefinementNetwork& first = networks[0];
  const double operations = first.operations(width, height);
  std::printf("r = %d, C = %d, L = %d, %dx%d: %.1f GFLOP a frame\n", first.unshuffle(), first.channels(),
              first.layers(), width, height, operations * 1e-9);
  for (std::size_t i = 0; i < networks.size(); ++i) {
    for (const int threads : {1, 2}) {
      const Time& time = least[i][threads];
      std::printf("%-5s %d thread%s %8.2f ms %6.0f GFLOP/s, %8.2f ms of cores %6.0f GFLOP/s\n", names[i],
                  threads, threads == 1 ? " " : "s", time.clock, operations * 1e-6 / time.clock, time.cores,
                  operations * 1e-6 / time.cores);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  int width = 1920;
  int height = 1080;
  if (argc < 2 || argc > 3 || (argc == 3 && std::sscanf(argv[2], "%dx%d", &width, &height) != 2)) {
    std::fprintf(stderr, "usage: refinement_cost MODEL [WIDTHxHEIGHT]\n");
    return 2;
  }
  try {
    measure(model_file(argv[1]), width, height);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "refinement_cost: %s\n", e.what());
    return 1;
  }
}
