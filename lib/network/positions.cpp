#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "network/positions.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "hwy/highway.h"
#include "network/bfloat16.h"
#include "network/positions.h"

HWY_BEFORE_NAMESPACE();
namespace nonlocal::network::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Loops over channels are left to the compiler, which knows the instruction set here. Nothing depends on how
// many lanes it has.

template <typename Value>
HWY_INLINE Value* values(const TensorView& view, int x, int y) {
  return reinterpret_cast<Value*>(view.at(x, y));
}

// Calls make(x, y, where the position's values go) for each position, and writes zeros for the channels that
// fill up.
template <typename Value, typename Make>
HWY_INLINE void each_position(const StepPlace& place, const Make& make) {
  for (int y = place.part.y0; y < place.part.y1; ++y) {
    for (int x = place.part.x0; x < place.part.x1; ++x) {
      auto* to = values<Value>(place.out, x, y);
      make(x, y, to);
      std::fill(to + place.out.channels, to + place.out.pitch, Value{});
    }
  }
}

template <typename Value>
HWY_INLINE void prelu(const Op& op, const StepPlace& place) {
  const float* slope = op.weight.data();
  each_position<Value>(place, [&](int x, int y, Value* HWY_RESTRICT to) HWY_ATTR {
    const auto* HWY_RESTRICT from = values<Value>(place.inputs[0], x, y);
    for (int c = 0; c < op.channels; ++c) {
      const float v = from[c];
      to[c] = Value(std::max(v, 0.0F) + std::min(v, 0.0F) * slope[c]);
    }
  });
}

// combine(a, b) of each two values. Rows in which nothing fills up are one run of values.
template <typename Value, typename Combine>
HWY_INLINE void combine_values(const StepPlace& place, int channels, const Combine& combine) {
  const TensorView& first = place.inputs[0];
  const TensorView& second = place.inputs[1];
  const int pitch = place.out.pitch;
  const bool is_run = pitch == channels && first.pitch == pitch && second.pitch == pitch;
  const int step = is_run ? place.part.width() : 1;
  const int count = step * channels;
  for (int y = place.part.y0; y < place.part.y1; ++y) {
    for (int x = place.part.x0; x < place.part.x1; x += step) {
      const auto* HWY_RESTRICT a = values<Value>(first, x, y);
      const auto* HWY_RESTRICT b = values<Value>(second, x, y);
      auto* HWY_RESTRICT to = values<Value>(place.out, x, y);
      for (int i = 0; i < count; ++i) {
        to[i] = Value(combine(float(a[i]), float(b[i])));
      }
      std::fill(to + count, to + step * pitch, Value{});
    }
  }
}

template <typename Value>
HWY_INLINE void concatenate(const StepPlace& place, const float* condition) {
  each_position<Value>(place, [&](int x, int y, Value* to) HWY_ATTR {
    for (const TensorView& in : place.inputs) {
      if (in.data == nullptr) {
        *to++ = Value(*condition);
      } else {
        std::memcpy(to, in.at(x, y), static_cast<std::size_t>(in.channels) * sizeof(Value));
        to += in.channels;
      }
    }
  });
}

template <typename Value>
HWY_INLINE void nearest(const Op& op, const StepPlace& place) {
  const std::size_t bytes = static_cast<std::size_t>(op.channels) * sizeof(Value);
  each_position<Value>(place, [&](int x, int y, Value* to) HWY_ATTR {
    std::memcpy(to, place.inputs[0].at(x / op.factor, y / op.factor), bytes);
  });
}

// The two neighbours of an up-sampled value, and the share of the second: it lies at (out + 1/2) / factor -
// 1/2 (PyTorch's align_corners=False). The share depends on out modulo the factor alone, to the last bit:
// tiles begin anywhere.
struct Neighbours {
  Neighbours(int out, int factor, int size) {
    const float offset = (static_cast<float>(out % factor) + 0.5F) / static_cast<float>(factor) - 0.5F;
    first = out / factor - (offset < 0 ? 1 : 0);
    share = offset < 0 ? offset + 1 : offset;
    second = share > 0 ? std::min(first + 1, size - 1) : first;
    if (first < 0) {
      first = second = 0;
    }
  }
  int first, second;
  float share;
};

template <typename Value>
HWY_INLINE void bilinear(const Op& op, const StepPlace& place) {
  const TensorView& in = place.inputs[0];
  each_position<Value>(place, [&](int x, int y, Value* HWY_RESTRICT to) HWY_ATTR {
    const Neighbours rows(y, op.factor, place.planes[0].height());
    const Neighbours columns(x, op.factor, place.planes[0].width());
    const auto* HWY_RESTRICT a = values<Value>(in, columns.first, rows.first);
    const auto* HWY_RESTRICT b = values<Value>(in, columns.second, rows.first);
    const auto* HWY_RESTRICT c = values<Value>(in, columns.first, rows.second);
    const auto* HWY_RESTRICT d = values<Value>(in, columns.second, rows.second);
    for (int i = 0; i < op.channels; ++i) {
      const float upper = float(a[i]) + (float(b[i]) - float(a[i])) * columns.share;
      const float lower = float(c[i]) + (float(d[i]) - float(c[i])) * columns.share;
      to[i] = Value(upper + (lower - upper) * rows.share);
    }
  });
}

// `count` rows of r values, from one place to another.
template <typename Value, int kLength>
HWY_INLINE void copy_rows_of(const Value* HWY_RESTRICT from, int step, int count, Value* HWY_RESTRICT to,
                             int to_step) {
  for (int i = 0; i < count; ++i, from += step, to += to_step) {
    std::memcpy(to, from, kLength * sizeof(Value));
  }
}

template <typename Value>
HWY_INLINE void copy_rows(const Value* from, int step, int r, int count, Value* to, int to_step) {
  switch (r) {
    case 2:
      return copy_rows_of<Value, 2>(from, step, count, to, to_step);
    case 4:
      return copy_rows_of<Value, 4>(from, step, count, to, to_step);
    default:
      for (int i = 0; i < count; ++i, from += step, to += to_step) {
        std::copy_n(from, r, to);
      }
  }
}

// Blocks of 2 x 2 samples of many channels: four neighbours are one channel of the four samples.
template <typename Value>
HWY_INLINE void shuffle_pairs(const Op& op, const StepPlace& place) {
  using Wide = std::conditional_t<sizeof(Value) == 2, std::uint16_t, std::uint32_t>;
  using Bits = std::conditional_t<sizeof(Value) == 1, std::uint8_t, Wide>;
  const hn::CappedTag<Bits, 16 / sizeof(Bits)> d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  const Rect& part = place.part;
  for (int y = part.y0; y < part.y1; ++y) {
    const auto* from = values<Bits>(place.inputs[0], part.x0 / 2, y / 2);
    auto* to = values<Bits>(place.out, part.x0, y);
    const bool is_lower = y % 2 != 0;
    for (int x = part.x0; x < part.x1; x += 2, from += place.inputs[0].pitch, to += 2 * place.out.pitch) {
      for (int c = 0; c < op.channels; c += lanes) {
        hn::Vec<decltype(d)> v[4];
        hn::LoadInterleaved4(d, from + 4 * c, v[0], v[1], v[2], v[3]);
        hn::StoreU(is_lower ? v[2] : v[0], d, to + c);
        hn::StoreU(is_lower ? v[3] : v[1], d, to + place.out.pitch + c);
      }
    }
  }
}

// Channel c r² + i r + j of a block is channel c of its sample in row i and column j.
template <typename Value>
HWY_INLINE void shuffle(const Op& op, const StepPlace& place) {
  const int r = op.factor;
  const Rect& part = place.part;
  if (place.out.pitch == 1 && part.x0 % r == 0 && part.x1 % r == 0) {
    // A block's row is r values on both sides.
    for (int y = part.y0; y < part.y1; ++y) {
      const auto* from = values<Value>(place.inputs[0], part.x0 / r, y / r) + y % r * r;
      copy_rows(from, place.inputs[0].pitch, r, part.width() / r, values<Value>(place.out, part.x0, y), r);
    }
    return;
  }
  constexpr int kAligned = 16 / sizeof(Value);
  const bool is_full = op.channels % kAligned == 0 && op.channels == place.out.pitch;
  if (r == 2 && is_full && part.x0 % 2 == 0 && part.x1 % 2 == 0) {
    shuffle_pairs<Value>(op, place);
    return;
  }
  each_position<Value>(place, [&](int x, int y, Value* to) HWY_ATTR {
    const auto* from = values<Value>(place.inputs[0], x / r, y / r) + y % r * r + x % r;
    for (int c = 0; c < op.channels; ++c) {
      to[c] = from[c * r * r];
    }
  });
}

template <typename Value>
HWY_INLINE void unshuffle(const Op& op, const StepPlace& place) {
  const int r = op.factor;
  const TensorView& in = place.inputs[0];
  const Rect& part = place.part;
  if (in.pitch == 1 && place.out.pitch == r * r) {
    for (int y = part.y0; y < part.y1; ++y) {
      for (int i = 0; i < r; ++i) {
        copy_rows(values<Value>(in, part.x0 * r, y * r + i), r, r, part.width(),
                  values<Value>(place.out, part.x0, y) + i * r, r * r);
      }
    }
    return;
  }
  each_position<Value>(place, [&](int x, int y, Value* to) HWY_ATTR {
    for (int i = 0; i < r; ++i) {
      const auto* from = values<Value>(in, x * r, y * r + i);
      for (int j = 0; j < r; ++j) {
        for (int c = 0; c < in.channels; ++c) {
          to[c * r * r + i * r + j] = from[j * in.pitch + c];
        }
      }
    }
  });
}

// The sum of term(0) to term(count - 1), in an order that suits vectors of any size.
template <typename Term>
HWY_INLINE float sum_of(int count, const Term& term) {
  constexpr int kLanes = 16;
  float sums[kLanes] = {};
  int i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int k = 0; k < kLanes; ++k) {
      sums[k] += term(i + k);
    }
  }
  for (int k = 0; i + k < count; ++k) {
    sums[k] += term(i + k);
  }
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int k = 0; k < half; ++k) {
      sums[k] += sums[k + half];
    }
  }
  return sums[0];
}

template <typename Value>
HWY_INLINE void layer_norm(const Op& op, const StepPlace& place) {
  const int channels = op.channels;
  const auto n = static_cast<float>(channels);
  const float* HWY_RESTRICT weight = op.weight.data();
  const float* HWY_RESTRICT bias = op.bias.data();
  each_position<Value>(place, [&](int x, int y, Value* HWY_RESTRICT to) HWY_ATTR {
    const auto* HWY_RESTRICT from = values<Value>(place.inputs[0], x, y);
    const float mean = sum_of(channels, [&](int c) HWY_ATTR { return float(from[c]); }) / n;
    const float squares =
        sum_of(channels, [&](int c) HWY_ATTR { return (float(from[c]) - mean) * (float(from[c]) - mean); });
    const float factor = 1 / std::sqrt(squares / n + op.epsilon);
    for (int c = 0; c < channels; ++c) {
      to[c] = Value((float(from[c]) - mean) * factor * weight[c] + bias[c]);
    }
  });
}

template <typename Value>
HWY_INLINE void calculate(const Op& op, const StepPlace& place, const float* condition) {
  switch (op.kind) {
    case OpKind::kPrelu:
      return prelu<Value>(op, place);
    case OpKind::kAdd:
      return combine_values<Value>(place, op.channels, [](float a, float b) HWY_ATTR { return a + b; });
    case OpKind::kMultiply:
      return combine_values<Value>(place, op.channels, [](float a, float b) HWY_ATTR { return a * b; });
    case OpKind::kConcatenate:
      return concatenate<Value>(place, condition);
    case OpKind::kNearest:
      return nearest<Value>(op, place);
    case OpKind::kBilinear:
      return bilinear<Value>(op, place);
    case OpKind::kShuffle:
      return shuffle<Value>(op, place);
    case OpKind::kUnshuffle:
      return unshuffle<Value>(op, place);
    default:
      return layer_norm<Value>(op, place);
  }
}

template <typename Value>
HWY_INLINE void sum_channels(const TensorView& in, const Rect& part, double* HWY_RESTRICT sums) {
  const int channels = in.channels;
  double* HWY_RESTRICT squares = sums + channels;
  std::fill_n(sums, 2 * channels, 0.0);
  for (int y = part.y0; y < part.y1; ++y) {
    for (int x = part.x0; x < part.x1; ++x) {
      const auto* HWY_RESTRICT from = values<Value>(in, x, y);
      for (int c = 0; c < channels; ++c) {
        const double v = float(from[c]);
        sums[c] += v;
        squares[c] += v * v;
      }
    }
  }
}

template <typename Value>
HWY_INLINE void map_channels(const StepPlace& place, const ChannelMaps& maps) {
  const int channels = place.out.channels;
  const float* HWY_RESTRICT factor = maps.factor.data();
  const float* HWY_RESTRICT offset = maps.offset.data();
  each_position<Value>(place, [&](int x, int y, Value* HWY_RESTRICT to) HWY_ATTR {
    const auto* HWY_RESTRICT from = values<Value>(place.inputs[0], x, y);
    for (int c = 0; c < channels; ++c) {
      to[c] = Value(float(from[c]) * factor[c] + offset[c]);
    }
  });
}

template <typename Value>
HWY_INLINE void store_values(const float* in, int count, std::byte* out, int step) {
  auto* to = reinterpret_cast<Value*>(out);
  for (int i = 0; i < count; ++i) {
    to[static_cast<std::ptrdiff_t>(i) * step] = Value(in[i]);
  }
}

template <typename Value>
HWY_INLINE void load_values(const std::byte* in, int step, int count, float* out) {
  const auto* from = reinterpret_cast<const Value*>(in);
  for (int i = 0; i < count; ++i) {
    out[i] = from[static_cast<std::ptrdiff_t>(i) * step];
  }
}

// As bytes, the nearest.
template <typename D>
HWY_INLINE void store_rounded(D d, hn::Vec<D> values, std::uint8_t* to) {
  const hn::Rebind<std::int32_t, D> whole;
  const hn::Rebind<std::uint8_t, D> narrow;
  const auto clamped = hn::Min(hn::Max(values, hn::Zero(d)), hn::Set(d, 255.0F));
  hn::StoreU(hn::DemoteTo(narrow, hn::ConvertTo(whole, hn::Add(clamped, hn::Set(d, 0.5F)))), narrow, to);
}

// sum(d, i, c) of `count` values as bytes; value i is of channel c.
template <typename Sum>
HWY_INLINE void each_byte(int count, int pitch, const Sum& sum, std::byte* out) {
  auto* to = reinterpret_cast<std::uint8_t*>(out);
  const auto each = [=](auto d) HWY_ATTR {
    for (int i = 0; i < count; i += pitch) {
      for (int c = 0; c < pitch; c += static_cast<int>(hn::Lanes(d))) {
        store_rounded(d, sum(d, i + c, c), to + i + c);
      }
    }
  };
  const hn::ScalableTag<float> d;
  pitch % static_cast<int>(hn::Lanes(d)) == 0 ? each(d) : each(hn::CappedTag<float, 1>());
}

void add_bytes(const StepPlace& place, const ByteMaps& maps) {
  const auto load = [](auto d, const std::uint8_t* from) HWY_ATTR {
    const hn::Rebind<std::int32_t, decltype(d)> whole;
    const hn::Rebind<std::uint8_t, decltype(d)> narrow;
    return hn::ConvertTo(d, hn::PromoteTo(whole, hn::LoadU(narrow, from)));
  };
  const float* f = maps.factor[0].data();
  const float* g = maps.factor[1].data();
  const float* offset = maps.offset.data();
  for (int y = place.part.y0; y < place.part.y1; ++y) {
    const auto* a = values<std::uint8_t>(place.inputs[0], place.part.x0, y);
    const auto* b = values<std::uint8_t>(place.inputs[1], place.part.x0, y);
    const auto sum = [=](auto d, int i, int c) HWY_ATTR {
      const auto second = hn::MulAdd(load(d, b + i), hn::LoadU(d, g + c), hn::LoadU(d, offset + c));
      return hn::MulAdd(load(d, a + i), hn::LoadU(d, f + c), second);
    };
    each_byte(place.part.width() * place.out.pitch, place.out.pitch, sum, place.out.at(place.part.x0, y));
  }
}

void round_to_bytes(const float* in, int positions, int pitch, const ByteMaps& maps, std::byte* out) {
  const float* f = maps.factor[0].data();
  const float* offset = maps.offset.data();
  const auto value = [=](auto d, int i, int c) HWY_ATTR {
    return hn::MulAdd(hn::LoadU(d, in + i), hn::LoadU(d, f + c), hn::LoadU(d, offset + c));
  };
  each_byte(positions * pitch, pitch, value, out);
}

HWY_INLINE void store_bytes(const float* in, int count, const Quantisation& like, std::byte* out, int step) {
  const float factor = 1 / like.scale[0];
  const float zero = like.zero;
  auto* to = reinterpret_cast<std::uint8_t*>(out);
  const auto store = [=](auto d, int i) HWY_ATTR {
    const auto value = hn::MulAdd(hn::LoadU(d, in + i), hn::Set(d, factor), hn::Set(d, zero));
    store_rounded(d, value, to + static_cast<std::ptrdiff_t>(i) * step);
  };
  const hn::ScalableTag<float> d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  int i = 0;
  for (; step == 1 && i + lanes <= count; i += lanes) {
    store(d, i);
  }
  for (; i < count; ++i) {
    store(hn::CappedTag<float, 1>(), i);  // one by one they are rounded alike
  }
}

HWY_INLINE void rearrange_bytes(const Op& op, const StepPlace& place) {
  op.kind == OpKind::kShuffle ? shuffle<std::uint8_t>(op, place) : unshuffle<std::uint8_t>(op, place);
}

void calculate_any(const Op& op, const StepPlace& place, const float* condition) {
  switch (place.out.element) {
    case Element::kFloat32:
      return calculate<float>(op, place, condition);
    case Element::kBfloat16:
      return calculate<Bfloat16>(op, place, condition);
    case Element::kByte:
      return rearrange_bytes(op, place);
  }
}
void sum_any(const TensorView& in, const Rect& part, double* sums) {
  in.is_wide() ? sum_channels<float>(in, part, sums) : sum_channels<Bfloat16>(in, part, sums);
}
void map_any(const StepPlace& place, const ChannelMaps& maps) {
  place.out.is_wide() ? map_channels<float>(place, maps) : map_channels<Bfloat16>(place, maps);
}
void store_any(const float* in, int count, const TensorView& like, std::byte* out, int step) {
  switch (like.element) {
    case Element::kFloat32:
      return store_values<float>(in, count, out, step);
    case Element::kBfloat16:
      return store_values<Bfloat16>(in, count, out, step);
    case Element::kByte:
      return store_bytes(in, count, *like.quantisation, out, step);
  }
}
void load_any(const TensorView& like, const std::byte* in, int step, int count, float* out) {
  like.is_wide() ? load_values<float>(in, step, count, out) : load_values<Bfloat16>(in, step, count, out);
}

}  // namespace nonlocal::network::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nonlocal::network {

HWY_EXPORT(calculate_any);
HWY_EXPORT(sum_any);
HWY_EXPORT(map_any);
HWY_EXPORT(add_bytes);
HWY_EXPORT(round_to_bytes);
HWY_EXPORT(store_any);
HWY_EXPORT(load_any);

void calculate_positions(const Op& op, const StepPlace& place, const float* condition) {
  HWY_DYNAMIC_DISPATCH(calculate_any)(op, place, condition);
}
void sum_channels(const TensorView& in, const Rect& part, double* sums) {
  HWY_DYNAMIC_DISPATCH(sum_any)(in, part, sums);
}
void map_channels(const StepPlace& place, const ChannelMaps& maps) {
  HWY_DYNAMIC_DISPATCH(map_any)(place, maps);
}
ByteMaps::ByteMaps(const std::vector<const Quantisation*>& in, const Quantisation& out, int pitch)
    : offset(static_cast<std::size_t>(pitch), out.zero) {
  for (std::size_t i = 0; i < in.size(); ++i) {
    factor[i].resize(static_cast<std::size_t>(pitch));
    for (std::size_t c = 0; c < out.scale.size(); ++c) {
      factor[i][c] = in[i]->scale[c] / out.scale[c];
      offset[c] -= factor[i][c] * in[i]->zero;
    }
  }
}
ByteMaps::ByteMaps(const Quantisation& out, int pitch) : offset(static_cast<std::size_t>(pitch), out.zero) {
  factor[0].resize(static_cast<std::size_t>(pitch));
  for (std::size_t c = 0; c < out.scale.size(); ++c) {
    factor[0][c] = 1 / out.scale[c];
  }
}
void add_bytes(const StepPlace& place, const ByteMaps& maps) { HWY_DYNAMIC_DISPATCH(add_bytes)(place, maps); }
void round_to_bytes(const float* in, int positions, int pitch, const ByteMaps& maps, std::byte* out) {
  HWY_DYNAMIC_DISPATCH(round_to_bytes)(in, positions, pitch, maps, out);
}
void store_values(const float* in, int count, const TensorView& like, std::byte* out, int step) {
  HWY_DYNAMIC_DISPATCH(store_any)(in, count, like, out, step);
}
void load_values(const TensorView& like, const std::byte* in, int step, int count, float* out) {
  HWY_DYNAMIC_DISPATCH(load_any)(like, in, step, count, out);
}

}  // namespace nonlocal::network
#endif
