#include "nonlocal/network.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "core/cpu_features.h"
#include "core/mirror.h"
#include "core/planes.h"
#include "core/rounding.h"
#include "core/workers.h"
#include "network/convolution.h"
#include "network/network_access.h"
#include "network/network_model.h"
#include "network/onednn.h"
#include "network/pixels.h"
#include "network/plan.h"
#include "network/plane_copy.h"
#include "network/positions.h"
#include "network/temporal_mean.h"
#include "nonlocal/error.h"

namespace nonlocal {
namespace {

using network::Rect;
using network::TensorView;

const std::string kName = "Network";
constexpr int kMostSide = 32768;

int checked_threads(int threads) {
  if (threads < 0) {
    throw InvalidArgument(kName + ": expected 0 threads or more, got " + std::to_string(threads));
  }
  return thread_count(threads);
}

NetworkPrecision checked_precision(NetworkPrecision precision, const network::NetworkModel& model) {
  if (!is_supported(precision)) {
    throw InvalidArgument(kName + ": expected a precision that this CPU multiplies in, got " +
                          (precision == NetworkPrecision::kInt8 ? "int8" : "bfloat16"));
  }
  if (precision == NetworkPrecision::kInt8 && !model.summary.has_ranges) {
    throw InvalidArgument(kName +
                          ": expected a network whose file has the ranges of its layers (\"NAME.range\") for "
                          "int8, got one without");
  }
  if (precision != NetworkPrecision::kAutomatic) {
    return precision;
  }
  if (model.is_wide) {
    return NetworkPrecision::kFloat32;
  }
  if (model.summary.has_ranges && is_supported(NetworkPrecision::kInt8) && !has_tiles()) {
    return NetworkPrecision::kInt8;
  }
  const bool is_better = is_supported(NetworkPrecision::kBfloat16) && is_bfloat16_faster();
  return is_better ? NetworkPrecision::kBfloat16 : NetworkPrecision::kFloat32;
}

void check_count(const char* what, std::size_t found, int expected) {
  if (found != static_cast<std::size_t>(expected)) {
    throw InvalidArgument(kName + ": expected " + std::to_string(expected) + " planes of " + what + ", got " +
                          std::to_string(found));
  }
}

void check_side(int width, int height) {
  if (width < 1 || height < 1 || width > kMostSide || height > kMostSide) {
    throw InvalidArgument(kName + ": expected frames of 1x1 to 32768x32768 samples, got " +
                          std::to_string(width) + "x" + std::to_string(height));
  }
}

template <typename PlaneType>
void check_size(const char* what, const PlaneType& plane, int width, int height) {
  if (plane.data == nullptr || plane.width != width || plane.height != height) {
    throw InvalidArgument(kName + ": expected planes of " + what + " of " + std::to_string(width) + "x" +
                          std::to_string(height) + " samples, got " +
                          (plane.data == nullptr
                               ? "one without data"
                               : std::to_string(plane.width) + "x" + std::to_string(plane.height)));
  }
}

bool is_same(const ConstPlane& a, const ConstPlane& b) {
  return a.data == b.data && a.stride == b.stride && a.step == b.step && a.bit_depth == b.bit_depth;
}

// A frame's rows in the network's range, wherever they come from and go to.
class FrameRows {
 public:
  virtual ~FrameRows() = default;
  [[nodiscard]] virtual int width() const = 0;
  [[nodiscard]] virtual int height() const = 0;
  virtual void load(int channel, int x, int y, int count, float* values) const = 0;
  // Overwrites `values`.
  virtual void store(int channel, int x, int y, int count, float* values) const = 0;
};

class FloatRows : public FrameRows {
 public:
  FloatRows(std::span<const ConstFloatPlane> in, std::span<const FloatPlane> out) : in_(in), out_(out) {}
  [[nodiscard]] int width() const override { return in_[0].width; }
  [[nodiscard]] int height() const override { return in_[0].height; }
  void load(int channel, int x, int y, int count, float* values) const override {
    const ConstFloatPlane& plane = in_[static_cast<std::size_t>(channel)];
    std::copy_n(plane.data + y * plane.stride + x, count, values);
  }
  void store(int channel, int x, int y, int count, float* values) const override {
    const FloatPlane& plane = out_[static_cast<std::size_t>(channel)];
    std::copy_n(values, count, plane.data + y * plane.stride + x);
  }

 private:
  std::span<const ConstFloatPlane> in_;
  std::span<const FloatPlane> out_;
};

// Pieces of rows are too short for the hardware to foresee the next.
void fetch_ahead(const ConstPlane& plane, int x, int y, int count) {
  constexpr int kRowsAhead = 8;
  constexpr std::ptrdiff_t kLine = 64;
  if (y + kRowsAhead < plane.height) {
    const std::ptrdiff_t sample = static_cast<std::ptrdiff_t>(plane.step) * plane.bytes_per_sample();
    const std::byte* row = plane.row(y + kRowsAhead);
    for (std::ptrdiff_t at = x * sample; at < (x + count) * sample; at += kLine) {
      __builtin_prefetch(row + at);
    }
  }
}

class VideoRows : public FrameRows {
 public:
  VideoRows(std::span<const ConstPlane> in, std::span<const Plane> out, const double (&range)[2])
      : in_(in),
        out_(out),
        low_(static_cast<float>(range[0])),
        unit_(static_cast<float>((range[1] - range[0]) / 255)) {}
  [[nodiscard]] int width() const override { return in_[0].width; }
  [[nodiscard]] int height() const override { return in_[0].height; }
  void load(int channel, int x, int y, int count, float* values) const override {
    const ConstPlane& plane = in_[static_cast<std::size_t>(channel)];
    fetch_ahead(plane, x, y, count);
    network::load_codes(plane, x, y, count, values);
    network::convert(values, -low_ / unit_, unit_, count, values);
  }
  void store(int channel, int x, int y, int count, float* values) const override {
    network::convert(values, low_, 1 / unit_, count, values);
    network::store_codes(values, out_[static_cast<std::size_t>(channel)], x, y, count);
  }

 private:
  std::span<const ConstPlane> in_;
  std::span<const Plane> out_;
  float low_;
  float unit_;
};

// The frame's rows, and a temporal mean's planes, in which code values are clamped to 0 .. 255.99.
class MeanRows : public FrameRows {
 public:
  MeanRows(const FrameRows& frame, std::span<const Plane> planes, const double (&range)[2])
      : frame_(frame), rows_({}, planes, range) {}
  [[nodiscard]] int width() const override { return frame_.width(); }
  [[nodiscard]] int height() const override { return frame_.height(); }
  void load(int channel, int x, int y, int count, float* values) const override {
    frame_.load(channel, x, y, count, values);
  }
  void store(int channel, int x, int y, int count, float* values) const override {
    rows_.store(channel, x, y, count, values);
  }

 private:
  const FrameRows& frame_;
  VideoRows rows_;
};

// A thread's rows.
struct RowBuffers {
  explicit RowBuffers(int width) {
    for (AlignedBuffer<float>* buffer : {&loaded, &mirrored}) {
      buffer->allocate(static_cast<std::size_t>(width));
    }
  }
  AlignedBuffer<float> loaded;
  AlignedBuffer<float> mirrored;
};

// Columns first .. end - 1 of a row, mirrored beyond the frame.
const float* load_row(const FrameRows& frame, int channel, int first, int end, int y, RowBuffers& rows) {
  const int width = frame.width();
  y = mirror(y, frame.height());
  if (first >= 0 && end <= width) {
    frame.load(channel, first, y, end - first, rows.loaded.data());
    return rows.loaded.data();
  }
  frame.load(channel, 0, y, width, rows.loaded.data());
  for (int x = first; x < end; ++x) {
    rows.mirrored.data()[x - first] = rows.loaded.data()[mirror(x, width)];
  }
  return rows.mirrored.data();
}

void load_part(const FrameRows& frame, const TensorView& view, const Rect& part, RowBuffers& rows) {
  for (int y = part.y0; y < part.y1; ++y) {
    std::byte* to = view.at(part.x0, y);
    for (int c = 0; c < view.channels; ++c) {
      const float* values = load_row(frame, c, part.x0, part.x1, y, rows);
      network::store_values(values, part.width(), view,
                            to + static_cast<std::ptrdiff_t>(c) * view.value_bytes(), view.pitch);
    }
    for (int c = view.channels; c < view.pitch; ++c) {
      std::fill_n(rows.loaded.data(), part.width(), 0.0F);
      network::store_values(rows.loaded.data(), part.width(), view,
                            to + static_cast<std::ptrdiff_t>(c) * view.value_bytes(), view.pitch);
    }
  }
}

// What becomes of the layers' output.
struct Output {
  int width;
  int height;
  bool is_residual;
  float strength;
};

// From `count` values of the layers' output to the frame's.
void finish_row(const FrameRows& frame, int channel, int x, int y, int count, const Output& output,
                float* values, RowBuffers& rows) {
  if (output.is_residual || output.strength != 1) {
    frame.load(channel, x, y, count, rows.loaded.data());
  }
  if (output.is_residual) {
    network::add(rows.loaded.data(), count, values);
  }
  if (output.strength != 1) {
    network::blend(rows.loaded.data(), output.strength, count, values);
  }
  frame.store(channel, x, y, count, values);
}

void store_part(const FrameRows& frame, const TensorView& view, const Rect& part, const Output& output,
                RowBuffers& rows) {
  const int count = std::min(part.x1, output.width) - part.x0;
  for (int y = part.y0; y < std::min(part.y1, output.height) && count > 0; ++y) {
    for (int c = 0; c < view.channels; ++c) {
      float* values = rows.mirrored.data();
      network::load_values(view, view.at(part.x0, y) + static_cast<std::ptrdiff_t>(c) * view.value_bytes(),
                           view.pitch, count, values);
      finish_row(frame, c, part.x0, y, count, output, values, rows);
    }
  }
}

}  // namespace

struct Network::State {
  State(const std::string& path, NetworkPrecision wanted, int most_frames)
      : model(path, most_frames),
        precision(checked_precision(wanted, model)),
        layouts(network::tensor_layouts(model, precision)),
        weights(network::network_weights(model, layouts)) {
    if (model.summary.temporal_mean) {
      mean.emplace(*model.summary.temporal_mean);
    }
  }

  void prepare(int new_width, int new_height, int threads) {
    if (plan == nullptr || width != new_width || height != new_height) {
      plan.reset();
      if (mean) {
        mean->reset();
      }
      const int multiple = model.summary.multiple;
      const network::Plan::Size size{round_up(new_width, multiple), round_up(new_height, multiple)};
      plan = std::make_unique<network::Plan>(model, layouts, weights, frame_state, size, tile);
      width = new_width;
      height = new_height;
      frame_state.frame = 0;
      rows.clear();
    }
    if (mean) {
      mean->prepare(width, height, model.summary.output_channels, threads);
    }
    plan->add_slots(threads);
    const int longest = std::max(round_up(width, model.summary.multiple),
                                 output_size(round_up(width, model.summary.multiple)));
    while (static_cast<int>(rows.size()) < threads) {
      rows.emplace_back(longest + 2 * model.ops[0].margin);
    }
  }

  [[nodiscard]] int output_size(int side) const {
    const network::Scale& scale = model.output_op().scale;
    return ceil_divide(side * scale.numerator, scale.denominator);
  }

  [[nodiscard]] float condition_of(const NetworkParameters& parameters) const {
    const auto& known = model.summary.condition;
    if (!known) {
      if (parameters.condition) {
        throw InvalidArgument(kName + ": expected no condition, since the network has none");
      }
      return 0;
    }
    const double value = parameters.condition.value_or(known->value);
    if (!(value >= known->minimum && value <= known->maximum)) {
      throw InvalidArgument(kName + ": expected " + known->name + " from " + std::to_string(known->minimum) +
                            " to " + std::to_string(known->maximum) + ", got " + std::to_string(value));
    }
    return model.told(value);
  }

  [[nodiscard]] float strength_of(const NetworkParameters& parameters) const {
    if (!(parameters.strength >= 0 && parameters.strength <= 1)) {
      throw InvalidArgument(kName + ": expected a strength from 0 to 1, got " +
                            std::to_string(parameters.strength));
    }
    const bool is_like_frame = model.output_op().scale == network::Scale{} &&
                               model.summary.input_channels == model.summary.output_channels;
    if (parameters.strength != 1 && !is_like_frame) {
      throw InvalidArgument(kName +
                            ": expected strength 1, since the output is no frame like the input, got " +
                            std::to_string(parameters.strength));
    }
    return static_cast<float>(parameters.strength);
  }

  void run(const FrameRows& frame, const NetworkParameters& parameters) {
    const int threads = checked_threads(parameters.threads);
    frame_state.condition = condition_of(parameters);
    const Output output{output_size(frame.width()), output_size(frame.height()), model.summary.residual,
                        strength_of(parameters)};
    prepare(frame.width(), frame.height(), threads);
    if (mean) {
      run_mean(frame, output, threads);
    } else {
      run_layers(frame, output, threads);
    }
    const int frames = model.summary.frames;
    frame_state.frame = frame_state.frame + 1 < 2 * frames ? frame_state.frame + 1 : frames;
  }

  void run_layers(const FrameRows& frame, const Output& output, int threads) {
    const auto load = [&](const TensorView& view, const Rect& part, int slot) {
      load_part(frame, view, part, rows[static_cast<std::size_t>(slot)]);
    };
    const auto store = [&](const TensorView& view, const Rect& part, int slot) {
      store_part(frame, view, part, output, rows[static_cast<std::size_t>(slot)]);
    };
    if (!plan->run(std::ref(load), std::ref(store), threads)) {
      throw Error(kName + ": oneDNN failed in an operation");
    }
  }

  // The layers' output goes into the mean whole, and from the mean as much as is wanted to the frame.
  void run_mean(const FrameRows& frame, const Output& output, int threads) {
    const double(&range)[2] = model.summary.range;
    run_layers(MeanRows(frame, mean->planes(), range), {output.width, output.height, output.is_residual, 1},
               threads);
    const auto unit = static_cast<float>((range[1] - range[0]) / 255);
    const Output mixed{output.width, output.height, false, output.strength};
    mean->find_motion(threads);
    mean->run(threads, [&](int channel, int y, float* values, int slot) {
      network::convert(values, static_cast<float>(-range[0]) / unit, unit, output.width, values);
      finish_row(frame, channel, 0, y, output.width, mixed, values, rows[static_cast<std::size_t>(slot)]);
    });
  }

  network::NetworkModel model;
  NetworkPrecision precision;
  std::vector<network::TensorLayout> layouts;
  network::NetworkWeights weights;
  network::FrameState frame_state;
  int width = 0;
  int height = 0;
  network::Plan::Size tile{0, 0};
  std::unique_ptr<network::Plan> plan;
  std::vector<RowBuffers> rows;
  std::optional<network::TemporalMean> mean;  // if the file asks for one
  network::PlaneCopy copies[3];
};

Network::Network(const std::string& path, NetworkPrecision precision, int most_frames)
    : state_(network::with_onednn(kName,
                                  [&] { return std::make_unique<State>(path, precision, most_frames); })) {}
Network::~Network() = default;
Network::Network(Network&&) noexcept = default;
Network& Network::operator=(Network&&) noexcept = default;

int Network::input_channels() const { return state_->model.summary.input_channels; }
int Network::output_channels() const { return state_->model.summary.output_channels; }
int Network::frames() const {
  const ModelSummary& summary = state_->model.summary;
  return summary.frames + (summary.temporal_mean ? 1 : 0);
}
int Network::output_size(int input_size) const { return state_->output_size(input_size); }
const std::optional<NetworkCondition>& Network::condition() const { return state_->model.summary.condition; }
NetworkPrecision Network::precision() const { return state_->precision; }

void Network::prepare(int width, int height, int threads) {
  check_side(width, height);
  threads = checked_threads(threads);
  network::with_onednn(kName, [&] { state_->prepare(width, height, threads); });
}

void Network::run(std::span<const ConstFloatPlane> in, std::span<const FloatPlane> out,
                  const NetworkParameters& parameters) {
  check_count("input", in.size(), input_channels());
  check_count("output", out.size(), output_channels());
  check_side(in[0].width, in[0].height);
  for (const ConstFloatPlane& plane : in) {
    check_size("input", plane, in[0].width, in[0].height);
  }
  for (const FloatPlane& plane : out) {
    check_size("output", plane, output_size(in[0].width), output_size(in[0].height));
  }
  network::with_onednn(kName, [&] { state_->run(FloatRows(in, out), parameters); });
}

void Network::run(std::span<const ConstPlane> in, std::span<const Plane> out,
                  const NetworkParameters& parameters) {
  check_planes(kName.c_str(), in, out, 3);
  check_count("input", in.size(), input_channels());
  check_count("output", out.size(), output_channels());
  if (state_->model.output_op().scale != network::Scale{}) {
    throw InvalidArgument(kName + ": expected a network whose output has the frame's size, got one of " +
                          std::to_string(output_size(in[0].width)) + "x" +
                          std::to_string(output_size(in[0].height)) + " for " + std::to_string(in[0].width) +
                          "x" + std::to_string(in[0].height));
  }
  ConstPlane read[3];
  std::copy(in.begin(), in.end(), read);
  for (std::size_t i = 0; i < in.size(); ++i) {
    const auto is_overwritten = [&](const Plane& plane) {
      // A mean writes when all layers have read, and reads a row again only to write it.
      const bool in_turn = state_->mean && &plane == &out[i] && is_same(in[i], plane);
      return overlap(in[i], plane) && !in_turn;
    };
    if (std::any_of(out.begin(), out.end(), is_overwritten)) {
      read[i] = state_->copies[i].of(in[i]);
    }
  }
  network::with_onednn(kName, [&] {
    state_->run(VideoRows({read, in.size()}, out, state_->model.summary.range), parameters);
  });
}

void Network::reset() {
  state_->frame_state.frame = 0;
  if (state_->mean) {
    state_->mean->reset();
  }
}

void NetworkAccess::set_tile(Network& network, int width, int height) {
  network.state_->tile = {width, height};
  network.state_->plan.reset();
}

}  // namespace nonlocal
