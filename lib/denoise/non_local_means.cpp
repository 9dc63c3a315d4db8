#include "nonlocal/non_local_means.h"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/planes.h"
#include "nonlocal/error.h"

namespace nonlocal {
namespace {
int mirror(int i, int n) {
  if (n == 1) return 0;
  const int period = 2 * n - 2;
  i = ((i % period) + period) % period;
  return i < n ? i : period - i;
}
float load(const ConstPlane& p, int x, int y) {
  const std::byte* r = p.row(y);
  return p.bit_depth > 8 ? reinterpret_cast<const uint16_t*>(r)[x * p.step] >> p.shift : uint8_t(r[x * p.step]);
}
}  // namespace

double filter_h(const NonLocalMeansParameters& p) { return p.strength * 0.5 * p.sigma; }

struct NonLocalMeans::State {};
NonLocalMeans::NonLocalMeans() : state_(std::make_unique<State>()) {}
NonLocalMeans::~NonLocalMeans() = default;
NonLocalMeans::NonLocalMeans(NonLocalMeans&&) noexcept = default;
NonLocalMeans& NonLocalMeans::operator=(NonLocalMeans&&) noexcept = default;

// Plain version, replaced by the vectorised kernel.
void NonLocalMeans::filter(std::span<const ConstPlane> in, std::span<const Plane> out,
                           const NonLocalMeansParameters& q) {
  check_planes("NonLocalMeans", in, out, 4);
  const int w = in[0].width, h = in[0].height, P = q.patch_size / 2, R = q.search_size / 2, pad = P + R;
  const float scale = float(1 << (in[0].bit_depth - 8));
  const double hh = std::max(1e-9, filter_h(q) * filter_h(q));
  const int W = w + 2 * pad, H = h + 2 * pad;
  std::vector<std::vector<float>> img;
  for (auto& p : in) {
    auto& v = img.emplace_back(size_t(W) * H);
    for (int y = 0; y < H; ++y)
      for (int x = 0; x < W; ++x) v[size_t(y) * W + x] = load(p, mirror(x - pad, w), mirror(y - pad, h));
  }
#pragma omp parallel for num_threads(q.threads ? q.threads : omp_get_num_procs()) schedule(dynamic)
  for (int y = 0; y < h; ++y)
    for (int x = 0; x < w; ++x) {
      double sw = 0, s[4] = {};
      for (int dy = -R; dy <= R; ++dy)
        for (int dx = -R; dx <= R; ++dx) {
          float d = 0;
          for (auto& v : img)
            for (int j = -P; j <= P; ++j)
              for (int i = -P; i <= P; ++i) {
                const float e = v[size_t(y + pad + j) * W + x + pad + i] - v[size_t(y + dy + pad + j) * W + x + dx + pad + i];
                d += e * e;
              }
          d /= scale * scale * img.size() * q.patch_size * q.patch_size;
          const double wt = std::exp(-std::max(d - 2 * q.sigma * q.sigma, 0.0) / hh);
          sw += wt;
          for (size_t c = 0; c < img.size(); ++c) s[c] += wt * img[c][size_t(y + dy + pad) * W + x + dx + pad];
        }
      for (size_t c = 0; c < out.size(); ++c) {
        const auto v = int(std::lround(s[c] / sw));
        if (out[c].bit_depth > 8)
          reinterpret_cast<uint16_t*>(out[c].row(y))[x * out[c].step] = uint16_t(v << out[c].shift);
        else
          out[c].row(y)[x * out[c].step] = std::byte(v);
      }
    }
}
}  // namespace nonlocal
