// Memory for vector loads: aligned to 64 bytes, zeroed, of a size set once.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>

namespace nonlocal {

template <typename T>
class AlignedBuffer {
 public:
  void allocate(std::size_t count) {
    allocate_unset(count);
    std::memset(data_.get(), 0, bytes(count));
  }
  // The same, holding anything: for what is written by several threads, each of which then brings its pages
  // in.
  void allocate_unset(std::size_t count) {
    data_.reset(static_cast<T*>(::operator new(bytes(count), std::align_val_t(kAlignment))));
    size_ = count;
  }
  [[nodiscard]] T* data() { return data_.get(); }
  [[nodiscard]] const T* data() const { return data_.get(); }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t kAlignment = 64;
  static std::size_t bytes(std::size_t count) {
    return (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
  }
  struct Free {
    void operator()(T* p) const { ::operator delete(p, std::align_val_t(kAlignment)); }
  };
  std::unique_ptr<T, Free> data_;
  std::size_t size_ = 0;
};

}  // namespace nonlocal
