// The mean of a frame and the one before, moved, as lib/network/temporal_mean.h writes it: double precision,
// one sample after another.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <vector>

namespace nonlocal::reference {

// Code values [channel][y][x].
struct MeanFrame {
  MeanFrame(int c, int w, int h)
      : channels(c), width(w), height(h), codes(static_cast<std::size_t>(c) * w * h) {}
  double& at(int c, int x, int y) { return codes[(static_cast<std::size_t>(c) * height + y) * width + x]; }
  // Beyond the frame its border.
  [[nodiscard]] double at(int c, int x, int y) const {
    return codes[(static_cast<std::size_t>(c) * height + std::clamp(y, 0, height - 1)) * width +
                 std::clamp(x, 0, width - 1)];
  }

  int channels, width, height;
  std::vector<double> codes;
};

// In samples.
struct MeanMotion {
  double x, y;
};

// Keys' cubic, a = -1/2.
inline double cubic(double t) {
  t = std::abs(t);
  return t < 1 ? 1.5 * t * t * t - 2.5 * t * t + 1 : t < 2 ? -0.5 * t * t * t + 2.5 * t * t - 4 * t + 2 : 0;
}

inline double moved(const MeanFrame& before, int c, double x, double y) {
  double sum = 0;
  for (int v = static_cast<int>(std::floor(y)) - 1; v <= std::floor(y) + 2; ++v) {
    for (int u = static_cast<int>(std::floor(x)) - 1; u <= std::floor(x) + 2; ++u) {
      sum += cubic(x - u) * cubic(y - v) * before.at(c, u, v);
    }
  }
  return std::clamp(sum, 0.0, 32767.0 / 128);
}

// `motion(x, y)`: of the sample there.
inline MeanFrame temporal_mean(const MeanFrame& now, const MeanFrame& before, double h,
                               const std::function<MeanMotion(int, int)>& motion) {
  MeanFrame from(now.channels, now.width, now.height);
  for (int c = 0; c < now.channels; ++c) {
    for (int y = 0; y < now.height; ++y) {
      for (int x = 0; x < now.width; ++x) {
        const MeanMotion m = motion(x, y);
        from.at(c, x, y) = moved(before, c, x + m.x, y + m.y);
      }
    }
  }
  const auto square = [&](int x, int y) {  // summed over channels
    x = std::clamp(x, 0, now.width - 1);
    y = std::clamp(y, 0, now.height - 1);
    double sum = 0;
    for (int c = 0; c < now.channels; ++c) {
      const double difference = std::as_const(now).at(c, x, y) - std::as_const(from).at(c, x, y);
      sum += difference * difference;
    }
    return sum;
  };
  const int cells = (now.width + 1) / 2;
  const int cell_rows = (now.height + 1) / 2;
  MeanFrame out(now.channels, now.width, now.height);
  for (int y = 0; y < now.height; ++y) {
    for (int x = 0; x < now.width; ++x) {
      const auto mean_square = [&](int reach) {  // of cells around this one
        double sum = 0;
        for (int row = y / 2 - reach; row <= y / 2 + reach; ++row) {
          for (int cell = x / 2 - reach; cell <= x / 2 + reach; ++cell) {
            const int u = 2 * std::clamp(cell, 0, cells - 1);
            const int v = 2 * std::clamp(row, 0, cell_rows - 1);
            sum += square(u, v) + square(u + 1, v) + square(u, v + 1) + square(u + 1, v + 1);
          }
        }
        return sum / (4 * (2 * reach + 1) * (2 * reach + 1) * now.channels);
      };
      const double w = std::exp(-std::max(mean_square(1), mean_square(0) / 2) / (h * h));
      for (int c = 0; c < now.channels; ++c) {
        out.at(c, x, y) = (now.at(c, x, y) + w * from.at(c, x, y)) / (1 + w);
      }
    }
  }
  return out;
}

}  // namespace nonlocal::reference
