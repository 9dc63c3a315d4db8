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

// Places, even from border to border.
struct Grid {
  int columns;
  int rows;
  [[nodiscard]] int places() const { return columns * rows; }
  // 0 .. 1
  [[nodiscard]] double x(int place) const { return along(place % columns, columns); }
  [[nodiscard]] double y(int place) const { return along(place / columns, rows); }

 private:
  static double along(int i, int count) { return count == 1 ? 0.5 : static_cast<double>(i) / (count - 1); }
};

// Where a place of a grid is on one that has twice as many, or four times.
int on_finer(const Grid& grid, const Grid& finer, int column, int row) {
  const auto step = [](int fine, int places) { return (fine - 1) / (places - 1); };
  return row * step(finer.rows, grid.rows) * finer.columns + column * step(finer.columns, grid.columns);
}

struct Sampling {
  int n;  // colours an axis
  Grid grid;
};

// A filter that does not know places has the first one, and what hardly depends on them. Frames take longer
// from one to the next; what they hold bounds colours where places are many.
constexpr Sampling kWithoutPlaces = {33, {1, 1}};
constexpr Sampling kWithPlaces[] = {kWithoutPlaces, {33, {9, 5}}, {25, {17, 9}}, {17, {33, 17}}};

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
  void sample(int n, const Grid& grid, const std::vector<int>& places, float* change) {
    const std::ptrdiff_t nodes = static_cast<std::ptrdiff_t>(n) * n * n;
    const int pieces = static_cast<int>((nodes + kPiece - 1) / kPiece);
    Workers::shared().run(static_cast<int>(places.size()) * pieces, threads_, [&](int task, int slot) {
      const int first = task % pieces * kPiece;
      const int place = places[task / pieces];
      const Place at(frequencies_, grid.x(place), grid.y(place));
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
        const Place at(frequencies_, x, y);
        kernels_.map(job_, level, colours, at.x, at.y, scratch(slot));
      });
    });
  }

 private:
  static constexpr int kPiece = 4096;

  struct Place {
    Place(int frequencies, double at_x, double at_y) {
      double values[2][2 * grade::kMostFrequencies];
      grade::place_features(frequencies, 2 * at_x - 1, values[0]);
      grade::place_features(frequencies, 2 * at_y - 1, values[1]);
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

// Fixed, as tasks of workers allocate nothing.
constexpr int kColours = 64;
using Levels = std::array<std::array<float, kColours>, 3>;

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
  Cell(double x, double y, const Grid& grid) {
    const double at[2] = {x * (grid.columns - 1), y * (grid.rows - 1)};
    column = std::min(static_cast<int>(at[0]), std::max(0, grid.columns - 2));
    row = std::min(static_cast<int>(at[1]), std::max(0, grid.rows - 2));
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
      grid_level_ = random_levels(format);
      sample_places({17, 9});
    }
  }

  // Of the finished lattices.
  [[nodiscard]] double error_of(const Lattices& l) const {
    return mean_root(
        [&](int batch, const auto&) {
          const Batch& b = batches_[batch];
          const Cell cell(b.x, b.y, {l.columns, l.rows});
          Found found{};
          for (int i = 0; i < kColours; ++i) {
            const Tetrahedron t(b.colour(i), l.n);
            std::array<std::ptrdiff_t, 4> nodes;
            for (int k = 0; k < 4; ++k) {
              const auto& [first, second, third] = t.nodes[k];
              nodes[k] = (static_cast<std::ptrdiff_t>(first) * l.n + second) * l.n + third;
            }
            for (int corner = 0; corner < 4; ++corner) {
              if (cell.weights[corner] == 0) {
                continue;  // there may be no such place
              }
              for (int c = 0; c < channels_; ++c) {
                const float* lattice = l.at(cell.column_of(corner), cell.row_of(corner), c);
                double sum = 0;
                for (int k = 0; k < 4; ++k) {
                  sum += t.weights[k] * lattice[nodes[k]];
                }
                found[c][i] += cell.weights[corner] * sum;
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
            std::array<double, kColours> weights;
            for (int i = 0; i < kColours; ++i) {
              const Tetrahedron t(b.colour(i), n);
              weights[i] = t.weights[k];
              for (int axis = 0; axis < 3; ++axis) {
                level[axis][i] = static_cast<float>(t.nodes[k][axis]) * 256 / static_cast<float>(n - 1);
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

  // The changes at a grid's places, at some colours.
  void sample_places(const Grid& grid) {
    grid_ = grid;
    changes_.resize(static_cast<std::size_t>(grid.places()) * values());
    sampler_.map(grid.places(), [&](int p, const auto& add) {
      const Levels change = changes(grid_level_, grid.x(p), grid.y(p), add);
      for (int c = 0; c < channels_; ++c) {
        std::copy_n(change[c].data(), kColours,
                    changes_.data() + static_cast<std::ptrdiff_t>(p) * values() + c * kColours);
      }
    });
  }
  [[nodiscard]] const Grid& grid() const { return grid_; }
  [[nodiscard]] const std::vector<double>& changes() const { return changes_; }  // [grid().places()][values]

  // Of interpolation between places alone, at those of grid(); of a grid that has none between them, a third
  // of what the one before has (a quarter where all is smooth).
  [[nodiscard]] double error_of_places(const Grid& grid) const {
    if (grid.columns >= grid_.columns) {
      return error_of_places({(grid.columns + 1) / 2, (grid.rows + 1) / 2}) / 3;
    }
    const std::vector<double> mean = grid.places() == 1 ? mean_of_grid() : std::vector<double>();
    double squares = 0;
    for (int p = 0; p < grid_.places(); ++p) {
      const Cell cell(grid_.x(p), grid_.y(p), grid);
      const double* corners[4];
      for (int k = 0; k < 4; ++k) {  // where a weight is 0 there may be no such place
        corners[k] = !mean.empty() ? mean.data()
                     : cell.weights[k] == 0
                         ? at_grid(0)
                         : at_grid(on_finer(grid, grid_, cell.column_of(k), cell.row_of(k)));
      }
      const double* const right = at_grid(p);
      for (int i = 0; i < values(); ++i) {
        const double e = cell.weights[0] * corners[0][i] + cell.weights[1] * corners[1][i] +
                         cell.weights[2] * corners[2][i] + cell.weights[3] * corners[3][i] - right[i];
        squares += e * e;
      }
    }
    return std::sqrt(squares / static_cast<double>(changes_.size()));
  }

 private:
  static constexpr int kPlaces = 64;
  static constexpr int kPlacesOfColours = 16;

  struct Batch : Colours {
    double x, y;  // 0 .. 1
  };
  using Found = std::array<std::array<double, kColours>, 3>;

  double uniform() { return static_cast<double>(random_()) / 4294967296.0; }

  Levels random_levels(const ColourFormat& format) {
    const grade::ColourSpace space = grade::colour_space(format);
    Levels levels{};
    for (int k = 0; k < kColours; ++k) {
      const double grey = uniform();
      const bool is_gray = channels_ == 1;
      const std::array<double, 3> colour = {grey, is_gray ? grey : uniform(), is_gray ? grey : uniform()};
      for (int c = 0; c < 3; ++c) {
        double level = grade::level_origin(format, c);
        for (int i = 0; i < 3; ++i) {
          level += space.from_rgb[c][i] * colour[i];
        }
        levels[c][k] = static_cast<float>(level);
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

  [[nodiscard]] int values() const { return channels_ * kColours; }
  [[nodiscard]] const double* at_grid(int place) const {
    return changes_.data() + static_cast<std::ptrdiff_t>(place) * values();
  }
  [[nodiscard]] std::vector<double> mean_of_grid() const {
    std::vector<double> mean(values());
    for (int p = 0; p < grid_.places(); ++p) {
      for (int i = 0; i < values(); ++i) {
        mean[i] += at_grid(p)[i] / grid_.places();
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
  Levels grid_level_{};
  Grid grid_{};
  std::vector<double> changes_;
};

struct Choice {
  Sampling sampling;
  int asked;  // colours an axis that the filter is asked for: all, or every second one
};

// The cheapest for frames that is near enough, or the nearest. One place for all is to be twice as near: what
// it leaves out is the same all over a corner, which is seen where as much of interpolation's is not. Half of
// the colours are enough where they leave a margin.
Choice choose(const Probes& probes, double tolerance) {
  constexpr double kMargin = 0.75;
  std::map<int, double> of_colours;
  Choice best{};
  double least = HUGE_VAL;
  for (const Sampling& s : kWithPlaces) {
    const double of_places = probes.error_of_places(s.grid) * (s.grid.places() == 1 ? 2 : 1);
    for (const int asked : {(s.n + 1) / 2, s.n}) {
      if (!of_colours.contains(asked)) {
        of_colours[asked] = probes.error_of_colours(asked);
      }
      const double error = std::hypot(of_colours[asked], of_places);
      if (error <= tolerance * (asked == s.n ? 1 : kMargin)) {
        return {s, asked};
      }
      if (error < least) {
        best = {s, asked};
        least = error;
      }
    }
  }
  return best;
}

// Of each place of the grid, the weights of the basis's places on `finer`; of one place that stands for all,
// their mean.
std::vector<float> weights_on(const Grid& grid, const Grid& finer, const PlaceBasis& basis) {
  const std::size_t n = basis.places.size();
  std::vector<float> weights(n * grid.places());
  const auto add = [&](int place, int of, float share) {
    for (std::size_t i = 0; i < n; ++i) {
      weights[n * place + i] += share * basis.weights[n * of + i];
    }
  };
  if (grid.places() == 1) {
    for (int p = 0; p < finer.places(); ++p) {
      add(0, p, 1.0F / static_cast<float>(finer.places()));
    }
  } else {
    for (int p = 0; p < grid.places(); ++p) {
      add(p, on_finer(grid, finer, p % grid.columns, p / grid.columns), 1);
    }
  }
  return weights;
}

// One channel of a lattice with twice as many colours an axis, less one. Tetrahedra are cut into such as they
// are themselves (H. Freudenthal 1942): each new node lies on an edge, and interpolation goes on as before.
void refine(const float* from, int n, float* to) {
  const int m = 2 * n - 1;
  for (int x = 0; x < m; ++x) {
    for (int y = 0; y < m; ++y, to += m) {
      const float* const at = from + (x / 2 * n + y / 2) * n;
      const float* const next = at + (x % 2 * n + y % 2) * n;
      for (int z = 0; z < m; ++z) {
        to[z] = (at[z / 2] + next[(z + 1) / 2]) / 2;
      }
    }
  }
}

// The filter is asked at few places only, of which the others' lattices are sums. They miss a sixth of the
// tolerance at most: it is not spread over all colours as that of interpolation is, and pictures of few
// colours show it (with half of the tolerance the worst of them was at 45.5 dB in place of 51.3). A filter
// that needs too many places for that is asked at each.
void fill(Sampler& sampler, Probes& probes, const Choice& choice, const GradeLookParameters& parameters,
          float* change) {
  constexpr int kMostOfBasis = 24;
  const int n = choice.sampling.n;
  const Grid& grid = choice.sampling.grid;
  if (grid.columns > probes.grid().columns) {
    probes.sample_places(grid);
  }
  const double missing = parameters.tolerance / 6;
  const PlaceBasis basis =
      grade::find_place_basis(probes.changes(), probes.grid().places(), missing, kMostOfBasis);
  const int places = static_cast<int>(basis.places.size());
  if (grid.places() > 1 && (places >= grid.places() || basis.remainder > missing)) {
    std::vector<int> all(grid.places());
    std::iota(all.begin(), all.end(), 0);
    sampler.sample(n, grid, all, change);
    return;
  }
  const int threads = thread_count(parameters.threads);
  const std::ptrdiff_t size = 3 * grade::lattice_stride(n);
  AlignedBuffer<float> few;
  few.allocate(static_cast<std::size_t>(size) * places);
  if (choice.asked == n) {
    sampler.sample(n, probes.grid(), basis.places, few.data());
  } else {
    const std::ptrdiff_t stride = grade::lattice_stride(choice.asked);
    AlignedBuffer<float> coarse;
    coarse.allocate(static_cast<std::size_t>(3 * stride) * places);
    sampler.sample(choice.asked, probes.grid(), basis.places, coarse.data());
    Workers::shared().run(3 * places, threads, [&](int channel, int) {
      refine(coarse.data() + channel * stride, choice.asked, few.data() + channel * grade::lattice_stride(n));
    });
  }
  const std::vector<float> weights = weights_on(grid, probes.grid(), basis);
  constexpr std::ptrdiff_t kPiece = 1024;
  const grade::LatticeKernels kernels = grade::lattice_kernels();
  Workers::shared().run(static_cast<int>(ceil_divide(size, kPiece)), threads, [&](int piece, int) {
    const std::ptrdiff_t first = piece * kPiece;
    for (int p = 0; p < grid.places(); ++p) {
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
  Probes probes(sampler, format, filter.has_places());
  const Choice choice =
      filter.has_places() ? choose(probes, parameters.tolerance) : Choice{kWithoutPlaces, kWithoutPlaces.n};
  const auto& [n, grid] = choice.sampling;
  grade::BakedLook look{format, n, grid.columns, grid.rows, {}, 0, grade::next_serial()};
  look.change.allocate_unset(std::size_t{3} * grid.places() * grade::lattice_stride(n));
  if (filter.has_places()) {
    fill(sampler, probes, choice, parameters, look.change.data());
  } else {
    sampler.sample(n, grid, {0}, look.change.data());
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
