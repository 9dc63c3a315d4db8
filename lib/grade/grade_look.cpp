#include "grade/grade_look.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <random>
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

// From coarse to fine: 33 x 17 places take 60 ms to bake on one core, with a filter of 16 tokens and 4 heads.
// A filter that does not know places has the first one.
constexpr Sampling kWithoutPlaces = {33, 1, 1};
constexpr Sampling kWithPlaces[] = {{17, 9, 5}, {17, 17, 9}, {33, 9, 5}, {17, 33, 17}};

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

  // Adds the changes to the levels.
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

using Levels = std::array<std::vector<float>, 3>;

// Where a level lies among the nodes of an axis.
struct Between {
  Between(double level, int n) {
    const double at = level * (n - 1) / 256;
    node = std::clamp(static_cast<int>(at), 0, n - 2);
    share = at - node;
  }
  int node;
  double share;  // of the next one
};

// The nodes that a colour is interpolated from, and their weights.
struct Tetrahedron {
  Tetrahedron(const std::array<double, 3>& level, int n) {
    std::array<std::pair<double, int>, 3> axes;
    for (int c = 0; c < 3; ++c) {
      const Between at(level[c], n);
      nodes[0][c] = at.node;
      axes[c] = {at.share, c};
    }
    std::sort(axes.rbegin(), axes.rend());
    weights[0] = 1 - axes[0].first;
    for (int i = 0; i < 3; ++i) {
      nodes[i + 1] = nodes[i];
      ++nodes[i + 1][axes[i].second];
      weights[i + 1] = axes[i].first - (i < 2 ? axes[i + 1].first : 0);
    }
  }
  std::array<std::array<int, 3>, 4> nodes;
  std::array<double, 4> weights;
};

// The places of the grid around one, and their weights.
struct Cell {
  Cell(double x, double y, const Sampling& s) {
    const double at[2] = {x * (s.columns - 1), y * (s.rows - 1)};
    column = std::min(static_cast<int>(at[0]), std::max(0, s.columns - 2));
    row = std::min(static_cast<int>(at[1]), std::max(0, s.rows - 2));
    const double u = at[0] - column;
    const double v = at[1] - row;
    weights = {(1 - u) * (1 - v), u * (1 - v), (1 - u) * v, u * v};
  }
  [[nodiscard]] int column_of(int corner) const { return column + corner % 2; }
  [[nodiscard]] int row_of(int corner) const { return row + corner / 2; }

  int column;
  int row;
  std::array<double, 4> weights;
};

// Random colours at random places: how far is what is interpolated from what the filter does there?
class Probes {
 public:
  Probes(Sampler& sampler, const ColourFormat& format, bool has_places)
      : sampler_(sampler), channels_(format.model == ColourModel::kGray ? 1 : 3) {
    std::mt19937 random(1);
    const auto uniform = [&random] { return static_cast<double>(random()) / 4294967296.0; };
    for (int i = 0; i < kPlaces; ++i) {
      Batch& batch = batches_.emplace_back();
      batch.x = has_places ? uniform() : 0.5;
      batch.y = has_places ? uniform() : 0.5;
      for (int k = 0; k < kColours; ++k) {
        const double grey = uniform();
        const bool is_gray = channels_ == 1;
        const std::array<double, 3> level =
            level_of(format, {grey, is_gray ? grey : uniform(), is_gray ? grey : uniform()});
        for (int c = 0; c < 3; ++c) {
          batch.level[c].push_back(static_cast<float>(level[c]));
        }
      }
      batch.change = changes(batch.level, batch.x, batch.y);
    }
  }

  // Root mean squares over all channels: of the finished lattices,
  [[nodiscard]] double error_of(const Lattices& l) const {
    return error([&](const Batch& b, Found& found) {
      const Cell cell(b.x, b.y, {l.n, l.columns, l.rows});
      for (int i = 0; i < kColours; ++i) {
        const Tetrahedron t(b.colour(i), l.n);
        for (int k = 0; k < 16 * channels_; ++k) {
          const int corner = k % 4;
          const int c = k / 16;
          const auto& [first, second, third] = t.nodes[k / 4 % 4];
          const double weight = cell.weights[corner] * t.weights[k / 4 % 4];
          if (cell.weights[corner] != 0) {  // else there may be no such place
            const float* lattice = l.at(cell.column_of(corner), cell.row_of(corner), c);
            found[c][i] += weight * lattice[(first * l.n + second) * l.n + third];
          }
        }
      }
    });
  }

  // of interpolation between places alone,
  double error_of_places(const Sampling& s) {
    return error([&](const Batch& b, Found& found) {
      const Cell cell(b.x, b.y, s);
      for (int corner = 0; corner < 4; ++corner) {
        const Levels change = changes(b.level, static_cast<double>(cell.column_of(corner)) / (s.columns - 1),
                                      static_cast<double>(cell.row_of(corner)) / (s.rows - 1));
        add(
            change, [&](int) { return cell.weights[corner]; }, found);
      }
    });
  }

  // and between colours alone.
  double error_of_colours(int n) {
    return error([&](const Batch& b, Found& found) {
      for (int k = 0; k < 4; ++k) {
        Levels level;
        std::vector<double> weights;
        for (int i = 0; i < kColours; ++i) {
          const Tetrahedron t(b.colour(i), n);
          weights.push_back(t.weights[k]);
          for (int axis = 0; axis < 3; ++axis) {
            level[axis].push_back(static_cast<float>(t.nodes[k][axis]) * 256 / static_cast<float>(n - 1));
          }
        }
        add(
            changes(level, b.x, b.y), [&](int i) { return weights[i]; }, found);
      }
    });
  }

 private:
  static constexpr int kPlaces = 64;
  static constexpr int kColours = 64;

  struct Batch {
    double x, y;  // 0 .. 1
    Levels level;
    Levels change;
    [[nodiscard]] std::array<double, 3> colour(int i) const {
      return {level[0][i], level[1][i], level[2][i]};
    }
  };

  static std::array<double, 3> level_of(const ColourFormat& format, const std::array<double, 3>& colour) {
    const grade::ColourSpace space = grade::colour_space(format);
    std::array<double, 3> level{};
    for (int c = 0; c < 3; ++c) {
      level[c] = grade::level_origin(format, c);
      for (int i = 0; i < 3; ++i) {
        level[c] += space.from_rgb[c][i] * colour[i];
      }
    }
    return level;
  }

  Levels changes(const Levels& level, double x, double y) {
    Levels change = level;
    sampler_.map({change[0].data(), change[1].data(), change[2].data()}, kColours, 2 * x - 1, 2 * y - 1);
    for (int c = 0; c < 3; ++c) {
      for (int i = 0; i < kColours; ++i) {
        change[c][i] -= level[c][i];
      }
    }
    return change;
  }

  using Found = std::array<std::array<double, kColours>, 3>;

  template <typename Weight>
  static void add(const Levels& change, const Weight& weight, Found& found) {
    for (int c = 0; c < 3; ++c) {
      for (int i = 0; i < kColours; ++i) {
        found[c][i] += weight(i) * change[c][i];
      }
    }
  }

  // `find` adds a batch's changes to zeros.
  template <typename Find>
  [[nodiscard]] double error(const Find& find) const {
    double squares = 0;
    for (const Batch& batch : batches_) {
      Found found{};
      find(batch, found);
      for (int c = 0; c < channels_; ++c) {
        for (int i = 0; i < kColours; ++i) {
          const double e = found[c][i] - batch.change[c][i];
          squares += e * e;
        }
      }
    }
    return std::sqrt(squares / (static_cast<double>(batches_.size()) * kColours * channels_));
  }

  Sampler& sampler_;
  int channels_;
  std::vector<Batch> batches_;
};

// The coarsest that is near enough, or the nearest.
Sampling choose(Probes& probes, double tolerance) {
  std::map<int, double> of_colours;
  std::map<std::pair<int, int>, double> of_places;
  Sampling best = kWithPlaces[0];
  double least = HUGE_VAL;
  for (const Sampling& s : kWithPlaces) {
    if (!of_colours.contains(s.n)) {
      of_colours[s.n] = probes.error_of_colours(s.n);
    }
    if (!of_places.contains({s.columns, s.rows})) {
      of_places[{s.columns, s.rows}] = probes.error_of_places(s);
    }
    const double error = std::hypot(of_colours[s.n], of_places[{s.columns, s.rows}]);
    if (error < least) {
      best = s;
      least = error;
    }
    if (least <= tolerance) {
      break;
    }
  }
  return best;
}

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
  Sampler sampler(GradeAccess::folded(filter), format, parameters.threads);
  Probes probes(sampler, format, filter.has_places());
  const Sampling s = filter.has_places() ? choose(probes, parameters.tolerance) : kWithoutPlaces;
  grade::BakedLook look{format, s.n, s.columns, s.rows, {}, 0, grade::next_serial()};
  look.change.allocate(std::size_t{3} * s.columns * s.rows * grade::lattice_stride(s.n));
  sampler.sample(s, look.change.data());
  look.error = probes.error_of(look.lattices());
  auto state = std::make_unique<const State>(State{std::move(look)});
  return std::shared_ptr<const GradeLook>(new GradeLook(std::move(state)));
}

const ColourFormat& GradeLook::format() const { return state_->look.format; }
int GradeLook::lattice_size() const { return state_->look.n; }
int GradeLook::columns() const { return state_->look.columns; }
int GradeLook::rows() const { return state_->look.rows; }
double GradeLook::error() const { return state_->look.error; }

}  // namespace nonlocal
