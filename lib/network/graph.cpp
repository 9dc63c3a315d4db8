#include "network/graph.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace nonlocal::network {
namespace {

struct Interval {
  int first, end;
};

int floor_divide(int a, int b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

// The columns, or rows, of an input that has `whole` for `out` of the output.
Interval needed(const Op& op, Interval out, Interval whole) {
  Interval in = out;
  const int f = op.factor;
  switch (op.kind) {
    case OpKind::kConvolution:
    case OpKind::kMaxPool:
    case OpKind::kAveragePool:
      in.first = out.first * op.stride - op.padding;
      in.end = (out.end - 1) * op.stride - op.padding + (op.kernel - 1) * op.dilation + 1;
      break;
    case OpKind::kNearest:
    case OpKind::kShuffle:
      in = {out.first / f, (out.end - 1) / f + 1};
      break;
    case OpKind::kBilinear:
      // Value x lies at (x + 1/2) / f - 1/2.
      in = {floor_divide(2 * out.first + 1 - f, 2 * f), floor_divide(2 * out.end - 1 - f, 2 * f) + 2};
      break;
    case OpKind::kUnshuffle:
      in = {out.first * f, out.end * f};
      break;
    case OpKind::kAttention:
      if (op.reach == AttentionReach::kWindow) {
        in = {out.first / op.window * op.window, ((out.end - 1) / op.window + 1) * op.window};
      }
      break;
    default:
      break;
  }
  return {std::clamp(in.first, whole.first, whole.end), std::clamp(in.end, whole.first, whole.end)};
}

// How often each tensor is read.
std::vector<int> readers(const std::vector<Op>& ops, int output) {
  std::vector<int> count(ops.size());
  ++count[static_cast<std::size_t>(output)];
  for (const Op& op : ops) {
    for (const int input : op.inputs) {
      ++count[static_cast<std::size_t>(input)];
    }
  }
  return count;
}

// weight x + bias for each channel, into the convolution before.
void fold(const Op& norm, Op& convolution) {
  const std::size_t taps = convolution.weight.size() / static_cast<std::size_t>(convolution.channels);
  for (std::size_t c = 0; c < norm.weight.size(); ++c) {
    std::for_each_n(convolution.weight.begin() + static_cast<std::ptrdiff_t>(c * taps), taps,
                    [&](float& w) { w *= norm.weight[c]; });
    convolution.bias[c] = convolution.bias[c] * norm.weight[c] + norm.bias[c];
  }
}

class Fusion {
 public:
  Fusion(std::vector<Op>& ops, int output) : ops_(ops), readers_(readers(ops, output)) {}

  void run() {
    for (int i = 0; i < static_cast<int>(ops_.size()); ++i) {
      switch (op(i).kind) {
        case OpKind::kBatchNorm:
          fuse_norm(i);
          break;
        case OpKind::kActivation:
          fuse_activation(i);
          break;
        case OpKind::kAdd:
          fuse_sum(i);
          break;
        default:
          break;
      }
    }
  }

 private:
  Op& op(int i) { return ops_[static_cast<std::size_t>(i)]; }

  bool is_own_convolution(int i) {
    return op(i).kind == OpKind::kConvolution && readers_[static_cast<std::size_t>(i)] == 1;
  }

  // The convolution `from` now stands where `to` stood: all that it reads is there by then.
  void move(int from, int to) {
    const Op replaced = std::exchange(op(to), std::exchange(op(from), Op{}));
    op(to).layer = replaced.layer;
    op(to).low = replaced.low;
    op(to).high = replaced.high;
    readers_[static_cast<std::size_t>(from)] = 0;
  }

  void fuse_norm(int i) {
    const int before = op(i).inputs[0];
    if (is_own_convolution(before) && op(before).posts.empty()) {
      fold(op(i), op(before));
      move(before, i);
    } else {
      op(i).kind = OpKind::kConvolution;
      op(i).groups = op(i).channels;
    }
  }

  void fuse_activation(int i) {
    const int before = op(i).inputs[0];
    const bool is_plain =
        op(before).posts.empty() || (op(before).posts.size() == 1 && op(before).posts[0].is_sum);
    if (is_own_convolution(before) && is_plain) {
      const Activation activation = op(i).activation;
      move(before, i);
      op(i).posts.push_back({false, activation});
    }
  }

  void fuse_sum(int i) {
    const std::vector<int> terms = op(i).inputs;
    if (terms.size() != 2 || terms[0] == terms[1]) {
      return;
    }
    // The later of the two, if it can be: the other is there then.
    for (const int k : {terms[0] < terms[1] ? 1 : 0, terms[0] < terms[1] ? 0 : 1}) {
      const int convolution = terms[static_cast<std::size_t>(k)];
      if (is_own_convolution(convolution) && !op(convolution).has_sum()) {
        move(convolution, i);
        op(i).posts.push_back({true, {}});
        op(i).inputs.push_back(terms[static_cast<std::size_t>(1 - k)]);
        return;
      }
    }
  }

  std::vector<Op>& ops_;
  std::vector<int> readers_;
};

// What the output needs, under new numbers.
std::vector<Op> without_unread(std::vector<Op> ops, int& output) {
  std::vector<bool> is_read(ops.size());
  is_read[static_cast<std::size_t>(output)] = true;
  for (std::size_t i = ops.size(); i-- > 0;) {
    for (const int input : ops[i].inputs) {
      is_read[static_cast<std::size_t>(input)] = is_read[static_cast<std::size_t>(input)] || is_read[i];
    }
  }
  is_read[0] = true;  // the input stays the first
  std::vector<int> number(ops.size());
  std::vector<Op> kept;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (!is_read[i]) {
      continue;
    }
    number[i] = static_cast<int>(kept.size());
    kept.push_back(std::move(ops[i]));
    for (int& input : kept.back().inputs) {
      input = number[static_cast<std::size_t>(input)];
    }
  }
  output = number[static_cast<std::size_t>(output)];
  return kept;
}

}  // namespace

Scale Scale::times(int by, int divided_by) const {
  const int n = numerator * by;
  const int d = denominator * divided_by;
  const int common = std::gcd(n, d);
  return {n / common, d / common};
}

bool Op::is_global() const {
  return kind == OpKind::kGroupNorm || kind == OpKind::kHistory ||
         (kind == OpKind::kAttention && reach != AttentionReach::kWindow);
}

bool Op::has_sum() const {
  return std::any_of(posts.begin(), posts.end(), [](const PostOp& post) { return post.is_sum; });
}

Rect needed(const Op& op, std::size_t index, const Rect& out, const Rect& whole) {
  if (op.is_global() && !(op.kind == OpKind::kAttention && index == 0)) {
    return whole;
  }
  if (op.kind == OpKind::kConvolution && index == 1) {
    return out;  // the sum
  }
  const Interval x = needed(op, {out.x0, out.x1}, {whole.x0, whole.x1});
  const Interval y = needed(op, {out.y0, out.y1}, {whole.y0, whole.y1});
  return {x.first, y.first, x.end, y.end};
}

Rect hull(const Rect& a, const Rect& b) {
  if (a.width() <= 0 || a.height() <= 0) {
    return b;
  }
  if (b.width() <= 0 || b.height() <= 0) {
    return a;
  }
  return {std::min(a.x0, b.x0), std::min(a.y0, b.y0), std::max(a.x1, b.x1), std::max(a.y1, b.y1)};
}

double operations(const Op& op, const std::vector<Op>& all) {
  const auto channels_of = [&](std::size_t i) {
    return all[static_cast<std::size_t>(op.inputs[i])].channels;
  };
  if (op.kind == OpKind::kConvolution) {
    return 2.0 * op.kernel * op.kernel * channels_of(0) / op.groups * op.channels;
  }
  if (op.kind == OpKind::kAttention && op.reach == AttentionReach::kWindow) {
    return 2.0 * op.window * op.window * (channels_of(0) + op.channels);
  }
  return 0;
}

std::vector<Op> fuse(std::vector<Op> ops, int& output) {
  Fusion(ops, output).run();
  return without_unread(std::move(ops), output);
}

}  // namespace nonlocal::network
