#include "nonlocal/vision_encoder.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "attention/matrix_check.h"
#include "core/workers.h"
#include "nonlocal/error.h"
#include "text/encoder_parameters.h"
#include "text/model_config.h"
#include "text/position_grid.h"
#include "text/preprocessor.h"
#include "text/self_self_attention.h"
#include "text/tower.h"

namespace nonlocal {

using namespace text;  // NOLINT: this library's own

namespace {

constexpr const char* kName = "VisionEncoder";
constexpr int kChannels = 3;
constexpr int kGroundedBlocks = 6;  // that GEM's path runs beside

// What a file calls the vision tower's parts.
struct VisionNames {
  TowerNames tower;
  std::string class_token, patch, positions, pre_norm, post_norm, projection;
  bool is_openai;
};

VisionNames names_in(const Checkpoint& file) {
  if (file.has("visual.conv1.weight")) {
    return {openai_names("visual.transformer.resblocks."),
            "visual.class_embedding",
            "visual.conv1.weight",
            "visual.positional_embedding",
            "visual.ln_pre",
            "visual.ln_post",
            "visual.proj",
            true};
  }
  const std::string prefix = file.has("clip.vision_model.embeddings.class_embedding") ? "clip." : "";
  const std::string tower = prefix + "vision_model.";
  return {hugging_face_names(tower + "encoder.layers."),
          tower + "embeddings.class_embedding",
          tower + "embeddings.patch_embedding.weight",
          tower + "embeddings.position_embedding.weight",
          tower + "pre_layrnorm",  // so it is spelt
          tower + "post_layernorm",
          prefix + "visual_projection.weight",
          false};
}

// Sizes, as the description has them, or the tensors.
struct VisionShape {
  VisionShape(const Checkpoint& file, const VisionNames& names) {
    constexpr int kMostPatch = 256;
    constexpr int kOpenAiHead = 64;
    constexpr int kHuggingFaceHeads = 12;
    const TowerConfig config(file, "vision_config");
    width =
        config.integer("hidden_size", dimension(file, names.patch, 4, 0, kMostChannels), 1, kMostChannels);
    patch = config.integer("patch_size", dimension(file, names.patch, 4, 3, kMostPatch), 1, kMostPatch);
    const int positions = dimension(file, names.positions, 2, 0, kMostTokens);
    side = static_cast<int>(std::lround(std::sqrt(positions - 1)));
    side = config.integer("image_size", side * patch, 1, kMostTokens) / patch;
    if (side < 1) {
      config.fail("image_size: expected at least a patch of " + std::to_string(patch));
    }
    tower = tower_shape(file, config, names.tower, width,
                        names.is_openai ? std::max(width / kOpenAiHead, 1) : kHuggingFaceHeads, false);
    embedding = file.has(names.projection)
                    ? dimension(file, names.projection, 2, names.is_openai ? 1 : 0, kMostChannels)
                    : 0;
  }
  [[nodiscard]] int patch_inputs() const { return kChannels * patch * patch; }
  [[nodiscard]] int embedding_size() const { return embedding == 0 ? width : embedding; }

  int width, patch;
  int side;       // patches on a side of the pictures that it was trained with
  int embedding;  // 0: no projection
  TowerShape tower;
};

std::uint64_t size(int n) { return static_cast<std::uint64_t>(n); }

// A convolution whose stride is its kernel: a linear layer of patches.
Dense read_patches(const Checkpoint& file, const VisionNames& names, const VisionShape& shape,
                   bool is_bfloat16) {
  const std::uint64_t patch = size(shape.patch);
  const std::vector<float> weight = file.floats(names.patch, {size(shape.width), kChannels, patch, patch});
  const int inputs = shape.patch_inputs();
  return {{{weight.data(), shape.width, inputs, inputs}, {}}, is_bfloat16};
}

}  // namespace

struct VisionEncoder::State {
  State(const Checkpoint& file, const VisionNames& names, const EncoderParameters& parameters);

  // Working memory and stages for pictures of one size.
  struct Run {
    Run(const State& state, int columns, int rows, bool is_grounded);
    void add_tower(const State& state);
    void add_pooled(const State& state);
    void add_patches(const State& state);
    void add_grounded(const State& state);
    void add_embeddings(StageBuilder& builder, const State& state, const Matrix& from);
    [[nodiscard]] Matrix patch_rows(const Matrix& m) const {
      return {m.row(1), m.rows - 1, m.columns, m.stride};
    }

    int columns, rows;
    std::vector<float> positions;
    TowerMemory memory;
    OwnRows samples;  // a patch a row
    OwnRows pooled, patches;
    std::optional<SelfSelfPath> path;
    Stages tokens;  // up to the last block
    Stages pool, relate, ground;
  };

  void check(std::span<const ConstFloatPlane> rgb, const VisionOutputs& out) const;
  void gather(Run& run, int patch) const;
  void embed(Run& run, int row) const;
  void give_block(Run& run, int block) const;
  bool encode(std::span<const ConstFloatPlane> rgb, const VisionOutputs& out, const std::stop_token& stop);

  VisionShape shape;
  int threads;
  VisionNormalisation normalisation;
  std::vector<float> class_token, positions;
  Tower tower;
  Dense patch;
  Norm pre_norm, post_norm;
  std::optional<Dense> projection;

  std::unique_ptr<Run> run;
  // Of the call that runs.
  std::span<const ConstFloatPlane> rgb;
  std::span<const BlockTokens> blocks;
};

VisionEncoder::State::State(const Checkpoint& file, const VisionNames& names,
                            const EncoderParameters& parameters)
    : shape(file, names),
      threads(thread_count(parameters.threads)),
      normalisation(Preprocessor(file.folder()).normalisation()),
      class_token(file.floats(names.class_token, {size(shape.width)})),
      positions(file.floats(names.positions, {1 + size(shape.side) * size(shape.side), size(shape.width)})),
      tower(file, names.tower, shape.tower, calculates_in_bfloat16(parameters)),
      patch(read_patches(file, names, shape, tower.is_bfloat16())),
      pre_norm(read_norm(file, names.pre_norm, shape.width, shape.tower.epsilon)),
      post_norm(read_norm(file, names.post_norm, shape.width, shape.tower.epsilon)) {
  if (shape.embedding != 0) {
    projection.emplace(read_dense(file, names.projection, "", shape.embedding, shape.width, names.is_openai,
                                  tower.is_bfloat16()));
  }
}

VisionEncoder::State::Run::Run(const State& state, int grid_columns, int grid_rows, bool is_grounded)
    : columns(grid_columns),
      rows(grid_rows),
      positions(positions_on(state.positions, state.shape.side, state.shape.width, columns, rows)),
      memory(state.shape.tower, 1 + columns * rows, state.shape.patch_inputs(), state.tower.is_bfloat16(),
             state.threads),
      samples(columns * rows, state.shape.patch_inputs()),
      pooled(1, state.shape.embedding_size()),
      patches(columns * rows, state.shape.embedding_size()),
      tokens(state.threads),
      pool(state.threads),
      relate(state.threads),
      ground(state.threads) {
  if (is_grounded) {
    path.emplace(state.shape.tower, memory);
    add_grounded(state);
  }
  add_tower(state);
  add_pooled(state);
  add_patches(state);
}

void VisionEncoder::State::Run::add_tower(const State& state) {
  StageBuilder builder(tokens, memory);
  const Matrix x = memory.x.view();
  builder.add(columns * rows, [this, &state](int at, int) { state.gather(*this, at); });
  builder.add_dense(state.patch, samples.view(), patch_rows(x));
  builder.add(x.rows, [this, &state](int row, int) { state.embed(*this, row); });
  const int layers = state.shape.tower.layers;
  const int first = std::max(layers - kGroundedBlocks, 0);
  for (int block = 0; block < layers; ++block) {
    if (path && block == first) {
      path->add_start(builder);
    }
    state.tower.add_parts(builder, memory, block);
    if (path && block >= first) {
      path->add_block(builder, state.tower.output(block));
    }
    state.tower.add_rest(builder, memory, block);
    builder.add(1, [this, &state, block](int, int) { state.give_block(*this, block); });
  }
}

void VisionEncoder::State::Run::add_pooled(const State& state) {
  StageBuilder builder(pool, memory);
  const Matrix x = memory.x.view();
  const Matrix normal = memory.normal.view();
  const Matrix first{normal.data, 1, normal.columns, normal.stride};
  const Matrix to = state.projection ? first : pooled.view();
  builder.add_norm(state.post_norm, {x.data, 1, x.columns, x.stride}, to);
  if (state.projection) {
    builder.add_dense(*state.projection, first, pooled.view());
  }
}

// The last block's values are still there.
void VisionEncoder::State::Run::add_patches(const State& state) {
  StageBuilder builder(relate, memory);
  const int width = state.shape.width;
  const Matrix values = patch_rows(text::columns(memory.parts.view(), 2 * width, width));
  const Matrix normal = patch_rows(memory.normal.view());
  builder.add_dense(state.tower.output(state.shape.tower.layers - 1), values, normal);
  add_embeddings(builder, state, normal);
}

void VisionEncoder::State::Run::add_grounded(const State& state) {
  StageBuilder builder(ground, memory);
  add_embeddings(builder, state, patch_rows(path->tokens()));
}

void VisionEncoder::State::Run::add_embeddings(StageBuilder& builder, const State& state,
                                               const Matrix& from) {
  const Matrix normal = patch_rows(memory.normal.view());
  builder.add_norm(state.post_norm, from, state.projection ? normal : patches.view());
  if (state.projection) {
    builder.add_dense(*state.projection, normal, patches.view());
  }
}

// A patch's samples, channel by channel, row by row.
void VisionEncoder::State::gather(Run& r, int at) const {
  const int x = at % r.columns * shape.patch;
  const int y = at / r.columns * shape.patch;
  float* to = r.samples.view().row(at);
  for (std::size_t c = 0; c < kChannels; ++c) {
    const float scale = 1 / normalisation.deviation[c];
    const float mean = normalisation.mean[c];
    for (int row = 0; row < shape.patch; ++row, to += shape.patch) {
      const float* from = rgb[c].data + (y + row) * rgb[c].stride + x;
      std::transform(from, from + shape.patch, to, [=](float v) { return (v - mean) * scale; });
    }
  }
}

void VisionEncoder::State::embed(Run& r, int row) const {
  float* to = r.memory.x.view().row(row);
  const float* from = row == 0 ? class_token.data() : to;
  const float* position = r.positions.data() + static_cast<std::ptrdiff_t>(row) * shape.width;
  std::transform(from, from + shape.width, position, to, std::plus<>());
  pre_norm.run(to, to);
}

void VisionEncoder::State::give_block(Run& r, int block) const {
  const Matrix x = r.memory.x.view();
  for (const BlockTokens& wanted : blocks) {
    for (int row = 0; wanted.block == block && row < x.rows; ++row) {
      std::copy_n(x.row(row), x.columns, wanted.tokens.row(row));
    }
  }
}

void VisionEncoder::State::check(std::span<const ConstFloatPlane> planes, const VisionOutputs& out) const {
  const auto refuse = [](const std::string& expected, const std::string& got) {
    throw InvalidArgument(std::string(kName) + ": expected " + expected + ", got " + got);
  };
  const auto text = [](int width, int height) {
    return std::to_string(width) + "x" + std::to_string(height);
  };
  if (planes.size() != kChannels) {
    refuse("three planes, R, G and B", std::to_string(planes.size()));
  }
  const int width = planes[0].width;
  const int height = planes[0].height;
  for (const ConstFloatPlane& plane : planes) {
    if (plane.width != width || plane.height != height || plane.data == nullptr || plane.stride < width) {
      refuse("planes of one size, " + text(width, height) + ", with data", text(plane.width, plane.height));
    }
  }
  if (width < 1 || height < 1 || width % shape.patch != 0 || height % shape.patch != 0) {
    refuse("sides that are multiples of " + std::to_string(shape.patch), text(width, height));
  }
  const std::int64_t patches = static_cast<std::int64_t>(width / shape.patch) * (height / shape.patch);
  if (patches >= kMostTokens) {
    refuse("at most " + std::to_string(kMostTokens - 1) + " patches", std::to_string(patches));
  }
  const auto check_out = [](const char* name, const Matrix& m, std::int64_t rows, int columns) {
    if (m.data != nullptr) {
      attention::check_matrix(kName, name, m, static_cast<int>(rows), columns);
    }
  };
  check_out("pooled", out.pooled, 1, shape.embedding_size());
  check_out("patches", out.patches, patches, shape.embedding_size());
  check_out("tokens", out.tokens, patches + 1, shape.width);
  check_out("grounded", out.grounded, patches, shape.embedding_size());
  for (const BlockTokens& wanted : out.blocks) {
    if (wanted.block < 0 || wanted.block >= shape.tower.layers) {
      refuse("blocks from 0 to " + std::to_string(shape.tower.layers - 1), std::to_string(wanted.block));
    }
    attention::check_matrix(kName, "a block's tokens", wanted.tokens, static_cast<int>(patches) + 1,
                            shape.width);
  }
}

bool VisionEncoder::State::encode(std::span<const ConstFloatPlane> planes, const VisionOutputs& out,
                                  const std::stop_token& stop) {
  check(planes, out);
  rgb = planes;
  blocks = out.blocks;
  const bool is_grounded = out.grounded.data != nullptr;
  const int columns = planes[0].width / shape.patch;
  const int rows = planes[0].height / shape.patch;
  if (!run || run->columns != columns || run->rows != rows || run->path.has_value() != is_grounded) {
    run = std::make_unique<Run>(*this, columns, rows, is_grounded);
  }
  const auto give = [](const Matrix& from, const Matrix& to) {
    for (int r = 0; r < from.rows; ++r) {
      std::copy_n(from.row(r), from.columns, to.row(r));
    }
  };
  if (!run->tokens.run(stop)) {
    return false;
  }
  if (out.tokens.data != nullptr) {
    give(run->memory.x.view(), out.tokens);
  }
  const auto run_for = [&](const Matrix& to, Stages& stages, OwnRows& from) {
    if (to.data != nullptr && stages.run(stop)) {
      give(from.view(), to);
    }
  };
  run_for(out.pooled, run->pool, run->pooled);
  run_for(out.patches, run->relate, run->patches);
  run_for(out.grounded, run->ground, run->patches);
  return !stop.stop_requested();
}

VisionEncoder::VisionEncoder(const std::string& path, const EncoderParameters& parameters) {
  check_parameters(kName, parameters);
  const Checkpoint file(path);
  state_ = std::make_unique<State>(file, names_in(file), parameters);
}
VisionEncoder::~VisionEncoder() = default;
VisionEncoder::VisionEncoder(VisionEncoder&&) noexcept = default;
VisionEncoder& VisionEncoder::operator=(VisionEncoder&&) noexcept = default;

int VisionEncoder::width() const { return state_->shape.width; }
int VisionEncoder::embedding_size() const { return state_->shape.embedding_size(); }
int VisionEncoder::patch_size() const { return state_->shape.patch; }
int VisionEncoder::image_size() const { return state_->shape.side * state_->shape.patch; }
int VisionEncoder::layers() const { return state_->shape.tower.layers; }
AttentionPrecision VisionEncoder::precision() const { return precision_of(state_->tower.is_bfloat16()); }
const VisionNormalisation& VisionEncoder::normalisation() const { return state_->normalisation; }

bool VisionEncoder::encode(std::span<const ConstFloatPlane> rgb, const VisionOutputs& out,
                           const std::stop_token& stop) {
  return state_->encode(rgb, out, stop);
}

}  // namespace nonlocal
