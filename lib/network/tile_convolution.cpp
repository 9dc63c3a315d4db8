#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "network/tile_convolution.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "core/amx-inl.h"
#include "core/cpu_features.h"
#include "core/rounding.h"
#include "hwy/highway.h"
#include "network/bfloat16.h"
#include "network/tile_convolution.h"

#ifndef NONLOCAL_TILE_CONVOLUTION_ONCE
#define NONLOCAL_TILE_CONVOLUTION_ONCE
namespace nonlocal::network {

constexpr int kMostKernel = 7;

// One convolution of a part of the plane.
struct TileJob {
  const TileWeights& weights;
  TensorView in, out;
  Rect needed;  // of the input: beyond it there are zeros
  Rect part;    // of the output
  int kernel, stride, padding;
  bool adds;        // to what is in `out`
  bool sums_first;  // before the activation
  float slope;      // of what is below 0: of a ReLU, a leaky one, or 1

  // Values of a strip's taps, those of a kernel's row for 16 pixels.
  [[nodiscard]] std::size_t strip_values() const {
    return static_cast<std::size_t>((kTile - 1) * stride + kernel) * in.pitch;
  }
};

using ConvolveInTiles = void (*)(const TileJob& job, std::byte* scratch);

}  // namespace nonlocal::network
#endif

HWY_BEFORE_NAMESPACE();
namespace nonlocal::network::HWY_NAMESPACE {

#if NONLOCAL_AMX
namespace hn = hwy::HWY_NAMESPACE;
namespace amx = nonlocal::amx::HWY_NAMESPACE;

// Tiles 0 to 2 are sums. See kMostTiles.
constexpr int kPixels = 3;
constexpr int kWeights = 4;
static_assert(kWeights < amx::kMostTiles);

// Where the taps of a kernel's rows, of those within the plane, lie for 16 pixels of a row of the output.
struct Strip {
  const std::uint16_t* taps;
  ptrdiff_t row_values;  // to the next row's
};

class TileConvolution {
 public:
  TileConvolution(const TileJob& job, std::byte* scratch)
      : job_(job),
        shapes_(job.weights.step / 2, kPixels, kWeights),
        pixel_bytes_(static_cast<ptrdiff_t>(job.stride) * static_cast<ptrdiff_t>(job.in.position_bytes())),
        scratch_(reinterpret_cast<std::uint16_t*>(scratch)) {}

  void run() {
    if (job_.adds) {
      job_.out.is_wide() ? run_as<true, true>() : run_as<true, false>();
    } else {
      job_.out.is_wide() ? run_as<false, true>() : run_as<false, false>();
    }
  }

 private:
  template <bool kAdds, bool kIsWide>
  void run_as() {
    const Rect& part = job_.part;
    for (int y = part.y0; y < part.y1; ++y) {
      const int above = y * job_.stride - job_.padding;
      first_row_ = std::max(0, job_.needed.y0 - above);
      rows_ = std::min(job_.kernel, job_.needed.y1 - above) - first_row_;
      std::byte* out = job_.out.at(part.x0, y);
      for (int x = part.x0; x < part.x1; x += kTile, out += kTile * job_.out.position_bytes()) {
        run_strip<kAdds, kIsWide>(strip_at(x, above + first_row_), std::min(kTile, part.x1 - x), out);
      }
    }
  }

  // Of rows from y.
  Strip strip_at(int x, int y) const {
    const Rect& needed = job_.needed;
    const int first = x * job_.stride - job_.padding;
    const int end = first + (kTile - 1) * job_.stride + job_.kernel;
    if (first >= needed.x0 && end <= needed.x1) {
      return {reinterpret_cast<const std::uint16_t*>(job_.in.at(first, y)),
              static_cast<ptrdiff_t>(job_.in.row_bytes() / sizeof(std::uint16_t))};
    }
    const auto row_values = static_cast<ptrdiff_t>(job_.strip_values());
    for (int row = 0; row < rows_; ++row) {
      copy_bordered(first, end, y + row, scratch_ + row * row_values);
    }
    return {scratch_, row_values};
  }

  // A row of taps with zeros beyond the plane.
  void copy_bordered(int first, int end, int y, std::uint16_t* to) const {
    const auto pitch = static_cast<std::size_t>(job_.in.pitch);
    const int from = std::min(std::max(first, job_.needed.x0), end);
    const int until = std::max(std::min(end, job_.needed.x1), from);
    std::uint16_t* at = std::fill_n(to, (from - first) * pitch, std::uint16_t{0});
    if (until > from) {
      std::memcpy(at, job_.in.at(from, y), (until - from) * pitch * sizeof(std::uint16_t));
    }
    std::fill_n(at + (until - from) * pitch, (end - until) * pitch, std::uint16_t{0});
  }

  // `out`: of the strip's first pixel.
  template <bool kAdds, bool kIsWide>
  HWY_INLINE void run_strip(const Strip& strip, int pixels, std::byte* out) {
    int tile = 0;
    const int tiles = job_.weights.out_tiles;
    for (; tile + 3 <= tiles && tile + 4 != tiles; tile += 3) {
      run_tiles<kAdds, kIsWide, 3>(strip, pixels, out, tile);
    }
    for (; tile + 2 <= tiles; tile += 2) {
      run_tiles<kAdds, kIsWide, 2>(strip, pixels, out, tile);
    }
    if (tile < tiles) {
      run_tiles<kAdds, kIsWide, 1>(strip, pixels, out, tile);
    }
  }

  template <bool kAdds, bool kIsWide, int kTiles>
  void run_tiles(const Strip& strip, int pixels, std::byte* out, int tile) {
    multiply<kTiles>(strip, tile);
    store<kTiles>();
    for (int i = 0; i < kTiles; ++i) {
      write<kAdds, kIsWide>(sums_[i], pixels, out, tile + i);
    }
  }

  // Sums of kTiles x 16 channels for the strip's pixels. What the loops need is copied: for all that the
  // compiler knows the assembler writes to members.
  template <int kTiles>
  HWY_INLINE void multiply(const Strip& strip, int tile) const {
    const TileWeights& w = job_.weights;
    load_bias<kTiles>(w.bias.data() + static_cast<ptrdiff_t>(tile) * kTile * kTile);
    const ptrdiff_t step = w.step;
    const ptrdiff_t last = w.row_values - step;
    const ptrdiff_t pixel_bytes = pixel_bytes_;
    const int steps = w.steps;
    const int rows = rows_;
    const ptrdiff_t row_values = strip.row_values;
    const ptrdiff_t piece = step * kTile;
    const ptrdiff_t tile_cells = job_.kernel * steps * piece;
    const std::uint16_t* cells = w.cells.data() + tile * tile_cells + first_row_ * steps * piece;
    const std::uint16_t* taps = strip.taps;
    for (int row = 0; row < rows; ++row, taps += row_values) {
      for (int i = 0; i < steps; ++i, cells += piece) {
        amx::load<kPixels>(taps + std::min(i * step, last), pixel_bytes);
        add<0>(cells);
        if constexpr (kTiles > 1) {
          add<1>(cells + tile_cells);
        }
        if constexpr (kTiles > 2) {
          add<2>(cells + 2 * tile_cells);
        }
      }
    }
  }

  template <int kTiles>
  static HWY_INLINE void load_bias(const float* bias) {
    constexpr ptrdiff_t kRow = kTile * sizeof(float);
    constexpr ptrdiff_t kNext = static_cast<ptrdiff_t>(kTile) * kTile;
    amx::load<0>(bias, kRow);
    if constexpr (kTiles > 1) {
      amx::load<1>(bias + kNext, kRow);
    }
    if constexpr (kTiles > 2) {
      amx::load<2>(bias + 2 * kNext, kRow);
    }
  }

  template <int kWhich>
  static HWY_INLINE void add(const std::uint16_t* cells) {
    amx::load<kWeights>(cells, kTile * 2 * sizeof(std::uint16_t));
    amx::multiply_tiles<kWhich, kPixels, kWeights>();
  }

  // All tiles before the first is read: what has just been stored is not there at once.
  template <int kTiles>
  HWY_INLINE void store() {
    constexpr ptrdiff_t kRow = kTile * sizeof(float);
    amx::store<0>(sums_[0], kRow);
    if constexpr (kTiles > 1) {
      amx::store<1>(sums_[1], kRow);
    }
    if constexpr (kTiles > 2) {
      amx::store<2>(sums_[2], kRow);
    }
  }

  using Floats = hn::FixedTag<float, kTile>;
  using V = hn::Vec<Floats>;
  static constexpr Floats kFloats{};

  // A tile's sums, with what follows them.
  template <bool kAdds, bool kIsWide>
  HWY_INLINE void write(const float* sums, int pixels, std::byte* out, int tile) const {
    const int channels = std::min(kTile, job_.out.pitch - tile * kTile);
    const auto mask = static_cast<__mmask16>((1u << channels) - 1);
    const auto step = static_cast<ptrdiff_t>(job_.out.position_bytes());
    const V slope = hn::Set(kFloats, job_.slope);
    const bool sums_first = job_.sums_first;
    std::byte* to = out + static_cast<ptrdiff_t>(tile) * kTile * (kIsWide ? 4 : 2);
    const float* const end = sums + pixels * kTile;
    for (; sums != end; sums += kTile, to += step) {
      V v = hn::Load(kFloats, sums);
      if constexpr (kAdds) {
        const V other = load_values<kIsWide>(to, mask);
        v = sums_first ? clipped(hn::Add(v, other), slope) : hn::Add(clipped(v, slope), other);
      } else {
        v = clipped(v, slope);
      }
      store_values<kIsWide>(v, mask, to);
    }
  }

  // Slopes are from 0 to 1; where it is 0, infinity times it would be no number.
  static HWY_INLINE V clipped(V v, V slope) {
    const auto is_kept = _mm512_cmp_ps_mask(slope.raw, _mm512_setzero_ps(), _CMP_NEQ_OQ);
    return V{_mm512_max_ps(v.raw, _mm512_maskz_mul_ps(is_kept, v.raw, slope.raw))};
  }

  template <bool kIsWide>
  static HWY_INLINE V load_values(const std::byte* from, __mmask16 mask) {
    if constexpr (kIsWide) {
      return V{_mm512_maskz_loadu_ps(mask, from)};
    } else {
      const __m256i upper = _mm256_maskz_loadu_epi16(mask, from);
      return V{_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(upper), 16))};
    }
  }

  // Rounded to nearest, half to even.
  template <bool kIsWide>
  static HWY_INLINE void store_values(V v, __mmask16 mask, std::byte* to) {
    if constexpr (kIsWide) {
      _mm512_mask_storeu_ps(to, mask, v.raw);
    } else {
      __m256i upper;
      asm("vcvtneps2bf16 %1, %0" : "=v"(upper) : "v"(v.raw));
      _mm256_mask_storeu_epi16(to, mask, upper);
    }
  }

  const TileJob& job_;
  amx::Shapes shapes_;
  ptrdiff_t pixel_bytes_;
  std::uint16_t* scratch_;  // a strip's taps
  int first_row_ = 0;       // of the kernel, that lies within the plane
  int rows_ = 0;            // of them
  HWY_ALIGN float sums_[3][kTile * kTile];
};

void convolve_in_tiles(const TileJob& job, std::byte* scratch) { TileConvolution(job, scratch).run(); }

#else

void convolve_in_tiles(const TileJob&, std::byte*) {}

#endif

ConvolveInTiles instruction_set_convolution() { return &convolve_in_tiles; }

}  // namespace nonlocal::network::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nonlocal::network {
namespace {

HWY_EXPORT(instruction_set_convolution);

bool is_clip(const Activation& a) {
  return a.kind == ActivationKind::kRelu ||
         (a.kind == ActivationKind::kLeakyRelu && a.slope >= 0 && a.slope <= 1);
}

}  // namespace

TileWeights::TileWeights(const Op& op, int in_channels, int in_pitch, int out_pitch)
    : row_values(op.kernel * in_pitch),
      steps(ceil_divide(row_values, 2 * kTile)),
      step(2 * ceil_divide(row_values, 2 * steps)),
      out_tiles(ceil_divide(out_pitch, kTile)) {
  const auto row_cells = static_cast<std::size_t>(steps) * static_cast<std::size_t>(step) * kTile;
  cells.allocate(static_cast<std::size_t>(out_tiles) * static_cast<std::size_t>(op.kernel) * row_cells);
  bias.allocate(static_cast<std::size_t>(out_tiles) * kTile * kTile);
  for (int o = 0; o < op.channels; ++o) {
    const auto tile = static_cast<std::size_t>(o / kTile);
    const auto lane = static_cast<std::size_t>(o % kTile);
    for (std::size_t i = 0; i < kTile; ++i) {
      bias.data()[(tile * kTile + i) * kTile + lane] =
          op.bias.empty() ? 0 : op.bias[static_cast<std::size_t>(o)];
    }
    for (int c = 0; c < in_channels; ++c) {
      for (int y = 0; y < op.kernel; ++y) {
        std::uint16_t* const row =
            cells.data() +
            (tile * static_cast<std::size_t>(op.kernel) + static_cast<std::size_t>(y)) * row_cells;
        for (int x = 0; x < op.kernel; ++x) {
          const int tap = ((o * in_channels + c) * op.kernel + y) * op.kernel + x;
          const auto value = static_cast<std::size_t>(cell_value(x * in_pitch + c));
          row[(value / 2 * kTile + lane) * 2 + value % 2] =
              Bfloat16(op.weight[static_cast<std::size_t>(tap)]).bits;
        }
      }
    }
  }
}

// The last piece ends with the row, and begins within the piece before: what both have is in that one.
int TileWeights::cell_value(int value) const {
  const int piece = std::min(value / step, steps - 1);
  return piece * step + value - std::min(piece * step, row_values - step);
}

bool is_tile_convolution(const Op& op, const StepPlace& place) {
  const auto is_known = [](const PostOp& post) { return post.is_sum || is_clip(post.activation); };
  return has_tiles() && place.inputs[0].element == Element::kBfloat16 && op.groups == 1 &&
         (op.dilation == 1 || op.kernel == 1) && op.kernel <= kMostKernel &&
         op.kernel * place.inputs[0].pitch % 2 == 0 && op.posts.size() <= 2 &&
         std::all_of(op.posts.begin(), op.posts.end(), is_known) &&
         (op.posts.size() < 2 || op.posts[0].is_sum != op.posts[1].is_sum);
}

Step tile_convolution_step(const Op& op, const TileWeights& weights, const StepPlace& place,
                           bool sum_is_there) {
  TileJob job{.weights = weights,
              .in = place.inputs[0],
              .out = place.out,
              .needed = needed(op, 0, place.part, place.planes[0]),
              .part = place.part,
              .kernel = op.kernel,
              .stride = op.stride,
              .padding = op.padding,
              .adds = op.has_sum(),
              .sums_first = op.has_sum() && op.posts[0].is_sum,
              .slope = 1};
  for (const PostOp& post : op.posts) {
    if (!post.is_sum) {
      job.slope = post.activation.kind == ActivationKind::kRelu ? 0 : post.activation.slope;
    }
  }
  const bool copies = op.has_sum() && !sum_is_there;
  const TensorView other = copies ? place.inputs[1] : TensorView{};
  const std::size_t bytes = static_cast<std::size_t>(op.kernel) * job.strip_values() * sizeof(std::uint16_t);
  // The one of today's instruction set, whichever is forced later.
  const ConvolveInTiles convolve = HWY_DYNAMIC_DISPATCH(instruction_set_convolution)();
  return {bytes, [job, copies, other, convolve](std::byte* scratch) {
            if (copies) {
              copy_part(other, job.part, job.out.at(job.part.x0, job.part.y0));
            }
            convolve(job, scratch);
            return true;
          }};
}

}  // namespace nonlocal::network
#endif
