#include "network/layer_reader.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>

#include "model/strict_json.h"
#include "nonlocal/error.h"

namespace nonlocal::network {
namespace {

using model::in_quotes;
using model::Shape;
using nlohmann::json;

std::string range(const std::string& what, const std::string& least, const std::string& most) {
  return what + " from " + least + " to " + most;
}

std::uint64_t size(int n) { return static_cast<std::uint64_t>(n); }

// Builds the operations of one layer.
class Layer {
 public:
  Layer(Fields& fields, Tensors& tensors, std::string name, std::vector<int> inputs, int frames,
        std::vector<Op>& ops)
      : fields_(fields),
        tensors_(tensors),
        name_(std::move(name)),
        inputs_(std::move(inputs)),
        frames_(frames),
        ops_(ops) {}

  void convolution();
  void batch_norm();
  void layer_norm();
  void group_norm();
  void activation(ActivationKind kind);
  void leaky_relu();
  void prelu();
  void shuffle(OpKind kind);
  void up_sample();
  void pool(OpKind kind);
  void add_or_multiply(OpKind kind);
  void concatenate();
  void non_local();
  void self_attention();
  void transformer();
  void window_attention();

  // What each channel of the output, or of the part `of` of the layer, is between, where the file says so; 0
  // is always taken in.
  void read_range(const std::string& of, Op& op);

 private:
  const Op& op(int i) const { return ops_[static_cast<std::size_t>(i)]; }
  int channels(int i) const { return op(i).channels; }

  // An operation that reads `inputs` and writes as many channels at the same scale, until it is told
  // otherwise.
  Op like(OpKind kind, const std::vector<int>& inputs) const {
    Op made;
    made.kind = kind;
    made.layer = name_;
    made.inputs = inputs;
    made.channels = channels(inputs[0]);
    made.scale = op(inputs[0]).scale;
    return made;
  }
  int append(Op made) {
    ops_.push_back(std::move(made));
    return static_cast<int>(ops_.size()) - 1;
  }
  int one_input() {
    if (inputs_.size() != 1) {
      fields_.fail("expected one input, found " + std::to_string(inputs_.size()));
    }
    return inputs_[0];
  }
  std::vector<float> tensor(const std::string& of, const Shape& shape) {
    return tensors_.floats(name_ + "." + of, shape);
  }
  void divide_scale(Op& made, int by) const;
  void multiply_scale(Op& made, int by) const;
  int pointwise(int input, const std::string& part, int out, bool has_bias);
  int norm(int input, const std::string& prefix, double epsilon);
  int sub_sampled(int input, int by);
  int history(int input, bool is_kept);
  int with_residual(int output, int input, bool is_residual);
  Op attention(int query, int key, int value) const;
  void projected_attention(Op attention);
  int score_half(const std::vector<float>& over, int first, int input, const std::string& part,
                 int bottleneck, bool has_bias);
  int projected(const std::vector<float>& weight, int input);
  void add_position_bias(Op& made);

  Fields& fields_;
  Tensors& tensors_;
  std::string name_;
  std::vector<int> inputs_;
  int frames_;
  std::vector<Op>& ops_;
};

void check_scale(const Fields& fields, const Scale& scale) {
  if (scale.numerator > kMostScale || scale.denominator > kMostScale) {
    fields.fail("expected planes of at most " + std::to_string(kMostScale) + " times or a " +
                std::to_string(kMostScale) + "th of the frame's sides, found " +
                std::to_string(scale.numerator) + "/" + std::to_string(scale.denominator));
  }
}

void Layer::divide_scale(Op& made, int by) const {
  made.scale = made.scale.times(1, by);
  check_scale(fields_, made.scale);
}

void Layer::multiply_scale(Op& made, int by) const {
  made.scale = made.scale.times(by, 1);
  check_scale(fields_, made.scale);
}

// A side of n strides must become n: then every plane has a whole number of samples.
void check_window(const Fields& fields, const Op& op) {
  const int extent = (op.kernel - 1) * op.dilation + 1;
  if (2 * op.padding >= extent || extent > 2 * op.padding + op.stride) {
    fields.fail("expected twice the padding to be less than the kernel's extent " + std::to_string(extent) +
                " and at least that less the stride " + std::to_string(op.stride) +
                ", so that a side of n strides becomes n; found the padding " + std::to_string(op.padding));
  }
}

void Layer::convolution() {
  Op made = like(OpKind::kConvolution, {one_input()});
  const int in = made.channels;
  made.channels = fields_.integer("channels", 1, kMostChannels);
  made.kernel = fields_.integer("kernel", 1, kMostKernel);
  made.stride = fields_.integer("stride", 1, 1, kMostFactor);
  made.dilation = fields_.integer("dilation", 1, 1, kMostKernel);
  made.padding =
      fields_.integer("padding", (made.kernel - 1) * made.dilation / 2, 0, kMostKernel * kMostKernel);
  made.groups = fields_.integer("groups", 1, 1, kMostChannels);
  const bool has_bias = fields_.boolean("bias", true);
  check_window(fields_, made);
  if (in % made.groups != 0 || made.channels % made.groups != 0) {
    fields_.fail("expected \"groups\" to divide the " + std::to_string(in) + " channels that come and the " +
                 std::to_string(made.channels) + " that go, found " + std::to_string(made.groups));
  }
  made.weight =
      tensor("weight", {size(made.channels), size(in / made.groups), size(made.kernel), size(made.kernel)});
  made.bias = has_bias ? tensor("bias", {size(made.channels)})
                       : std::vector<float>(static_cast<std::size_t>(made.channels));
  divide_scale(made, made.stride);
  append(std::move(made));
}

// A convolution of 1 x 1 with the tensors "{layer}.{part}.weight" and ".bias".
int Layer::pointwise(int input, const std::string& part, int out, bool has_bias) {
  Op made = like(OpKind::kConvolution, {input});
  const int in = made.channels;
  made.channels = out;
  made.weight = tensor(part + ".weight", {size(out), size(in), 1, 1});
  made.bias =
      has_bias ? tensor(part + ".bias", {size(out)}) : std::vector<float>(static_cast<std::size_t>(out));
  return append(std::move(made));
}

void Layer::read_range(const std::string& of, Op& op) {
  const std::string name = name_ + "." + of + "range";
  const auto channels = static_cast<std::size_t>(op.channels);
  const std::vector<float> values = tensors_.statistics(name, {2, size(op.channels)});
  for (std::size_t c = 0; c < values.size() / 2; ++c) {
    if (values[c] > values[channels + c]) {
      fields_.fail("tensor " + in_quotes(name) +
                   ": expected the smallest values and then the largest, found " + std::to_string(values[c]) +
                   " and " + std::to_string(values[channels + c]) + " of channel " + std::to_string(c));
    }
    op.low.push_back(std::min(values[c], 0.0F));
    op.high.push_back(std::max(values[channels + c], 0.0F));
  }
}

// In inference: (x - mean) / sqrt(variance + epsilon) weight + bias.
int Layer::norm(int input, const std::string& prefix, double epsilon) {
  Op made = like(OpKind::kBatchNorm, {input});
  const Shape shape = {size(made.channels)};
  const std::vector<float> weight = tensor(prefix + "weight", shape);
  const std::vector<float> bias = tensor(prefix + "bias", shape);
  const std::vector<float> mean = tensor(prefix + "running_mean", shape);
  const std::vector<float> variance = tensor(prefix + "running_var", shape);
  for (std::size_t c = 0; c < weight.size(); ++c) {
    if (variance[c] < 0) {
      fields_.fail("tensor " + in_quotes(name_ + "." + prefix + "running_var") +
                   ": expected values of 0 or more, value " + std::to_string(c) + " is less");
    }
    const double factor = weight[c] / std::sqrt(variance[c] + epsilon);
    made.weight.push_back(static_cast<float>(factor));
    made.bias.push_back(static_cast<float>(bias[c] - mean[c] * factor));
  }
  return append(std::move(made));
}

double epsilon_of(Fields& fields) { return fields.number("epsilon", 1e-5, 1e-12, 1); }

void Layer::batch_norm() {
  const int input = one_input();
  norm(input, "", epsilon_of(fields_));
}

void Layer::layer_norm() {
  Op made = like(OpKind::kLayerNorm, {one_input()});
  made.epsilon = static_cast<float>(epsilon_of(fields_));
  made.weight = tensor("weight", {size(made.channels)});
  made.bias = tensor("bias", {size(made.channels)});
  append(std::move(made));
}

void Layer::group_norm() {
  Op made = like(OpKind::kGroupNorm, {one_input()});
  made.groups = fields_.integer("groups", 1, kMostChannels);
  if (made.channels % made.groups != 0) {
    fields_.fail("expected \"groups\" to divide the " + std::to_string(made.channels) + " channels, found " +
                 std::to_string(made.groups));
  }
  made.epsilon = static_cast<float>(epsilon_of(fields_));
  made.weight = tensor("weight", {size(made.channels)});
  made.bias = tensor("bias", {size(made.channels)});
  append(std::move(made));
}

void Layer::activation(ActivationKind kind) {
  Op made = like(OpKind::kActivation, {one_input()});
  made.activation.kind = kind;
  append(std::move(made));
}

void Layer::leaky_relu() {
  Op made = like(OpKind::kActivation, {one_input()});
  made.activation = {ActivationKind::kLeakyRelu, static_cast<float>(fields_.number("slope", 0.01, -10, 10))};
  append(std::move(made));
}

void Layer::prelu() {
  Op made = like(OpKind::kPrelu, {one_input()});
  const std::string name = name_ + ".weight";
  const bool is_one = tensors_.shape(name) == Shape{1};
  made.weight = tensors_.floats(name, {is_one ? 1 : size(made.channels)});
  made.weight.resize(static_cast<std::size_t>(made.channels), made.weight[0]);
  append(std::move(made));
}

void Layer::shuffle(OpKind kind) {
  Op made = like(kind, {one_input()});
  made.factor = fields_.integer("factor", 2, kMostFactor);
  const int square = made.factor * made.factor;
  if (kind == OpKind::kUnshuffle) {
    made.channels *= square;
    divide_scale(made, made.factor);
  } else {
    if (made.channels % square != 0) {
      fields_.fail("expected a multiple of " + std::to_string(square) + " channels, found " +
                   std::to_string(made.channels));
    }
    made.channels /= square;
    multiply_scale(made, made.factor);
  }
  if (made.channels > kMostChannels) {
    fields_.fail("expected at most " + std::to_string(kMostChannels) + " channels, found " +
                 std::to_string(made.channels));
  }
  append(std::move(made));
}

void Layer::up_sample() {
  Op made = like(OpKind::kNearest, {one_input()});
  const std::string mode = fields_.text("mode", "nearest");
  if (mode != "nearest" && mode != "bilinear") {
    fields_.fail("expected \"mode\" to be \"nearest\" or \"bilinear\", found " + in_quotes(mode));
  }
  made.kind = mode == "nearest" ? OpKind::kNearest : OpKind::kBilinear;
  made.factor = fields_.integer("factor", 2, kMostFactor);
  multiply_scale(made, made.factor);
  append(std::move(made));
}

void Layer::pool(OpKind kind) {
  Op made = like(kind, {one_input()});
  made.kernel = fields_.integer("kernel", 1, kMostKernel);
  made.stride = fields_.integer("stride", made.kernel, 1, kMostFactor);
  made.padding = fields_.integer("padding", 0, 0, kMostKernel / 2);
  check_window(fields_, made);
  if (2 * made.padding > made.kernel) {
    fields_.fail("expected at most half the kernel as padding");
  }
  if (kind == OpKind::kAveragePool) {
    made.counts_padding = fields_.boolean("count_padding", true);
  }
  divide_scale(made, made.stride);
  append(std::move(made));
}

// The shapes that meet in one operation.
void check_alike(const Fields& fields, const Op& a, const Op& b, bool of_channels) {
  const auto describe = [](const Op& op) {
    return std::to_string(op.channels) + " channels at " + std::to_string(op.scale.numerator) + "/" +
           std::to_string(op.scale.denominator) + " of the frame";
  };
  if (a.scale != b.scale || (of_channels && a.channels != b.channels)) {
    fields.fail("expected inputs of one shape, found " + describe(a) + " and " + describe(b));
  }
}

void Layer::add_or_multiply(OpKind kind) {
  if (inputs_.size() != 2) {
    fields_.fail("expected two inputs, found " + std::to_string(inputs_.size()));
  }
  check_alike(fields_, op(inputs_[0]), op(inputs_[1]), true);
  append(like(kind, inputs_));
}

void Layer::concatenate() {
  const auto place =
      std::find_if(inputs_.begin(), inputs_.end(), [&](int i) { return op(i).kind != OpKind::kCondition; });
  if (inputs_.size() < 2 || place == inputs_.end()) {
    fields_.fail("expected two inputs or more, one of them not \"condition\"");
  }
  Op made = like(OpKind::kConcatenate, {*place});
  made.inputs = inputs_;
  made.channels = 0;
  for (const int input : inputs_) {
    if (op(input).kind != OpKind::kCondition) {
      check_alike(fields_, op(*place), op(input), false);
    }
    made.channels += channels(input);
  }
  if (made.channels > kMostChannels) {
    fields_.fail("expected at most " + std::to_string(kMostChannels) + " channels, found " +
                 std::to_string(made.channels));
  }
  append(std::move(made));
}

int Layer::sub_sampled(int input, int by) {
  if (by == 1) {
    return input;
  }
  Op made = like(OpKind::kMaxPool, {input});
  made.kernel = made.stride = by;
  divide_scale(made, by);
  return append(std::move(made));
}

int Layer::history(int input, bool is_kept) {
  if (!is_kept || frames_ == 1) {
    return input;
  }
  Op made = like(OpKind::kHistory, {input});
  made.frames = frames_;
  return append(std::move(made));
}

int Layer::with_residual(int output, int input, bool is_residual) {
  return is_residual ? append(like(OpKind::kAdd, {input, output})) : output;
}

Op Layer::attention(int query, int key, int value) const {
  Op made = like(OpKind::kAttention, {query, key, value});
  made.channels = channels(value);
  return made;
}

// w^T [a, b] is a part for a and a part for b; each with the projection before it is one row of weights.
int Layer::score_half(const std::vector<float>& over, int first, int input, const std::string& part,
                      int bottleneck, bool has_bias) {
  Op made = like(OpKind::kConvolution, {input});
  const std::size_t in = static_cast<std::size_t>(made.channels);
  const std::size_t rows = static_cast<std::size_t>(bottleneck);
  const std::vector<float> weight = tensor(part + ".weight", {rows, in, 1, 1});
  const std::vector<float> bias = has_bias ? tensor(part + ".bias", {rows}) : std::vector<float>(rows);
  made.channels = 1;
  double sum_of_bias = 0;
  for (std::size_t i = 0; i < in; ++i) {
    double sum = 0;
    for (std::size_t r = 0; r < rows; ++r) {
      sum += static_cast<double>(over[static_cast<std::size_t>(first) + r]) * weight[r * in + i];
    }
    made.weight.push_back(static_cast<float>(sum));
  }
  for (std::size_t r = 0; r < rows; ++r) {
    sum_of_bias += static_cast<double>(over[static_cast<std::size_t>(first) + r]) * bias[r];
  }
  made.bias.push_back(static_cast<float>(sum_of_bias));
  return append(std::move(made));
}

// The sum of the channels, weighted.
int Layer::projected(const std::vector<float>& weight, int input) {
  Op made = like(OpKind::kConvolution, {input});
  made.channels = 1;
  made.weight = weight;
  made.bias = {0};
  return append(std::move(made));
}

// X. Wang et al.: Non-local Neural Networks, CVPR 2018.
void Layer::non_local() {
  const int x = one_input();
  const std::string mode = fields_.text("mode", "embedded_gaussian");
  const std::string reach = fields_.text("reach", "spatial");
  const int bottleneck = fields_.integer("channels", std::max(1, channels(x) / 2), 1, kMostChannels);
  const int by = fields_.integer("sub_sample", 1, 1, kMostFactor);
  const bool has_bias = fields_.boolean("bias", true);
  const bool is_normed = fields_.boolean("norm", false);
  const double epsilon = epsilon_of(fields_);
  if (mode != "gaussian" && mode != "embedded_gaussian" && mode != "dot_product" && mode != "concatenation") {
    fields_.fail(
        "expected \"mode\" to be \"gaussian\", \"embedded_gaussian\", \"dot_product\" or "
        "\"concatenation\", found " +
        in_quotes(mode));
  }
  if (reach != "spatial" && reach != "temporal" && reach != "space_time") {
    fields_.fail("expected \"reach\" to be \"spatial\", \"temporal\" or \"space_time\", found " +
                 in_quotes(reach));
  }
  if (reach == "temporal" && by != 1) {
    fields_.fail("expected \"sub_sample\" to be 1 where \"reach\" is \"temporal\", found " +
                 std::to_string(by));
  }
  int query = x;
  int key = x;
  if (mode == "concatenation") {
    const std::vector<float> over = tensor("f.weight", {1, 2 * size(bottleneck), 1, 1});
    query = score_half(over, 0, x, "theta", bottleneck, has_bias);
    if (by == 1) {
      key = score_half(over, bottleneck, x, "phi", bottleneck, has_bias);
    } else {
      // The maximum is that of phi, not of the scores.
      key = projected({over.begin() + bottleneck, over.end()},
                      sub_sampled(pointwise(x, "phi", bottleneck, has_bias), by));
    }
  } else if (mode != "gaussian") {
    query = pointwise(x, "theta", bottleneck, has_bias);
    key = pointwise(x, "phi", bottleneck, has_bias);
  }
  const bool is_kept = reach != "spatial";
  key = history(mode == "concatenation" ? key : sub_sampled(key, by), is_kept);
  const int value = history(sub_sampled(pointwise(x, "g", bottleneck, has_bias), by), is_kept);
  Op made = attention(query, key, value);
  made.reach = reach == "temporal" ? AttentionReach::kPosition : AttentionReach::kFrame;
  if (mode == "dot_product") {
    made.function = AttentionFunction::kDotProduct;
  } else if (mode == "concatenation") {
    made.function = AttentionFunction::kSumRelu;
  }
  int z = pointwise(append(std::move(made)), "z", channels(x), has_bias);
  if (is_normed) {
    z = norm(z, "norm.", epsilon);
  }
  with_residual(z, x, true);
}

// H. Zhang et al.: Self-Attention Generative Adversarial Networks, ICML 2019: gamma v(attention) + x, keys f,
// queries g, values h.
void Layer::self_attention() {
  const int x = one_input();
  const int inner = fields_.integer("channels", std::max(1, channels(x) / 8), 1, kMostChannels);
  const int values = fields_.integer("value_channels", inner, 1, kMostChannels);
  const int by = fields_.integer("sub_sample", 1, 1, kMostFactor);
  const bool has_bias = fields_.boolean("bias", false);
  const int key = sub_sampled(pointwise(x, "f", inner, has_bias), by);
  const int query = pointwise(x, "g", inner, has_bias);
  const int value = sub_sampled(pointwise(x, "h", values, has_bias), by);
  const int v = pointwise(append(attention(query, key, value)), "v", channels(x), has_bias);
  const float gamma = tensor("gamma", {1})[0];
  Op& scaled = ops_[static_cast<std::size_t>(v)];
  std::for_each(scaled.weight.begin(), scaled.weight.end(), [=](float& w) { w *= gamma; });
  std::for_each(scaled.bias.begin(), scaled.bias.end(), [=](float& b) { b *= gamma; });
  with_residual(v, x, true);
}

// Queries, keys and values from x, `made` of them, and what comes out projected back and added to x.
void Layer::projected_attention(Op made) {
  const int x = one_input();
  const int inner = fields_.integer("channels", channels(x), 1, kMostChannels);
  made.heads = fields_.integer("heads", 1, 1, kMostChannels);
  const bool has_bias = fields_.boolean("bias", true);
  const bool is_residual = fields_.boolean("residual", true);
  if (inner % made.heads != 0) {
    fields_.fail("expected \"heads\" to divide the " + std::to_string(inner) + " channels, found " +
                 std::to_string(made.heads));
  }
  const int query = pointwise(x, "query", inner, has_bias);
  const int key = pointwise(x, "key", inner, has_bias);
  const int value = pointwise(x, "value", inner, has_bias);
  made.layer = name_;
  made.inputs = {query, key, value};
  made.channels = inner;
  made.scale = op(x).scale;
  made.score_scale = 1 / std::sqrt(static_cast<float>(inner / made.heads));
  if (made.reach == AttentionReach::kWindow) {
    add_position_bias(made);
  }
  read_range("value.", made);  // means of values are among them
  const int out = pointwise(append(std::move(made)), "out", channels(x), has_bias);
  with_residual(out, x, is_residual);
}

// A. Vaswani et al.: Attention Is All You Need, NIPS 2017.
void Layer::transformer() {
  Op made;
  made.kind = OpKind::kAttention;
  projected_attention(std::move(made));
}

// Z. Liu et al.: Swin Transformer, ICCV 2021.
void Layer::window_attention() {
  Op made;
  made.kind = OpKind::kAttention;
  made.reach = AttentionReach::kWindow;
  made.window = fields_.integer("window", 2, kMostWindow);
  projected_attention(std::move(made));
}

// One number for each head and each way from a key to a query, (2 w - 1)² of them.
void Layer::add_position_bias(Op& made) {
  if (!fields_.boolean("relative_bias", false)) {
    return;
  }
  constexpr double kMostPairs = 0x1p24;  // of a file that is far smaller
  const int w = made.window;
  const int ways = 2 * w - 1;
  if (const double pairs = made.heads * std::pow(w, 4); pairs > kMostPairs) {
    fields_.fail("expected \"relative_bias\" of at most " + std::to_string(static_cast<int>(kMostPairs)) +
                 " pairs (heads window^4), found " + std::to_string(static_cast<std::int64_t>(pairs)));
  }
  const std::vector<float> table = tensor("relative_bias", {size(ways * ways), size(made.heads)});
  for (int head = 0; head < made.heads; ++head) {
    for (int query = 0; query < w * w; ++query) {
      for (int key = 0; key < w * w; ++key) {
        const int down = query / w - key / w + w - 1;
        const int right = query % w - key % w + w - 1;
        made.position_bias.push_back(
            table[static_cast<std::size_t>((down * ways + right) * made.heads + head)]);
      }
    }
  }
}

using Reader = std::function<void(Layer&)>;

const std::map<std::string, Reader>& readers() {
  static const auto activation = [](ActivationKind kind) {
    return [kind](Layer& layer) { layer.activation(kind); };
  };
  static const std::map<std::string, Reader> all = {
      {"convolution", [](Layer& l) { l.convolution(); }},
      {"batch_norm", [](Layer& l) { l.batch_norm(); }},
      {"layer_norm", [](Layer& l) { l.layer_norm(); }},
      {"group_norm", [](Layer& l) { l.group_norm(); }},
      {"relu", activation(ActivationKind::kRelu)},
      {"leaky_relu", [](Layer& l) { l.leaky_relu(); }},
      {"prelu", [](Layer& l) { l.prelu(); }},
      {"gelu", activation(ActivationKind::kGelu)},
      {"silu", activation(ActivationKind::kSilu)},
      {"sigmoid", activation(ActivationKind::kSigmoid)},
      {"tanh", activation(ActivationKind::kTanh)},
      {"pixel_shuffle", [](Layer& l) { l.shuffle(OpKind::kShuffle); }},
      {"pixel_unshuffle", [](Layer& l) { l.shuffle(OpKind::kUnshuffle); }},
      {"max_pool", [](Layer& l) { l.pool(OpKind::kMaxPool); }},
      {"average_pool", [](Layer& l) { l.pool(OpKind::kAveragePool); }},
      {"up_sample", [](Layer& l) { l.up_sample(); }},
      {"add", [](Layer& l) { l.add_or_multiply(OpKind::kAdd); }},
      {"multiply", [](Layer& l) { l.add_or_multiply(OpKind::kMultiply); }},
      {"concatenate", [](Layer& l) { l.concatenate(); }},
      {"non_local", [](Layer& l) { l.non_local(); }},
      {"self_attention", [](Layer& l) { l.self_attention(); }},
      {"attention", [](Layer& l) { l.transformer(); }},
      {"window_attention", [](Layer& l) { l.window_attention(); }},
  };
  return all;
}

std::string known_types() {
  std::string text;
  for (const auto& [type, reader] : readers()) {
    text += (text.empty() ? "" : ", ") + type;
  }
  return text;
}

}  // namespace

Fields::Fields(const std::string& path, std::string where, const json& object)
    : path_(path), where_(std::move(where)), object_(object) {
  if (!object.is_object()) {
    fail("expected a JSON object");
  }
}

void Fields::fail(const std::string& problem) const { throw ModelError(path_, where_ + ": " + problem); }

void Fields::fail_field(const std::string& key, const std::string& expected) const {
  const auto at = object_.find(key);
  std::string found = at == object_.end()   ? "none"
                      : at->is_string()     ? in_quotes(*at)
                      : at->is_structured() ? std::string("a ") + at->type_name()
                                            : at->dump();
  fail("expected " + in_quotes(key) + " to be " + expected + ", found " + found);
}

const json* Fields::find(const std::string& key) {
  asked_.insert(key);
  const auto at = object_.find(key);
  return at == object_.end() ? nullptr : &*at;
}

const json& Fields::need(const std::string& key, const std::string& expected) {
  const json* value = find(key);
  if (value == nullptr) {
    fail_field(key, expected);
  }
  return *value;
}

std::string Fields::text(const std::string& key) {
  const json& value = need(key, "a string");
  if (!value.is_string()) {
    fail_field(key, "a string");
  }
  return value;
}

std::string Fields::text(const std::string& key, const std::string& standard) {
  return find(key) == nullptr ? standard : text(key);
}

int Fields::integer(const std::string& key, int least, int most) {
  const std::string expected = range("a whole number", std::to_string(least), std::to_string(most));
  const json& value = need(key, expected);
  // Larger ones than 64 bits have are no integers to the parser.
  const bool is_in_range = value.is_number_unsigned()
                               ? value.get<std::uint64_t>() <= static_cast<std::uint64_t>(most)
                               : value.is_number_integer();
  if (!is_in_range || value.get<std::int64_t>() < least || value.get<std::int64_t>() > most) {
    fail_field(key, expected);
  }
  return value.get<int>();
}

int Fields::integer(const std::string& key, int standard, int least, int most) {
  return find(key) == nullptr ? standard : integer(key, least, most);
}

double Fields::number(const std::string& key, double least, double most) {
  const std::string expected = range("a number", json(least).dump(), json(most).dump());
  const json& value = need(key, expected);
  if (!value.is_number() || !(value.get<double>() >= least && value.get<double>() <= most)) {
    fail_field(key, expected);
  }
  return value.get<double>();
}

double Fields::number(const std::string& key, double standard, double least, double most) {
  return find(key) == nullptr ? standard : number(key, least, most);
}

bool Fields::boolean(const std::string& key, bool standard) {
  const json* value = find(key);
  if (value != nullptr && !value->is_boolean()) {
    fail_field(key, "true or false");
  }
  return value == nullptr ? standard : value->get<bool>();
}

const json& Fields::list(const std::string& key, std::size_t least, std::size_t most) {
  const std::string expected =
      "a list of " + std::to_string(least) + " to " + std::to_string(most) + " entries";
  const json& value = need(key, expected);
  if (!value.is_array() || value.size() < least || value.size() > most) {
    fail_field(key, expected);
  }
  return value;
}

const json& Fields::object(const std::string& key) {
  const json& value = need(key, "an object");
  if (!value.is_object()) {
    fail_field(key, "an object");
  }
  return value;
}

void Fields::finish() const {
  for (const auto& [key, value] : object_.items()) {
    if (!asked_.contains(key)) {
      fail("unknown field " + in_quotes(key));
    }
  }
}

std::vector<float> Tensors::floats(const std::string& name, const Shape& shape) {
  std::vector<float> values = file_.floats(name, shape);
  read_.insert(name);
  parameters_ += static_cast<std::int64_t>(values.size());
  return values;
}

std::vector<float> Tensors::statistics(const std::string& name, const Shape& shape) {
  if (!file_.has(name)) {
    return {};
  }
  read_.insert(name);
  return file_.floats(name, shape);
}

void Tensors::finish() const {
  for (const std::string& name : file_.names()) {
    if (!read_.contains(name)) {
      throw ModelError(file_.path(), "tensor " + in_quotes(name) + ": no layer has a tensor of this name");
    }
  }
}

void read_layer(Fields& fields, Tensors& tensors, const std::string& name, const std::string& type,
                const std::vector<int>& inputs, int frames, std::vector<Op>& ops) {
  const auto reader = readers().find(type);
  if (reader == readers().end()) {
    fields.fail("expected \"type\" to be one of " + known_types() + ", found " + in_quotes(type));
  }
  for (const int input : inputs) {
    if (ops[static_cast<std::size_t>(input)].kind == OpKind::kCondition && type != "concatenate") {
      fields.fail("only \"concatenate\" takes \"condition\" as an input");
    }
  }
  Layer layer(fields, tensors, name, inputs, frames, ops);
  reader->second(layer);
  layer.read_range("", ops.back());
  fields.finish();
}

}  // namespace nonlocal::network
