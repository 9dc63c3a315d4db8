#include "network/attention_step.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "attention/attention_work.h"
#include "core/aligned_buffer.h"
#include "core/rounding.h"
#include "network/bfloat16.h"
#include "network/positions.h"

namespace nonlocal::network {
namespace {

using attention::Call;
using attention::LaneBias;
using attention::Scratch;
using attention::Work;

AttentionParameters parameters_of(const Op& op, int queries, int keys, const TensorView& key,
                                  const TensorView& value) {
  static constexpr float kOnes[] = {1, 1};
  AttentionParameters p{
      .queries = queries,
      .keys = keys,
      .dim = key.channels / op.heads,
      .value_dim = value.channels / op.heads,
      .heads = op.heads,
      .precision = key.is_wide() ? AttentionPrecision::kFloat32 : AttentionPrecision::kAutomatic,
      .threads = 1,
  };
  switch (op.function) {
    case AttentionFunction::kSoftmax:
      p.relevance = Relevance::kGaussian;
      p.scale = op.score_scale;
      break;
    case AttentionFunction::kDotProduct:
      p.relevance = Relevance::kDotProduct;
      break;
    case AttentionFunction::kSumRelu:
      p.relevance = Relevance::kConcatenation;
      p.relevance_weight = kOnes;
      break;
  }
  return p;
}

// A tensor's positions, one after another, as attention takes them: as they lie, or as floats beside. Of
// bytes there may be what comes out.
struct Features {
  Features(const TensorView& from, int count, bool takes_pairs)
      : view(from),
        rows(count),
        is_copied(from.element == Element::kByte || (from.element == Element::kBfloat16 && !takes_pairs)) {
    if (is_copied) {
      floats.allocate(values(rows));
    }
    if (view.quantisation != nullptr) {
      maps = std::make_unique<ByteMaps>(*view.quantisation, view.pitch);
    }
  }

  [[nodiscard]] std::size_t values(int count) const { return static_cast<std::size_t>(count) * view.pitch; }

  // Cells are pairs of bfloat16 where they lie so.
  [[nodiscard]] Matrix matrix() {
    if (is_copied) {
      return {floats.data(), rows, view.channels, view.pitch};
    }
    const int cell = view.is_wide() ? 1 : 2;
    return {reinterpret_cast<float*>(view.data), rows, view.channels / cell, view.pitch / cell};
  }

  // Between the tensor and the floats, of positions first to end - 1.
  void widen(int first, int end) {
    if (is_copied) {
      load_values(view, place(first), 1, static_cast<int>(values(end - first)),
                  floats.data() + values(first));
    }
  }
  void narrow(int first, int end) {
    if (maps != nullptr) {
      round_to_bytes(floats.data() + values(first), end - first, view.pitch, *maps, place(first));
    } else if (is_copied) {
      store_values(floats.data() + values(first), static_cast<int>(values(end - first)), view, place(first),
                   1);
    }
  }

  [[nodiscard]] std::byte* place(int row) const {
    return view.data + static_cast<std::size_t>(row) * view.position_bytes();
  }

  TensorView view;
  int rows;
  bool is_copied;
  AlignedBuffer<float> floats;
  std::unique_ptr<ByteMaps> maps;
};

// Attention, its tensors, and what stands between them.
struct Bound {
  Bound(const Op& op, int queries, int keys, const TensorView& q, const TensorView& k, const TensorView& v,
        const TensorView& o, const LaneBias* bias)
      : work(parameters_of(op, queries, keys, k, v)),
        query(q, queries, work.takes_pairs()),
        key(k, keys, work.takes_pairs()),
        value(v, keys, work.takes_pairs()),
        out(o, queries, work.takes_pairs()),
        call(work.call({query.matrix(), key.matrix(), value.matrix()}, is_in_pairs(query), out.matrix(),
                       is_in_pairs(out), bias)) {}

  static bool is_in_pairs(const Features& f) { return !f.view.is_wide() && !f.is_copied; }

  Work work;
  Features query, key, value, out;
  Call call;
};

constexpr int kPositions = 4096;  // that a step widens or narrows

// Steps that call work(first, end) for pieces of `count` positions.
template <typename Work>
void add_pieces(Stage& stage, int count, const Work& work) {
  for (int first = 0; first < count; first += kPositions) {
    stage.push_back({0, [work, first, end = std::min(first + kPositions, count)](std::byte*) {
                       work(first, end);
                       return true;
                     }});
  }
}

// A window's tokens side by side, there and back.
class Windows {
 public:
  Windows(const Op& op, const StepPlace& place, AttentionBias bias)
      : place_(place), side_(op.window), bias_(std::move(bias)) {
    const auto beside = [&](const TensorView& view, AlignedBuffer<std::byte>& memory) {
      TensorView window = view;
      window.rect = {0, 0, side_, side_};
      memory.allocate(window.frame_bytes());
      window.data = memory.data();
      return window;
    };
    const int count = side_ * side_;
    bound_ = std::make_unique<Bound>(op, count, count, beside(place.inputs[0], memory_[0]),
                                     beside(place.inputs[1], memory_[1]), beside(place.inputs[2], memory_[2]),
                                     beside(place.out, memory_[3]), bias_.get());
  }

  [[nodiscard]] std::size_t scratch_bytes() const { return attention::scratch_bytes(bound_->work.plan()); }

  void run(std::byte* memory) {
    Scratch scratch = make_scratch(bound_->work.plan(), memory);
    const Rect& part = place_.part;
    for (int y = part.y0 / side_ * side_; y < part.y1; y += side_) {
      for (int x = part.x0 / side_ * side_; x < part.x1; x += side_) {
        run_window({x, y, x + side_, y + side_}, scratch);
      }
    }
  }

 private:
  void run_window(const Rect& window, Scratch& scratch) {
    Features* const features[] = {&bound_->query, &bound_->key, &bound_->value};
    for (std::size_t i = 0; i < 3; ++i) {
      copy_part(place_.inputs[i], window, features[i]->view.data);
      features[i]->widen(0, features[i]->rows);
    }
    bound_->work.run(bound_->call, scratch);
    bound_->out.narrow(0, bound_->out.rows);
    // A part may end within a window.
    const Rect& part = place_.part;
    const TensorView& from = bound_->out.view;
    const int x0 = std::max(window.x0, part.x0);
    const int x1 = std::min(window.x1, part.x1);
    for (int y = std::max(window.y0, part.y0); y < std::min(window.y1, part.y1); ++y) {
      std::memcpy(place_.out.at(x0, y), from.at(x0 - window.x0, y - window.y0),
                  static_cast<std::size_t>(x1 - x0) * from.position_bytes());
    }
  }

  StepPlace place_;
  int side_;
  AttentionBias bias_;
  AlignedBuffer<std::byte> memory_[4];
  std::unique_ptr<Bound> bound_;
};

Step window_step(const Op& op, const StepPlace& place, const AttentionBias& bias) {
  const auto windows = std::make_shared<Windows>(op, place, bias);
  return {windows->scratch_bytes(), [windows](std::byte* scratch) {
            windows->run(scratch);
            return true;
          }};
}

// A position's few keys: as the formula reads.
template <typename Value>
void attend_position(const Op& op, const StepPlace& place, int x, int y, float* scores) {
  const TensorView& k = place.inputs[1];
  const TensorView& v = place.inputs[2];
  const auto at = [](const TensorView& view, int column, int row, int frame) {
    return reinterpret_cast<const Value*>(view.at(column, row) +
                                          static_cast<std::size_t>(frame) * view.frame_bytes());
  };
  const auto* query = at(place.inputs[0], x, y, 0);
  auto* out = reinterpret_cast<Value*>(place.out.at(x, y));
  const int d = place.inputs[0].channels;
  float most = -INFINITY;
  for (int f = 0; f < k.frames; ++f) {
    const auto* key = at(k, x, y, f);
    float sum = 0;
    for (int c = 0; c < d; ++c) {
      sum += op.function == AttentionFunction::kSumRelu ? std::max(float(query[c]) + float(key[c]), 0.0F)
                                                        : float(query[c]) * float(key[c]);
    }
    scores[f] = op.function == AttentionFunction::kSoftmax ? op.score_scale * sum : sum;
    most = std::max(most, scores[f]);
  }
  auto total = static_cast<float>(k.frames);
  if (op.function == AttentionFunction::kSoftmax) {
    total = 0;
    for (int f = 0; f < k.frames; ++f) {
      scores[f] = std::exp(scores[f] - most);
      total += scores[f];
    }
  }
  for (int c = 0; c < place.out.pitch; ++c) {
    float sum = 0;
    for (int f = 0; f < v.frames && c < place.out.channels; ++f) {
      sum += scores[f] * float(at(v, x, y, f)[c]);
    }
    out[c] = Value(sum / total);
  }
}

Step position_step(const Op& op, const StepPlace& place) {
  const std::size_t bytes = static_cast<std::size_t>(place.inputs[1].frames) * sizeof(float);
  return {bytes, [&op, place](std::byte* scratch) {
            for (int y = place.part.y0; y < place.part.y1; ++y) {
              for (int x = place.part.x0; x < place.part.x1; ++x) {
                if (place.out.is_wide()) {
                  attend_position<float>(op, place, x, y, reinterpret_cast<float*>(scratch));
                } else {
                  attend_position<Bfloat16>(op, place, x, y, reinterpret_cast<float*>(scratch));
                }
              }
            }
            return true;
          }};
}

}  // namespace

AttentionBias attention_bias(const Op& op) {
  if (op.position_bias.empty()) {
    return nullptr;
  }
  const int count = op.window * op.window;
  const AttentionParameters shape{.queries = count, .keys = count, .dim = 1, .heads = op.heads};
  return std::make_shared<LaneBias>(shape,
                                    ConstMatrix{op.position_bias.data(), op.heads * count, count, count});
}

std::vector<Stage> frame_attention_stages(const Op& op, const StepPlace& place) {
  const auto positions = [](const TensorView& view) {
    return view.rect.width() * view.rect.height() * view.frames;
  };
  const TensorView& k = place.inputs[1];
  const auto bound = std::make_shared<Bound>(op, positions(place.out), positions(k), place.inputs[0], k,
                                             place.inputs[2], place.out, nullptr);
  std::vector<Stage> stages(1);
  for (Features* f : {&bound->query, &bound->key, &bound->value}) {
    if (f->is_copied) {
      add_pieces(stages[0], f->rows, [bound, f](int first, int end) { f->widen(first, end); });
    }
  }
  for (int number = 0; number < Work::kStages; ++number) {
    Stage& stage = stages.emplace_back();
    for (int task = 0; task < bound->work.tasks(number); ++task) {
      stage.push_back(
          {attention::scratch_bytes(bound->work.plan()), [bound, number, task](std::byte* memory) {
             Scratch scratch = make_scratch(bound->work.plan(), memory);
             bound->work.run(number, task, bound->call, scratch);
             return true;
           }});
    }
  }
  Stage& last = stages.emplace_back();
  if (bound->out.is_copied) {
    add_pieces(last, bound->out.rows, [bound](int first, int end) { bound->out.narrow(first, end); });
  }
  std::erase_if(stages, [](const Stage& stage) { return stage.empty(); });
  return stages;
}

Step attention_step(const Op& op, const StepPlace& place, const AttentionBias& bias) {
  return op.reach == AttentionReach::kWindow ? window_step(op, place, bias) : position_step(op, place);
}

double attention_pairs(const Op& op, const TensorView& queries, const TensorView& keys) {
  const double positions = static_cast<double>(queries.rect.width()) * queries.rect.height();
  switch (op.reach) {
    case AttentionReach::kFrame:
      return positions * keys.rect.width() * keys.rect.height() * keys.frames;
    case AttentionReach::kWindow:
      return positions * op.window * op.window;
    default:
      return positions * keys.frames;
  }
}

}  // namespace nonlocal::network
