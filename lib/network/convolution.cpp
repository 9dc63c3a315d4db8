#include "network/convolution.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "core/rounding.h"
#include "network/onednn.h"
#include "network/side_by_side.h"
#include "nonlocal/error.h"

// Of the OpenMP runtime that oneDNN brings: its header is not where every compiler looks.
extern "C" {
int omp_get_max_threads();
void omp_set_num_threads(int threads);
}

namespace nonlocal::network {
namespace {

using dnnl::memory;
using Dims = memory::dims;
using Tag = memory::format_tag;
using Type = memory::data_type;

Type value_type(NetworkPrecision precision) {
  switch (precision) {
    case NetworkPrecision::kBfloat16:
      return Type::bf16;
    case NetworkPrecision::kInt8:
      return Type::u8;
    default:
      return Type::f32;
  }
}

dnnl::primitive_attr attributes(const PreparedLayer& layer, bool is_last) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (!layer.scale.empty()) {
    attributes.set_output_scales(1 << 1, layer.scale);
  }
  if (!is_last) {
    dnnl::post_ops relu;
    relu.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
    attributes.set_post_ops(relu);
  }
  return attributes;
}

dnnl::convolution_forward::primitive_desc describe(const PreparedLayer& layer, int at_once,
                                                   NetworkPrecision precision, int width, int height,
                                                   bool is_last) {
  const int in = padded_channels(layer.in_channels, precision);
  const int out = layer.out_channels;
  const Type type = value_type(precision);
  const Type weight_type = type == Type::u8 ? Type::s8 : type;
  const dnnl::convolution_forward::desc description(
      dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
      memory::desc({1, in, height + 2, width + 2}, type, Tag::nhwc),
      memory::desc({out, in, 3, 2 + at_once}, weight_type, Tag::any), memory::desc({out}, Type::f32, Tag::a),
      memory::desc({1, out, height, width / at_once}, is_last ? Type::f32 : type, Tag::nhwc), {1, at_once},
      {0, 0}, {0, 0});
  return {description, attributes(layer, is_last), cpu()};
}

// The weights as the layer has them, zeros for the channels that fill up, in the order and type that oneDNN
// prefers.
memory weights(const PreparedLayer& layer, const memory::desc& wanted) {
  const Dims dims = wanted.dims();
  const std::size_t out_row = static_cast<std::size_t>(dims[1]) * dims[2] * dims[3];
  const std::size_t row = static_cast<std::size_t>(layer.in_channels) * dims[2] * dims[3];
  memory plain(memory::desc(dims, Type::f32, Tag::oihw), cpu());
  auto* to = static_cast<float*>(plain.get_data_handle());
  std::memset(to, 0, plain.get_desc().get_size());
  for (int o = 0; o < layer.out_channels; ++o) {
    std::copy_n(layer.weight.data() + o * row, row, to + o * out_row);
  }
  memory reordered(wanted, cpu());
  dnnl::stream stream(cpu());
  dnnl::reorder(plain, reordered).execute(stream, plain, reordered);
  stream.wait();
  return reordered;
}

memory biases(const PreparedLayer& layer, const memory::desc& wanted) {
  memory bias(wanted, cpu());
  std::memcpy(bias.get_data_handle(), layer.bias.data(), layer.bias.size() * sizeof(float));
  return bias;
}

}  // namespace

bool has(dnnl::cpu_isa wanted) {
  const auto bits = [](dnnl::cpu_isa isa) { return static_cast<unsigned>(isa); };
  return (bits(dnnl::get_effective_cpu_isa()) & bits(wanted)) == bits(wanted);
}

const dnnl::engine& cpu() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

OneThread::OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
OneThread::~OneThread() { omp_set_num_threads(before_); }

int value_bytes(NetworkPrecision precision) {
  return static_cast<int>(memory::data_type_size(value_type(precision)));
}

int padded_channels(int channels, NetworkPrecision precision) {
  return round_up(channels, 4 / value_bytes(precision));
}

Convolution::Convolution(const PreparedLayer& layer, NetworkPrecision precision, int width, int height,
                         bool is_last) {
  const int at_once = is_last ? pixels_at_once(layer.out_channels, width) : 1;
  const PreparedLayer wide{layer.in_channels, layer.out_channels * at_once,
                           side_by_side(layer.weight, layer.out_channels, layer.in_channels, 3, at_once),
                           repeated(layer.bias, at_once), repeated(layer.scale, at_once)};
  description_ = describe(wide, at_once, precision, width, height, is_last);
  primitive_ = dnnl::convolution_forward(description_);
  weight_ = weights(wide, description_.weights_desc());
  bias_ = biases(wide, description_.bias_desc());
}

BoundConvolution::BoundConvolution(const Convolution& convolution, void* in, void* out, void* scratch)
    : primitive_(convolution.primitive_), stream_(cpu()) {
  const auto& d = convolution.description_;
  memory_ = {memory(d.src_desc(), cpu(), in), convolution.weight_, convolution.bias_,
             memory(d.dst_desc(), cpu(), out), memory(d.scratchpad_desc(), cpu(), scratch)};
  const int names[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD};
  for (std::size_t i = 0; i < memory_.size(); ++i) {
    arguments_.push_back({names[i], memory_[i].get()});
  }
}

bool BoundConvolution::run() {
  return dnnl_primitive_execute(primitive_.get(), stream_.get(), static_cast<int>(arguments_.size()),
                                arguments_.data()) == dnnl_success;
}

}  // namespace nonlocal::network

namespace nonlocal {

bool is_supported(NetworkPrecision precision) {
  switch (precision) {
    case NetworkPrecision::kBfloat16:
      return network::has(dnnl::cpu_isa::avx512_core_bf16);
    case NetworkPrecision::kInt8:
      // Without VNNI sums of two products are clamped to 16 bits.
      return network::has(dnnl::cpu_isa::avx512_core_vnni) || network::has(dnnl::cpu_isa::avx2_vnni);
    default:
      return true;
  }
}

}  // namespace nonlocal
