#include "nonlocal/temporal_fusion.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "denoise/temporal_fusion.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/anew.h"
#include "core/planes.h"
#include "core/rounding.h"
#include "core/workers.h"
#include "denoise/fusion_law.h"
#include "denoise/fusion_rows-inl.h"
#include "hwy/highway.h"
#include "motion/motion_search.h"
#include "nonlocal/error.h"

#if HWY_ONCE
namespace nonlocal {
namespace {

using denoise::kMapMargin;
using denoise::kSquareRadius;
using motion::kMotionBlock;
using motion::MotionField;
using motion::MotionSearch;
using motion::MotionVector;

constexpr int kCellsABlock = kMotionBlock / 2;
constexpr double kCutShare = 0.5;  // of the cells new: all of the frame is

// Rows begin at whole vectors.
std::size_t row_stride(std::size_t values) { return round_up(values, std::size_t{32}); }

// A plane of the fused frame and of the one before.
struct StatePlane {
  int width = 0;
  int height = 0;
  int columns = 2;  // samples across and down a cell
  int rows = 2;
  std::ptrdiff_t stride = 0;
  AlignedBuffer<std::uint16_t> now;
  AlignedBuffer<std::uint16_t> before;

  StatePlane(const ConstPlane& p, const ConstPlane& first)
      : width(p.width),
        height(p.height),
        columns(p.width == first.width ? 2 : 1),
        rows(p.height == first.height ? 2 : 1),
        stride(static_cast<std::ptrdiff_t>(row_stride(static_cast<std::size_t>(p.width) + 1))) {
    const std::size_t size = static_cast<std::size_t>(stride) * height;
    now.allocate(size);
    before.allocate(size);
  }

  [[nodiscard]] std::uint16_t* row(int y) { return now.data() + y * stride; }
  [[nodiscard]] const std::uint16_t* row_before(int y) const {
    return before.data() + std::clamp(y, 0, height - 1) * stride;
  }
  [[nodiscard]] ConstPlane view() const {
    constexpr int kShown =
        12;  // bits: finer than what noise is left, and the spatial filter is faster than with more
    return {reinterpret_cast<const std::byte*>(now.data()),
            width,
            height,
            stride * 2,
            kShown,
            1,
            denoise::kStateDepth - kShown};
  }
};

// A value a cell, with margins that repeat the outer ones.
template <typename T>
struct CellMap {
  int cells = 0;
  int rows = 0;
  std::ptrdiff_t stride = 0;
  AlignedBuffer<T> values;

  void resize(int columns, int lines) {
    cells = columns;
    rows = lines;
    stride = static_cast<std::ptrdiff_t>(row_stride(static_cast<std::size_t>(columns) + 2 * kMapMargin));
    values.allocate(static_cast<std::size_t>(stride) * rows);
  }
  [[nodiscard]] T* row(int y) { return values.data() + std::clamp(y, 0, rows - 1) * stride + kMapMargin; }
  [[nodiscard]] const T* row(int y) const {
    return values.data() + std::clamp(y, 0, rows - 1) * stride + kMapMargin;
  }
  void pad(int y) {
    T* at = row(y);
    std::fill_n(at - kMapMargin, kMapMargin, at[0]);
    std::fill_n(at + cells, kMapMargin, at[cells - 1]);
  }
  // Rows around y.
  template <std::size_t N>
  [[nodiscard]] std::array<const T*, N> around(int y) const {
    std::array<const T*, N> all;
    for (std::size_t i = 0; i < N; ++i) {
      all[i] = row(y + static_cast<int>(i) - static_cast<int>(N / 2));
    }
    return all;
  }
};

ConstPlane view_of(const CellMap<std::uint16_t>& map) {
  if (map.rows == 0) {
    return {};
  }
  return {reinterpret_cast<const std::byte*>(map.row(0)), map.cells, map.rows, map.stride * 2, 16, 1, 0};
}

// Means of differences: one map for the guides together, one for each other plane.
struct MeanMap {
  CellMap<std::int16_t> map;
  int radius = 1;
  float noise = 0;  // what noise of sigma adds to a squared mean

  void set(int samples_a_cell) {
    radius = samples_a_cell > 1 ? 1 : 2;
    const int box = 2 * radius + 1;
    noise = 1 / static_cast<float>(samples_a_cell * box * box);
  }
};

void check_parameters(const TemporalFusionParameters& p) {
  const auto require = [](bool good, const char* expected, auto got) {
    if (!good) {
      throw InvalidArgument(std::string("TemporalFusion: expected ") + expected + ", got " +
                            std::to_string(got));
    }
  };
  require(p.sigma > 0 && p.sigma <= 100, "a sigma above 0 and up to 100", p.sigma);
  require(p.other_sigma > 0 && p.other_sigma <= 100, "an other_sigma above 0 and up to 100", p.other_sigma);
  require(p.grain >= 1 && p.grain <= 64, "a grain of 1 to 64", p.grain);
  require(p.other_grain >= 1 && p.other_grain <= 64, "an other_grain of 1 to 64", p.other_grain);
  require(p.deviation_scale >= 0, "a deviation_scale of 0 or more", p.deviation_scale);
  require(p.threads >= 0, "0 (all) or more threads", p.threads);
}

// What deviation() is a share of; 16 bits hold it.
double told_sigma(const TemporalFusionParameters& p) { return std::min(p.sigma * p.deviation_scale, 255.0); }

void check_variance(const ConstPlane& v, int cells, int cell_rows) {
  if (v.data != nullptr && (v.width != cells || v.height != cell_rows || v.bit_depth != 16 || v.step != 1)) {
    throw InvalidArgument("TemporalFusion: expected a variance of " + std::to_string(cells) + "x" +
                          std::to_string(cell_rows) + " samples of 16 bits side by side, got " +
                          std::to_string(v.width) + "x" + std::to_string(v.height) + " of " +
                          std::to_string(v.bit_depth));
  }
}

void check_all(std::span<const ConstPlane> guides, std::span<const ConstPlane> others) {
  if (guides.empty() || guides.size() > 4 || others.size() > 3) {
    throw InvalidArgument("TemporalFusion: expected 1 to 4 guides and 0 to 3 others, got " +
                          std::to_string(guides.size()) + " and " + std::to_string(others.size()));
  }
  const ConstPlane& first = guides[0];
  const auto require = [&](const ConstPlane& p, bool good, const char* what) {
    if (!good) {
      throw InvalidArgument(std::string("TemporalFusion: expected ") + what + " of " +
                            std::to_string(first.width) + "x" + std::to_string(first.height) + ", got " +
                            std::to_string(p.width) + "x" + std::to_string(p.height));
    }
  };
  for (const ConstPlane& p : guides) {
    check_plane("TemporalFusion", p);
    require(p, p.width == first.width && p.height == first.height, "every guide to be");
  }
  for (const ConstPlane& p : others) {
    check_plane("TemporalFusion", p);
    require(p, is_all_or_half(p.width, first.width) && is_all_or_half(p.height, first.height),
            "the size, or half,");
  }
}

// Copies `count` samples of a row from x on, wherever that is; between two where `half`.
void copy_moved(const std::uint16_t* row, int width, int x, int count, bool half, std::uint16_t* to) {
  const auto sample = [&](int i) { return row[std::clamp(i, 0, width - 1)]; };
  if (x >= 0 && x + count + (half ? 1 : 0) <= width) {
    if (!half) {
      std::memcpy(to, row + x, static_cast<std::size_t>(count) * sizeof(std::uint16_t));
    } else {
      for (int i = 0; i < count; ++i) {
        to[i] = static_cast<std::uint16_t>((row[x + i] + row[x + i + 1] + 1) >> 1);
      }
    }
    return;
  }
  for (int i = 0; i < count; ++i) {
    to[i] = half ? static_cast<std::uint16_t>((sample(x + i) + sample(x + i + 1) + 1) >> 1) : sample(x + i);
  }
}

struct Scratch {
  AlignedBuffer<std::uint16_t> line;       // samples of a row
  AlignedBuffer<std::uint16_t> predicted;  // of a row that is not there
  AlignedBuffer<float> square;             // sums or means of a row of cells
  AlignedBuffer<float> mean;
  AlignedBuffer<float> squared_mean;  // kCellsABlock + 2 rows
  AlignedBuffer<float> largest;       // kCellsABlock rows
  AlignedBuffer<std::int32_t> sum;
  AlignedBuffer<std::uint16_t> gain;
  std::ptrdiff_t stride = 0;

  void allocate(int width, int cells) {
    const std::size_t samples = row_stride(static_cast<std::size_t>(width) + kMotionBlock + 2);
    stride = static_cast<std::ptrdiff_t>(row_stride(static_cast<std::size_t>(cells) + 2 * kMapMargin));
    const auto row = static_cast<std::size_t>(stride);
    line.allocate(samples);
    predicted.allocate(samples);
    square.allocate(row);
    mean.allocate(row);
    squared_mean.allocate(row * (kCellsABlock + 2));
    largest.allocate(row * kCellsABlock);
    sum.allocate(row);
    gain.allocate(row);
  }
  [[nodiscard]] float* squared_mean_row(int y) { return squared_mean.data() + (y + 1) * stride + kMapMargin; }
  [[nodiscard]] float* largest_row(int y) { return largest.data() + y * stride + kMapMargin; }
};

}  // namespace

namespace denoise {
HWY_EXPORT(read_row);
HWY_EXPORT(add_differences);
HWY_EXPORT(store_squares);
HWY_EXPORT(store_means);
HWY_EXPORT(square_means);
HWY_EXPORT(squared_means);
HWY_EXPORT(raise_to_mean);
HWY_EXPORT(gain_row);
HWY_EXPORT(fuse_row);
}  // namespace denoise

using namespace denoise;  // NOLINT(google-build-using-namespace): the dispatched functions

struct TemporalFusion::State {
  std::vector<StatePlane> planes;  // guides, then others
  std::size_t guides = 0;
  std::vector<ConstPlane> views;
  int cells = 0;  // across
  int cell_rows = 0;
  CellMap<std::uint16_t> square;
  std::vector<MeanMap> means;
  CellMap<std::uint16_t> own;       // variance of y
  CellMap<std::uint16_t> moved;     // variance of x̂
  CellMap<std::uint16_t> variance;  // of x
  CellMap<std::uint16_t> deviation;
  std::vector<Scratch> scratch;  // one a thread
  std::vector<int> fresh;        // cells a block row
  MotionSearch motion;
  bool has_before = false;
  bool is_remembered = false;

  [[nodiscard]] bool is_for(std::span<const ConstPlane> guide_planes,
                            std::span<const ConstPlane> others) const;
  void prepare(std::span<const ConstPlane> guide_planes, std::span<const ConstPlane> others, int threads);
  void take(std::span<const ConstPlane> guide_planes, std::span<const ConstPlane> others,
            const TemporalFusionParameters& parameters);
  void take_variance(const ConstPlane& of_frame);
  void start(std::span<const ConstPlane> in, double sigma, int threads);
  void fuse(std::span<const ConstPlane> in, const TemporalFusionParameters& p, int threads);
  void predict(std::span<const ConstPlane> in, const TemporalFusionParameters& p, const MotionField& field,
               int block_row, Scratch& s);
  void move_row(const StatePlane& plane, int y, const MotionField& field, int block_row,
                std::uint16_t* to) const;
  void move_variance(int row, const MotionField& field, int block_row);
  void decide(std::span<const ConstPlane> in, const TemporalFusionParameters& p, int block_row, Scratch& s);
  void compare_means(const MeanMap& mean, int first, int last, Scratch& s);

  [[nodiscard]] int block_rows() const { return ceil_divide(cell_rows, kCellsABlock); }
  [[nodiscard]] int last_cell_row(int block_row) const {
    return std::min((block_row + 1) * kCellsABlock, cell_rows);
  }
};

// Of the sizes of the frame before.
bool TemporalFusion::State::is_for(std::span<const ConstPlane> guide_planes,
                                   std::span<const ConstPlane> others) const {
  const auto same = [](const ConstPlane& p, const StatePlane& s) {
    return p.width == s.width && p.height == s.height;
  };
  const std::span<const StatePlane> all(planes);
  return guides == guide_planes.size() && all.size() == guides + others.size() &&
         std::equal(guide_planes.begin(), guide_planes.end(), all.begin(), same) &&
         std::equal(others.begin(), others.end(), all.begin() + static_cast<std::ptrdiff_t>(guides), same);
}

void TemporalFusion::State::prepare(std::span<const ConstPlane> guide_planes,
                                    std::span<const ConstPlane> others, int threads) {
  if (!is_for(guide_planes, others)) {
    const ConstPlane& first = guide_planes[0];
    planes.clear();
    means.clear();
    scratch.clear();
    guides = guide_planes.size();
    cells = (first.width + 1) / 2;
    cell_rows = (first.height + 1) / 2;
    const auto add = [&](const ConstPlane& p) { planes.emplace_back(p, first); };
    std::for_each(guide_planes.begin(), guide_planes.end(), add);
    std::for_each(others.begin(), others.end(), add);
    means.resize(1 + others.size());
    for (std::size_t i = 0; i < means.size(); ++i) {
      const StatePlane& p = planes[i == 0 ? 0 : guides + i - 1];
      means[i].map.resize(cells, cell_rows);
      means[i].set(p.columns * p.rows * static_cast<int>(i == 0 ? guides : 1));
    }
    square.resize(cells, cell_rows);
    own.resize(cells, cell_rows);
    moved.resize(cells, cell_rows);
    variance.resize(cells, cell_rows);
    deviation.resize(cells, cell_rows);
    fresh.assign(static_cast<std::size_t>(block_rows()), 0);
    has_before = is_remembered = false;
  }
  while (static_cast<int>(scratch.size()) < threads) {
    scratch.emplace_back().allocate(planes[0].width, cells);
  }
}

// What is known of the frame's noise; without data it is sigma² everywhere.
void TemporalFusion::State::take_variance(const ConstPlane& of_frame) {
  for (int y = 0; y < cell_rows; ++y) {
    if (of_frame.data == nullptr) {
      std::fill_n(own.row(y), cells, std::uint16_t{65535});
    } else {
      std::memcpy(own.row(y), of_frame.row(y), static_cast<std::size_t>(cells) * sizeof(std::uint16_t));
    }
    own.pad(y);
  }
}

// The frame as it is.
void TemporalFusion::State::start(std::span<const ConstPlane> in, double sigma, int threads) {
  const auto read_row = HWY_DYNAMIC_DISPATCH(read_row);
  Workers::shared().run(block_rows(), threads, [&](int block_row, int) {
    for (std::size_t i = 0; i < planes.size(); ++i) {
      StatePlane& p = planes[i];
      const int last = std::min(last_cell_row(block_row) * p.rows, p.height);
      for (int y = block_row * kCellsABlock * p.rows; y < last; ++y) {
        read_row(in[i], y, p.row(y));
      }
    }
    for (int y = block_row * kCellsABlock; y < last_cell_row(block_row); ++y) {
      std::copy_n(own.row(y), cells, variance.row(y));
      std::transform(own.row(y), own.row(y) + cells, deviation.row(y), [&](std::uint16_t n) {
        return static_cast<std::uint16_t>(std::lround(256 * sigma * std::sqrt(n / 65535.0)));
      });
    }
  });
}

// Row y of x̂ of a plane.
void TemporalFusion::State::move_row(const StatePlane& plane, int y, const MotionField& field, int block_row,
                                     std::uint16_t* to) const {
  const int block = kCellsABlock * plane.columns;
  const bool half_columns = plane.columns == 1;
  const bool half_rows = plane.rows == 1;
  std::array<std::uint16_t, kMotionBlock> below;
  for (int column = 0; column < field.columns; ++column) {
    const MotionVector v = field.at(column, block_row);
    const int x = column * block;
    const int count = std::min(block, plane.width - x);
    const int from = x + (half_columns ? v.x >> 1 : v.x);
    const bool between_columns = half_columns && v.x % 2 != 0;
    const int row = y + (half_rows ? v.y >> 1 : v.y);
    copy_moved(plane.row_before(row), plane.width, from, count, between_columns, to + x);
    if (half_rows && v.y % 2 != 0) {
      copy_moved(plane.row_before(row + 1), plane.width, from, count, between_columns, below.data());
      for (int i = 0; i < count; ++i) {
        to[x + i] = static_cast<std::uint16_t>((to[x + i] + below[static_cast<std::size_t>(i)] + 1) >> 1);
      }
    }
  }
  to[plane.width] = to[plane.width - 1];
}

void TemporalFusion::State::move_variance(int row, const MotionField& field, int block_row) {
  std::uint16_t* to = moved.row(row);
  for (int column = 0; column < field.columns; ++column) {
    const MotionVector v = field.at(column, block_row);
    const int x = column * kCellsABlock;
    copy_moved(variance.row(row + (v.y >> 1)), cells, x + (v.x >> 1), std::min(kCellsABlock, cells - x),
               false, to + x);
  }
  moved.pad(row);
}

// x̂ of a row of blocks, and the maps of how far the frame is from it.
void TemporalFusion::State::predict(std::span<const ConstPlane> in, const TemporalFusionParameters& p,
                                    const MotionField& field, int block_row, Scratch& s) {
  const auto read_row = HWY_DYNAMIC_DISPATCH(read_row);
  const auto add_differences = HWY_DYNAMIC_DISPATCH(add_differences);
  const auto store_squares = HWY_DYNAMIC_DISPATCH(store_squares);
  const auto store_means = HWY_DYNAMIC_DISPATCH(store_means);
  float samples = 0;  // a cell
  for (const StatePlane& plane : planes) {
    samples += static_cast<float>(plane.columns * plane.rows);
  }
  for (int row = block_row * kCellsABlock; row < last_cell_row(block_row); ++row) {
    std::fill_n(s.square.data(), cells, 0.0F);
    for (std::size_t i = 0; i < planes.size(); ++i) {
      StatePlane& plane = planes[i];
      const bool is_guide = i < guides;
      if (i == 0 || !is_guide) {
        std::fill_n(s.mean.data(), cells, 0.0F);
      }
      const double sigma = is_guide ? p.sigma : p.other_sigma;
      const auto scale = static_cast<float>(std::ldexp(1.0, 8 - kStateDepth) / sigma);
      const auto uncertainty =
          static_cast<float>(std::sqrt(is_guide ? p.grain : p.other_grain));  // of a mean
      for (int k = 0; k < plane.rows; ++k) {
        // Beyond the last row that one is compared again. It may be another thread's: then x̂ goes nowhere.
        const int y = std::min(row * plane.rows + k, plane.height - 1);
        const bool is_there = row * plane.rows + k < plane.height;
        std::uint16_t* predicted = is_there ? plane.row(y) : s.predicted.data();
        move_row(plane, y, field, block_row, predicted);
        read_row(in[i], y, s.line.data());
        add_differences(s.line.data(), predicted, plane.columns, scale, cells, s.square.data(),
                        s.mean.data());
      }
      if (!is_guide || i + 1 == guides) {
        const auto of_mean =
            static_cast<float>(plane.columns * plane.rows) * static_cast<float>(is_guide ? guides : 1);
        MeanMap& mean = means[is_guide ? 0 : 1 + i - guides];
        store_means(s.mean.data(), 1 / (of_mean * uncertainty), cells, mean.map.row(row));
        mean.map.pad(row);
      }
    }
    store_squares(s.square.data(), 1 / samples, cells, square.row(row));
    square.pad(row);
    move_variance(row, field, block_row);
  }
}

// Raises s.largest, rows first to last - 1, to the squared means of one map.
void TemporalFusion::State::compare_means(const MeanMap& mean, int first, int last, Scratch& s) {
  const auto squared_means = HWY_DYNAMIC_DISPATCH(squared_means);
  const auto raise_to_mean = HWY_DYNAMIC_DISPATCH(raise_to_mean);
  for (int row = first - 1; row <= last; ++row) {
    const auto five = mean.map.around<5>(std::clamp(row, 0, cell_rows - 1));
    squared_means(five.data() + (2 - mean.radius), mean.radius, own.row(row), moved.row(row), mean.noise,
                  cells, s.sum.data() + kMapMargin, s.squared_mean_row(row - first));
  }
  for (int row = 0; row < last - first; ++row) {
    raise_to_mean(s.squared_mean_row(row - 1), s.squared_mean_row(row), s.squared_mean_row(row + 1), cells,
                  s.largest_row(row));
  }
}

// A row of blocks from x̂ to x.
void TemporalFusion::State::decide(std::span<const ConstPlane> in, const TemporalFusionParameters& p,
                                   int block_row, Scratch& s) {
  const auto read_row = HWY_DYNAMIC_DISPATCH(read_row);
  const auto square_means = HWY_DYNAMIC_DISPATCH(square_means);
  const auto gain_row = HWY_DYNAMIC_DISPATCH(gain_row);
  const auto fuse_row = HWY_DYNAMIC_DISPATCH(fuse_row);
  const int first = block_row * kCellsABlock;
  const int last = last_cell_row(block_row);
  for (int row = 0; row < last - first; ++row) {
    std::fill_n(s.largest_row(row), cells, 0.0F);
  }
  for (const MeanMap& mean : means) {
    compare_means(mean, first, last, s);
  }
  fresh[static_cast<std::size_t>(block_row)] = 0;
  for (int row = first; row < last; ++row) {
    const auto five = square.around<2 * kSquareRadius + 1>(row);
    square_means(five.data(), cells, s.sum.data() + kMapMargin, s.square.data());
    const GainRow gains = {s.square.data(),
                           s.largest_row(row - first),
                           own.row(row),
                           moved.row(row),
                           variance.row(row),
                           s.gain.data(),
                           deviation.row(row),
                           static_cast<float>(told_sigma(p)),
                           kDead * static_cast<float>(std::sqrt(std::max(p.grain, p.other_grain)))};
    fresh[static_cast<std::size_t>(block_row)] += gain_row(gains, cells);
    for (std::size_t i = 0; i < planes.size(); ++i) {
      StatePlane& plane = planes[i];
      for (int y = row * plane.rows; y < std::min((row + 1) * plane.rows, plane.height); ++y) {
        read_row(in[i], y, s.line.data());
        fuse_row(s.line.data(), s.gain.data(), plane.columns, plane.width, plane.row(y));
      }
    }
  }
}

void TemporalFusion::State::fuse(std::span<const ConstPlane> in, const TemporalFusionParameters& p,
                                 int threads) {
  const MotionField& field = motion.search(in.first(guides), p.sigma * std::sqrt(p.grain), threads);
  Workers::shared().run(block_rows(), threads, [&](int block_row, int slot) {
    predict(in, p, field, block_row, scratch[static_cast<std::size_t>(slot)]);
  });
  Workers::shared().run(block_rows(), threads, [&](int block_row, int slot) {
    decide(in, p, block_row, scratch[static_cast<std::size_t>(slot)]);
  });
  int all_fresh = 0;
  for (const int n : fresh) {
    all_fresh += n;
  }
  if (all_fresh > kCutShare * cells * cell_rows) {
    start(in, told_sigma(p), threads);
  }
}

TemporalFusion::TemporalFusion() : state_(std::make_unique<State>()) {}
TemporalFusion::~TemporalFusion() = default;
TemporalFusion::TemporalFusion(TemporalFusion&&) noexcept = default;
TemporalFusion& TemporalFusion::operator=(TemporalFusion&&) noexcept = default;

void TemporalFusion::fuse(std::span<const ConstPlane> guides, std::span<const ConstPlane> others,
                          const TemporalFusionParameters& parameters) {
  check_parameters(parameters);
  check_all(guides, others);
  check_variance(parameters.variance, (guides[0].width + 1) / 2, (guides[0].height + 1) / 2);
  or_anew(*state_, [&] { state_->take(guides, others, parameters); });
}

void TemporalFusion::State::take(std::span<const ConstPlane> guide_planes, std::span<const ConstPlane> others,
                                 const TemporalFusionParameters& parameters) {
  const int threads = thread_count(parameters.threads);
  prepare(guide_planes, others, threads);
  std::array<ConstPlane, 7> all;
  std::copy(others.begin(), others.end(), std::copy(guide_planes.begin(), guide_planes.end(), all.begin()));
  const std::span<const ConstPlane> in(all.data(), guides + others.size());
  take_variance(parameters.variance);
  if (has_before) {
    if (!is_remembered) {
      motion.remember(std::span<const ConstPlane>(views).first(guides), true, threads);
    }
    for (StatePlane& p : planes) {
      std::swap(p.now, p.before);
    }
    fuse(in, parameters, threads);
  } else {
    start(in, told_sigma(parameters), threads);
  }
  has_before = true;
  is_remembered = false;
  views.clear();
  for (const StatePlane& p : planes) {
    views.push_back(p.view());
  }
}

std::span<const ConstPlane> TemporalFusion::guides() const {
  return std::span(state_->views).first(std::min(state_->guides, state_->views.size()));
}

std::span<const ConstPlane> TemporalFusion::others() const {
  return std::span(state_->views).subspan(std::min(state_->guides, state_->views.size()));
}

ConstPlane TemporalFusion::variance() const { return view_of(state_->variance); }

ConstPlane TemporalFusion::deviation() const { return view_of(state_->deviation); }

void TemporalFusion::remember(std::span<const ConstPlane> filtered_guides) {
  if (!state_->has_before) {
    return;
  }
  const StatePlane& first = state_->planes[0];
  const auto refuse = [&](const std::string& got) {
    throw InvalidArgument("TemporalFusion: expected the " + std::to_string(state_->guides) +
                          " filtered guides of " + std::to_string(first.width) + "x" +
                          std::to_string(first.height) + ", got " + got);
  };
  if (filtered_guides.size() != state_->guides) {
    refuse(std::to_string(filtered_guides.size()));
  }
  for (const ConstPlane& p : filtered_guides) {
    check_plane("TemporalFusion", p);
    if (p.width != first.width || p.height != first.height) {
      refuse("one of " + std::to_string(p.width) + "x" + std::to_string(p.height));
    }
  }
  or_anew(*state_, [&] {
    state_->motion.remember(filtered_guides, false, static_cast<int>(state_->scratch.size()));
    state_->is_remembered = true;
  });
}

void TemporalFusion::reset() { state_->has_before = state_->is_remembered = false; }

}  // namespace nonlocal
#endif
