// Samples of a frame as rows of levels, and back. Included once for every instruction set.
#if defined(NONLOCAL_GRADE_FRAME_ROWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef NONLOCAL_GRADE_FRAME_ROWS_INL_H
#undef NONLOCAL_GRADE_FRAME_ROWS_INL_H
#else
#define NONLOCAL_GRADE_FRAME_ROWS_INL_H
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "grade/frame_job.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace nonlocal::grade::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;
using I = hn::RebindToSigned<F>;
using V = hn::Vec<F>;
using Bytes = hn::Rebind<std::uint8_t, F>;
constexpr int kFloatLanes = static_cast<int>(HWY_LANES(float));

// ------------------------------------------------------------------------------------------------ samples

template <typename Narrow>
HWY_INLINE V to_level(Narrow samples, int shift, const FloatScale& s) {
  const auto code = hn::ShiftRightSame(hn::PromoteTo(I(), samples), shift);
  return hn::MulAdd(hn::ConvertTo(F(), code), hn::Set(F(), s.by), hn::Set(F(), s.plus));
}

// Clamped as float: what overflows an integer must not wrap.
HWY_INLINE hn::Vec<I> to_code(V level, const FloatScale& s) {
  const V code = hn::MulAdd(level, hn::Set(F(), s.inverse), hn::Set(F(), s.inverse_plus));
  return hn::NearestInt(hn::Min(hn::Max(code, hn::Zero(F())), hn::Set(F(), s.most)));
}

template <typename T>
HWY_INLINE const T* samples_at(const ConstPlane& p, int x, int y) {
  return reinterpret_cast<const T*>(p.row(y)) + static_cast<ptrdiff_t>(x) * p.step;
}

// Samples x .. x + count - 1 of a row, all of them within it.
template <typename T>
HWY_INLINE void load_samples(const ConstPlane& p, int x, int y, int count, const FloatScale& s, float* to) {
  const T* from = samples_at<T>(p, x, y);
  const hn::Rebind<T, F> narrow;
  int i = 0;
  if (p.step == 1) {
    for (; i + kFloatLanes <= count; i += kFloatLanes) {
      hn::StoreU(to_level(hn::LoadU(narrow, from + i), p.shift, s), F(), to + i);
    }
  }
  HWY_ALIGN T some[kFloatLanes];
  for (; i < count; i += kFloatLanes) {
    const int n = std::min(kFloatLanes, count - i);
    for (int k = 0; k < n; ++k) {
      some[k] = from[static_cast<ptrdiff_t>(i + k) * p.step];
    }
    std::fill(some + n, some + kFloatLanes, T{0});
    hn::StoreU(to_level(hn::Load(narrow, some), p.shift, s), F(), to + i);
  }
}

HWY_INLINE void load_row(const ConstPlane& p, int x, int y, int count, const FloatScale& s, float* to) {
  if (p.bit_depth > 8) {
    load_samples<std::uint16_t>(p, x, y, count, s, to);
  } else {
    load_samples<std::uint8_t>(p, x, y, count, s, to);
  }
}

template <typename T>
HWY_INLINE void store_samples(const float* from, const Plane& p, int x, int y, int count,
                              const FloatScale& s) {
  T* to = reinterpret_cast<T*>(p.row(y)) + static_cast<ptrdiff_t>(x) * p.step;
  const hn::Rebind<T, F> narrow;
  const auto codes = [&](int i) HWY_ATTR {
    return hn::DemoteTo(narrow, hn::ShiftLeftSame(to_code(hn::LoadU(F(), from + i), s), p.shift));
  };
  int i = 0;
  if (p.step == 1) {
    for (; i + kFloatLanes <= count; i += kFloatLanes) {
      hn::StoreU(codes(i), narrow, to + i);
    }
  }
  HWY_ALIGN T some[kFloatLanes];
  for (; i < count; i += kFloatLanes) {
    hn::Store(codes(i), narrow, some);
    for (int k = 0; k < std::min(kFloatLanes, count - i); ++k) {
      to[static_cast<ptrdiff_t>(i + k) * p.step] = some[k];
    }
  }
}

HWY_INLINE void store_row(const float* from, const Plane& p, int x, int y, int count, const FloatScale& s) {
  if (p.bit_depth > 8) {
    store_samples<std::uint16_t>(from, p, x, y, count, s);
  } else {
    store_samples<std::uint8_t>(from, p, x, y, count, s);
  }
}

// ------------------------------------------------------------------------------------------- packed pixels

// Three planes of bytes that lie side by side in pixels of 3 or 4 bytes. A fourth byte is that after the
// three, wherever the pixel begins: of every pixel but the last one of a row it is there.
struct Packed {
  int step = 0;         // 0: they do not
  int first = 0;        // the plane that begins
  int channel[3] = {};  // which plane each of the bytes is
};

template <typename AnyPlane>
Packed packed(const std::array<AnyPlane, 3>& p, int planes) {
  Packed layout;
  const int step = p[0].step;
  if (planes != 3 || (step != 3 && step != 4)) {
    return layout;
  }
  for (int c = 1; c < 3; ++c) {
    layout.first = std::less<>()(p[c].data, p[layout.first].data) ? c : layout.first;
  }
  int seen = 0;
  for (int c = 0; c < 3; ++c) {
    const auto at = p[c].data - p[layout.first].data;
    if (p[c].bit_depth != 8 || p[c].step != step || p[c].stride != p[0].stride || at > 2 || p[c].shift != 0) {
      return layout;
    }
    layout.channel[at] = c;
    seen |= 1 << at;
  }
  layout.step = seen == 7 ? step : 0;
  return layout;
}

// The first pixels of a row in whole vectors; gives how many. The last pixel is not among them.
HWY_INLINE int load_packed(const Packed& layout, const FrameJob& job, int x, int y, int count,
                           const Rows& r) {
  const std::uint8_t* from = samples_at<std::uint8_t>(job.in[layout.first], x, y);
  int i = 0;
  for (; i + kFloatLanes < count; i += kFloatLanes) {
    const std::uint8_t* at = from + static_cast<ptrdiff_t>(i) * layout.step;
    hn::Vec<Bytes> v[4];
    if (layout.step == 4) {
      hn::LoadInterleaved4(Bytes(), at, v[0], v[1], v[2], v[3]);
    } else {
      hn::LoadInterleaved3(Bytes(), at, v[0], v[1], v[2]);
    }
    for (int k = 0; k < 3; ++k) {
      const int c = layout.channel[k];
      hn::StoreU(to_level(v[k], 0, job.in_scale[c]), F(), r.level[c] + i);
    }
  }
  return i;
}

HWY_INLINE int store_packed(const Packed& layout, const FrameJob& job, int x, int y, int count,
                            const Rows& r) {
  const Plane& p = job.out[layout.first];
  auto* to = reinterpret_cast<std::uint8_t*>(p.row(y)) + static_cast<ptrdiff_t>(x) * layout.step;
  int i = 0;
  for (; i + kFloatLanes < count; i += kFloatLanes) {
    std::uint8_t* at = to + static_cast<ptrdiff_t>(i) * layout.step;
    const auto code = [&](int k) HWY_ATTR {
      const int c = layout.channel[k];
      return hn::DemoteTo(Bytes(), to_code(hn::LoadU(F(), r.level[c] + i), job.out_scale[c]));
    };
    if (layout.step == 4) {
      hn::Vec<Bytes> v[4];
      hn::LoadInterleaved4(Bytes(), at, v[0], v[1], v[2], v[3]);
      hn::StoreInterleaved4(code(0), code(1), code(2), v[3], Bytes(), at);
    } else {
      hn::StoreInterleaved3(code(0), code(1), code(2), Bytes(), at);
    }
  }
  return i;
}

// ------------------------------------------------------------------------------------------------- chroma

// Samples x .. x + count - 1 of a row, the border's repeated beyond it.
HWY_INLINE void load_extended(const ConstPlane& p, int x, int y, int count, const FloatScale& s, float* to) {
  y = std::clamp(y, 0, p.height - 1);
  x = std::min(x, p.width - 1);  // what lies behind the border altogether is its sample
  const int left = std::clamp(-x, 0, count);
  const int right = std::clamp(p.width - x, left, count);
  load_row(p, x + left, y, right - left, s, to + left);
  std::fill(to, to + left, to[left]);
  std::fill(to + right, to + count, to[right - 1]);
}

// Chroma at luma's samples x .. x + count - 1 of row y; x is even where columns are halved.
HWY_INLINE void load_chroma(const FrameJob& job, int plane, int x, int y, int count, const Rows& r) {
  const ConstPlane& p = job.in[plane];
  const FloatScale& s = job.in_scale[plane];
  const ChromaTaps& vertical = job.y_taps[y & job.half_y];
  const int n = job.half_x == 0 ? count : count / 2 + 3;
  const int first = job.half_x == 0 ? x : x / 2 - 1;
  const int row = (y >> job.half_y) + vertical.offset;
  float* line = job.half_x == 0 ? r.level[plane] : r.line;
  load_extended(p, first, row, n, s, line);
  if (vertical.second != 0) {
    load_extended(p, first, row + 1, n, s, r.other_line);
    const V a = hn::Set(F(), vertical.first);
    const V b = hn::Set(F(), vertical.second);
    for (int i = 0; i < n; i += kFloatLanes) {
      const V lower = hn::Mul(b, hn::LoadU(F(), r.other_line + i));
      hn::StoreU(hn::MulAdd(a, hn::LoadU(F(), line + i), lower), F(), line + i);
    }
  }
  if (job.half_x == 0) {
    return;
  }
  const auto column = [&](const ChromaTaps& t, int i) HWY_ATTR {
    const float* at = line + 1 + t.offset + i;
    return hn::MulAdd(hn::Set(F(), t.first), hn::LoadU(F(), at),
                      hn::Mul(hn::Set(F(), t.second), hn::LoadU(F(), at + 1)));
  };
  for (int i = 0; 2 * i < count; i += kFloatLanes) {
    hn::StoreInterleaved2(column(job.x_taps[0], i), column(job.x_taps[1], i), F(), r.level[plane] + 2 * i);
  }
}

// The mean luma of the pixels that chroma's samples x .. x + count - 1 of row y belong to.
HWY_INLINE void load_mean_luma(const FrameJob& job, int x, int y, int count, const Rows& r) {
  const int n = count << job.half_x;
  float* line = job.half_x == 0 ? r.level[0] : r.line;
  load_extended(job.in[0], x << job.half_x, y << job.half_y, n, job.in_scale[0], line);
  const V half = hn::Set(F(), 0.5F);
  if (job.half_y != 0) {
    load_extended(job.in[0], x << job.half_x, 2 * y + 1, n, job.in_scale[0], r.other_line);
    for (int i = 0; i < n; i += kFloatLanes) {
      const V sum = hn::Add(hn::LoadU(F(), line + i), hn::LoadU(F(), r.other_line + i));
      hn::StoreU(hn::Mul(sum, half), F(), line + i);
    }
  }
  for (int i = 0; job.half_x != 0 && i < count; i += kFloatLanes) {
    V even;
    V odd;
    hn::LoadInterleaved2(F(), line + 2 * i, even, odd);
    hn::StoreU(hn::Mul(hn::Add(even, odd), half), F(), r.level[0] + i);
  }
}

// -------------------------------------------------------------------------------------------------- tiles

// The levels of pixels of one row, where all planes have one size.
HWY_INLINE void load_pixels(const Packed& layout, const FrameJob& job, int x, int y, int count,
                            const Rows& r) {
  const int read = layout.step == 0 ? 0 : load_packed(layout, job, x, y, count, r);
  for (int c = 0; c < job.planes; ++c) {
    load_row(job.in[c], x + read, y, count - read, job.in_scale[c], r.level[c] + read);
  }
}

template <class Mapper>
HWY_INLINE void grade_pixels(const FrameJob& job, const Tile& tile, Mapper& mapper, const Rows& r) {
  const Packed from = packed(job.in, job.planes);
  const Packed to = packed(job.out, job.planes);
  for (int y = tile.y; y < tile.y + tile.height; ++y) {
    for (int x = tile.x; x < tile.x + tile.width; x += Mapper::kChunk) {
      const int n = std::min(Mapper::kChunk, tile.x + tile.width - x);
      load_pixels(from, job, x, y, n, r);
      for (int c = job.planes; c < 3; ++c) {
        std::copy_n(r.level[0], n, r.level[c]);
      }
      mapper.map(r.level, n, x, y, job.planes == 1 ? Sampling::kLuma : Sampling::kAll);
      const int written = to.step == 0 ? 0 : store_packed(to, job, x, y, n, r);
      for (int c = 0; c < job.planes; ++c) {
        store_row(r.level[c] + written, job.out[c], x + written, y, n - written, job.out_scale[c]);
      }
    }
  }
}

template <class Mapper>
HWY_INLINE void grade_chroma_row(const FrameJob& job, const Tile& tile, int y, Mapper& mapper,
                                 const Rows& r) {
  const int first = tile.x >> job.half_x;
  const int end = (tile.x + tile.width + job.half_x) >> job.half_x;
  for (int x = first; x < end; x += Mapper::kChunk) {
    const int n = std::min(Mapper::kChunk, end - x);
    load_mean_luma(job, x, y, n, r);
    for (int c = 1; c < 3; ++c) {
      load_row(job.in[c], x, y, n, job.in_scale[c], r.level[c]);
    }
    mapper.map(r.level, n, x, y, Sampling::kChroma);
    for (int c = 1; c < 3; ++c) {
      store_row(r.level[c], job.out[c], x, y, n, job.out_scale[c]);
    }
  }
}

template <class Mapper>
HWY_INLINE void grade_luma_row(const FrameJob& job, const Tile& tile, int y, Mapper& mapper, const Rows& r) {
  for (int x = tile.x; x < tile.x + tile.width; x += Mapper::kChunk) {
    const int n = std::min(Mapper::kChunk, tile.x + tile.width - x);
    load_chroma(job, 1, x, y, n, r);
    load_chroma(job, 2, x, y, n, r);
    load_row(job.in[0], x, y, n, job.in_scale[0], r.level[0]);
    mapper.map(r.level, n, x, y, Sampling::kLuma);
    store_row(r.level[0], job.out[0], x, y, n, job.out_scale[0]);
  }
}

// Mapper has kChunk, even, and map(levels, count, x, y, sampling), which adds the change to the levels; x and
// y are chroma's own where it maps chroma.
template <class Mapper>
HWY_INLINE void grade_tile(const FrameJob& job, const Tile& tile, Mapper& mapper, const Rows& r) {
  if (!job.is_subsampled()) {
    grade_pixels(job, tile, mapper, r);
    return;
  }
  const int end = tile.y + tile.height;
  for (int y = tile.y; y < end; y += 1 << job.half_y) {
    // Before its luma is written over, where the frame is graded in place.
    grade_chroma_row(job, tile, y >> job.half_y, mapper, r);
    for (int row = y; row < std::min(end, y + (1 << job.half_y)); ++row) {
      grade_luma_row(job, tile, row, mapper, r);
    }
  }
}

}  // namespace nonlocal::grade::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
