// Intel's AMX: tiles of 16 rows of 64 bytes, and sums of products of pairs of bfloat16, 16 x 16 at once.
// Included once for every instruction set; NONLOCAL_AMX says whether this one can have it, has_tiles()
// whether the CPU does.
#if defined(NONLOCAL_CORE_AMX_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef NONLOCAL_CORE_AMX_INL_H
#undef NONLOCAL_CORE_AMX_INL_H
#else
#define NONLOCAL_CORE_AMX_INL_H
#endif

#include <cstddef>
#include <cstdint>

#include "core/cpu_features.h"
#include "hwy/highway.h"

#undef NONLOCAL_AMX
#if HWY_ARCH_X86_64 && HWY_TARGET <= HWY_AVX3
#define NONLOCAL_AMX 1
#else
#define NONLOCAL_AMX 0
#endif

HWY_BEFORE_NAMESPACE();
namespace nonlocal::amx::HWY_NAMESPACE {

#if NONLOCAL_AMX

// In assembler: compilers ask for a target that Highway 1.0.3 does not have. It reads and writes memory that
// the compiler does not see, hence the clobbers.
template <int kNumber>
HWY_INLINE void load(const void* from, ptrdiff_t row_bytes) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(row_bytes), "i"(kNumber) : "memory");
}

template <int kNumber>
HWY_INLINE void store(void* to, ptrdiff_t row_bytes) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(row_bytes), "i"(kNumber) : "memory");
}

template <int kNumber>
HWY_INLINE void clear() {
  asm volatile("tilezero %%tmm%c0" ::"i"(kNumber));
}

// Tiles: sum[i][j] += a[i][2 k] b[k][2 j] + a[i][2 k + 1] b[k][2 j + 1], all k.
template <int kSum, int kA, int kB>
HWY_INLINE void multiply_tiles() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kA), "i"(kB));
}

// As many tiles as code should use at once. Nanoseconds a product with its loads on a Sapphire Rapids at 2 GHz,
// while the core's other thread is busy: 16 with 5 tiles, 20 with 6, 22 with 7, 31 to 45 with all 8; while it
// is not, 7 to 9 with any.
constexpr int kMostTiles = 6;

// Gives this thread's tiles their shapes while it lives; there were none before.
class Shapes {
 public:
  Shapes() { configure(); }

  // With fewer pairs than 16 for the tiles `a`, rows of them, and `b`.
  Shapes(int pairs, int a, int b) {
    shapes_.row_bytes[a] = static_cast<uint16_t>(4 * pairs);
    shapes_.rows[b] = static_cast<uint8_t>(pairs);
    configure();
  }
  ~Shapes() { asm volatile("tilerelease"); }
  Shapes(const Shapes&) = delete;
  Shapes& operator=(const Shapes&) = delete;

 private:
  void configure() { asm volatile("ldtilecfg %0" ::"m"(shapes_)); }

  struct alignas(64) {  // as ldtilecfg reads it
    uint8_t palette = 1;
    uint8_t start_row = 0;
    uint8_t reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  } shapes_;
};

// Rows of cells, each a pair of bfloat16, times rows of lanes of them, in steps of 16 cells.
struct Product {
  const float* a;
  ptrdiff_t a_row_bytes;
  ptrdiff_t a_step;  // floats from a step's cells to the next one's
  const float* b;    // a row of lanes for each cell
  int lanes;         // a multiple of 32
  int steps;
};

// c = from, or 0, + a b, for one or two tiles of rows and two of lanes: sums are in tiles 0 to 3. One `b` is
// loaded twice rather than kept (see kMostTiles).
template <int kRowTiles>
HWY_INLINE void multiply_rows(const Product& p, const float* from, float* c) {
  const ptrdiff_t row_bytes = p.lanes * static_cast<ptrdiff_t>(sizeof(float));
  const ptrdiff_t next = ptrdiff_t{kTile} * p.lanes;
  if (from == nullptr) {
    clear<0>();
    clear<1>();
    if constexpr (kRowTiles == 2) {
      clear<2>();
      clear<3>();
    }
  } else {
    load<0>(from, row_bytes);
    load<1>(from + kTile, row_bytes);
    if constexpr (kRowTiles == 2) {
      load<2>(from + next, row_bytes);
      load<3>(from + next + kTile, row_bytes);
    }
  }
  const float* a = p.a;
  const float* b = p.b;
  for (int step = 0; step < p.steps; ++step) {
    load<4>(a, p.a_row_bytes);
    load<5>(b, row_bytes);
    multiply_tiles<0, 4, 5>();
    load<5>(b + kTile, row_bytes);
    multiply_tiles<1, 4, 5>();
    if constexpr (kRowTiles == 2) {
      load<4>(a + kTile * p.a_row_bytes / static_cast<ptrdiff_t>(sizeof(float)), p.a_row_bytes);
      multiply_tiles<3, 4, 5>();
      load<5>(b, row_bytes);
      multiply_tiles<2, 4, 5>();
    }
    a += p.a_step;
    b += next;
  }
  store<0>(c, row_bytes);
  store<1>(c + kTile, row_bytes);
  if constexpr (kRowTiles == 2) {
    store<2>(c + next, row_bytes);
    store<3>(c + next + kTile, row_bytes);
  }
}

// The same for `rows` of them, a multiple of 16, and all lanes. All tiles have their whole shape; `from` may
// be c.
inline void multiply(Product p, const float* from, float* c, int rows) {
  const float* const b = p.b;
  const auto place = [&p](auto* first, int r, int lane) {
    return first == nullptr ? nullptr : first + static_cast<ptrdiff_t>(r) * p.lanes + lane;
  };
  for (int r = 0; r < rows; r += 2 * kTile) {
    for (int lane = 0; lane < p.lanes; lane += 2 * kTile) {
      p.b = b + lane;
      if (r + kTile < rows) {
        multiply_rows<2>(p, place(from, r, lane), place(c, r, lane));
      } else {
        multiply_rows<1>(p, place(from, r, lane), place(c, r, lane));
      }
    }
    p.a += 2 * kTile * p.a_row_bytes / static_cast<ptrdiff_t>(sizeof(float));
  }
}

#endif

}  // namespace nonlocal::amx::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
