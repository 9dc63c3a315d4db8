#include "text/tower.h"

#include <algorithm>
#include <utility>

#include "core/rounding.h"
#include "model/strict_json.h"
#include "nonlocal/error.h"

namespace nonlocal::text {
namespace {

using model::Shape;

std::uint64_t size(int n) { return static_cast<std::uint64_t>(n); }

std::vector<float> transposed(const std::vector<float>& from, int rows, int columns) {
  std::vector<float> to(from.size());
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) {
      to[static_cast<std::size_t>(c) * size(rows) + size(r)] =
          from[static_cast<std::size_t>(r) * size(columns) + size(c)];
    }
  }
  return to;
}

// What a layer is made of, before it is laid out.
struct PlainLayer {
  std::vector<float> weight, bias;

  void append(const PlainLayer& more) {
    weight.insert(weight.end(), more.weight.begin(), more.weight.end());
    bias.insert(bias.end(), more.bias.begin(), more.bias.end());
  }
  [[nodiscard]] Dense dense(int outputs, int inputs, bool is_bfloat16, Activation activation) const {
    return {{{weight.data(), outputs, inputs, inputs}, bias}, is_bfloat16, activation};
  }
};

PlainLayer read_plain(const Checkpoint& file, const std::string& weight, const std::string& bias, int outputs,
                      int inputs) {
  return {file.floats(weight, {size(outputs), size(inputs)}), file.floats(bias, {size(outputs)})};
}

AttentionParameters attention_of(const TowerShape& shape, int rows, bool is_bfloat16) {
  AttentionParameters p;
  p.queries = p.keys = rows;
  p.dim = shape.width / shape.heads;
  p.heads = shape.heads;
  p.mask = shape.is_causal ? AttentionMask::kCausal : AttentionMask::kNone;
  p.precision = is_bfloat16 ? AttentionPrecision::kBfloat16 : AttentionPrecision::kFloat32;
  return p;
}

}  // namespace

TowerNames hugging_face_names(const std::string& blocks) {
  return {blocks,
          false,
          "layer_norm1",
          "layer_norm2",
          "self_attn.q_proj",
          "self_attn.k_proj",
          "self_attn.v_proj",
          "self_attn.out_proj",
          "mlp.fc1",
          "mlp.fc2"};
}

TowerNames openai_names(const std::string& blocks) {
  return {blocks, true, "ln_1", "ln_2", "attn.in_proj", "", "", "attn.out_proj", "mlp.c_fc", "mlp.c_proj"};
}

Dense read_dense(const Checkpoint& file, const std::string& weight, const std::string& bias, int outputs,
                 int inputs, bool is_transposed, bool is_bfloat16) {
  PlainLayer plain;
  if (is_transposed) {
    plain.weight = transposed(file.floats(weight, {size(inputs), size(outputs)}), inputs, outputs);
  } else {
    plain.weight = file.floats(weight, {size(outputs), size(inputs)});
  }
  if (!bias.empty()) {
    plain.bias = file.floats(bias, {size(outputs)});
  }
  return plain.dense(outputs, inputs, is_bfloat16, Activation::kNone);
}

Norm read_norm(const Checkpoint& file, const std::string& name, int width, float epsilon) {
  return {file.floats(name + ".weight", {size(width)}), file.floats(name + ".bias", {size(width)}), epsilon};
}

TowerMemory::TowerMemory(const TowerShape& shape, int rows, int widest, bool is_bfloat16, int threads)
    : x(rows, shape.width),
      normal(rows, shape.width),
      parts(rows, 3 * shape.width),
      average(rows, shape.width),
      hidden(rows, shape.hidden),
      cells(rows, is_bfloat16 ? ceil_divide(std::max({shape.hidden, shape.width, widest}), 2) : 1),
      attention(attention_of(shape, rows, is_bfloat16)),
      attention_scratch(size(threads)),
      dense_scratch(size(threads)) {
  for (auto& scratch : attention_scratch) {
    scratch.allocate(attention::scratch_bytes(attention.plan()));
  }
  for (auto& scratch : dense_scratch) {
    scratch.allocate(Dense::scratch_floats());
  }
}

void StageBuilder::add_norm(const Norm& norm, const ConstMatrix& in, const Matrix& out) {
  constexpr int kRows = 8;
  stages_.add(ceil_divide(in.rows, kRows), [&norm, in, out](int task, int) {
    for (int r = task * kRows; r < std::min((task + 1) * kRows, in.rows); ++r) {
      norm.run(in.row(r), out.row(r));
    }
  });
}

void StageBuilder::add_dense(const Dense& dense, const ConstMatrix& in, const Matrix& out, bool is_added) {
  ConstMatrix cells = in;
  if (dense.is_bfloat16()) {
    const Matrix packed = memory_.cells.view();
    const RowKernels kernels = row_kernels();
    stages_.add(in.rows, [in, packed, kernels](int row, int) {
      kernels.pack(in.row(row), in.columns, packed.row(row));
    });
    cells = {packed.data, in.rows, dense.cells(), packed.stride};
  }
  auto& scratch = memory_.dense_scratch;
  stages_.add(dense.tasks(in.rows), [&dense, &scratch, cells, out, is_added](int task, int slot) {
    dense.run(task, cells, out, is_added, scratch[size(slot)].data());
  });
}

void StageBuilder::add_attention() {
  const Matrix parts = memory_.parts.view();
  const int width = parts.columns / 3;
  add_attention(columns(parts, 0, width), columns(parts, width, width), columns(parts, 2 * width, width),
                memory_.average.view());
}

void StageBuilder::add_attention(const ConstMatrix& query, const ConstMatrix& key, const ConstMatrix& value,
                                 const Matrix& out) {
  TowerMemory& m = memory_;
  const attention::Call call = m.attention.call({query, key, value}, false, out, false);
  for (int stage = 0; stage < attention::Work::kStages; ++stage) {
    stages_.add(m.attention.tasks(stage), [&m, stage, call](int task, int slot) {
      attention::Scratch scratch =
          attention::make_scratch(m.attention.plan(), m.attention_scratch[size(slot)].data());
      m.attention.run(stage, task, call, scratch);
    });
  }
}

Tower::Tower(const Checkpoint& file, const TowerNames& names, const TowerShape& shape, bool is_bfloat16)
    : shape_(shape), is_bfloat16_(is_bfloat16) {
  blocks_.reserve(size(shape.layers));
  for (int i = 0; i < shape.layers; ++i) {
    blocks_.push_back(read_block(file, names, names.blocks + std::to_string(i) + "."));
  }
}

Tower::Block Tower::read_block(const Checkpoint& file, const TowerNames& names,
                               const std::string& prefix) const {
  const int width = shape_.width;
  const auto layer = [&](const std::string& name, const char* separator, int outputs, int inputs) {
    const std::string whole = prefix + name + separator;
    return read_plain(file, whole + "weight", whole + "bias", outputs, inputs);
  };
  PlainLayer parts;
  if (names.is_fused) {
    parts = layer(names.query, "_", 3 * width, width);
  } else {
    for (const std::string& name : {names.query, names.key, names.value}) {
      parts.append(layer(name, ".", width, width));
    }
  }
  const auto none = Activation::kNone;
  return {read_norm(file, prefix + names.norm1, width, shape_.epsilon),
          parts.dense(3 * width, width, is_bfloat16_, none),
          layer(names.output, ".", width, width).dense(width, width, is_bfloat16_, none),
          read_norm(file, prefix + names.norm2, width, shape_.epsilon),
          layer(names.fc1, ".", shape_.hidden, width)
              .dense(shape_.hidden, width, is_bfloat16_, shape_.activation),
          layer(names.fc2, ".", width, shape_.hidden).dense(width, shape_.hidden, is_bfloat16_, none)};
}

void Tower::add_parts(StageBuilder& stages, TowerMemory& memory, int number) const {
  const Block& block = blocks_[size(number)];
  stages.add_norm(block.norm1, memory.x.view(), memory.normal.view());
  stages.add_dense(block.parts, memory.normal.view(), memory.parts.view());
}

void Tower::add_rest(StageBuilder& stages, TowerMemory& memory, int number) const {
  const Block& block = blocks_[size(number)];
  const Matrix x = memory.x.view();
  const Matrix normal = memory.normal.view();
  stages.add_attention();
  stages.add_dense(block.output, memory.average.view(), x, true);
  stages.add_norm(block.norm2, x, normal);
  stages.add_dense(block.fc1, normal, memory.hidden.view());
  stages.add_dense(block.fc2, memory.hidden.view(), x, true);
}

void Tower::add_post_norm_block(StageBuilder& stages, TowerMemory& memory, int number) const {
  const Block& block = blocks_[size(number)];
  const Matrix x = memory.x.view();
  stages.add_dense(block.parts, x, memory.parts.view());
  stages.add_attention();
  stages.add_dense(block.output, memory.average.view(), x, true);
  stages.add_norm(block.norm1, x, x);
  stages.add_dense(block.fc1, x, memory.hidden.view());
  stages.add_dense(block.fc2, memory.hidden.view(), x, true);
  stages.add_norm(block.norm2, x, x);
}

void Tower::add_stages(StageBuilder& stages, TowerMemory& memory) const {
  for (int block = 0; block < shape_.layers; ++block) {
    add_parts(stages, memory, block);
    add_rest(stages, memory, block);
  }
}

}  // namespace nonlocal::text
