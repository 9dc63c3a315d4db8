// Non-local means for scripts, which call it through ctypes (see estimate.py).
#include <exception>
#include <string>

#include "nonlocal/non_local_means.h"

namespace {

nonlocal::NonLocalMeans& filter_of_this_thread() {
  thread_local nonlocal::NonLocalMeans filter;
  return filter;
}

}  // namespace

// Filters one tightly packed plane of 8 bits (one byte a sample) or up to 16 (two). Gives null, or what went
// wrong, valid until this thread's next call.
extern "C" NONLOCAL_API const char* nonlocal_train_estimate(const void* in, void* out, int width, int height,
                                                            int bit_depth, int patch_size, int search_size,
                                                            double sigma, double strength, int threads) {
  thread_local std::string message;
  const std::ptrdiff_t stride = static_cast<std::ptrdiff_t>(width) * (bit_depth > 8 ? 2 : 1);
  const nonlocal::ConstPlane from{static_cast<const std::byte*>(in), width, height, stride, bit_depth};
  const nonlocal::Plane to{static_cast<std::byte*>(out), width, height, stride, bit_depth};
  try {
    filter_of_this_thread().filter({&from, 1}, {&to, 1}, {patch_size, search_size, sigma, strength, threads});
    return nullptr;
  } catch (const std::exception& error) {
    message = error.what();
    return message.c_str();
  }
}
