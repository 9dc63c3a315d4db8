// What a frame costs in a network: network_cost FILE|plain:R,C,L [WIDTHxHEIGHT]
//
// plain:2,32,8 is a network with random weights: unshuffled by 2, 8 convolutions of 3 x 3, 32 channels
// between them. The camera pans. For each precision and 1 and 2 threads: milliseconds by the clock and of all
// cores together, the least of many frames taken in turn, and billions of operations a second a core.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "network_file.h"
#include "nonlocal/network.h"

namespace {

using namespace nonlocal;

constexpr int kRounds = 9;
constexpr int kPan = 3;  // columns that the camera moves on with each frame, and a row

std::string network_file(const std::string& name) {
  int r = 0;
  int channels = 0;
  int layers = 0;
  if (std::sscanf(name.c_str(), "plain:%d,%d,%d", &r, &channels, &layers) != 3) {
    return name;
  }
  const std::string file = (std::filesystem::temp_directory_path() / "network_cost.safetensors").string();
  testing::write_plain_network(file, r, channels, layers);
  return file;
}

double cores_time() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

double clock_time() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// A network with its planes, and the least milliseconds of any frame.
struct Candidate {
  Candidate(const std::string& file, NetworkPrecision precision, int thread_count, int width, int height)
      : network(file, precision), threads(thread_count) {
    const int stride = width + kRounds * kPan;
    for (int c = 0; c < network.input_channels(); ++c) {
      std::vector<std::byte>& samples =
          memory.emplace_back(static_cast<std::size_t>(stride) * (height + kRounds));
      for (std::size_t i = 0; i < samples.size(); ++i) {  // squares of 8 x 8
        const auto square = static_cast<unsigned>(i % stride / 8 + i / stride / 8 * 1000);
        samples[i] = static_cast<std::byte>((square * 2654435761U) >> 24);
      }
    }
    for (int c = 0; c < network.output_channels(); ++c) {
      out_memory.emplace_back(static_cast<std::size_t>(width) * height);
    }
    for (auto& samples : memory) {
      in.push_back({samples.data(), width, height, stride});
    }
    for (auto& samples : out_memory) {
      out.push_back({samples.data(), width, height, width});
    }
    const double start = clock_time();
    network.prepare(width, height, threads);
    ready = clock_time() - start;
  }
  void measure() {
    const double clock_start = clock_time();
    const double cores_start = cores_time();
    network.run(in, out, {.condition = {}, .threads = threads});
    for (ConstPlane& plane : in) {
      plane.data += plane.stride + kPan;
    }
    cores = std::min(cores, cores_time() - cores_start);
    clock = std::min(clock, clock_time() - clock_start);
  }

  Network network;
  int threads;
  std::vector<std::vector<std::byte>> memory, out_memory;
  std::vector<ConstPlane> in;
  std::vector<Plane> out;
  double ready = 0;
  double clock = 1e9;
  double cores = 1e9;
};

const char* name_of(NetworkPrecision precision) {
  switch (precision) {
    case NetworkPrecision::kBfloat16:
      return "bf16";
    case NetworkPrecision::kInt8:
      return "int8";
    default:
      return "f32";
  }
}

void measure(const std::string& file, int width, int height) {
  std::vector<Candidate> all;
  const bool has_ranges = summarise_model(file).has_ranges;
  for (const NetworkPrecision precision :
       {NetworkPrecision::kFloat32, NetworkPrecision::kBfloat16, NetworkPrecision::kInt8}) {
    for (const int threads : {1, 2}) {
      if (is_supported(precision) && (has_ranges || precision != NetworkPrecision::kInt8)) {
        all.emplace_back(file, precision, threads, width, height);
      }
    }
  }
  for (int round = 0; round < kRounds; ++round) {
    for (Candidate& candidate : all) {
      candidate.measure();
    }
    std::fprintf(stderr, "\rround %d of %d", round + 1, kRounds);
  }
  std::fprintf(stderr, "\r                \r");
  double operations = 0;
  for (const LayerSummary& layer : summarise_model(file).layers) {
    operations += layer.operations * width * height;
  }
  std::printf("%dx%d: %.1f GFLOP a frame without attention over the frame\n", width, height,
              operations * 1e-9);
  for (const Candidate& c : all) {
    std::printf("%-5s %d thread%s %8.2f ms, %8.2f ms of cores, %5.0f GFLOP/s a core; made ready in %.0f ms\n",
                name_of(c.network.precision()), c.threads, c.threads == 1 ? " " : "s", c.clock, c.cores,
                operations * 1e-6 / c.cores, c.ready);
  }
}

}  // namespace

int main(int argc, char** argv) {
  int width = 1920;
  int height = 1080;
  if (argc < 2 || argc > 3 || (argc == 3 && std::sscanf(argv[2], "%dx%d", &width, &height) != 2)) {
    std::fprintf(stderr, "usage: network_cost FILE|plain:R,C,L [WIDTHxHEIGHT]\n");
    return 2;
  }
  try {
    measure(network_file(argv[1]), width, height);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "network_cost: %s\n", e.what());
    return 1;
  }
}
