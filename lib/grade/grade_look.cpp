#include "grade/grade_look.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/workers.h"
#include "grade/colour_space.h"
#include "grade/exact_kernel.h"
#include "grade/folded.h"
#include "nonlocal/error.h"

namespace nonlocal {
namespace {

using grade::ExactJob;
using grade::ExactKernels;
using grade::Lattices;

struct Sampling {
  int n;
  int columns;
  int rows;
};

// From coarse to fine. A filter that does not know places has the first one.
constexpr Sampling kWithoutPlaces = {33, 1, 1};
constexpr Sampling kWithPlaces[] = {{17, 9, 5}, {17, 17, 9}, {33, 9, 5}};

// Calculates with the filter in working memory of its own for each thread.
class Sampler {
 public:
  Sampler(const grade::Folded& folded, const ColourFormat& format, int threads)
      : kernels_(grade::exact_kernels()),
        job_(make_exact_job(folded, grade::colour_space(format))),
        frequencies_(folded.frequencies),
        threads_(thread_count(threads)),
        floats_(kernels_.scratch_floats(folded)) {
    scratch_.allocate(floats_ * static_cast<std::size_t>(threads_));
  }

  void sample(const Sampling& s, float* change) {
    const std::ptrdiff_t nodes = static_cast<std::ptrdiff_t>(s.n) * s.n * s.n;
    const int pieces = static_cast<int>((nodes + kPiece - 1) / kPiece);
    const auto place = [](int i, int count) { return count == 1 ? 0.0 : 2.0 * i / (count - 1) - 1; };
    Workers::shared().run(s.columns * s.rows * pieces, threads_, [&](int task, int slot) {
      const int cell = task / pieces;
      const int first = task % pieces * kPiece;
      const Place at(frequencies_, place(cell % s.columns, s.columns), place(cell / s.columns, s.rows));
      kernels_.sample(job_, s.n, first, static_cast<int>(std::min<std::ptrdiff_t>(kPiece, nodes - first)),
                      at.x, at.y, change + std::ptrdiff_t{3} * cell * grade::lattice_stride(s.n),
                      scratch(slot));
    });
  }

  // Changes become levels.
  void map(const std::array<float*, 3>& level, int count, double x, double y) {
    const Place at(frequencies_, x, y);
    kernels_.map(job_, level, count, at.x, at.y, scratch(0));
  }

 private:
  static constexpr int kPiece = 4096;

  struct Place {
    Place(int frequencies, double at_x, double at_y) {
      double values[2][2 * grade::kMostFrequencies];
      grade::place_features(frequencies, at_x, values[0]);
      grade::place_features(frequencies, at_y, values[1]);
      std::copy_n(values[0], 2 * frequencies, x);
      std::copy_n(values[1], 2 * frequencies, y);
    }
    float x[2 * grade::kMostFrequencies];
    float y[2 * grade::kMostFrequencies];
  };

  float* scratch(int slot) { return scratch_.data() + floats_ * static_cast<std::size_t>(slot); }

  ExactKernels kernels_;
  ExactJob job_;
  int frequencies_;
  int threads_;
  std::size_t floats_;
  AlignedBuffer<float> scratch_;
};

// Colours at places, and what the filter changes there.
class Probes {
 public:
  Probes(Sampler& sampler, const ColourFormat& format, bool has_places) : is_gray_(format.model == ColourModel::kGray) {
    const grade::ColourSpace space = grade::colour_space(format);
    const int channels = is_gray_ ? 1 : 3;
    std::mt19937 random(1);
    const auto uniform = [&random] { return static_cast<double>(random()) / 4294967296.0; };
    for (int place = 0; place < kPlaces; ++place) {
      const double x = has_places ? uniform() : 0.5;
      const double y = has_places ? uniform() : 0.5;
      std::vector<float> level[3];
      for (int i = 0; i < kColours; ++i) {
        const double grey = uniform();
        const double colour[3] = {grey, is_gray_ ? grey : uniform(), is_gray_ ? grey : uniform()};
        for (int c = 0; c < 3; ++c) {
          // Without chroma and black is where the colour's offset is.
          level[c].push_back(static_cast<float>(level_of(space, format, colour, c)));
        }
      }
      const std::vector<float> before[3] = {level[0], level[1], level[2]};
      sampler.map({level[0].data(), level[1].data(), level[2].data()}, kColours, 2 * x - 1, 2 * y - 1);
      for (int i = 0; i < kColours; ++i) {
        Probe& p = probes_.emplace_back();
        p.x = x;
        p.y = y;
        for (int c = 0; c < 3; ++c) {
          p.level[c] = before[c][i];
          p.change[c] = c < channels ? level[c][i] - before[c][i] : 0;
        }
      }
    }
  }

  // Root mean square over all channels.
  [[nodiscard]] double error_of(const Lattices& lattices) const {
    const int channels = is_gray_ ? 1 : 3;
    double squares = 0;
    for (const Probe& p : probes_) {
      for (int c = 0; c < channels; ++c) {
        const double e = interpolate(lattices, p, c) - p.change[c];
        squares += e * e;
      }
    }
    return std::sqrt(squares / static_cast<double>(probes_.size() * channels));
  }

 private:
  static constexpr int kPlaces = 64;
  static constexpr int kColours = 64;

  struct Probe {
    double x, y;  // 0 .. 1
    double level[3];
    double change[3];
  };

  static double level_of(const grade::ColourSpace& space, const ColourFormat& format, const double* colour,
                         int channel) {
    double level = grade::level_origin(format, channel);
    for (int i = 0; i < 3; ++i) {
      level += space.from_rgb[channel][i] * colour[i];
    }
    return level;
  }

  static double interpolate(const Lattices& l, const Probe& p, int channel) {
    const double gx = p.x * (l.columns - 1);
    const double gy = p.y * (l.rows - 1);
    const int column = std::min(static_cast<int>(gx), std::max(0, l.columns - 2));
    const int row = std::min(static_cast<int>(gy), std::max(0, l.rows - 2));
    const auto at = [&](int dx, int dy) {
      return tetrahedral(l.at(std::min(column + dx, l.columns - 1), std::min(row + dy, l.rows - 1), channel),
                         l.n, p.level);
    };
    const double u = gx - column;
    const double v = gy - row;
    return (1 - v) * ((1 - u) * at(0, 0) + u * at(1, 0)) + v * ((1 - u) * at(0, 1) + u * at(1, 1));
  }

  static double tetrahedral(const float* lattice, int n, const double* level) {
    std::ptrdiff_t node = 0;
    std::array<std::pair<double, std::ptrdiff_t>, 3> axes;  // fraction, nodes from one to the next
    for (int c = 0; c < 3; ++c) {
      const double at = level[c] * (n - 1) / 256;
      const int whole = std::clamp(static_cast<int>(at), 0, n - 2);
      node = node * n + whole;
      axes[c] = {at - whole, c == 0 ? n * n : c == 1 ? n : 1};
    }
    std::sort(axes.rbegin(), axes.rend());
    double sum = (1 - axes[0].first) * lattice[node];
    for (int i = 0; i < 3; ++i) {
      node += axes[i].second;
      sum += (axes[i].first - (i < 2 ? axes[i + 1].first : 0)) * lattice[node];
    }
    return sum;
  }

  bool is_gray_;
  std::vector<Probe> probes_;
};

}  // namespace

GradeLook::GradeLook(std::unique_ptr<const State> state) : state_(std::move(state)) {}
GradeLook::~GradeLook() = default;

std::shared_ptr<const GradeLook> GradeLook::bake(const CrossAttentionFilter& filter,
                                                 const ColourFormat& format,
                                                 const GradeLookParameters& parameters) {
  if (!(parameters.tolerance >= 0.02 && parameters.tolerance <= 10)) {
    throw InvalidArgument("GradeLook: expected a tolerance of 0.02 to 10, got " +
                          std::to_string(parameters.tolerance));
  }
  grade::check_threads("GradeLook", parameters.threads);
  const bool has_places = filter.has_places();
  Sampler sampler(GradeAccess::folded(filter), format, parameters.threads);
  const Probes probes(sampler, format, has_places);
  const std::span<const Sampling> samplings =
      has_places ? std::span(kWithPlaces) : std::span(&kWithoutPlaces, 1);
  std::optional<grade::BakedLook> best;
  for (const Sampling& s : samplings) {
    grade::BakedLook look{format, s.n, s.columns, s.rows, {}, 0, grade::next_serial()};
    look.change.allocate(std::size_t{3} * s.columns * s.rows * grade::lattice_stride(s.n));
    sampler.sample(s, look.change.data());
    look.error = probes.error_of(look.lattices());
    if (!best || look.error < best->error) {
      best = std::move(look);
    }
    if (best->error <= parameters.tolerance) {
      break;
    }
  }
  auto state = std::make_unique<const State>(State{std::move(*best)});
  return std::shared_ptr<const GradeLook>(new GradeLook(std::move(state)));
}

const ColourFormat& GradeLook::format() const { return state_->look.format; }
int GradeLook::lattice_size() const { return state_->look.n; }
int GradeLook::columns() const { return state_->look.columns; }
int GradeLook::rows() const { return state_->look.rows; }
double GradeLook::error() const { return state_->look.error; }

}  // namespace nonlocal
