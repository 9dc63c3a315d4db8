#include "grade/grade_look.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/rounding.h"
#include "core/workers.h"
#include "grade/colour_space.h"
#include "grade/exact_kernel.h"
#include "grade/folded.h"
#include "grade/place_basis.h"
#include "nonlocal/error.h"

namespace nonlocal {
namespace {

using grade::ExactJob;
using grade::ExactKernels;
using grade::Lattices;
using grade::PlaceBasis;

struct Sampling {
  int n;
  int columns;
  int rows;
  [[nodiscard]] int places() const { return columns * rows; }
};

// A filter that does not know places has the first one, and what hardly depends on them. Frames take longer
// from one to the next; what they hold bounds colours where places are many.
constexpr Sampling kWithoutPlaces = {33, 1, 1};
constexpr Sampling kWithPlaces[] = {kWithoutPlaces, {33, 9, 5}, {25, 17, 9}, {17, 33, 17}};
constexpr Sampling kFinest = kWithPlaces[3];  // its places include those of all others

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

  // The changes at the nodes of a lattice of n x n x n colours, at some places of a grid one after another.
  void sample(int n, const Sampling& grid, const std::vector<int>& places, float* change) {
    const std::ptrdiff_t nodes = static_cast<std::ptrdiff_t>(n) * n * n;
    const int pieces = static_cast<int>((nodes + kPiece - 1) / kPiece);
    Workers::shared().run(static_cast<int>(places.size()) * pieces, threads_, [&](int task, int slot) {
      const int first = task % pieces * kPiece;
      const Place at(frequencies_, grid, places[task / pieces]);
      kernels_.sample(job_, n, first, static_cast<int>(std::min<std::ptrdiff_t>(kPiece, nodes - first)), at.x,
                      at.y, change + std::ptrdiff_t{3} * (task / pieces) * grade::lattice_stride(n),
                      scratch(slot));
    });
  }

  // Adds the changes to levels: map(i, add) for i below `count`, several at a time, calls
  // add(levels, colours, x, y), x and y from 0 to 1, as often as it likes.
  template <typename Map>
  void map(int count, const Map& map) {
    Workers::shared().run(count, threads_, [&](int i, int slot) {
      map(i, [&](const std::array<float*, 3>& level, int colours, double x, double y) {
        const Place at(frequencies_, 2 * x - 1, 2 * y - 1);
        kernels_.map(job_, level, colours, at.x, at.y, scratch(slot));
      });
    });
  }

 private:
  static constexpr int kPiece = 4096;

  struct Place {
    Place(int frequencies, const Sampling& grid, int i)
        : Place(frequencies, along(i % grid.columns, grid.columns), along(i / grid.columns, grid.rows)) {}
    Place(int frequencies, double at_x, double at_y) {
      double values[2][2 * grade::kMostFrequencies];
      grade::place_features(frequencies, at_x, values[0]);
      grade::place_features(frequencies, at_y, values[1]);
      std::copy_n(values[0], 2 * frequencies, x);
      std::copy_n(values[1], 2 * frequencies, y);
    }
    static double along(int i, int count) { return count == 1 ? 0.0 : 2.0 * i / (count - 1) - 1; }
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

// Where a place of a grid is on the finest one.
int on_finest(const Sampling& s, int column, int row) {
  const auto step = [](int finest, int places) { return (finest - 1) / (places - 1); };
  return row * step(kFinest.rows, s.rows) * kFinest.columns + column * step(kFinest.columns, s.columns);
}

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

// Changes of colours: of each channel one after another.
struct Colours {
  Levels level;
  Levels change;
  [[nodiscard]] std::array<double, 3> colour(int i) const { return {level[0][i], level[1][i], level[2][i]}; }
};

// How far is what is interpolated from what the filter does? Root mean squares over all channels, at random
// colours.
class Probes {
 public:
  Probes(Sampler& sampler, const ColourFormat& format, bool has_places)
      : sampler_(sampler), channels_(format.model == ColourModel::kGray ? 1 : 3), random_(1) {
    batches_.resize(kPlaces);
    for (Batch& batch : batches_) {
      batch.x = has_places ? uniform() : 0.5;
      batch.y = has_places ? uniform() : 0.5;
      batch.level = random_levels(format);
    }
    sampler_.map(kPlaces, [&](int i, const auto& add) {
      Batch& b = batches_[i];
      b.change = changes(b.level, b.x, b.y, add);
    });
    if (has_places) {
      sample_grid(random_levels(format));
    }
  }

  // Of the finished lattices.
  [[nodiscard]] double error_of(const Lattices& l) const {
    return mean_root(
        [&](int batch, const auto&) {
          const Batch& b = batches_[batch];
          const Cell cell(b.x, b.y, {l.n, l.columns, l.rows});
          Found found{};
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
          return squares_of(b, found);
        },
        kPlaces);
  }

  // Of interpolation between colours alone.
  [[nodiscard]] double error_of_colours(int n) const {
    return mean_root(
        [&](int batch, const auto& add) {
          const Batch& b = batches_[batch];
          Found found{};
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
            const Levels change = changes(level, b.x, b.y, add);
            for (int c = 0; c < 3; ++c) {
              for (int i = 0; i < kColours; ++i) {
                found[c][i] += weights[i] * change[c][i];
              }
            }
          }
          return squares_of(b, found);
        },
        kPlacesOfColours);
  }

  // Of interpolation between places alone, at those of the finest grid; of these, which have none between
  // them, a third of what the grid before has (a quarter where all is smooth).
  [[nodiscard]] double error_of_places(const Sampling& s) const {
    if (s.columns == kFinest.columns) {
      return error_of_places({0, (s.columns + 1) / 2, (s.rows + 1) / 2}) / 3;
    }
    const std::vector<double> mean = s.places() == 1 ? mean_of_grid() : std::vector<double>();
    double squares = 0;
    for (int p = 0; p < kFinest.places(); ++p) {
      const Cell cell(static_cast<double>(p % kFinest.columns) / (kFinest.columns - 1),
                      static_cast<double>(p / kFinest.columns) / (kFinest.rows - 1), s);
      const double* corners[4];
      for (int k = 0; k < 4; ++k) {  // where a weight is 0 there may be no such place
        corners[k] = !mean.empty()          ? mean.data()
                     : cell.weights[k] == 0 ? at_grid(0)
                                            : at_grid(on_finest(s, cell.column_of(k), cell.row_of(k)));
      }
      const double* const right = at_grid(p);
      for (int i = 0; i < values(); ++i) {
        const double e = cell.weights[0] * corners[0][i] + cell.weights[1] * corners[1][i] +
                         cell.weights[2] * corners[2][i] + cell.weights[3] * corners[3][i] - right[i];
        squares += e * e;
      }
    }
    return std::sqrt(squares / static_cast<double>(grid_.size()));
  }

  // The changes at the finest grid's places.
  [[nodiscard]] const std::vector<double>& grid() const { return grid_; }

 private:
  static constexpr int kPlaces = 64;
  static constexpr int kPlacesOfColours = 16;
  static constexpr int kColours = 64;

  struct Batch : Colours {
    double x, y;  // 0 .. 1
  };
  using Found = std::array<std::array<double, kColours>, 3>;

  double uniform() { return static_cast<double>(random_()) / 4294967296.0; }

  Levels random_levels(const ColourFormat& format) {
    const grade::ColourSpace space = grade::colour_space(format);
    Levels levels;
    for (int k = 0; k < kColours; ++k) {
      const double grey = uniform();
      const bool is_gray = channels_ == 1;
      const std::array<double, 3> colour = {grey, is_gray ? grey : uniform(), is_gray ? grey : uniform()};
      for (int c = 0; c < 3; ++c) {
        double level = grade::level_origin(format, c);
        for (int i = 0; i < 3; ++i) {
          level += space.from_rgb[c][i] * colour[i];
        }
        levels[c].push_back(static_cast<float>(level));
      }
    }
    return levels;
  }

  // `add` is what Sampler::map gives.
  template <typename Add>
  static Levels changes(const Levels& level, double x, double y, const Add& add) {
    Levels change = level;
    add({change[0].data(), change[1].data(), change[2].data()}, kColours, x, y);
    for (int c = 0; c < 3; ++c) {
      for (int i = 0; i < kColours; ++i) {
        change[c][i] -= level[c][i];
      }
    }
    return change;
  }

  void sample_grid(const Levels& level) {
    grid_.resize(static_cast<std::size_t>(kFinest.places()) * values());
    sampler_.map(kFinest.places(), [&](int p, const auto& add) {
      const double x = static_cast<double>(p % kFinest.columns) / (kFinest.columns - 1);
      const double y = static_cast<double>(p / kFinest.columns) / (kFinest.rows - 1);
      const Levels change = changes(level, x, y, add);
      for (int c = 0; c < channels_; ++c) {
        std::copy_n(change[c].data(), kColours,
                    grid_.data() + static_cast<std::ptrdiff_t>(p) * values() + c * kColours);
      }
    });
  }

  [[nodiscard]] int values() const { return channels_ * kColours; }
  [[nodiscard]] const double* at_grid(int place) const {
    return grid_.data() + static_cast<std::ptrdiff_t>(place) * values();
  }
  [[nodiscard]] std::vector<double> mean_of_grid() const {
    std::vector<double> mean(values());
    for (int p = 0; p < kFinest.places(); ++p) {
      for (int i = 0; i < values(); ++i) {
        mean[i] += at_grid(p)[i] / kFinest.places();
      }
    }
    return mean;
  }

  [[nodiscard]] double squares_of(const Colours& right, const Found& found) const {
    double squares = 0;
    for (int c = 0; c < channels_; ++c) {
      for (int i = 0; i < kColours; ++i) {
        const double e = found[c][i] - right.change[c][i];
        squares += e * e;
      }
    }
    return squares;
  }
  // Of the first `count` batches: squares(batch, add) gives the sum of one's squares.
  template <typename Squares>
  [[nodiscard]] double mean_root(const Squares& squares, int count) const {
    std::vector<double> all(count);
    sampler_.map(count, [&](int batch, const auto& add) { all[batch] = squares(batch, add); });
    return std::sqrt(std::accumulate(all.begin(), all.end(), 0.0) /
                     (static_cast<double>(count) * kColours * channels_));
  }

  Sampler& sampler_;
  int channels_;
  std::mt19937 random_;
  std::vector<Batch> batches_;
  std::vector<double> grid_;  // [the finest grid's places][values()]
};

// The cheapest for frames that is near enough, or the nearest. One place for all is to be twice as near: what
// it leaves out is the same all over a corner, which is seen where as much of interpolation's is not.
Sampling choose(const Probes& probes, double tolerance) {
  std::map<int, double> of_colours;
  Sampling best = kWithPlaces[0];
  double least = HUGE_VAL;
  for (const Sampling& s : kWithPlaces) {
    if (!of_colours.contains(s.n)) {
      of_colours[s.n] = probes.error_of_colours(s.n);
    }
    const double of_places = probes.error_of_places(s) * (s.places() == 1 ? 2 : 1);
    const double error = std::hypot(of_colours[s.n], of_places);
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

// Of each place of the grid, the weights of the basis's places; of one place that stands for all, their mean.
std::vector<float> weights_on(const Sampling& s, const PlaceBasis& basis) {
  const std::size_t n = basis.places.size();
  std::vector<float> weights(n * s.places());
  for (int p = 0; p < (s.places() == 1 ? kFinest.places() : s.places()); ++p) {
    const float* of =
        basis.weights.data() + n * (s.places() == 1 ? p : on_finest(s, p % s.columns, p / s.columns));
    float* const to = weights.data() + (s.places() == 1 ? 0 : n * p);
    for (std::size_t i = 0; i < n; ++i) {
      to[i] += s.places() == 1 ? of[i] / static_cast<float>(kFinest.places()) : of[i];
    }
  }
  return weights;
}

// The filter is asked at few places only, of which the others' lattices are sums. They miss a sixth of the
// tolerance at most: it is not spread over all colours as that of interpolation is, and pictures of few
// colours show it (with half of the tolerance the worst of them was at 45.5 dB in place of 51.3). A filter
// that needs too many places for that is asked at each.
void fill(Sampler& sampler, const Probes& probes, const Sampling& s, const GradeLookParameters& parameters,
          float* change) {
  constexpr int kMostOfBasis = 24;
  const double missing = parameters.tolerance / 6;
  const PlaceBasis basis = grade::find_place_basis(probes.grid(), kFinest.places(), missing, kMostOfBasis);
  const int places = static_cast<int>(basis.places.size());
  if (s.places() > 1 && (places >= s.places() || basis.remainder > missing)) {
    std::vector<int> all(s.places());
    std::iota(all.begin(), all.end(), 0);
    sampler.sample(s.n, s, all, change);
    return;
  }
  const std::ptrdiff_t size = 3 * grade::lattice_stride(s.n);
  AlignedBuffer<float> few;
  few.allocate(static_cast<std::size_t>(size) * places);
  sampler.sample(s.n, kFinest, basis.places, few.data());
  const std::vector<float> weights = weights_on(s, basis);
  constexpr std::ptrdiff_t kPiece = 1024;
  const grade::LatticeKernels kernels = grade::lattice_kernels();
  Workers::shared().run(
      static_cast<int>(ceil_divide(size, kPiece)), thread_count(parameters.threads), [&](int piece, int) {
        const std::ptrdiff_t first = piece * kPiece;
        for (int p = 0; p < s.places(); ++p) {
          kernels.weigh(few.data() + first, size, weights.data() + std::ptrdiff_t{p} * places, places,
                        std::min(kPiece, size - first), change + p * size + first);
        }
      });
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
  const Probes probes(sampler, format, filter.has_places());
  const Sampling s = filter.has_places() ? choose(probes, parameters.tolerance) : kWithoutPlaces;
  grade::BakedLook look{format, s.n, s.columns, s.rows, {}, 0, grade::next_serial()};
  look.change.allocate(std::size_t{3} * s.columns * s.rows * grade::lattice_stride(s.n));
  if (filter.has_places()) {
    fill(sampler, probes, s, parameters, look.change.data());
  } else {
    sampler.sample(s.n, s, {0}, look.change.data());
  }
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
