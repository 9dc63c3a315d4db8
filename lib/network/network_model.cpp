#include "network/network_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string_view>

#include "model/safetensors.h"
#include "model/strict_json.h"
#include "network/layer_reader.h"
#include "network/refinement_model.h"
#include "network/temporal_mean.h"
#include "nonlocal/error.h"

namespace nonlocal::network {
namespace {

using model::in_quotes;
using nlohmann::json;

constexpr const char* kFormat = "nonlocal.network";
constexpr const char* kVersion = "2";
constexpr std::size_t kLongestDescription = 1 << 20;
constexpr int kDeepest = 4;  // description, layers, layer, list
constexpr int kMostInputs = 64;
constexpr int kMostMultiple = 1024;
constexpr double kMostOperations = 1e8;  // a sample of the frame
constexpr double kMostBytes = 1 << 16;   // a sample of the frame, of all that lives at one time, in f32
constexpr std::size_t kLongestName = 100;

constexpr double kLeastMeanH = 0.5;  // 8-bit code values

bool is_name(const std::string& name) {
  const std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  return !name.empty() && name.size() <= kLongestName && name.find_first_not_of(letters) == std::string::npos;
}

// What floats can tell apart: 255 code values and more.
bool is_range(double low, double high) {
  return low >= -1e6 && high <= 1e6 && high - low >= 1e-6 &&
         high - low >= 1e-4 * std::max(std::abs(low), std::abs(high));
}

// The samples of a plane to a sample of the frame.
double area(const Scale& scale) {
  const double side = static_cast<double>(scale.numerator) / scale.denominator;
  return side * side;
}

// As "4 channels at 1/2".
std::string shape(const Op& op) {
  return std::to_string(op.channels) + " channels at " + std::to_string(op.scale.numerator) + "/" +
         std::to_string(op.scale.denominator);
}

// Reads the description, layer by layer.
class Reader {
 public:
  Reader(const model::Safetensors& file, int most_frames, NetworkModel& network)
      : path_(file.path()), tensors_(file), most_frames_(most_frames), network_(network) {}

  void read(const json& description) {
    Fields fields(path_, "metadata \"network\"", description);
    read_input(fields);
    network_.summary.residual = fields.boolean("residual", false);
    read_precision(fields);
    read_temporal_mean(fields);
    for (const json& entry : fields.list("layers", 1, kMostLayers)) {
      read_entry(entry);
    }
    const std::string output = fields.text("output", last_);
    fields.finish();
    tensors_.finish();
    network_.output = input(fields, output);
    check_all_read(output);
    check_output(fields);
    check_temporal_mean(fields);
    if (is_mirrored_) {
      set_margins();
    }
    network_.summary.output_channels = network_.output_op().channels;
    if (most_frames_ > 0 && most_frames_ <= file_frames_) {
      network_.summary.temporal_mean.reset();  // it looks at one frame more
    }
  }

 private:
  void read_input(Fields& fields) {
    ModelSummary& summary = network_.summary;
    Fields in(path_, "metadata \"network\", \"input\"", fields.object("input"));
    summary.input_channels = in.integer("channels", 1, kMostChannels);
    file_frames_ = in.integer("frames", 1, 1, kMostFrames);
    summary.frames = most_frames_ > 0 ? std::min(file_frames_, most_frames_) : file_frames_;
    summary.range[0] = 0;
    summary.range[1] = 1;
    if (in.has("range")) {
      const json& range = in.list("range", 2, 2);
      if (!range[0].is_number() || !range[1].is_number() ||
          !is_range(range[0].get<double>(), range[1].get<double>())) {
        in.fail(
            "expected \"range\" to be two numbers from -1e6 to 1e6, the second greater by 1e-6 and by a "
            "10,000th of either");
      }
      summary.range[0] = range[0];
      summary.range[1] = range[1];
    }
    add_source("input", OpKind::kInput, summary.input_channels);
    if (in.has("condition")) {
      read_condition(in);
    }
    const std::string border = in.text("border", "zero");
    if (border != "zero" && border != "mirror") {
      in.fail("expected \"border\" to be \"zero\" or \"mirror\", found " + in_quotes(border));
    }
    is_mirrored_ = border == "mirror";
    in.finish();
  }

  void read_precision(Fields& fields) {
    const std::string precision = fields.text("precision", "any");
    if (precision != "any" && precision != "f32") {
      fields.fail("expected \"precision\" to be \"any\" or \"f32\", found " + in_quotes(precision));
    }
    network_.is_wide = precision == "f32";
  }

  void read_temporal_mean(Fields& fields) {
    if (!fields.has("temporal_mean")) {
      return;
    }
    Fields in(path_, "metadata \"network\", \"temporal_mean\"", fields.object("temporal_mean"));
    network_.summary.temporal_mean = in.number("h", kLeastMeanH, 255);
    in.finish();
    if (file_frames_ == kMostFrames) {
      fields.fail("expected at most " + std::to_string(kMostFrames - 1) +
                  " frames with \"temporal_mean\", which looks at one more, found " +
                  std::to_string(file_frames_));
    }
  }

  void read_condition(Fields& in) {
    Fields fields(path_, "metadata \"network\", \"condition\"", in.object("condition"));
    NetworkCondition condition;
    condition.name = fields.text("name");
    condition.minimum = fields.number("minimum", 0, -1e6, 1e6);
    condition.maximum = fields.number("maximum", condition.minimum, 1e6);
    condition.value = fields.number("default", condition.minimum, condition.minimum, condition.maximum);
    network_.condition_scale = static_cast<float>(fields.number("scale", 1, -1e6, 1e6));
    network_.condition_power = static_cast<float>(fields.number("power", 1, -4, 4));
    fields.finish();
    check_told(fields, condition);
    if (!is_name(condition.name)) {
      fields.fail("expected \"name\" to be letters, digits and _, found " + in_quotes(condition.name));
    }
    network_.summary.condition = condition;
    add_source("condition", OpKind::kCondition, 1);
  }

  // Whether a power of all conditions is a number.
  void check_told(const Fields& fields, const NetworkCondition& condition) const {
    const bool is_positive = condition.minimum > 0 && network_.condition_scale > 0;
    const bool is_finite =
        std::isfinite(network_.told(condition.minimum)) && std::isfinite(network_.told(condition.maximum));
    if (!is_finite || (network_.condition_power != 1 && !is_positive)) {
      fields.fail(
          "expected \"power\" to be 1, or \"minimum\" and \"scale\" to be positive and the result finite");
    }
  }

  void add_source(const std::string& name, OpKind kind, int channels) {
    Op source;
    source.kind = kind;
    source.layer = name;
    source.channels = channels;
    network_.ops.push_back(source);
    written_[name] = static_cast<int>(network_.ops.size()) - 1;
    last_ = name == "input" ? name : last_;
  }

  void read_entry(const json& entry) {
    const std::string number = std::to_string(network_.summary.layers.size());
    Fields fields(path_, "layer " + number, entry);
    const std::string name = fields.text("name");
    if (!is_name(name)) {
      fields.fail("expected \"name\" to be up to " + std::to_string(kLongestName) +
                  " letters, digits and _, found " + in_quotes(name));
    }
    if (written_.contains(name) ||
        name == "condition") {  // that name is the input's, even where it is not used
      fields.fail("its name " + in_quotes(name) + " is taken");
    }
    Fields named(path_, "layer " + in_quotes(name), entry);
    static_cast<void>(named.text("name"));
    LayerSummary layer{name, named.text("type"), {}, 0, 1, 1, 0, 0, 0};
    std::vector<int> inputs;
    if (named.is_list("inputs")) {
      for (const json& from : named.list("inputs", 1, kMostInputs)) {
        if (!from.is_string()) {
          named.fail("expected \"inputs\" to be a list of names");
        }
        layer.inputs.push_back(from);
      }
    } else {
      layer.inputs = {named.text("inputs", last_)};
    }
    for (const std::string& from : layer.inputs) {
      inputs.push_back(input(named, from));
    }
    const std::int64_t parameters = tensors_.parameters();
    const std::size_t first = network_.ops.size();
    read_layer(named, tensors_, name, layer.type, inputs, network_.summary.frames, network_.ops);
    layer.parameters = tensors_.parameters() - parameters;
    summarise(first, layer);
    written_[name] = static_cast<int>(network_.ops.size()) - 1;
    last_ = name;
  }

  void summarise(std::size_t first, LayerSummary& layer) {
    for (std::size_t i = first; i < network_.ops.size(); ++i) {
      const Op& op = network_.ops[i];
      layer.operations += operations(op, network_.ops) * area(op.scale);
    }
    const Op& last = network_.ops.back();
    layer.channels = last.channels;
    layer.numerator = last.scale.numerator;
    layer.denominator = last.scale.denominator;
    layer.receptive_field = receptive_field(static_cast<int>(network_.ops.size()) - 1);
    network_.summary.layers.push_back(layer);
  }

  // The frame's samples that a value in the middle of a large plane depends on; 0: all, but what a plane of
  // another size leaves over. (What attends over time alone sees one place, though it is run on whole
  // planes.)
  int receptive_field(int output) const {
    constexpr int kSide = 1 << 20;
    std::vector<Rect> parts(network_.ops.size());
    const int middle = network_.ops[static_cast<std::size_t>(output)].scale.of(kSide) / 2;
    parts[static_cast<std::size_t>(output)] = {middle, middle, middle + 1, middle + 1};
    for (std::size_t i = static_cast<std::size_t>(output) + 1; i-- > 1;) {
      const Op& op = network_.ops[i];
      if (parts[i].width() == 0) {
        continue;
      }
      for (std::size_t k = 0; k < op.inputs.size(); ++k) {
        const auto from = static_cast<std::size_t>(op.inputs[k]);
        const int side = network_.ops[from].scale.of(kSide);
        const bool is_there = op.kind == OpKind::kHistory ||
                              (op.kind == OpKind::kAttention && op.reach == AttentionReach::kPosition);
        parts[from] = hull(parts[from], is_there ? parts[i] : needed(op, k, parts[i], {0, 0, side, side}));
      }
    }
    return parts[0].width() > kSide - kMostMultiple ? 0 : parts[0].width();
  }

  int input(const Fields& fields, const std::string& name) const {
    const auto at = written_.find(name);
    if (at == written_.end()) {
      fields.fail("expected an input, or a layer before this one, found " + in_quotes(name));
    }
    return at->second;
  }

  void check_all_read(const std::string& output) const {
    std::map<std::string, bool> is_read = {{output, true}};
    for (const LayerSummary& layer : network_.summary.layers) {
      for (const std::string& from : layer.inputs) {
        is_read[from] = true;
      }
    }
    for (const auto& [name, op] : written_) {
      if (!is_read[name] && name != "input") {
        throw ModelError(path_, "layer " + in_quotes(name) + ": nothing reads what it writes");
      }
    }
  }

  void check_temporal_mean(const Fields& fields) const {
    const Op& out = network_.output_op();
    if (network_.summary.temporal_mean &&
        (out.channels > TemporalMean::kMostChannels || out.scale != Scale{})) {
      fields.fail("expected an output of 1 to " + std::to_string(TemporalMean::kMostChannels) +
                  " channels and the frame's size, since \"temporal_mean\" moves it, found " + shape(out));
    }
  }

  void check_output(const Fields& fields) const {
    const Op& out = network_.output_op();
    const ModelSummary& summary = network_.summary;
    if (out.kind == OpKind::kInput || out.kind == OpKind::kCondition) {
      fields.fail("expected \"output\" to be a layer");
    }
    if (summary.residual && (out.channels != summary.input_channels || out.scale != Scale{})) {
      fields.fail("expected an output of " + std::to_string(summary.input_channels) +
                  " channels and the frame's size, since \"residual\" adds it to the input, found " +
                  shape(out));
    }
  }

  // The frame, and its samples side by side, go on beyond its sides as far as convolutions read them.
  void set_margins() {
    std::vector<Op>& ops = network_.ops;
    std::vector<bool> is_frame(ops.size());
    int samples = 0;
    int together = 1;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const Op& op = ops[i];
      const auto reads = [&](int from) { return is_frame[static_cast<std::size_t>(from)]; };
      is_frame[i] = op.kind == OpKind::kInput || (op.kind == OpKind::kUnshuffle && reads(op.inputs[0]));
      const int block = ops[op.inputs.empty() ? 0 : static_cast<std::size_t>(op.inputs[0])].scale.denominator;
      if (is_frame[i]) {
        together = std::lcm(together, op.scale.denominator);
      } else if (op.kind == OpKind::kConvolution && reads(op.inputs[0])) {
        samples = std::max(samples, op.padding * block);
      } else if (std::any_of(op.inputs.begin(), op.inputs.end(), reads)) {
        throw ModelError(path_, "layer " + in_quotes(op.layer) +
                                    ": expected the input, and what is unshuffled from it, to be read by "
                                    "convolutions alone where \"border\" is \"mirror\"");
      }
    }
    if (is_frame[static_cast<std::size_t>(network_.output)]) {
      throw ModelError(path_,
                       "expected an output that is more than the input where \"border\" is \"mirror\"");
    }
    samples = (samples + together - 1) / together * together;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      ops[i].margin = is_frame[i] ? samples / ops[i].scale.denominator : 0;
    }
  }

  const std::string& path_;
  Tensors tensors_;
  int most_frames_;
  int file_frames_ = 1;
  NetworkModel& network_;
  std::map<std::string, int> written_;
  std::string last_;
  bool is_mirrored_ = false;
};

// Frames of multiples of this have planes of whole samples and windows.
int multiple_of(const std::string& path, const std::vector<Op>& ops) {
  int multiple = 1;
  for (const Op& op : ops) {
    const int window = op.reach == AttentionReach::kWindow ? op.window : 1;
    const int samples = op.scale.denominator * window;
    multiple = std::lcm(multiple, samples / std::gcd(op.scale.numerator, samples));
    if (multiple > kMostMultiple) {
      throw ModelError(path, "layer " + in_quotes(op.layer) +
                                 ": expected strides and windows with a common multiple of "
                                 "at most " +
                                 std::to_string(kMostMultiple) + ", found " + std::to_string(multiple));
    }
  }
  return multiple;
}

// Operations a sample that the summary of layers does not count: comparisons and sums of pools, and, of
// groups of an odd number of channels, the zeros between them that bfloat16 makes (see ConvolutionWeights),
// those of each channel excepted.
double uncounted_operations(const Op& op, int in_channels) {
  const double taps = static_cast<double>(op.kernel) * op.kernel * area(op.scale);
  if (op.kind == OpKind::kMaxPool || op.kind == OpKind::kAveragePool) {
    return taps * op.channels;
  }
  const bool is_odd = in_channels % 2 != 0 || op.channels % 2 != 0;
  const bool is_depthwise = op.groups == in_channels && op.groups == op.channels;
  return op.kind == OpKind::kConvolution && op.groups > 1 && is_odd && !is_depthwise
             ? 2 * taps * in_channels * op.channels
             : 0;
}

void check_cost(const std::string& path, const NetworkModel& network) {
  double sum = 0;
  for (const LayerSummary& layer : network.summary.layers) {
    sum += layer.operations;
  }
  for (const Op& op : network.ops) {
    if (!op.inputs.empty()) {
      sum += uncounted_operations(op, network.ops[static_cast<std::size_t>(op.inputs[0])].channels);
    }
  }
  if (sum > kMostOperations) {
    throw ModelError(
        path, "expected at most " + whole(kMostOperations) + " operations a sample, found " + whole(sum));
  }
  std::vector<std::size_t> last(network.ops.size());
  for (std::size_t i = 0; i < network.ops.size(); ++i) {
    for (const int input : network.ops[i].inputs) {
      last[static_cast<std::size_t>(input)] = i;
    }
  }
  for (std::size_t i = 0; i < network.ops.size(); ++i) {
    double bytes = 0;
    for (std::size_t k = 0; k <= i; ++k) {
      const Op& op = network.ops[k];
      bytes += k == i || last[k] >= i ? 4 * area(op.scale) * op.channels * op.frames : 0;
    }
    if (bytes > kMostBytes) {
      throw ModelError(path, "layer " + in_quotes(network.ops[i].layer) + ": expected at most " +
                                 whole(kMostBytes) + " bytes a sample at one time, found " + whole(bytes));
    }
  }
}

json description_of(const model::Safetensors& file) {
  const auto expect = [&](const std::string& key, const std::string& value) {
    const auto found = file.metadata(key);
    if (found != value) {
      throw ModelError(file.path(), "expected metadata \"" + key + "\" to be \"" + value + "\", found " +
                                        (found ? in_quotes(*found) : "none"));
    }
  };
  expect("format", kFormat);
  expect("version", kVersion);
  const auto text = file.metadata("network");
  if (!text || text->size() > kLongestDescription) {
    throw ModelError(file.path(), "expected metadata \"network\", a description of up to " +
                                      std::to_string(kLongestDescription) + " bytes, found " +
                                      (text ? std::to_string(text->size()) : "none"));
  }
  return model::parse_strictly(file.path(), "metadata \"network\"", *text, kDeepest);
}

void take_metadata(const model::Safetensors& file, ModelSummary& summary) {
  summary.metadata = file.metadata();
  summary.format = summary.metadata["format"];
  summary.version = summary.metadata["version"];
  for (const char* key : {"format", "version", "network"}) {
    summary.metadata.erase(key);
  }
}

// "input" -> unshuffled -> conv0 ... -> shuffled, added to the estimate.
ModelSummary summarise_refinement(const model::Safetensors& file) {
  const RefinementModel refinement(file.path());
  const int r = refinement.unshuffle;
  ModelSummary summary{};
  take_metadata(file, summary);
  summary.input_channels = 2;
  summary.output_channels = 1;
  summary.frames = 1;
  summary.multiple = r;
  summary.residual = true;
  summary.range[0] = -0.5;
  summary.range[1] = 0.5;
  summary.condition = NetworkCondition{"sigma", 0, 255, 0};
  std::string before = "input";
  for (std::size_t i = 0; i < refinement.layers.size(); ++i) {
    const network::Layer& layer = refinement.layers[i];
    const auto parameters = static_cast<std::int64_t>(layer.weight.size() + layer.bias.size());
    const std::string name = "conv" + std::to_string(i);
    summary.layers.push_back({name,
                              "convolution",
                              {before},
                              layer.out_channels,
                              1,
                              r,
                              parameters,
                              2.0 * static_cast<double>(layer.weight.size()) / (r * r),
                              r * (2 * static_cast<int>(i) + 3)});
    before = name;
  }
  return summary;
}

}  // namespace

std::string whole(double n) { return std::to_string(static_cast<long long>(std::min(n, 9e18))); }

float NetworkModel::told(double condition) const {
  const double scaled = condition * condition_scale;
  return static_cast<float>(condition_power == 1 ? scaled : std::pow(scaled, condition_power));
}

NetworkModel::NetworkModel(const std::string& path, int most_frames) {
  const model::Safetensors file(path);
  take_metadata(file, summary);
  Reader(file, most_frames, *this).read(description_of(file));
  summary.multiple = multiple_of(path, ops);
  check_cost(path, *this);
  ops = fuse(std::move(ops), output);
  summary.has_ranges = std::any_of(ops.begin(), ops.end(), [](const Op& op) { return !op.low.empty(); });
  is_local = std::none_of(ops.begin(), ops.end(), [](const Op& op) { return op.is_global(); });
}

}  // namespace nonlocal::network

namespace nonlocal {

ModelSummary summarise_model(const std::string& path) {
  const model::Safetensors file(path);
  return file.metadata("format") == "nonlocal.refinement" ? network::summarise_refinement(file)
                                                          : network::NetworkModel(path).summary;
}

}  // namespace nonlocal
