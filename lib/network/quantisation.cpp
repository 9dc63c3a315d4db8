#include "network/quantisation.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

#include "network/network_model.h"

namespace nonlocal::network {
namespace {

constexpr float kMostByte = 255;
constexpr double kMostWeight = 127;
constexpr std::size_t kMostProducts = 66'000;  // of a byte and a weight, whose sum has 32 bits
constexpr float kLeastShare = 1e-3F;  // of the largest scale: what hardly varies is not blown up without end
constexpr double kLeastScale = 1e-20;
constexpr double kLeastBiasStep = 1e-7;

std::size_t index(int i) { return static_cast<std::size_t>(i); }

std::size_t products(const Op& convolution) {
  return convolution.weight.size() / index(convolution.channels);
}

bool is_homogeneous(const PostOp& post) {
  return post.is_sum || post.activation.kind == ActivationKind::kRelu ||
         post.activation.kind == ActivationKind::kLeakyRelu;
}

// Each channel's smallest and largest value, 0 among them; without channels where nothing is known.
struct Range {
  std::vector<float> low, high;

  [[nodiscard]] bool is_known() const { return !low.empty(); }

  // Of `times` channels for each.
  [[nodiscard]] Range repeated(int times) const {
    Range all;
    for (std::size_t c = 0; c < low.size(); ++c) {
      all.low.insert(all.low.end(), index(times), low[c]);
      all.high.insert(all.high.end(), index(times), high[c]);
    }
    return all;
  }

  // Of one channel for each `times`.
  [[nodiscard]] Range joined(int times) const {
    Range all;
    for (std::size_t c = 0; c < low.size(); c += index(times)) {
      const auto first = static_cast<std::ptrdiff_t>(c);
      all.low.push_back(*std::min_element(low.begin() + first, low.begin() + first + times));
      all.high.push_back(*std::max_element(high.begin() + first, high.begin() + first + times));
    }
    return all;
  }

  // Takes in what `other` holds. Whether that was anything new.
  bool unite(const Range& other) {
    if (!other.is_known()) {
      return false;
    }
    const Range before = *this;
    if (!is_known()) {
      *this = other;
      return true;
    }
    for (std::size_t c = 0; c < low.size(); ++c) {
      low[c] = std::min(low[c], other.low[c]);
      high[c] = std::max(high[c], other.high[c]);
    }
    return low != before.low || high != before.high;
  }
};

class Quantiser {
 public:
  explicit Quantiser(const NetworkModel& model)
      : ops_(model.ops), output_(model.output), ranges_(ops_.size()), is_frame_(ops_.size()) {
    const auto low = static_cast<float>(model.summary.range[0]);
    const auto high = static_cast<float>(model.summary.range[1]);
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      const Op& op = ops_[i];
      is_frame_[i] = op.kind == OpKind::kInput || (op.is_rearrangement() && is_frame_[index(op.inputs[0])]);
      if (!is_frame_[i]) {
        ranges_[i] = {op.low, op.high};
      } else if (low <= 0 && high >= 0) {
        ranges_[i] = {std::vector<float>(index(op.channels), low),
                      std::vector<float>(index(op.channels), high)};
      }
      is_frame_padded_ = is_frame_padded_ || pads_frame(op);
    }
  }

  Quantisations run() {
    share_ranges();
    may_.resize(ops_.size());
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      may_[i] = ranges_[i].is_known() && static_cast<int>(i) != output_;
    }
    for (bool has_changed = true; has_changed;) {
      has_changed = false;
      for (std::size_t i = 0; i < ops_.size(); ++i) {
        has_changed = refuse(i) || has_changed;
      }
    }
    Quantisations all(ops_.size());
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      if (may_[i]) {
        all[i] = std::make_shared<Quantisation>(is_frame_[i] ? of_frame(i) : of_features(i));
      }
    }
    return all;
  }

 private:
  // Whether it sees zeros beyond the frame's sides, which have to be a whole byte.
  [[nodiscard]] bool pads_frame(const Op& op) const {
    return op.kind == OpKind::kConvolution && op.padding > 0 && is_frame_[index(op.inputs[0])] &&
           ops_[index(op.inputs[0])].margin == 0;
  }

  // Tensors that are rearranged into one another, or added in place, have scales in common. To and fro: a
  // chain of them, however long, takes two passes.
  void share_ranges() {
    bool has_changed = true;
    for (bool is_forwards = true; has_changed; is_forwards = !is_forwards) {
      has_changed = false;
      for (std::size_t k = 0; k < ops_.size(); ++k) {
        has_changed = share_ranges_of(is_forwards ? k : ops_.size() - 1 - k) || has_changed;
      }
    }
  }

  // Whether that changed anything. The frame has the range that the file says.
  bool share_ranges_of(std::size_t i) {
    const Op& op = ops_[i];
    const int from = op.is_rearrangement() ? op.inputs[0] : op.has_sum() ? op.inputs[1] : -1;
    if (from < 0 || is_frame_[index(from)]) {
      return false;
    }
    Range& mine = ranges_[i];
    Range& other = ranges_[index(from)];
    bool has_changed = false;
    if (op.is_rearrangement()) {
      Range& many = op.kind == OpKind::kShuffle ? other : mine;
      Range& few = op.kind == OpKind::kShuffle ? mine : other;
      const int square = op.factor * op.factor;
      has_changed = few.unite(many.joined(square));
      has_changed = many.unite(few.repeated(square)) || has_changed;
    } else if (mine.is_known() && other.is_known()) {
      has_changed = mine.unite(other);
      has_changed = other.unite(mine) || has_changed;
    }
    return has_changed;
  }

  [[nodiscard]] bool may(int i) const { return may_[index(i)]; }

  // Whether the operation can write bytes, with what its inputs are.
  [[nodiscard]] bool can_write(const Op& op) const {
    switch (op.kind) {
      case OpKind::kInput:
      case OpKind::kAttention:
        return true;
      case OpKind::kConvolution:
        return op.groups == 1 && may(op.inputs[0]) &&
               std::all_of(op.posts.begin(), op.posts.end(), is_homogeneous);
      case OpKind::kShuffle:
      case OpKind::kUnshuffle:
      case OpKind::kAdd:
        return std::all_of(op.inputs.begin(), op.inputs.end(), [this](int i) { return may(i); });
      default:
        return false;
    }
  }

  // Whether operation `i` can read bytes as its input `k`, with what it writes.
  [[nodiscard]] bool can_read(std::size_t i, std::size_t k) const {
    const Op& op = ops_[i];
    const bool is_frame = is_frame_[index(op.inputs[k])];
    switch (op.kind) {
      case OpKind::kConvolution:
        return k == 0 ? op.groups == 1 && products(op) <= kMostProducts : may_[i] && !is_frame;
      case OpKind::kShuffle:
      case OpKind::kUnshuffle:
        return may_[i];
      case OpKind::kAdd:
        return may_[i] && !is_frame;
      default:
        return false;
    }
  }

  // Takes back what can't be. Whether anything was.
  bool refuse(std::size_t i) {
    const Op& op = ops_[i];
    bool has_changed = false;
    if (may_[i] && !can_write(op)) {
      may_[i] = false;
      has_changed = true;
    }
    for (std::size_t k = 0; k < op.inputs.size(); ++k) {
      const std::size_t from = index(op.inputs[k]);
      if (may_[from] && !can_read(i, k)) {
        may_[from] = false;
        has_changed = true;
      }
    }
    // What is added lies as what it is added to.
    if (op.has_sum() && may_[i] && !may(op.inputs[1])) {
      may_[i] = false;
      has_changed = true;
    }
    return has_changed;
  }

  // 8-bit video has whole bytes, where 0 may lie between two.
  [[nodiscard]] Quantisation of_frame(std::size_t i) const {
    const float low = ranges_[i].low[0];
    const float high = ranges_[i].high[0];
    float scale = (high - low) / kMostByte;
    float zero = -low / scale;
    if (is_frame_padded_ && zero != std::nearbyint(zero)) {
      zero = std::clamp(std::nearbyint(zero), 1.0F, kMostByte - 1);
      scale = std::max(-low / zero, high / (kMostByte - zero));
    }
    return {zero, std::vector<float>(index(ops_[i].channels), scale)};
  }

  // The zero divides the bytes as most channels' range is divided. (The median is the same where channels are
  // repeated: what is rearranged stays as it is.)
  [[nodiscard]] Quantisation of_features(std::size_t i) const {
    const Range& range = ranges_[i];
    std::vector<float> shares;
    bool is_signed = false;
    for (std::size_t c = 0; c < range.low.size(); ++c) {
      const float extent = range.high[c] - range.low[c];
      shares.push_back(extent > 0 ? -range.low[c] / extent : 0);
      is_signed = is_signed || range.low[c] < 0;
    }
    const auto middle = shares.begin() + static_cast<std::ptrdiff_t>(shares.size() / 2);
    std::nth_element(shares.begin(), middle, shares.end());
    Quantisation made;
    made.zero = is_signed ? std::clamp(std::nearbyint(kMostByte * *middle), 16.0F, 240.0F) : 0;
    for (std::size_t c = 0; c < range.low.size(); ++c) {
      const float below = is_signed ? -range.low[c] / made.zero : 0;
      made.scale.push_back(std::max(below, range.high[c] / (kMostByte - made.zero)));
    }
    const float most = *std::max_element(made.scale.begin(), made.scale.end());
    for (float& scale : made.scale) {
      scale = std::max({scale, kLeastShare * most, static_cast<float>(kLeastScale)});
    }
    return made;
  }

  const std::vector<Op>& ops_;
  int output_;
  std::vector<Range> ranges_;
  std::vector<bool> is_frame_;  // the frame, or its samples rearranged
  bool is_frame_padded_ = false;
  std::vector<bool> may_;  // be bytes, as far as is known
};

// Of [in][taps] multiples of the step; the channels of a tap come one after another: those of unshuffled
// samples are neighbours.
std::vector<float> rounded_together(const std::vector<double>& wanted, std::size_t taps) {
  std::vector<float> whole(wanted.size());
  double left = 0;
  for (std::size_t tap = 0; tap < taps; ++tap) {
    for (std::size_t i = tap; i < wanted.size(); i += taps) {
      left += wanted[i];
      whole[i] = static_cast<float>(std::clamp(std::nearbyint(left), -kMostWeight, kMostWeight));
      left -= whole[i];
    }
  }
  return whole;
}

}  // namespace

int Quantisation::whole_zero() const { return static_cast<int>(std::nearbyint(zero)); }

Quantisations quantise(const NetworkModel& model) { return Quantiser(model).run(); }

ByteWeights byte_weights(const Op& op, const Quantisation& in, const Quantisation* out) {
  ByteWeights made{{}, op.bias, {}};
  const std::size_t taps = static_cast<std::size_t>(op.kernel) * op.kernel;
  std::vector<double> row(op.weight.size() / index(op.channels));
  for (std::size_t o = 0; o < index(op.channels); ++o) {
    double most = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = static_cast<double>(op.weight[o * row.size() + i]) * in.scale[i / taps];
      most = std::max(most, std::abs(row[i]));
    }
    // A bias that is far larger than what is added to it has to stay finite.
    const double step = std::max({most / kMostWeight, kLeastBiasStep * std::abs(op.bias[o]), kLeastScale});
    std::for_each(row.begin(), row.end(), [step](double& w) { w /= step; });
    const std::vector<float> whole = rounded_together(row, taps);
    made.weight.insert(made.weight.end(), whole.begin(), whole.end());
    const double moved = in.whole_zero() - static_cast<double>(in.zero);
    made.bias[o] =
        static_cast<float>(op.bias[o] / step + moved * std::accumulate(whole.begin(), whole.end(), 0.0));
    const double scale = out == nullptr ? step : step / out->scale[o];
    made.scale.push_back(
        static_cast<float>(std::min<double>(scale, std::numeric_limits<float>::max())));  // times 0 is 0
  }
  return made;
}

}  // namespace nonlocal::network
