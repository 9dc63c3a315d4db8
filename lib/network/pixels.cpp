#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "network/pixels.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.
#include <cstddef>
#include <cstring>

#include "hwy/highway.h"
#include "network/pixels.h"

HWY_BEFORE_NAMESPACE();
namespace nonlocal::network::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;
using I = hn::RebindToSigned<F>;
using U = hn::RebindToUnsigned<F>;

// Calls row(i) for each whole vector of `count` lanes, then rest(i) for each lane that is left.
template <typename Row, typename Rest>
HWY_INLINE void over(int count, const Row& row, const Rest& rest) {
  const int lanes = static_cast<int>(hn::Lanes(F()));
  int i = 0;
  for (; i + lanes <= count; i += lanes) {
    row(i);
  }
  for (; i < count; ++i) {
    rest(i);
  }
}

// Lane 0 of what a whole vector would make of `value`: the rest of a row is rounded as the row is.
template <typename Convert>
HWY_INLINE auto one(float value, const Convert& convert) {
  return hn::GetLane(convert(hn::Set(F(), value)));
}

HWY_INLINE int sample(const ConstPlane& plane, const std::byte* row, int i) {
  const std::byte* at = row + static_cast<std::ptrdiff_t>(i) * plane.step * plane.bytes_per_sample();
  if (plane.bit_depth == 8) {
    return std::to_integer<int>(*at) >> plane.shift;
  }
  std::uint16_t value;
  std::memcpy(&value, at, 2);
  return value >> plane.shift;
}

template <typename T>
HWY_INLINE void load_contiguous(const ConstPlane& plane, const std::byte* row, float scale, int count,
                                float* codes) {
  const hn::Rebind<T, F> narrow;
  over(
      count,
      [&](int i) HWY_ATTR {
        const auto v = hn::PromoteTo(I(), hn::LoadU(narrow, reinterpret_cast<const T*>(row) + i));
        hn::StoreU(hn::Mul(hn::ConvertTo(F(), hn::ShiftRightSame(v, plane.shift)), hn::Set(F(), scale)), F(),
                   codes + i);
      },
      [&](int i) HWY_ATTR { codes[i] = static_cast<float>(sample(plane, row, i)) * scale; });
}

void load_codes(const ConstPlane& plane, int x, int y, int count, float* codes) {
  const std::byte* row =
      plane.row(y) + static_cast<std::ptrdiff_t>(x) * plane.step * plane.bytes_per_sample();
  const float scale = 1.0F / static_cast<float>(1 << (plane.bit_depth - 8));
  if (plane.step == 1 && plane.bit_depth == 8) {
    load_contiguous<std::uint8_t>(plane, row, scale, count, codes);
  } else if (plane.step == 1) {
    load_contiguous<std::uint16_t>(plane, row, scale, count, codes);
  } else {
    for (int i = 0; i < count; ++i) {
      codes[i] = static_cast<float>(sample(plane, row, i)) * scale;
    }
  }
}

template <typename T>
HWY_INLINE void store(const float* codes, const Plane& plane, std::byte* row, int count) {
  const float scale = static_cast<float>(1 << (plane.bit_depth - 8));
  const float most = static_cast<float>((1 << plane.bit_depth) - 1);
  const auto samples = [&](auto v) HWY_ATTR {
    // Clamped as float: what overflows an integer must not wrap.
    v = hn::Min(hn::Max(hn::Mul(v, hn::Set(F(), scale)), hn::Zero(F())), hn::Set(F(), most));
    return hn::ShiftLeftSame(hn::NearestInt(v), plane.shift);
  };
  const auto store_one = [&](int i) HWY_ATTR {
    const T value = static_cast<T>(one(codes[i], samples));
    std::memcpy(row + static_cast<std::ptrdiff_t>(i) * plane.step * sizeof(T), &value, sizeof(T));
  };
  if (plane.step != 1) {
    for (int i = 0; i < count; ++i) {
      store_one(i);
    }
    return;
  }
  const hn::Rebind<T, F> narrow;
  over(
      count,
      [&](int i) HWY_ATTR {
        hn::StoreU(hn::DemoteTo(narrow, samples(hn::LoadU(F(), codes + i))), narrow,
                   reinterpret_cast<T*>(row) + i);
      },
      store_one);
}

void store_codes(const float* codes, const Plane& plane, int x, int y, int count) {
  std::byte* row = plane.row(y) + static_cast<std::ptrdiff_t>(x) * plane.step * plane.bytes_per_sample();
  if (plane.bit_depth == 8) {
    store<std::uint8_t>(codes, plane, row, count);
  } else {
    store<std::uint16_t>(codes, plane, row, count);
  }
}

template <typename T, typename D, typename Convert>
HWY_INLINE void convert_row(const float* in, int count, const Convert& convert, D d, T* out) {
  over(
      count, [&](int i) HWY_ATTR { hn::StoreU(convert(hn::LoadU(F(), in + i)), d, out + i); },
      [&](int i) HWY_ATTR { out[i] = one(in[i], convert); });
}

void convert_to_float(const float* in, float offset, float scale, int count, float* out) {
  convert_row(
      in, count,
      [=](auto v) HWY_ATTR { return hn::Mul(hn::Sub(v, hn::Set(F(), offset)), hn::Set(F(), scale)); }, F(),
      out);
}

// The upper half of the bits, rounded. Values are finite.
void convert_to_bfloat16(const float* in, float offset, float scale, int count, std::uint16_t* out) {
  const auto convert = [=](auto v) HWY_ATTR {
    const auto bits = hn::BitCast(U(), hn::Mul(hn::Sub(v, hn::Set(F(), offset)), hn::Set(F(), scale)));
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(U(), 1));
    const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(bits, hn::Set(U(), 0x7FFF)), odd));
    return hn::DemoteTo(hn::Rebind<std::uint16_t, F>(), hn::BitCast(I(), rounded));
  };
  convert_row(in, count, convert, hn::Rebind<std::uint16_t, F>(), out);
}

void convert_to_byte(const float* in, float offset, float scale, int count, std::uint8_t* out) {
  const auto convert = [=](auto v) HWY_ATTR {
    const auto value = hn::Mul(hn::Sub(v, hn::Set(F(), offset)), hn::Set(F(), scale));
    return hn::DemoteTo(hn::Rebind<std::uint8_t, F>(), hn::NearestInt(value));
  };
  convert_row(in, count, convert, hn::Rebind<std::uint8_t, F>(), out);
}

void add(const float* in, int count, float* sum) {
  over(
      count,
      [&](int i)
          HWY_ATTR { hn::StoreU(hn::Add(hn::LoadU(F(), sum + i), hn::LoadU(F(), in + i)), F(), sum + i); },
      [&](int i) HWY_ATTR { sum[i] += in[i]; });
}

void blend(const float* from, float share, int count, float* to) {
  const auto by = hn::Set(F(), share);
  over(
      count,
      [&](int i) HWY_ATTR {
        const auto start = hn::LoadU(F(), from + i);
        hn::StoreU(hn::Add(start, hn::Mul(by, hn::Sub(hn::LoadU(F(), to + i), start))), F(), to + i);
      },
      [&](int i) HWY_ATTR { to[i] = from[i] + share * (to[i] - from[i]); });
}

void add_residual(const float* residual, int count, float* codes) {
  const auto by = hn::Set(F(), 255.0F);
  over(
      count,
      [&](int i) HWY_ATTR {
        const auto r = hn::Mul(hn::LoadU(F(), residual + i), by);
        hn::StoreU(hn::Add(hn::LoadU(F(), codes + i), r), F(), codes + i);
      },
      [&](int i) HWY_ATTR { codes[i] += residual[i] * 255.0F; });
}

}  // namespace nonlocal::network::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nonlocal::network {

HWY_EXPORT(load_codes);
HWY_EXPORT(store_codes);
HWY_EXPORT(convert_to_float);
HWY_EXPORT(convert_to_bfloat16);
HWY_EXPORT(convert_to_byte);
HWY_EXPORT(add);
HWY_EXPORT(blend);
HWY_EXPORT(add_residual);

void load_codes(const ConstPlane& plane, int x, int y, int count, float* codes) {
  HWY_DYNAMIC_DISPATCH(load_codes)(plane, x, y, count, codes);
}
void store_codes(const float* codes, const Plane& plane, int x, int y, int count) {
  HWY_DYNAMIC_DISPATCH(store_codes)(codes, plane, x, y, count);
}
void convert(const float* in, float offset, float scale, int count, float* out) {
  HWY_DYNAMIC_DISPATCH(convert_to_float)(in, offset, scale, count, out);
}
void convert(const float* in, float offset, float scale, int count, std::uint16_t* out) {
  HWY_DYNAMIC_DISPATCH(convert_to_bfloat16)(in, offset, scale, count, out);
}
void convert(const float* in, float offset, float scale, int count, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(convert_to_byte)(in, offset, scale, count, out);
}
void add(const float* in, int count, float* sum) { HWY_DYNAMIC_DISPATCH(add)(in, count, sum); }
void blend(const float* from, float share, int count, float* to) {
  HWY_DYNAMIC_DISPATCH(blend)(from, share, count, to);
}
void add_residual(const float* residual, int count, float* codes) {
  HWY_DYNAMIC_DISPATCH(add_residual)(residual, count, codes);
}

}  // namespace nonlocal::network
#endif
