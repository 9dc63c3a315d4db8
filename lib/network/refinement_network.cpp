#include <algorithm>
#include <atomic>
#include <cmath>

#include "core/cpu_features.h"
#include "core/planes.h"
#include "core/workers.h"
#include "network/calibration.h"
#include "network/convolution.h"
#include "network/onednn.h"
#include "network/plane_copy.h"
#include "network/refinement_model.h"
#include "network/tile.h"
#include "network/tile_grid.h"
#include "nonlocal/error.h"
#include "nonlocal/refinement.h"

namespace nonlocal {
namespace {

using network::BoundConvolution;
using network::Convolution;
using network::Frame;
using network::TileColumn;

constexpr const char* kName = "RefinementNetwork";

int checked_threads(int threads) {
  if (threads < 0) {
    throw InvalidArgument(std::string(kName) + ": expected 0 threads or more, got " +
                          std::to_string(threads));
  }
  return thread_count(threads);
}

NetworkPrecision checked_precision(NetworkPrecision precision) {
  if (!is_supported(precision)) {
    throw InvalidArgument(std::string(kName) + ": expected a precision that this CPU multiplies in, got " +
                          (precision == NetworkPrecision::kInt8 ? "int8" : "bfloat16"));
  }
  if (precision != NetworkPrecision::kAutomatic) {
    return precision;
  }
  const bool is_better = is_supported(NetworkPrecision::kBfloat16) && is_bfloat16_faster();
  return is_better ? NetworkPrecision::kBfloat16 : NetworkPrecision::kFloat32;
}

std::string size_of(const ConstPlane& p) { return std::to_string(p.width) + "x" + std::to_string(p.height); }

void check_size(const char* what, const ConstPlane& plane, const ConstPlane& noisy) {
  check_plane(kName, plane);
  if (plane.width != noisy.width || plane.height != noisy.height) {
    throw InvalidArgument(std::string(kName) + ": expected " + what + " of " + size_of(noisy) +
                          " samples like the noisy plane, got " + size_of(plane));
  }
}

void check_map(const ConstPlane& map, const ConstPlane& noisy) {
  check_plane(kName, map);
  const bool is_half = map.width == (noisy.width + 1) / 2 && map.height == (noisy.height + 1) / 2;
  if (!is_half && (map.width != noisy.width || map.height != noisy.height)) {
    throw InvalidArgument(std::string(kName) + ": expected a map of sigma of " + size_of(noisy) +
                          " samples or half of it, rounded up, got " + size_of(map));
  }
}

// A thread's memory: the layers read one buffer and write the other in turn.
struct Slot {
  Slot(const network::TileShape& tile, NetworkPrecision precision,
       const std::vector<Convolution>& convolutions)
      : rows(tile, precision) {
    std::size_t bytes[2] = {};
    std::size_t scratch_bytes = 1;
    for (std::size_t i = 0; i < convolutions.size(); ++i) {
      bytes[i % 2] = std::max(bytes[i % 2], convolutions[i].in_bytes());
      bytes[(i + 1) % 2] = std::max(bytes[(i + 1) % 2], convolutions[i].out_bytes());
      scratch_bytes = std::max(scratch_bytes, convolutions[i].scratch_bytes());
    }
    for (int i = 0; i < 2; ++i) {
      buffer[i].allocate(bytes[i]);
    }
    scratch.allocate(scratch_bytes);
    for (std::size_t i = 0; i < convolutions.size(); ++i) {
      layers.emplace_back(convolutions[i], buffer[i % 2].data(), buffer[(i + 1) % 2].data(), scratch.data());
    }
  }

  [[nodiscard]] void* input() { return buffer[0].data(); }
  [[nodiscard]] const float* output() const {
    return reinterpret_cast<const float*>(buffer[layers.size() % 2].data());
  }

  network::TileRows rows;
  AlignedBuffer<std::byte> buffer[2];
  AlignedBuffer<std::byte> scratch;
  std::vector<BoundConvolution> layers;
};

// All that belongs to one size of frames.
struct Plan {
  Plan(const network::RefinementModel& model, const std::vector<network::PreparedLayer>& layers,
       NetworkPrecision precision, int frame_width, int frame_height)
      : width(frame_width),
        height(frame_height),
        grid(network::cut_into_tiles(model, precision, frame_width, frame_height)) {
    for (int i = 0; i < grid.columns; ++i) {
      columns.emplace_back(grid.tile, i * grid.tile.width, frame_width);
    }
    int around = 2 * static_cast<int>(layers.size());
    for (std::size_t i = 0; i < layers.size(); ++i) {
      around -= 2;
      convolutions.emplace_back(layers[i], precision, grid.tile.width + around, grid.tile.height + around,
                                i + 1 == layers.size());
    }
  }

  int width;
  int height;
  network::TileGrid grid;
  std::vector<TileColumn> columns;
  std::vector<Convolution> convolutions;
  std::vector<Slot> slots;
};

}  // namespace

struct RefinementNetwork::State {
  State(const std::string& path, NetworkPrecision wanted)
      : precision(checked_precision(wanted)), model(path) {
    if (precision == NetworkPrecision::kInt8) {
      network::complete_maxima(model);
    }
    layers = network::prepare_layers(model, precision);
  }

  void prepare(int width, int height, int threads) {
    if (plan == nullptr || plan->width != width || plan->height != height) {
      plan.reset();
      plan = std::make_unique<Plan>(model, layers, precision, width, height);
    }
    while (static_cast<int>(plan->slots.size()) < std::min(threads, plan->grid.count())) {
      plan->slots.emplace_back(plan->grid.tile, precision, plan->convolutions);
    }
  }

  void refine(Frame frame, int threads) {
    const network::OneThread one_thread;
    threads = checked_threads(threads);
    prepare(frame.noisy.width, frame.noisy.height, threads);
    ConstPlane* inputs[] = {&frame.noisy, &frame.estimate, &frame.sigma_map};
    for (int i = 0; i < 3; ++i) {
      if (inputs[i]->data != nullptr && overlap(*inputs[i], frame.out)) {
        *inputs[i] = copies[i].of(*inputs[i]);
      }
    }
    std::atomic<bool> failed = false;
    Workers::shared().run(plan->grid.count(), threads, [&](int i, int slot) {
      if (!refine_tile(frame, i, plan->slots[static_cast<std::size_t>(slot)])) {
        failed = true;
      }
    });
    if (failed) {
      throw Error(std::string(kName) + ": oneDNN failed in a convolution");
    }
  }

  bool refine_tile(const Frame& frame, int tile, Slot& slot) const {
    const network::OneThread one_thread;
    const TileColumn& column = plan->columns[static_cast<std::size_t>(tile % plan->grid.columns)];
    const int first_row = tile / plan->grid.columns * plan->grid.tile.height;
    slot.rows.load(frame, column, first_row, slot.input());
    for (BoundConvolution& layer : slot.layers) {
      if (!layer.run()) {
        return false;
      }
    }
    slot.rows.store(frame, column, first_row, slot.output());
    return true;
  }

  NetworkPrecision precision;
  network::RefinementModel model;
  std::vector<network::PreparedLayer> layers;
  std::unique_ptr<Plan> plan;
  network::PlaneCopy copies[3];
};

RefinementNetwork::RefinementNetwork(const std::string& path, NetworkPrecision precision)
    : state_(network::with_onednn(kName, [&] { return std::make_unique<State>(path, precision); })) {}
RefinementNetwork::~RefinementNetwork() = default;
RefinementNetwork::RefinementNetwork(RefinementNetwork&&) noexcept = default;
RefinementNetwork& RefinementNetwork::operator=(RefinementNetwork&&) noexcept = default;

void RefinementNetwork::prepare(int width, int height, int threads) {
  const std::byte sample{};
  check_plane(kName, {.data = &sample, .width = width, .height = height});
  threads = checked_threads(threads);
  network::with_onednn(kName, [&] { state_->prepare(width, height, threads); });
}

void RefinementNetwork::refine(const ConstPlane& noisy, const ConstPlane& estimate, double sigma,
                               const Plane& out, int threads) {
  check_plane(kName, noisy);
  check_size("an estimate", estimate, noisy);
  check_size("an output", out, noisy);
  if (!(sigma >= 0 && sigma <= 255)) {
    throw InvalidArgument(std::string(kName) + ": expected a sigma of 0 to 255, got " +
                          std::to_string(sigma));
  }
  network::with_onednn(kName, [&] {
    state_->refine({noisy, estimate, {}, static_cast<float>(sigma), out}, threads);
  });
}

void RefinementNetwork::refine(const ConstPlane& noisy, const ConstPlane& estimate, const ConstPlane& sigma,
                               const Plane& out, int threads) {
  check_plane(kName, noisy);
  check_size("an estimate", estimate, noisy);
  check_size("an output", out, noisy);
  check_map(sigma, noisy);
  network::with_onednn(kName, [&] { state_->refine({noisy, estimate, sigma, 0, out}, threads); });
}

int RefinementNetwork::unshuffle() const { return state_->model.unshuffle; }
int RefinementNetwork::layers() const { return static_cast<int>(state_->model.layers.size()); }
int RefinementNetwork::channels() const { return state_->model.channels; }
NetworkPrecision RefinementNetwork::precision() const { return state_->precision; }

double RefinementNetwork::operations(int width, int height) const {
  const int r = unshuffle();
  const double pixels = static_cast<double>((width + r - 1) / r) * ((height + r - 1) / r);
  double sum = 0;
  for (const network::Layer& layer : state_->model.layers) {
    sum += 18.0 * layer.in_channels * layer.out_channels * pixels;
  }
  return sum;
}

}  // namespace nonlocal
