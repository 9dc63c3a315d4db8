#include "allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<int> count = 0;

[[maybe_unused]] void* counted(void* p) {
  ++count;
  return p != nullptr ? p : throw std::bad_alloc();
}

}  // namespace

namespace nonlocal::testing {

int allocations() { return count; }

}  // namespace nonlocal::testing

#ifndef NONLOCAL_SANITIZED
// Those of arrays and without exceptions are made of these.
void* operator new(std::size_t size) { return counted(std::malloc(size)); }
void* operator new(std::size_t size, std::align_val_t align) {
  const auto a = static_cast<std::size_t>(align);
  return counted(std::aligned_alloc(a, (size + a - 1) / a * a));
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
#endif
