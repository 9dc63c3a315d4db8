#include "nonlocal/frame_grader.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/anew.h"
#include "core/rounding.h"
#include "core/workers.h"
#include "grade/colour_space.h"
#include "grade/exact_kernel.h"
#include "grade/folded.h"
#include "grade/frame_check.h"
#include "grade/frame_job.h"
#include "grade/grade_look.h"
#include "grade/lattice_kernel.h"
#include "nonlocal/error.h"

namespace nonlocal {
namespace {

using grade::ExactJob;
using grade::FrameJob;
using grade::Lattices;
using grade::Table;
using grade::Tile;

constexpr const char* kName = "FrameGrader";
constexpr int kTileRows = 32;

[[noreturn]] void fail(const std::string& problem) { throw InvalidArgument(kName + (": " + problem)); }

void check(std::span<const ConstPlane> in, std::span<const Plane> out, const ColourFormat& format,
           const GradeParameters& parameters) {
  grade::check_frames(kName, in, out, format);
  if (!(parameters.strength >= 0 && parameters.strength <= 4)) {
    fail("expected a strength of 0 to 4, got " + std::to_string(parameters.strength));
  }
  grade::check_threads(kName, parameters.threads);
}

// The first even sample at or after the border between cell i - 1 and cell i of `cells`.
int cell_border(int i, int cells, int size) {
  if (i == 0 || i == cells) {
    return i == 0 ? 0 : size;
  }
  const double border = static_cast<double>(i) * size / cells - 0.5;
  return std::min(size, round_up(static_cast<int>(std::ceil(border)), 2));
}

template <typename T>
void copy_samples(const Plane& from, const Plane& to, int y) {
  const T* source = reinterpret_cast<const T*>(from.row(y));
  T* target = reinterpret_cast<T*>(to.row(y));
  for (int x = 0; x < to.width; ++x) {
    target[static_cast<std::ptrdiff_t>(x) * to.step] = static_cast<T>(source[x] << to.shift);
  }
}

}  // namespace

// --------------------------------------------------------------------------------------------- the state

struct FrameGrader::State {
  // The look, or the two, of this frame.
  struct Shares {
    const grade::BakedLook* look[2] = {};
    float weight[2] = {};  // of each; where they are blended in one table, of both
    int tables = 0;
    bool is_blend = false;
  };

  void run_exact(FrameJob job, const ColourFormat& format, const grade::Folded& folded, int threads);
  void run_baked(FrameJob job, const Shares& shares, int threads);

  template <typename Grade>
  void run_tiles(FrameJob& job, int threads, const Grade& grade);
  void write_chroma_apart(FrameJob& job);
  void bring_chroma_back(const FrameJob& job, int threads);
  void cut_even_tiles(const FrameJob& job, int width);
  void cut_cells(const FrameJob& job, int columns, int rows, int threads);
  void make_places(const FrameJob& job, int frequencies, grade::PlaceTables& tables);
  void make_whole_tables(const Shares& shares, std::array<Table, 2>& tables);
  void make_cell(const FrameJob& job, const Shares& shares, int which, const Tile& tile,
                 const grade::LevelRanges& ranges, float* memory, Table& table) const;
  float* scratch(int slot) { return scratch_.data() + scratch_floats_ * static_cast<std::size_t>(slot); }
  void reserve_scratch(std::size_t floats, int threads);

  grade::ExactKernels exact = grade::exact_kernels();
  grade::LatticeKernels lattice = grade::lattice_kernels();

  std::vector<Tile> tiles;
  std::vector<float> place_memory;
  std::tuple<int, int, int, int, int, int> place_shape;  // that place_memory was made for
  std::vector<std::byte> chroma;                         // written apart from the frame
  std::array<Plane, 3> apart;  // its planes; those of the frame where it is not needed
  bool is_apart = false;

  AlignedBuffer<float> scratch_;
  std::size_t scratch_floats_ = 0;

  AlignedBuffer<float> whole[2];  // tables of looks without places
  std::tuple<std::uint64_t, std::uint64_t, float> whole_of[2];
};

void FrameGrader::State::reserve_scratch(std::size_t floats, int threads) {
  scratch_floats_ = round_up(floats, std::size_t{16});
  const std::size_t needed = scratch_floats_ * static_cast<std::size_t>(threads);
  if (scratch_.size() < needed) {
    scratch_.allocate(needed);
  }
}

// Where chroma is graded in place, luma still needs it as it came.
void FrameGrader::State::write_chroma_apart(FrameJob& job) {
  apart = job.out;
  is_apart = job.is_subsampled() &&
             (grade::is_same_memory(job.in[1], job.out[1]) || grade::is_same_memory(job.in[2], job.out[2]));
  if (!is_apart) {
    return;
  }
  const Plane& like = job.out[1];
  const std::size_t row =
      round_up(static_cast<std::size_t>(like.width) * like.bytes_per_sample(), std::size_t{64});
  const std::size_t size = row * like.height;
  if (chroma.size() < 2 * size) {
    chroma.resize(2 * size);
  }
  for (int c = 1; c < 3; ++c) {
    job.out[c] = {chroma.data() + (c - 1) * size, like.width, like.height, static_cast<std::ptrdiff_t>(row),
                  like.bit_depth};
  }
}

void FrameGrader::State::bring_chroma_back(const FrameJob& job, int threads) {
  if (!is_apart) {
    return;
  }
  const int height = job.out[1].height;
  Workers::shared().run(ceil_divide(height, kTileRows), threads, [&](int task, int) {
    for (int y = task * kTileRows; y < std::min(height, (task + 1) * kTileRows); ++y) {
      for (int c = 1; c < 3; ++c) {
        const Plane& to = apart[c];
        if (to.step == 1 && to.shift == 0) {
          std::memcpy(to.row(y), job.out[c].row(y),
                      static_cast<std::size_t>(to.width) * to.bytes_per_sample());
        } else if (to.bit_depth > 8) {
          copy_samples<std::uint16_t>(job.out[c], to, y);
        } else {
          copy_samples<std::uint8_t>(job.out[c], to, y);
        }
      }
    }
  });
}

template <typename Grade>
void FrameGrader::State::run_tiles(FrameJob& job, int threads, const Grade& grade) {
  write_chroma_apart(job);
  Workers::shared().run(static_cast<int>(tiles.size()), threads,
                        [&](int task, int slot) { grade(tiles[task], scratch(slot)); });
  bring_chroma_back(job, threads);
}

void FrameGrader::State::cut_even_tiles(const FrameJob& job, int width) {
  tiles.clear();
  for (int y = 0; y < job.height; y += kTileRows) {
    for (int x = 0; x < job.width; x += width) {
      tiles.push_back({x, y, std::min(width, job.width - x), std::min(kTileRows, job.height - y)});
    }
  }
}

void FrameGrader::State::cut_cells(const FrameJob& job, int columns, int rows, int threads) {
  tiles.clear();
  // Each band makes tables of its own: few, but enough to share.
  const int cells = std::max(1, (columns - 1) * (rows - 1));
  const int bands = std::clamp(4 * threads / cells, 1, 4);
  const int strips = bands * (rows - 1);
  for (int row = 0; row < strips; ++row) {
    const int y = cell_border(row, strips, job.height);
    const int height = cell_border(row + 1, strips, job.height) - y;
    const int top = cell_border(row / bands, rows - 1, job.height);
    const int middle = top + (cell_border(row / bands + 1, rows - 1, job.height) - top) / 2;
    for (int column = 0; column + 1 < columns && height > 0; ++column) {
      const int x = cell_border(column, columns - 1, job.width);
      const int width = cell_border(column + 1, columns - 1, job.width) - x;
      if (width > 0) {
        tiles.push_back({x, y, width, height, x + width / 2, middle});
      }
    }
  }
}

// ------------------------------------------------------------------------------------------------- exact

// Of luma's samples and of chroma's, wherever the chroma site is: at the middle of their pixels.
void FrameGrader::State::make_places(const FrameJob& job, int frequencies, grade::PlaceTables& tables) {
  const int n = 2 * frequencies;
  if (n == 0) {
    return;
  }
  const std::ptrdiff_t stride = round_up(job.width + 4 * exact.chunk, 16);
  const std::size_t columns = static_cast<std::size_t>(n) * stride;
  const std::size_t rows = static_cast<std::size_t>(n) * (job.height + 1);
  const std::tuple shape(job.width, job.height, job.half_x, job.half_y, frequencies, exact.chunk);
  if (place_shape != shape) {
    place_shape = shape;
    place_memory.assign(2 * (columns + rows), 0.0F);
    double values[2 * grade::kMostFrequencies];
    for (int half = 0; half < 2; ++half) {
      const auto place = [](int i, int size, bool is_half) {
        return static_cast<double>(is_half ? 4 * i + 2 : 2 * i + 1) / size - 1;
      };
      float* x = place_memory.data() + half * columns;
      for (int i = 0; i < job.width; ++i) {
        grade::place_features(frequencies, place(i, job.width, half * job.half_x != 0), values);
        for (int k = 0; k < n; ++k) {
          x[k * stride + i] = static_cast<float>(values[k]);
        }
      }
      float* y = place_memory.data() + 2 * columns + half * rows;
      for (int i = 0; i < job.height; ++i, y += n) {
        grade::place_features(frequencies, place(i, job.height, half * job.half_y != 0), values);
        std::copy_n(values, n, y);
      }
    }
  }
  tables.stride = stride;
  for (int half = 0; half < 2; ++half) {
    tables.x[half] = place_memory.data() + half * columns;
    tables.y[half] = place_memory.data() + 2 * columns + half * rows;
  }
}

void FrameGrader::State::run_exact(FrameJob job, const ColourFormat& format, const grade::Folded& folded,
                                   int threads) {
  exact = grade::exact_kernels();
  ExactJob exact_job = make_exact_job(folded, grade::colour_space(format));
  make_places(job, folded.frequencies, exact_job.places);
  reserve_scratch(exact.scratch_floats(folded), threads);
  cut_even_tiles(job, 2 * exact.chunk);
  run_tiles(job, threads,
            [&](const Tile& tile, float* memory) { exact.grade(job, exact_job, tile, memory); });
}

// ------------------------------------------------------------------------------------------------- baked

namespace {

constexpr int kRowsOfTable = 4;

std::size_t table_floats(int n) { return static_cast<std::size_t>(kRowsOfTable * grade::lattice_stride(n)); }

using Four = std::array<const float*, 4>;

// The corners of a cell, or the channels where there is but one place.
Four corners(const Lattices& l, int column, int row, int channel) {
  return {l.at(column, row, channel), l.at(column + 1, row, channel), l.at(column, row + 1, channel),
          l.at(column + 1, row + 1, channel)};
}
Four channels(const Lattices& l) { return {l.at(0, 0, 0), l.at(0, 0, 1), l.at(0, 0, 2), nullptr}; }

Four moved(Four rows, std::ptrdiff_t by) {
  for (const float*& row : rows) {
    row = row == nullptr ? nullptr : row + by;
  }
  return rows;
}

// The nodes that levels from `least` to `most` are interpolated from.
std::pair<int, int> nodes_of(float least, float most, int n) {
  const auto before = [n](float level) {
    return std::clamp(static_cast<int>(level * static_cast<float>(n - 1) / 256), 0, n - 2);
  };
  // What floats round is less than a hundredth of a level.
  return {before(least - 0.01F), before(most + 0.01F) + 1};
}

// Calls part(first, end) for vectors of nodes that the ranges ask for, and some others beside them.
template <typename Part>
void each_part(const grade::LevelRanges& ranges, int n, const Part& part) {
  const auto [first_0, last_0] = nodes_of(ranges.least[0], ranges.most[0], n);
  const auto [first_1, last_1] = nodes_of(ranges.least[1], ranges.most[1], n);
  const auto [first_2, last_2] = nodes_of(ranges.least[2], ranges.most[2], n);
  constexpr std::ptrdiff_t kVector = 16;
  for (std::ptrdiff_t i = first_0; i <= last_0; ++i) {
    part(((i * n + first_1) * n + first_2) / kVector * kVector,
         round_up((i * n + last_1) * n + last_2 + 1, kVector));
  }
}

}  // namespace

void FrameGrader::State::make_whole_tables(const Shares& shares, std::array<Table, 2>& tables) {
  for (int i = 0; i < shares.tables; ++i) {
    const Lattices l = shares.look[i]->lattices();
    tables[i].n = l.n;
    tables[i].has_corners = l.has_places();
    tables[i].share = shares.is_blend ? 1 : shares.weight[i];
    if (l.has_places()) {
      continue;
    }
    const std::tuple key(shares.look[i]->serial, shares.is_blend ? shares.look[1]->serial : 0,
                         shares.is_blend ? shares.weight[1] : 0.0F);
    if (whole[i].size() < table_floats(l.n)) {
      whole[i].allocate(table_floats(l.n));
      whole_of[i] = {};
    }
    if (whole_of[i] != key) {
      whole_of[i] = key;
      lattice.interleave(channels(l), shares.is_blend ? channels(shares.look[1]->lattices()) : Four{},
                         shares.weight[1], grade::lattice_stride(l.n), whole[i].data());
    }
    tables[i].cells = whole[i].data();
  }
}

// What a tile's colours ask for of the tables of the cell that it lies in.
void FrameGrader::State::make_cell(const FrameJob& job, const Shares& shares, int which, const Tile& tile,
                                   const grade::LevelRanges& ranges, float* memory, Table& table) const {
  const Lattices l = shares.look[which]->lattices();
  const auto cell = [](int middle, int size, int places) {
    return std::clamp(static_cast<int>(static_cast<double>(middle) * (places - 1) / size), 0, places - 2);
  };
  const int column = cell(tile.middle_x, job.width, l.columns);
  const int row = cell(tile.middle_y, job.height, l.rows);
  for (int c = 0; c < job.planes; ++c) {
    const Four from = corners(l, column, row, c);
    const Four other = shares.is_blend ? corners(shares.look[1]->lattices(), column, row, c) : Four{};
    float* const cells = memory + c * table_floats(l.n);
    each_part(ranges, l.n, [&](std::ptrdiff_t first, std::ptrdiff_t end) {
      lattice.interleave(moved(from, first), moved(other, first), shares.weight[1], end - first,
                         cells + kRowsOfTable * first);
    });
  }
  table.cells = memory;
  for (int chroma = 0; chroma < 2; ++chroma) {
    const auto along = [chroma](int size, int places, int half, int first, float& step, float& begin) {
      const bool is_half = chroma != 0 && half != 0;
      const double a_sample = static_cast<double>(places - 1) / size;
      step = static_cast<float>(is_half ? 2 * a_sample : a_sample);
      begin = static_cast<float>((is_half ? 1 : 0.5) * a_sample - first);
    };
    along(job.width, l.columns, job.half_x, column, table.x_step[chroma], table.x_begin[chroma]);
    along(job.height, l.rows, job.half_y, row, table.y_step[chroma], table.y_begin[chroma]);
  }
}

void FrameGrader::State::run_baked(FrameJob job, const Shares& shares, int threads) {
  lattice = grade::lattice_kernels();
  std::array<Table, 2> tables;
  make_whole_tables(shares, tables);
  int columns = 1;
  int rows = 1;
  std::size_t cells = 0;
  for (int i = 0; i < shares.tables; ++i) {
    const Lattices l = shares.look[i]->lattices();
    columns = std::max(columns, l.columns);
    rows = std::max(rows, l.rows);
    cells += l.has_places() ? 3 * table_floats(l.n) : 0;
  }
  const std::size_t kernel_floats = round_up(lattice.scratch_floats(), std::size_t{16});
  reserve_scratch(kernel_floats + cells, threads);
  if (columns * rows > 1) {
    cut_cells(job, columns, rows, threads);
  } else {
    constexpr int kTileColumns = 512;
    cut_even_tiles(job, kTileColumns);
  }
  run_tiles(job, threads, [&](const Tile& tile, float* memory) {
    std::array<Table, 2> of_tile = tables;
    float* cell = memory + kernel_floats;
    const auto ranges = columns * rows > 1 ? lattice.ranges(job, tile, memory) : grade::LevelRanges{};
    for (int i = 0; i < shares.tables; ++i) {
      if (of_tile[i].has_corners) {
        make_cell(job, shares, i, tile, ranges, cell, of_tile[i]);
        cell += 3 * table_floats(of_tile[i].n);
      }
    }
    lattice.grade(job, of_tile.data(), shares.tables, tile, memory);
  });
}

// -------------------------------------------------------------------------------------------- the class

FrameGrader::FrameGrader() : state_(std::make_unique<State>()) {}
FrameGrader::~FrameGrader() = default;
FrameGrader::FrameGrader(FrameGrader&&) noexcept = default;
FrameGrader& FrameGrader::operator=(FrameGrader&&) noexcept = default;

void FrameGrader::run(std::span<const ConstPlane> in, std::span<const Plane> out, const ColourFormat& format,
                      const CrossAttentionFilter& filter, const GradeParameters& parameters) {
  check(in, out, format, parameters);
  or_anew(*state_, [&] {
    state_->run_exact(grade::make_frame_job(in, out, format, parameters.strength), format,
                      GradeAccess::folded(filter), thread_count(parameters.threads));
  });
}

namespace {

void check_format(const GradeLook& look, ColourFormat format) {
  ColourFormat baked = look.format();
  baked.site = format.site;
  if (baked != format) {
    fail("expected a look baked for the frame's colour format, it was baked for another");
  }
}

}  // namespace

void FrameGrader::run(std::span<const ConstPlane> in, std::span<const Plane> out, const ColourFormat& format,
                      const GradeLook& look, const GradeParameters& parameters) {
  check(in, out, format, parameters);
  check_format(look, format);
  State::Shares shares;
  shares.look[0] = &GradeAccess::state(look).look;
  shares.weight[0] = 1;
  shares.tables = 1;
  or_anew(*state_, [&] {
    state_->run_baked(grade::make_frame_job(in, out, format, parameters.strength), shares,
                      thread_count(parameters.threads));
  });
}

void FrameGrader::run(std::span<const ConstPlane> in, std::span<const Plane> out, const ColourFormat& format,
                      const GradeLook& from, const GradeLook& to, double weight,
                      const GradeParameters& parameters) {
  check(in, out, format, parameters);
  check_format(from, format);
  check_format(to, format);
  if (!(weight >= 0 && weight <= 1)) {
    fail("expected a weight of 0 to 1, got " + std::to_string(weight));
  }
  State::Shares shares;
  shares.look[0] = &GradeAccess::state(from).look;
  shares.look[1] = &GradeAccess::state(to).look;
  shares.weight[0] = static_cast<float>(1 - weight);
  shares.weight[1] = static_cast<float>(weight);
  shares.is_blend = shares.look[0]->lattices().has_shape_of(shares.look[1]->lattices());
  shares.tables = shares.is_blend ? 1 : 2;
  or_anew(*state_, [&] {
    state_->run_baked(grade::make_frame_job(in, out, format, parameters.strength), shares,
                      thread_count(parameters.threads));
  });
}

}  // namespace nonlocal
