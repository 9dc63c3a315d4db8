// Non-local means for scripts, which call it through ctypes (see estimate.py).
#include <exception>
#include <string>
#include <vector>

#include "nonlocal/non_local_means.h"

namespace {

nonlocal::NonLocalMeans& filter_of_this_thread() {
  thread_local nonlocal::NonLocalMeans filter;
  return filter;
}

}  // namespace

// Filters planes of 8 bits (one byte a sample) or up to 16 (two), tightly packed one after another, which
// share their weights. Gives null, or what went wrong, valid until this thread's next call.
extern "C" NONLOCAL_API const char* nonlocal_train_estimate(const void* in, void* out, int planes, int width,
                                                            int height, int bit_depth, int patch_size,
                                                            int search_size, double sigma, double strength,
                                                            int threads) {
  thread_local std::string message;
  const std::ptrdiff_t stride = static_cast<std::ptrdiff_t>(width) * (bit_depth > 8 ? 2 : 1);
  try {
    std::vector<nonlocal::ConstPlane> from;
    std::vector<nonlocal::Plane> to;
    for (int i = 0; i < planes; ++i) {
      const std::ptrdiff_t at = i * stride * height;
      from.push_back({static_cast<const std::byte*>(in) + at, width, height, stride, bit_depth});
      to.push_back({static_cast<std::byte*>(out) + at, width, height, stride, bit_depth});
    }
    filter_of_this_thread().filter(from, to, {patch_size, search_size, sigma, strength, threads});
    return nullptr;
  } catch (const std::exception& error) {
    message = error.what();
    return message.c_str();
  }
}

// The h at a strength of 1, in 8-bit code values.
extern "C" NONLOCAL_API double nonlocal_train_filter_h(int patch_size, int search_size, double sigma,
                                                       int planes) {
  return nonlocal::filter_h({.patch_size = patch_size, .search_size = search_size, .sigma = sigma}, planes);
}

// The strength and search size that chroma_parameters() gives chroma of 4:2:0 at luma's strength of 1.
extern "C" NONLOCAL_API void nonlocal_train_chroma(int search_size, double sigma, double* strength,
                                                   int* chroma_search_size) {
  const nonlocal::NonLocalMeansParameters chroma =
      nonlocal::chroma_parameters({.search_size = search_size, .sigma = sigma}, true);
  *strength = chroma.strength;
  *chroma_search_size = chroma.search_size;
}
