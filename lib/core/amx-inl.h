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

// sum[i][j] += a[i][2 k] b[k][2 j] + a[i][2 k + 1] b[k][2 j + 1], all k.
template <int kSum, int kA, int kB>
HWY_INLINE void multiply() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kA), "i"(kB));
}

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

#endif

}  // namespace nonlocal::amx::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
