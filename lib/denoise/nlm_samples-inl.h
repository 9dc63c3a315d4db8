// Non-local means: a tile's samples on their way from the planes, and back. Included once for every
// instruction set.
#if defined(NONLOCAL_DENOISE_NLM_SAMPLES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef NONLOCAL_DENOISE_NLM_SAMPLES_INL_H
#undef NONLOCAL_DENOISE_NLM_SAMPLES_INL_H
#else
#define NONLOCAL_DENOISE_NLM_SAMPLES_INL_H
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "core/mirror.h"
#include "denoise/nlm_kernel-inl.h"
#include "denoise/nlm_tile.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace nonlocal::denoise::HWY_NAMESPACE {

template <typename T>
void read_row(const T* row, int step, int shift, int plane_width, int x, int count,
              uint16_t* HWY_RESTRICT line) {
  const int left = std::clamp(-x, 0, count);
  const int right = std::clamp(plane_width - x, left, count);
  for (int i = 0; i < left; ++i) {
    line[i] = static_cast<uint16_t>(row[mirror(x + i, plane_width) * step] >> shift);
  }
  const T* from = row + static_cast<ptrdiff_t>(x) * step;
  if (step == 1) {
    for (int i = left; i < right; ++i) {
      line[i] = static_cast<uint16_t>(from[i] >> shift);
    }
  } else {
    for (int i = left; i < right; ++i) {
      line[i] = static_cast<uint16_t>(from[static_cast<ptrdiff_t>(i) * step] >> shift);
    }
  }
  for (int i = right; i < count; ++i) {
    line[i] = static_cast<uint16_t>(row[mirror(x + i, plane_width) * step] >> shift);
  }
}

// A sample as the sums' integers: whole, or its upper and lower byte.
struct SampleForm {
  explicit SampleForm(const WeightLaw& law, int bit_depth)
      : split(law.split_values), low_bits(split ? 8 : 0), middle(split ? 128 : 1 << (bit_depth - 1)) {}
  bool split;
  int low_bits;
  int middle;  // subtracted
  // Upper bytes of less than 8 bits are off-centre, which costs nothing.
};

// Rows to columns: `from` is rows x columns, `to` columns x rows.
void transpose(const uint16_t* HWY_RESTRICT from, int rows, int columns, uint16_t* HWY_RESTRICT to) {
  if (rows < kTransposed || columns < kTransposed) {
    for (int r = 0; r < rows; ++r) {
      for (int c = 0; c < columns; ++c) {
        to[c * rows + r] = from[r * columns + c];
      }
    }
    return;
  }
  for (int y = 0; y < rows; y += kTransposed) {
    for (int x = 0; x < columns; x += kTransposed) {
      const int r = std::min(y, rows - kTransposed);  // the last blocks may overlap those before
      const int c = std::min(x, columns - kTransposed);
      transpose_block(from + r * columns + c, columns, to + c * rows + r, rows);
    }
  }
}

void guide_row(const uint16_t* HWY_RESTRICT slots, int count, const WeightLaw& law, int bit_depth,
               int16_t* HWY_RESTRICT guide) {
  const float scale = std::ldexp(law.guide_scale, 8 - bit_depth);
  const float middle = law.form == SquareForm::kWhole ? 0 : std::ldexp(255.0F, bit_depth - 9) * scale;
  const float least = law.form == SquareForm::kWhole ? 0 : -32767;
  const float most = law.form == SquareForm::kWhole ? 65535 : 32767;
  for (int i = 0; i < count; ++i) {
    const float g = std::clamp(static_cast<float>(slots[i]) * scale - middle, least, most);
    guide[i] = static_cast<int16_t>(static_cast<int>(g + 65536.5F) - 65536);
  }
}

void noise_row(const uint16_t* HWY_RESTRICT variance, int count, const WeightLaw& law,
               uint16_t* HWY_RESTRICT bias, uint16_t* HWY_RESTRICT root) {
  const float bias_of_one = law.noise_sum / 65535;
  const float least_bias = law.rounding_sum + 0.5F;
  const float step_of_one = law.step * 65535;
  for (int i = 0; i < count; ++i) {
    const float v = static_cast<float>(variance[i]) + 0.5F;  // never 0
    const int b = static_cast<int>(v * bias_of_one + least_bias);
    const int r = static_cast<int>(65536 * std::sqrt(step_of_one / v));
    bias[i] = static_cast<uint16_t>(std::min(b, 32767));
    root[i] = static_cast<uint16_t>(std::min(r, 65535));
  }
}

void value_row(const uint16_t* HWY_RESTRICT slots, int count, int shift, int mask, int middle,
               int16_t* HWY_RESTRICT value) {
  for (int i = 0; i < count; ++i) {
    value[i] = static_cast<int16_t>(((slots[i] >> shift) & mask) - middle);
  }
}

// The plane's row y, and its mirrored surroundings, from column x on to s.slots.
void load_row(const ConstPlane& p, int y, int x, int strip, TileScratch& s) {
  const std::byte* row = p.row(mirror(y, p.height));
  const int columns = strip * kStrips;
  if (p.bit_depth > 8) {
    read_row(reinterpret_cast<const uint16_t*>(row), p.step, p.shift, p.width, x, columns, s.line.data());
  } else {
    read_row(reinterpret_cast<const uint8_t*>(row), p.step, p.shift, p.width, x, columns, s.line.data());
  }
  transpose(s.line.data(), kStrips, strip, s.slots.data());
}

// A row of the noise's variance, and its mirrored surroundings, from column x on; of half as many values as
// the row has pixels each serves two.
void read_variance(const uint16_t* HWY_RESTRICT row, bool is_half, int width, int x, int count,
                   uint16_t* HWY_RESTRICT line) {
  const int left = std::clamp(-x, 0, count);
  const int right = std::clamp(width - x, left, count);
  const int halves = is_half ? 1 : 0;
  for (int i = 0; i < left; ++i) {
    line[i] = row[mirror(x + i, width) >> halves];
  }
  for (int i = left; i < right; ++i) {
    line[i] = row[(x + i) >> halves];
  }
  for (int i = right; i < count; ++i) {
    line[i] = row[mirror(x + i, width) >> halves];
  }
}

// Rows of the noise's variance as WeightLaw's bias and root.
void load_noise(const NlmFrame& frame, const Tile& tile, const TileLayout& l, int first, int last,
                TileScratch& s) {
  const ConstPlane& v = frame.variance;
  const ConstPlane& plane = frame.in[0];
  const int row_step = v.height < plane.height ? 2 : 1;
  const int count = l.strip * kStrips;
  for (int y = first; y < last; ++y) {
    const auto* row = reinterpret_cast<const uint16_t*>(v.row(mirror(tile.y + y, plane.height) / row_step));
    read_variance(row, v.width < plane.width, plane.width, tile.x - l.halo_strips * l.strip, count,
                  s.line.data());
    transpose(s.line.data(), kStrips, l.strip, s.slots.data());
    uint16_t* bias =
        s.noise.data() + static_cast<ptrdiff_t>(l.guides.at(y)) * l.guide_stride + slots(l.guide_lead);
    uint16_t* root = bias + static_cast<ptrdiff_t>(l.guides.size) * l.guide_stride;
    noise_row(s.slots.data(), count, frame.law, bias, root);
    extend(bias, l.strip, l.guide_lead);
    extend(root, l.strip, l.guide_lead);
  }
}

// Writes rows of s.slots as pairs of samples to be averaged.
class PairWriter {
 public:
  PairWriter(const Grid& grid, const WeightLaw& law, int bit_depth, TileScratch& s, GridScratch& to)
      : g_(grid), form_(law, bit_depth), s_(s), to_(to) {}

  // Row y of the tile.
  void write(int plane, int y) {
    write(plane, y, form_.low_bits, 0xFFFF);
    if (form_.split) {
      write(g_.planes + plane, y, 0, 0xFF);
    }
  }

 private:
  void write(int which, int y, int low_bits, int mask) {
    const int count = g_.strip * kStrips;
    const int extra = g_.lead + 1;
    int16_t* value = reinterpret_cast<int16_t*>(s_.slots.data()) + count + slots(extra);
    value_row(s_.slots.data(), count, low_bits, mask, form_.middle, value);
    extend(value, g_.strip, extra);
    int16_t* pairs = to_.pairs.data() +
                     (static_cast<ptrdiff_t>(which) * g_.samples.size + g_.samples.at(y)) * g_.pair_stride;
    for (int t = -g_.lead; t < g_.strip + g_.lead; ++t, pairs += 2 * kStrips) {
      interleave_pairs(value + slots(t), value + slots(t + 1), pairs);
    }
  }

  const Grid& g_;
  SampleForm form_;
  TileScratch& s_;
  GridScratch& to_;
};

// Rows first .. last - 1 of the tile, or above or below it.
void load_own(const NlmFrame& frame, const Tile& tile, const TileLayout& l, int first, int last,
              TileScratch& s) {
  const int bit_depth = frame.in[0].bit_depth;
  PairWriter pairs(l.own, frame.law, bit_depth, s, s.own);
  for (int c = 0; c < l.channels; ++c) {
    for (int y = first; y < last; ++y) {
      load_row(frame.in[c], tile.y + y, tile.x - l.halo_strips * l.strip, l.strip, s);
      const ptrdiff_t row = static_cast<ptrdiff_t>(c) * (l.guides.size + 1) + l.guides.at(y);
      int16_t* guide = s.guide.data() + row * l.guide_stride + slots(l.guide_lead);
      guide_row(s.slots.data(), l.strip * kStrips, frame.law, bit_depth, guide);
      extend(guide, l.strip, l.guide_lead);
      if (y >= -l.own.row_radius) {
        pairs.write(c, y);
      }
    }
  }
}

// The same of the joint planes' rows.
void load_joint(const NlmFrame& frame, const Tile& tile, const TileLayout& l, int first, int last,
                TileScratch& s) {
  const Grid& g = l.joint;
  const int x = tile.x / g.column_step - l.halo_strips * g.strip;
  PairWriter pairs(g, frame.law, frame.joint_in[0].bit_depth, s, s.joint);
  for (int c = 0; c < g.planes; ++c) {
    for (int y = first; y < last; ++y) {
      load_row(frame.joint_in[c], tile.y / g.row_step + y, x, g.strip, s);
      pairs.write(c, y);
    }
  }
}

// Where samples of a grid go, and in which form.
struct RowWriter {
  const Plane& plane;
  int x;
  int y;
  int width;

  void write(int row, const uint16_t* samples) const {
    std::byte* to = plane.row(y + row) + static_cast<ptrdiff_t>(x) * plane.step * plane.bytes_per_sample();
    if (plane.bit_depth > 8) {
      write(samples, reinterpret_cast<uint16_t*>(to));
    } else {
      write(samples, reinterpret_cast<uint8_t*>(to));
    }
  }

 private:
  template <typename T>
  void write(const uint16_t* HWY_RESTRICT samples, T* HWY_RESTRICT to) const {
    if (plane.step == 1) {
      for (int i = 0; i < width; ++i) {
        to[i] = static_cast<T>(samples[i] << plane.shift);
      }
    } else {
      for (int i = 0; i < width; ++i) {
        to[static_cast<ptrdiff_t>(i) * plane.step] = static_cast<T>(samples[i] << plane.shift);
      }
    }
  }
};

// What makes a mean a sample of the output.
struct MeanForm {
  float middle;  // added
  float scale;   // then multiplied by, where the output is of another depth
  float most;
};

void divide_row(const int32_t* HWY_RESTRICT sum_v, const int32_t* HWY_RESTRICT sum_w, int count,
                const MeanForm& form, uint16_t* HWY_RESTRICT mean) {
  for (int i = 0; i < count; ++i) {
    const float v = static_cast<float>(sum_v[i]) / static_cast<float>(sum_w[i]) + form.middle;
    mean[i] = static_cast<uint16_t>(static_cast<int>(std::clamp(v * form.scale + 0.5F, 0.0F, form.most)));
  }
}

// The same of upper and lower bytes.
void divide_split_row(const int32_t* HWY_RESTRICT sum_high, const int32_t* HWY_RESTRICT sum_low,
                      const int32_t* HWY_RESTRICT sum_w, int count, const MeanForm& form,
                      uint16_t* HWY_RESTRICT mean) {
  for (int i = 0; i < count; ++i) {
    const float w = static_cast<float>(sum_w[i]);
    const float high = static_cast<float>(sum_high[i]) / w + form.middle;
    const float low = static_cast<float>(sum_low[i]) / w + form.middle;
    const float v = high * 256 + low;
    mean[i] = static_cast<uint16_t>(static_cast<int>(std::clamp(v * form.scale + 0.5F, 0.0F, form.most)));
  }
}

// The averages of a grid's rows first .. last - 1 to the tile's part of `out`.
void store_averages(const NlmFrame& frame, std::span<const Plane> out, const Tile& tile, int halo_strips,
                    const Grid& g, const GridScratch& averages, int first, int last, TileScratch& s) {
  const int bit_depth = frame.in[0].bit_depth;
  const SampleForm form(frame.law, bit_depth);
  const MeanForm mean_form = {static_cast<float>(form.middle), std::ldexp(1.0F, out[0].bit_depth - bit_depth),
                              static_cast<float>((1 << out[0].bit_depth) - 1)};
  const int count = g.strip * kStrips;
  const int x = tile.x / g.column_step;
  const int y = tile.y / g.row_step;
  const int width = std::min(g.columns(tile.width), out[0].width - x);
  const int end = std::min(last, out[0].height - y);
  const auto sums = [&](int which, int row) {
    return averages.sum.data() +
           (static_cast<ptrdiff_t>(which) * g.sums.size + g.sums.at(row)) * g.sum_stride;
  };
  uint16_t* mean = s.line.data();
  uint16_t* ordered = s.slots.data();
  for (int c = 0; c < g.planes; ++c) {
    const RowWriter writer = {out[c], x, y, width};
    for (int row = first; row < end; ++row) {
      if (form.split) {
        divide_split_row(sums(1 + c, row), sums(1 + g.planes + c, row), sums(0, row), count, mean_form, mean);
      } else {
        divide_row(sums(1 + c, row), sums(0, row), count, mean_form, mean);
      }
      in_order(mean, count, ordered);
      transpose(ordered, g.strip, kStrips, s.line.data());
      writer.write(row, s.line.data() + halo_strips * g.strip);
    }
  }
}

}  // namespace nonlocal::denoise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
