#include "network/plan.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <map>
#include <numeric>
#include <string>

#include "core/cpu_features.h"
#include "core/rounding.h"
#include "core/workers.h"
#include "network/convolution.h"
#include "nonlocal/error.h"

namespace nonlocal::network {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr double kMostPairs = 0x1p36;
constexpr double kMostMemory = 0x1p34;
constexpr int kMostBands = 16;
constexpr int kLeastBandRows = 4;

// See tile_grid.cpp: what leaves the second-level cache slows a tile, little by little.
constexpr double kSlowingBytes = 64 * 1024 * 1024;
constexpr int kSmallestTile = 32;
constexpr int kLargestTile = 512;
constexpr int kMostPieces = 24;             // of a side, unless it has larger ones
constexpr double kStepOperations = 50'000;  // what starting a step costs, in operations

double area(const Rect& r) { return static_cast<double>(r.width()) * r.height(); }

// The output stays as exact as its convolution's sums, through shuffling.
void widen_output(const NetworkModel& model, std::vector<TensorLayout>& layouts) {
  std::vector<int> readers(model.ops.size());
  for (const Op& op : model.ops) {
    for (const int input : op.inputs) {
      ++readers[static_cast<std::size_t>(input)];
    }
  }
  std::vector<std::size_t> path = {static_cast<std::size_t>(model.output)};
  while (model.ops[path.back()].is_rearrangement()) {
    path.push_back(static_cast<std::size_t>(model.ops[path.back()].inputs[0]));
  }
  const Op& first = model.ops[path.back()];
  const bool is_own =
      std::all_of(path.begin() + 1, path.end(), [&](std::size_t i) { return readers[i] == 1; });
  if (first.kind == OpKind::kConvolution && !first.has_sum() && is_own && readers[path[0]] == 0) {
    for (const std::size_t i : path) {
      layouts[i].element = Element::kFloat32;
    }
  }
}

// When each tensor is read for the last time.
std::vector<std::size_t> last_readers(const NetworkModel& model) {
  std::vector<std::size_t> last(model.ops.size());
  for (std::size_t i = 0; i < model.ops.size(); ++i) {
    for (const int input : model.ops[i].inputs) {
      last[static_cast<std::size_t>(input)] = i;
    }
  }
  last[static_cast<std::size_t>(model.output)] = model.ops.size();
  return last;
}

// Memory of several tensors, of which some live at the same time.
class Arena {
 public:
  // The first gap of so many bytes, taken until `last`.
  std::size_t take(std::size_t bytes, std::size_t last) {
    bytes = round_up(std::max<std::size_t>(bytes, 1), kAlignment);
    std::size_t at = 0;
    for (const auto& [begin, block] : blocks_) {
      if (begin - at >= bytes) {
        break;
      }
      at = block.end;
    }
    blocks_[at] = {at + bytes, last};
    size_ = std::max(size_, at + bytes);
    return at;
  }
  void keep(std::size_t at, std::size_t last) { blocks_.at(at).last = last; }
  // Gives back what no later operation reads.
  void release(std::size_t op) {
    std::erase_if(blocks_, [op](const auto& block) { return block.second.last <= op; });
  }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  struct Block {
    std::size_t end;
    std::size_t last;
  };
  std::map<std::size_t, Block> blocks_;
  std::size_t size_ = 0;
};

// What is no byte.
Element floating_element(NetworkPrecision precision) {
  if (precision == NetworkPrecision::kInt8) {
    const bool is_better = is_supported(NetworkPrecision::kBfloat16) && is_bfloat16_faster();
    return is_better ? Element::kBfloat16 : Element::kFloat32;
  }
  return precision == NetworkPrecision::kFloat32 ? Element::kFloat32 : Element::kBfloat16;
}

// Channels that products take at once.
int together(Element element) {
  return element == Element::kFloat32 ? 1 : element == Element::kBfloat16 ? 2 : 4;
}

}  // namespace

std::vector<TensorLayout> tensor_layouts(const NetworkModel& model, NetworkPrecision precision) {
  std::vector<TensorLayout> layouts;
  const Element other = floating_element(precision);
  const Quantisations bytes =
      precision == NetworkPrecision::kInt8 ? quantise(model) : Quantisations(model.ops.size());
  // Products of bfloat16 take two channels at once, those of bytes four. What is only rearranged needs none
  // to fill up.
  std::vector<bool> is_plain(model.ops.size());
  for (std::size_t i = 0; i < model.ops.size(); ++i) {
    is_plain[i] = model.ops[i].kind == OpKind::kInput || model.ops[i].is_rearrangement();
  }
  for (const Op& op : model.ops) {
    for (const int input : op.inputs) {
      is_plain[static_cast<std::size_t>(input)] =
          is_plain[static_cast<std::size_t>(input)] && op.is_rearrangement();
    }
  }
  for (std::size_t i = 0; i < model.ops.size(); ++i) {
    const int channels = model.ops[i].channels;
    const Element element = bytes[i] != nullptr ? Element::kByte : other;
    layouts.push_back({is_plain[i] ? channels : round_up(channels, together(element)), element, bytes[i]});
  }
  widen_output(model, layouts);
  return layouts;
}

NetworkWeights network_weights(const NetworkModel& model, const std::vector<TensorLayout>& layouts) {
  NetworkWeights weights(model.ops.size());
  for (std::size_t i = 0; i < model.ops.size(); ++i) {
    const Op& op = model.ops[i];
    if (op.kind == OpKind::kConvolution) {
      const auto in = static_cast<std::size_t>(op.inputs[0]);
      const auto make = [&](const Op& as, const std::vector<float>& scale) {
        weights[i] = std::make_unique<ConvolutionWeights>(as, model.ops[in].channels, layouts[in].pitch,
                                                          layouts[i].pitch, scale);
      };
      if (layouts[in].quantisation == nullptr) {
        make(op, {});
        continue;
      }
      ByteWeights bytes = byte_weights(op, *layouts[in].quantisation, layouts[i].quantisation.get());
      Op quantised = op;
      quantised.weight = std::move(bytes.weight);
      quantised.bias = std::move(bytes.bias);
      make(quantised, bytes.scale);
    }
  }
  return weights;
}

Plan::Plan(const NetworkModel& model, const std::vector<TensorLayout>& layouts, NetworkWeights& weights,
           const FrameState& state, Size size, Size tile)
    : model_(model), layouts_(layouts), weights_(weights), state_(state), size_(size), tile_(tile) {
  for (const Op& op : model_.ops) {
    biases_.push_back(attention_bias(op));
  }
  if (model_.is_local) {
    if (tile_.width == 0) {
      choose_tile();
    }
    choose_shift();
    cut_tiles();
  } else {
    check_size();
    make_stages();
  }
}

Rect Plan::plane(std::size_t op) const {
  const Scale& scale = model_.ops[op].scale;
  const int m = model_.ops[op].margin;
  return {-m, -m, scale.of(size_.width) + m, scale.of(size_.height) + m};
}

// The part of each operation's output that a tile needs.
std::vector<Rect> Plan::parts_for(const Rect& tile) const {
  std::vector<Rect> parts(model_.ops.size());
  const auto output = static_cast<std::size_t>(model_.output);
  const Scale& scale = model_.ops[output].scale;
  parts[output] = {scale.of(tile.x0), scale.of(tile.y0), scale.of(tile.x1), scale.of(tile.y1)};
  for (std::size_t i = model_.ops.size(); i-- > 0;) {
    const Op& op = model_.ops[i];
    for (std::size_t k = 0; k < op.inputs.size(); ++k) {
      const auto from = static_cast<std::size_t>(op.inputs[k]);
      parts[from] = hull(parts[from], needed(op, k, parts[i], plane(from)));
    }
  }
  return parts;
}

// Tiles whose parts lie alike run the same steps.
std::vector<int> Plan::kind_key(const Rect& tile, const std::vector<Rect>& parts) const {
  std::vector<int> key;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Scale& scale = model_.ops[i].scale;
    const int x = scale.of(tile.x0);
    const int y = scale.of(tile.y0);
    const Rect whole = plane(i);
    const Rect& part = parts[i];
    // Up-sampling looks at the plane's sides.
    key.insert(key.end(), {part.x0 - x, part.y0 - y, part.x1 - x, part.y1 - y, part.x0 == whole.x0,
                           part.y0 == whole.y0, part.x1 == whole.x1, part.y1 == whole.y1});
  }
  return key;
}

TensorView Plan::view(std::size_t op, const Rect& part, std::byte* data) const {
  const TensorLayout& layout = layouts_[op];
  return {data,
          part,
          model_.ops[op].channels,
          layout.pitch,
          layout.element,
          model_.ops[op].frames,
          layout.quantisation.get()};
}

double Plan::tile_operations(const std::vector<Rect>& parts) const {
  double sum = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Op& op = model_.ops[i];
    sum += kStepOperations + area(parts[i]) * (operations(op, model_.ops) + 20.0 * op.channels);
  }
  return sum;
}

// What the tiles of a frame cost, of few threads and of several.
double Plan::tile_cost(Size tile) const {
  const int columns = ceil_divide(size_.width, tile.width);
  const int rows = ceil_divide(size_.height, tile.height);
  // One amidst others, where there is one.
  const int x = columns / 2 * tile.width;
  const int y = rows / 2 * tile.height;
  const std::vector<Rect> parts =
      parts_for({x, y, std::min(x + tile.width, size_.width), std::min(y + tile.height, size_.height)});
  const double sum = tile_operations(parts);
  double most = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    double bytes = area(parts[i]) * static_cast<double>(view(i, {}, nullptr).position_bytes());
    for (const int input : model_.ops[i].inputs) {
      const auto from = static_cast<std::size_t>(input);
      bytes += area(parts[from]) * static_cast<double>(view(from, {}, nullptr).position_bytes());
    }
    most = std::max(most, bytes);
  }
  double cost = 0;
  // Machines of few cores have the least time to spare.
  for (const auto& [threads, weight] : {std::pair(2, 3), {3, 1}, {4, 2}, {6, 1}, {8, 1}}) {
    cost += weight * ceil_divide(columns * rows, threads) * threads * sum;
  }
  return cost * (1 + most / kSlowingBytes);
}

void Plan::choose_tile() {
  double least = std::numeric_limits<double>::max();
  const int multiple = model_.summary.multiple;
  const auto cut = [multiple](int side, int pieces) { return round_up(ceil_divide(side, pieces), multiple); };
  const auto most_pieces = [](int side) {
    return std::clamp(side / kSmallestTile, 1, std::max(kMostPieces, side / kLargestTile));
  };
  for (int columns = 1; columns <= most_pieces(size_.width); ++columns) {
    for (int rows = 1; rows <= most_pieces(size_.height); ++rows) {
      const Size tile{cut(size_.width, columns), cut(size_.height, rows)};
      const double cost = tile_cost(tile);
      if (cost < least) {
        least = cost;
        tile_ = tile;
      }
    }
  }
}

// Where a side of the frame is cut, and how much of it each piece calculates. Of one length, but for the
// first and the last where cuts are shifted: what is left over is calculated with a part of the piece before,
// since oneDNN may sum slivers in another order.
std::vector<Plan::Piece> Plan::cut_side(int side, int piece, int shift) {
  const int count = ceil_divide(side, piece);
  std::vector<Piece> pieces;
  for (int i = 0; i < count; ++i) {
    const int first = i == 0 ? 0 : i * piece - shift;
    const int end = i + 1 == count ? side : (i + 1) * piece - shift;
    pieces.push_back({std::min(first, std::max(0, side - piece)), first, end});
  }
  return pieces;
}

// Attention in windows makes a tile calculate whole ones around what it stores. Cuts that lie before a
// window's border by as much as the layers behind reach beyond them need one window less.
void Plan::choose_shift() {
  int step = 1;
  for (const Op& op : model_.ops) {
    step = std::lcm(step, op.scale.denominator);
  }
  const auto least = [&](const auto& rect_of, int side, int piece) {
    int best = 0;
    double least_cost = std::numeric_limits<double>::max();
    for (int shift = 0; shift < std::min(model_.summary.multiple, piece); shift += step) {
      double cost = 0;
      for (const Piece& p : cut_side(side, piece, shift)) {
        cost += tile_operations(parts_for(rect_of(p)));
      }
      if (cost < least_cost) {
        least_cost = cost;
        best = shift;
      }
    }
    return best;
  };
  const int x = size_.width / tile_.width / 2 * tile_.width;
  const int y = size_.height / tile_.height / 2 * tile_.height;
  const int right = std::min(x + tile_.width, size_.width);
  const int bottom = std::min(y + tile_.height, size_.height);
  shift_.width = least(
      [&](const Piece& p) {
        return Rect{p.begin, y, p.end, bottom};
      },
      size_.width, tile_.width);
  shift_.height = least(
      [&](const Piece& p) {
        return Rect{x, p.begin, right, p.end};
      },
      size_.height, tile_.height);
}

void Plan::cut_tiles() {
  std::map<std::vector<int>, std::size_t> known;
  for (const Piece& row : cut_side(size_.height, tile_.height, shift_.height)) {
    for (const Piece& column : cut_side(size_.width, tile_.width, shift_.width)) {
      const Rect tile{column.begin, row.begin, column.end, row.end};
      const std::vector<Rect> parts = parts_for(tile);
      const auto [at, is_new] = known.try_emplace(kind_key(tile, parts), kinds_.size());
      if (is_new) {
        kinds_.push_back({tile, parts, {}, {}, 0});
        place_tensors(kinds_.back());
        check_memory(static_cast<double>(kinds_.back().bytes));
      }
      tiles_.push_back({tile, {column.stored, row.stored, tile.x1, tile.y1}, at->second});
    }
  }
}

// In turn, each where there is room. A convolution adds to what it reads where nothing else does any more.
void Plan::place_tensors(Geometry& geometry) const {
  const std::vector<std::size_t> last = last_readers(model_);
  Arena arena;
  geometry.offsets.resize(model_.ops.size());
  geometry.is_sum_there.resize(model_.ops.size());
  for (std::size_t i = 0; i < model_.ops.size(); ++i) {
    const Op& op = model_.ops[i];
    const auto other = op.has_sum() ? static_cast<std::size_t>(op.inputs[1]) : 0;
    if (op.has_sum() && last[other] == i && op.inputs[0] != op.inputs[1] &&
        geometry.parts[other] == geometry.parts[i] && layouts_[other].pitch == layouts_[i].pitch &&
        layouts_[other].element == layouts_[i].element && model_.ops[other].kind != OpKind::kHistory) {
      geometry.offsets[i] = geometry.offsets[other];
      geometry.is_sum_there[i] = true;
      arena.keep(geometry.offsets[i], last[i]);
    } else if (op.kind != OpKind::kCondition && op.kind != OpKind::kHistory) {
      geometry.offsets[i] = arena.take(view(i, geometry.parts[i], nullptr).frame_bytes(), last[i]);
    }
    arena.release(i);
  }
  geometry.bytes = arena.size();
}

StepPlace Plan::step_place(std::size_t op, const Geometry& geometry, std::byte* memory) const {
  StepPlace place;
  const auto view_of = [&](std::size_t i) {
    std::byte* data = memory + geometry.offsets[i];
    if (model_.ops[i].kind == OpKind::kHistory) {
      data = const_cast<std::byte*>(histories_[i].data());
    } else if (model_.ops[i].kind == OpKind::kCondition) {
      data = nullptr;
    }
    return view(i, geometry.parts[i], data);
  };
  for (const int input : model_.ops[op].inputs) {
    place.inputs.push_back(view_of(static_cast<std::size_t>(input)));
    place.planes.push_back(plane(static_cast<std::size_t>(input)));
  }
  place.out = view_of(op);
  place.part = geometry.parts[op];
  return place;
}

void Plan::make_tile_steps(const Geometry& geometry, Slot& slot) {
  std::vector<Step>& steps = slot.kinds.emplace_back();
  for (std::size_t i = 0; i < model_.ops.size(); ++i) {
    const Op& op = model_.ops[i];
    if (op.kind == OpKind::kInput || op.kind == OpKind::kCondition) {
      continue;
    }
    const StepPlace place = step_place(i, geometry, slot.memory.data());
    if (op.kind == OpKind::kConvolution) {
      steps.push_back(convolution_step(op, *weights_[i], place, geometry.is_sum_there[i]));
    } else if (op.kind == OpKind::kAttention) {
      steps.push_back(attention_step(op, place, biases_[i]));
    } else {
      steps.push_back(simple_step(op, place, &state_.condition));
    }
    scratch_bytes_ = std::max(scratch_bytes_, steps.back().scratch_bytes);
  }
}

void Plan::check_size() const {
  for (std::size_t i = 0; i < model_.ops.size(); ++i) {
    const Op& op = model_.ops[i];
    if (op.kind != OpKind::kAttention) {
      continue;
    }
    const auto view_of = [&](std::size_t k) {
      const auto from = static_cast<std::size_t>(op.inputs[k]);
      return view(from, plane(from), nullptr);
    };
    const double pairs = attention_pairs(op, view_of(0), view_of(1));
    if (pairs > kMostPairs) {
      throw InvalidArgument("Network: expected frames where layer \"" + op.layer + "\" compares at most " +
                            whole(kMostPairs) + " pairs of positions, got " + std::to_string(size_.width) +
                            "x" + std::to_string(size_.height) + " with " + whole(pairs));
    }
  }
}

void Plan::check_memory(double bytes) const {
  if (bytes > kMostMemory) {
    throw InvalidArgument("Network: expected frames that need at most " + whole(kMostMemory) +
                          " bytes, got " + std::to_string(size_.width) + "x" + std::to_string(size_.height) +
                          " with " + whole(bytes));
  }
}

void Plan::make_stages() {
  Geometry geometry;
  double bytes = 0;
  histories_.resize(model_.ops.size());
  for (std::size_t i = 0; i < model_.ops.size(); ++i) {
    geometry.parts.push_back(plane(i));
  }
  place_tensors(geometry);
  for (std::size_t i = 0; i < model_.ops.size(); ++i) {
    bytes += model_.ops[i].kind == OpKind::kHistory
                 ? static_cast<double>(view(i, plane(i), nullptr).frame_bytes()) * model_.ops[i].frames
                 : 0;
  }
  check_memory(bytes + static_cast<double>(geometry.bytes));
  frame_memory_.allocate(geometry.bytes);
  for (std::size_t i = 0; i < model_.ops.size(); ++i) {
    if (model_.ops[i].kind == OpKind::kHistory) {
      histories_[i].allocate(view(i, plane(i), nullptr).frame_bytes() *
                             static_cast<std::size_t>(model_.ops[i].frames));
    }
  }
  kinds_.push_back(geometry);
  for (std::size_t i = 0; i < model_.ops.size(); ++i) {
    if (model_.ops[i].kind != OpKind::kInput && model_.ops[i].kind != OpKind::kCondition) {
      add_stages(i, step_place(i, geometry, frame_memory_.data()));
    }
  }
  for (const Stage& stage : stages_) {
    for (const Step& step : stage) {
      scratch_bytes_ = std::max(scratch_bytes_, step.scratch_bytes);
    }
  }
}

// Rows that one thread calculates. They depend on the frame alone, not on the number of threads.
std::vector<Rect> Plan::bands(const Op& op, const Rect& plane) const {
  const int together = op.reach == AttentionReach::kWindow ? op.window : 1;
  const int count = std::clamp(plane.height() / kLeastBandRows, 1, kMostBands);
  const int rows = round_up(ceil_divide(plane.height(), count), together);
  std::vector<Rect> all;
  for (int y = plane.y0; y < plane.y1; y += rows) {
    all.push_back({plane.x0, y, plane.x1, std::min(y + rows, plane.y1)});
  }
  return all;
}

void Plan::add_stages(std::size_t i, const StepPlace& place) {
  const Op& op = model_.ops[i];
  if (op.kind == OpKind::kHistory) {
    stages_.push_back({history_step(place, &state_.frame)});
    return;
  }
  const std::vector<Rect> parts = bands(op, place.part);
  if (op.kind == OpKind::kGroupNorm) {
    for (Stage& stage : group_norm_stages(op, place, parts)) {
      stages_.push_back(std::move(stage));
    }
    return;
  }
  if (op.kind == OpKind::kAttention && op.reach == AttentionReach::kFrame) {
    for (Stage& stage : frame_attention_stages(op, place)) {
      stages_.push_back(std::move(stage));
    }
    return;
  }
  Stage& stage = stages_.emplace_back();
  for (const Rect& part : parts) {
    StepPlace band = place;
    band.part = part;
    if (op.kind == OpKind::kConvolution) {
      stage.push_back(convolution_step(op, *weights_[i], band, kinds_[0].is_sum_there[i]));
    } else if (op.kind == OpKind::kAttention) {
      stage.push_back(attention_step(op, band, biases_[i]));
    } else {
      stage.push_back(simple_step(op, band, &state_.condition));
    }
  }
}

int Plan::useful_threads(int threads) const {
  return std::min(threads, model_.is_local ? static_cast<int>(tiles_.size()) : kMostBands);
}

void Plan::add_slots(int threads) {
  const int useful = useful_threads(threads);
  if (static_cast<int>(slots_.size()) >= useful) {
    return;
  }
  std::size_t bytes = 0;
  if (model_.is_local) {
    for (const Geometry& kind : kinds_) {
      bytes = std::max(bytes, kind.bytes);
    }
    check_memory(static_cast<double>(bytes) * useful);
  }
  while (static_cast<int>(slots_.size()) < useful) {
    auto slot = std::make_unique<Slot>();
    if (model_.is_local) {
      slot->memory.allocate(bytes);
      for (const Geometry& kind : kinds_) {
        make_tile_steps(kind, *slot);
      }
    }
    slot->scratch.allocate(scratch_bytes_ + kAlignment);
    slots_.push_back(std::move(slot));
  }
}

bool Plan::run(const LoadPart& load, const LoadPart& store, int threads) {
  const int useful = useful_threads(threads);
  return model_.is_local ? run_tiles(load, store, useful) : run_stages(load, store, useful);
}

bool Plan::run_tiles(const LoadPart& load, const LoadPart& store, int threads) {
  std::atomic<bool> is_good = true;
  const auto output = static_cast<std::size_t>(model_.output);
  Workers::shared().run(static_cast<int>(tiles_.size()), threads, [&](int i, int slot_number) {
    const OneThread one_thread;
    const Tile& tile = tiles_[static_cast<std::size_t>(i)];
    const Geometry& kind = kinds_[tile.kind];
    Slot& slot = *slots_[static_cast<std::size_t>(slot_number)];
    // Where this tile lies: the kind's steps know of the first of its kind alone.
    const auto here = [&](std::size_t op) {
      const Scale& scale = model_.ops[op].scale;
      const int dx = scale.of(tile.rect.x0) - scale.of(kind.tile.x0);
      const int dy = scale.of(tile.rect.y0) - scale.of(kind.tile.y0);
      Rect part = kind.parts[op];
      part = {part.x0 + dx, part.y0 + dy, part.x1 + dx, part.y1 + dy};
      return view(op, part, slot.memory.data() + kind.offsets[op]);
    };
    const TensorView in = here(0);
    load(in, in.rect, slot_number);
    for (const Step& step : slot.kinds[tile.kind]) {
      if (!step.run(slot.scratch.data())) {
        is_good = false;
        return;
      }
    }
    const TensorView out = here(output);
    const Scale& scale = model_.ops[output].scale;
    store(out, {scale.of(tile.stored.x0), scale.of(tile.stored.y0), out.rect.x1, out.rect.y1}, slot_number);
  });
  return is_good;
}

bool Plan::run_stages(const LoadPart& load, const LoadPart& store, int threads) {
  std::atomic<bool> is_good = true;
  const auto output = static_cast<std::size_t>(model_.output);
  const auto run_bands = [&](std::size_t op, const LoadPart& work) {
    const Rect whole = plane(op);
    const TensorView all = view(op, whole, frame_memory_.data() + kinds_[0].offsets[op]);
    const int rows = ceil_divide(whole.height(), kMostBands);
    Workers::shared().run(ceil_divide(whole.height(), rows), threads, [&](int i, int slot) {
      const int y = whole.y0 + i * rows;
      work(all, {whole.x0, y, whole.x1, std::min(y + rows, whole.y1)}, slot);
    });
  };
  run_bands(0, load);
  for (const Stage& stage : stages_) {
    Workers::shared().run(static_cast<int>(stage.size()), threads, [&](int i, int slot) {
      const OneThread one_thread;
      if (!stage[static_cast<std::size_t>(i)].run(slots_[static_cast<std::size_t>(slot)]->scratch.data())) {
        is_good = false;
      }
    });
  }
  run_bands(output, store);
  return is_good;
}

}  // namespace nonlocal::network
