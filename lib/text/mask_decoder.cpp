#include "text/mask_decoder.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "grade/map_cells.h"
#include "model/strict_json.h"
#include "nonlocal/error.h"
#include "text/model_config.h"

namespace nonlocal::text {
namespace {

const std::string kPrefix = "decoder.";
const std::string kLast = kPrefix + "transposed_convolution";
constexpr int kKernel = 3;
constexpr int kMostPatch = 256;
constexpr std::int64_t kMostParts = std::int64_t{1} << 28;  // eight times what the largest map of CLIPSeg has

std::uint64_t size(int n) { return static_cast<std::uint64_t>(n); }

// Blocks whose tokens the decoder takes, deepest first.
std::vector<int> blocks_of(const Checkpoint& file, int blocks) {
  const TowerConfig config(file);
  std::vector<int> all = config.rising("extract_layers", {3, 6, 9}, 0, blocks - 1);
  if (all.back() >= blocks) {
    config.fail("extract_layers: expected blocks of the vision tower, which has " + std::to_string(blocks));
  }
  std::ranges::reverse(all);
  return all;
}

TowerShape shape_of(const Checkpoint& file, int layers) {
  const TowerConfig config(file);
  const TowerConfig vision(file, "vision_config");
  TowerShape shape{};
  shape.width = dimension(file, kPrefix + "film_mul.weight", 2, 0, kMostChannels);
  shape.hidden = dimension(file, kPrefix + "layers.0.mlp.fc1.weight", 2, 0, kMostChannels);
  shape.layers = layers;
  shape.heads = config.integer("decoder_num_attention_heads", 4, 1, kMostChannels);
  shape.activation = Activation::kRelu;
  shape.epsilon = static_cast<float>(vision.number("layer_norm_eps", 1e-5, 1e-12, 1));
  if (shape.width % shape.heads != 0) {
    config.fail("decoder_num_attention_heads: expected a divisor of the decoder's width, " +
                std::to_string(shape.width) + ", found " + std::to_string(shape.heads));
  }
  return shape;
}

[[noreturn]] void fail(const Checkpoint& file, const std::string& tensor, const std::string& problem) {
  throw ModelError(file.path_of(tensor), "tensor " + model::in_quotes(tensor) + ": " + problem);
}

Dense read_plain(const Checkpoint& file, const std::string& name, int outputs, int inputs) {
  return read_dense(file, name + ".weight", name + ".bias", outputs, inputs, false, false);
}

// A row as a matrix.
Matrix row_of(std::vector<float>& values) {
  const auto n = static_cast<int>(values.size());
  return {values.data(), 1, n, n};
}

// A patch's neighbourhood of 3 x 3, channel by channel, 0 beyond the border.
void gather(const ConstMatrix& patches, int columns, int rows, int at, float* to) {
  for (int c = 0; c < patches.columns; ++c) {
    for (int i = 0; i < kKernel * kKernel; ++i) {
      const int x = at % columns + i % kKernel - 1;
      const int y = at / columns + i / kKernel - 1;
      const bool is_inside = x >= 0 && x < columns && y >= 0 && y < rows;
      *to++ = is_inside ? patches.row(static_cast<std::ptrdiff_t>(y) * columns + x)[c] : 0;
    }
  }
}

}  // namespace

// Working memory and stages for one grid.
struct MaskDecoder::Run {
  Run(const MaskDecoder& decoder, int grid_columns, int grid_rows);

  [[nodiscard]] int patches() const { return columns * rows; }
  // Sides of what the first and the last step make of a patch, or of a part of it.
  [[nodiscard]] int side() const { return first_side * last_side; }
  void give_logits(int row);

  int columns, rows;
  int first_side, last_side;
  std::vector<OwnRows> activations;
  std::vector<BlockTokens> views;
  TowerMemory memory;
  OwnRows neighbours, smooth;    // of refined decoders
  AlignedBuffer<float> parts;    // [patches first_side²][channels]
  AlignedBuffer<float> samples;  // [patches first_side²][last_side²]
  AlignedBuffer<float> logits;   // [rows side][columns side]
  Stages stages;
};

MaskDecoder::Run::Run(const MaskDecoder& decoder, int grid_columns, int grid_rows)
    : columns(grid_columns),
      rows(grid_rows),
      first_side(decoder.first_ ? decoder.first_->side : 1),
      last_side(decoder.last_->side),
      memory(decoder.tower_.shape(), 1 + patches(), 0, false, decoder.threads_),
      neighbours(decoder.smooth_ ? patches() : 1, decoder.smooth_ ? decoder.smooth_->inputs() : 1),
      smooth(decoder.smooth_ ? patches() : 1, decoder.tower_.shape().width),
      stages(decoder.threads_) {
  const std::size_t squares = size(patches()) * size(first_side) * size(first_side);
  parts.allocate(decoder.first_ ? squares * size(decoder.last_->dense.inputs()) : 1);
  samples.allocate(squares * size(last_side) * size(last_side));
  logits.allocate(squares * size(last_side) * size(last_side));
  activations.reserve(decoder.blocks_.size());
  for (std::size_t i = 0; i < decoder.blocks_.size(); ++i) {
    activations.emplace_back(1 + patches(), decoder.reduces_[i].inputs());
    views.push_back({decoder.blocks_[i], activations.back().view()});
  }
  StageBuilder builder(stages, memory);
  decoder.add_blocks(builder, *this);
  decoder.add_logits(builder, *this);
}

bool MaskDecoder::is_in(const Checkpoint& file) { return file.has(kPrefix + "film_mul.weight"); }

MaskDecoder::MaskDecoder(const Checkpoint& file, const DecoderShape& shape, int threads)
    : threads_(threads),
      blocks_(blocks_of(file, shape.blocks)),
      conditional_(
          TowerConfig(file).integer("conditional_layer", 0, 0, static_cast<int>(blocks_.size()) - 1)),
      tower_(file, hugging_face_names(kPrefix + "layers."), shape_of(file, static_cast<int>(blocks_.size())),
             false),
      film_mul_(read_plain(file, kPrefix + "film_mul", tower_.shape().width, shape.embedding)),
      film_add_(read_plain(file, kPrefix + "film_add", tower_.shape().width, shape.embedding)),
      multiplier_(size(tower_.shape().width)),
      addend_(size(tower_.shape().width)) {
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    reduces_.push_back(
        read_plain(file, kPrefix + "reduces." + std::to_string(i), tower_.shape().width, shape.tokens));
  }
  read_last_steps(file);
}

MaskDecoder::~MaskDecoder() = default;

void MaskDecoder::read_last_steps(const Checkpoint& file) {
  const int width = tower_.shape().width;
  if (!file.has(kLast + ".0.weight")) {
    last_.emplace(read_spread(file, kLast, width, 1, Activation::kNone));
    return;
  }
  const std::vector<float> weight =
      file.floats(kLast + ".0.weight", {size(width), size(width), kKernel, kKernel});
  const int inputs = width * kKernel * kKernel;
  smooth_.emplace(
      LinearLayer{{weight.data(), width, inputs, inputs}, file.floats(kLast + ".0.bias", {size(width)})},
      false, Activation::kRelu);
  const int half = dimension(file, kLast + ".2.weight", 4, 1, kMostChannels);
  first_.emplace(read_spread(file, kLast + ".2", width, half, Activation::kRelu));
  last_.emplace(read_spread(file, kLast + ".4", half, 1, Activation::kNone));
}

MaskDecoder::Spread MaskDecoder::read_spread(const Checkpoint& file, const std::string& name, int inputs,
                                             int outputs, Activation activation) {
  const int side = dimension(file, name + ".weight", 4, 3, kMostPatch);
  const std::size_t area = size(side) * size(side);
  const std::vector<float> from =
      file.floats(name + ".weight", {size(inputs), size(outputs), size(side), size(side)});
  const std::vector<float> bias = file.floats(name + ".bias", {size(outputs)});
  std::vector<float> to, to_bias;
  for (std::size_t place = 0; place < area; ++place) {
    for (std::size_t o = 0; o < size(outputs); ++o) {
      for (std::size_t i = 0; i < size(inputs); ++i) {
        to.push_back(from[(i * size(outputs) + o) * area + place]);
      }
      to_bias.push_back(bias[o]);
    }
  }
  return {Dense({{to.data(), static_cast<int>(area) * outputs, inputs, inputs}, to_bias}, false, activation),
          side};
}

void MaskDecoder::check_side(const Checkpoint& file, int patches) const {
  const std::int64_t first_side = first_ ? first_->side : 1;
  const std::int64_t parts = patches * first_side;
  const std::int64_t samples = parts * last_->side;
  if (samples > grade::kMostMapColumns) {
    fail(file, first_ ? kLast + ".4.weight" : kLast + ".weight",
         "expected maps of at most " + std::to_string(grade::kMostMapColumns) + " samples a side, found " +
             std::to_string(samples) + ": " + std::to_string(patches) + " patches of " +
             std::to_string(first_side * last_->side));
  }
  const std::int64_t values = parts * parts * last_->dense.inputs();
  if (first_ && values > kMostParts) {
    fail(file, kLast + ".2.weight",
         "expected at most " + std::to_string(kMostParts) + " values of a picture, found " +
             std::to_string(values) + ": " + std::to_string(last_->dense.inputs()) + " of each of " +
             std::to_string(parts) + " x " + std::to_string(parts) + " parts");
  }
}

void MaskDecoder::add_blocks(StageBuilder& stages, Run& run) const {
  const Matrix x = run.memory.x.view();
  for (int i = 0; i < tower_.shape().layers; ++i) {
    stages.add_dense(reduces_[size(i)], run.activations[size(i)].view(), x, i > 0);
    if (i == conditional_) {
      stages.add(x.rows, [this, x](int row, int) {
        for (int c = 0; c < x.columns; ++c) {
          x.row(row)[c] = multiplier_[size(c)] * x.row(row)[c] + addend_[size(c)];
        }
      });
    }
    tower_.add_post_norm_block(stages, run.memory, i);
  }
}

void MaskDecoder::add_logits(StageBuilder& stages, Run& run) const {
  const Matrix x = run.memory.x.view();
  Matrix in = {x.row(1), x.rows - 1, x.columns, x.stride};
  if (first_) {
    const Matrix neighbours = run.neighbours.view();
    const int columns = run.columns;
    const int rows = run.rows;
    stages.add(in.rows, [=](int at, int) { gather(in, columns, rows, at, neighbours.row(at)); });
    stages.add_dense(*smooth_, neighbours, run.smooth.view());
    const int outputs = first_->dense.outputs();
    stages.add_dense(first_->dense, run.smooth.view(), {run.parts.data(), in.rows, outputs, outputs});
    const int channels = last_->dense.inputs();
    in = {run.parts.data(), in.rows * run.first_side * run.first_side, channels, channels};
  }
  const int area = run.last_side * run.last_side;
  stages.add_dense(last_->dense, in, {run.samples.data(), in.rows, area, area});
  stages.add(run.rows, [&run](int row, int) { run.give_logits(row); });
}

// Patches of a row, each of first_side² squares of last_side² samples, become rows of samples.
void MaskDecoder::Run::give_logits(int row) {
  const std::ptrdiff_t area = static_cast<std::ptrdiff_t>(last_side) * last_side;
  float* to = logits.data() + static_cast<std::ptrdiff_t>(row) * side() * columns * side();
  for (int y = 0; y < side(); ++y) {
    for (int x = 0; x < columns * side(); ++x) {
      const std::ptrdiff_t patch = static_cast<std::ptrdiff_t>(row) * columns + x / side();
      const int square = y / last_side * first_side + x % side() / last_side;
      *to++ = samples.data()[(patch * first_side * first_side + square) * area + y % last_side * last_side +
                             x % last_side];
    }
  }
}

void MaskDecoder::set_text(std::span<const float> embedding) {
  std::vector<float> in(embedding.begin(), embedding.end());
  AlignedBuffer<float> scratch;
  scratch.allocate(Dense::scratch_floats());
  const auto apply = [&](const Dense& layer, std::vector<float>& to) {
    for (int task = 0; task < layer.tasks(1); ++task) {
      layer.run(task, row_of(in), row_of(to), false, scratch.data());
    }
  };
  apply(film_mul_, multiplier_);
  apply(film_add_, addend_);
}

std::span<const BlockTokens> MaskDecoder::prepare(int columns, int rows) {
  if (!run_ || run_->columns != columns || run_->rows != rows) {
    run_ = std::make_unique<Run>(*this, columns, rows);
  }
  return run_->views;
}

bool MaskDecoder::run(const std::stop_token& stop) { return run_->stages.run(stop); }

ConstMatrix MaskDecoder::logits() const {
  const int columns = run_->columns * run_->side();
  return {run_->logits.data(), run_->rows * run_->side(), columns, columns};
}

}  // namespace nonlocal::text
