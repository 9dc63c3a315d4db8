// The picture goes on beyond its borders as in a mirror, the border sample not repeated: c b | a b c | b a.
#pragma once

namespace nonlocal {

constexpr int mirror(int i, int n) {
  if (i >= 0 && i < n) {
    return i;
  }
  if (n == 1) {
    return 0;
  }
  const int period = 2 * n - 2;
  i %= period;
  i = i < 0 ? i + period : i;
  return i < n ? i : period - i;
}

}  // namespace nonlocal
