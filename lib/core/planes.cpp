#include "core/planes.h"

#include <algorithm>
#include <functional>
#include <string>

#include "nonlocal/error.h"

namespace nonlocal {
namespace {

struct Extent {
  explicit Extent(const ConstPlane& p) {
    const std::byte* last = p.row(p.height - 1);
    begin = std::min(p.data, last);
    end = std::max(p.data, last) +
          (static_cast<std::ptrdiff_t>(p.width - 1) * p.step + 1) * p.bytes_per_sample();
  }
  const std::byte* begin;
  const std::byte* end;
};

}  // namespace

std::string described(const ConstPlane& p) {
  return std::to_string(p.width) + "x" + std::to_string(p.height) + " of " + std::to_string(p.bit_depth) +
         " bits";
}

bool is_all_or_half(int size, int whole) {
  return size == whole || size == whole / 2 || size == (whole + 1) / 2;
}

bool overlap(const ConstPlane& a, const ConstPlane& b) {
  const Extent first(a);
  const Extent second(b);
  const std::less<> before;  // of pointers into different memory, too
  return before(first.begin, second.end) && before(second.begin, first.end);
}

void check_plane(const char* filter, const ConstPlane& p) {
  const auto name = [filter] { return std::string(filter) + ": "; };  // allocates: for errors alone
  if (p.data == nullptr) {
    throw InvalidArgument(name() + "a plane has no data");
  }
  if (p.width < 1 || p.height < 1 || p.width > 32768 || p.height > 32768) {
    throw InvalidArgument(name() + "expected a plane of 1x1 to 32768x32768 samples, got " + described(p));
  }
  if (p.bit_depth < 8 || p.bit_depth > 16 || p.shift < 0 ||
      p.shift + p.bit_depth > 8 * p.bytes_per_sample()) {
    throw InvalidArgument(name() + "expected samples of 8 to 16 bits, got " + std::to_string(p.bit_depth) +
                          " bits shifted by " + std::to_string(p.shift));
  }
  if (p.step < 1) {
    throw InvalidArgument(name() + "expected a step of 1 or more samples, got " + std::to_string(p.step));
  }
}

void check_planes(const char* filter, std::span<const ConstPlane> in, std::span<const Plane> out, int most) {
  const auto name = [filter] { return std::string(filter) + ": "; };  // allocates: for errors alone
  if (in.empty() || in.size() > static_cast<std::size_t>(most) || in.size() != out.size()) {
    throw InvalidArgument(name() + "expected 1 to " + std::to_string(most) +
                          " planes and as many for the output, got " + std::to_string(in.size()) + " and " +
                          std::to_string(out.size()));
  }
  const auto check_like_first = [&](const ConstPlane& p, int bit_depth) {
    check_plane(filter, p);
    if (p.width != in[0].width || p.height != in[0].height || p.bit_depth != bit_depth) {
      throw InvalidArgument(name() + "expected every plane to be " + described(in[0]) +
                            " like the first, got " + described(p));
    }
  };
  for (const ConstPlane& p : in) {
    check_like_first(p, in[0].bit_depth);
  }
  for (const Plane& p : out) {
    check_like_first(p, out[0].bit_depth);
  }
}

}  // namespace nonlocal
