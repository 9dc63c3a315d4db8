// Non-local means as the formula reads: double precision, every pair of patches compared anew, no tricks.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace nonlocal::reference {

// One plane of samples in 8-bit code values, whatever their bit depth: 10-bit 1023 is 255.75.
struct Picture {
  int width = 0;
  int height = 0;
  std::vector<double> sample;

  Picture(int w, int h) : width(w), height(h), sample(static_cast<std::size_t>(w) * h) {}
  double& at(int x, int y) { return sample[static_cast<std::size_t>(y) * width + x]; }
  double at(int x, int y) const { return sample[static_cast<std::size_t>(y) * width + x]; }
  // Mirrored beyond the borders, the border sample not repeated.
  double mirrored(int x, int y) const { return at(reflected_column(x), reflected_row(y)); }
  int reflected_column(int x) const { return reflect(x, width); }
  int reflected_row(int y) const { return reflect(y, height); }

 private:
  static int reflect(int i, int n) {
    while (i < 0 || i >= n) {
      i = n == 1 ? 0 : i < 0 ? -i : 2 * (n - 1) - i;
    }
    return i;
  }
};

struct Parameters {
  int patch_size;
  int search_size;
  double sigma;
  double h;
};

// d²: the mean squared difference of the patches around (x, y) and (x + dx, y + dy), over all planes.
inline double squared_distance(const std::vector<Picture>& planes, int x, int y, int dx, int dy,
                               int patch_size) {
  double sum = 0;
  const int r = patch_size / 2;
  for (const Picture& p : planes) {
    for (int j = -r; j <= r; ++j) {
      for (int i = -r; i <= r; ++i) {
        const double d = p.mirrored(x + i, y + j) - p.mirrored(x + dx + i, y + dy + j);
        sum += d * d;
      }
    }
  }
  return sum / (static_cast<double>(planes.size()) * patch_size * patch_size);
}

// The weight of the pixel at (x + dx, y + dy) in the average at (x, y).
inline double weight(const std::vector<Picture>& planes, int x, int y, int dx, int dy, const Parameters& p) {
  const double d2 = squared_distance(planes, x, y, dx, dy, p.patch_size);
  return std::exp(-std::fmax(d2 - 2 * p.sigma * p.sigma, 0) / (p.h * p.h));
}

// The same where the noise's variance is v sigma², `variance` of as many samples as the planes or half of
// them.
inline double weight(const std::vector<Picture>& planes, const Picture& variance, int x, int y, int dx,
                     int dy, const Parameters& p) {
  const Picture& first = planes[0];
  const auto v = [&](int i, int j) {
    const int column = first.reflected_column(i) / (variance.width < first.width ? 2 : 1);
    const int row = first.reflected_row(j) / (variance.height < first.height ? 2 : 1);
    return variance.at(column, row);
  };
  const double here = v(x, y);
  const double there = v(x + dx, y + dy);
  const double d2 = squared_distance(planes, x, y, dx, dy, p.patch_size);
  return std::exp(-std::fmax(d2 - (here + there) * p.sigma * p.sigma, 0) /
                  (p.h * p.h * std::sqrt(here * there)));
}

// The average at (x, y), a value for each plane.
inline std::vector<double> non_local_mean(const std::vector<Picture>& planes, int x, int y,
                                          const Parameters& p) {
  std::vector<double> sum(planes.size());
  double weights = 0;
  const int r = p.search_size / 2;
  for (int dy = -r; dy <= r; ++dy) {
    for (int dx = -r; dx <= r; ++dx) {
      const double w = weight(planes, x, y, dx, dy, p);
      weights += w;
      for (std::size_t c = 0; c < planes.size(); ++c) {
        sum[c] += w * planes[c].mirrored(x + dx, y + dy);
      }
    }
  }
  for (double& s : sum) {
    s /= weights;
  }
  return sum;
}

// The average at (x, y) of one plane whose noise differs.
inline double non_local_mean(const Picture& plane, const Picture& variance, int x, int y,
                             const Parameters& p) {
  double sum = 0;
  double weights = 0;
  const int r = p.search_size / 2;
  for (int dy = -r; dy <= r; ++dy) {
    for (int dx = -r; dx <= r; ++dx) {
      const double w = weight({plane}, variance, x, y, dx, dy, p);
      weights += w;
      sum += w * plane.mirrored(x + dx, y + dy);
    }
  }
  return sum / weights;
}

// The average at sample (x, y) of joint planes, with the weights of `planes`, which have column_step x
// row_step pixels a sample: that of (column_step x, row_step y) and those that lie at samples within its
// window.
inline std::vector<double> joint_mean(const std::vector<Picture>& planes, const std::vector<Picture>& joint,
                                      int x, int y, int column_step, int row_step, const Parameters& p) {
  std::vector<double> sum(joint.size());
  double weights = 0;
  const int r = p.search_size / 2;
  for (int dy = -r; dy <= r; ++dy) {
    for (int dx = -r; dx <= r; ++dx) {
      if (dx % column_step != 0 || dy % row_step != 0) {
        continue;
      }
      const double w = weight(planes, column_step * x, row_step * y, dx, dy, p);
      weights += w;
      for (std::size_t c = 0; c < joint.size(); ++c) {
        sum[c] += w * joint[c].mirrored(x + dx / column_step, y + dy / row_step);
      }
    }
  }
  for (double& s : sum) {
    s /= weights;
  }
  return sum;
}

}  // namespace nonlocal::reference
