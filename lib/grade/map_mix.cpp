#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>

#include "attention/matrix_check.h"
#include "core/workers.h"
#include "grade/folded.h"
#include "grade/frame_check.h"
#include "grade/map_cells.h"
#include "nonlocal/error.h"
#include "nonlocal/relevance.h"

namespace nonlocal {
namespace {

using grade::CellPlace;

constexpr const char* kName = "mix_by_map";
constexpr int kMostCells = 1024;

// The map along one row of samples: a value for each column of cells.
struct Line {
  std::array<float, kMostCells + 1> values;
  int cells;

  Line(const ConstMatrix& map, const CellPlace& y) : cells(map.columns) {
    const float* upper = map.row(y.first);
    const float* lower = map.row(y.second);
    for (int c = 0; c < cells; ++c) {
      const float value = upper[c] + y.share * (lower[c] - upper[c]);
      values[c] = value > 0 ? std::min(value, 1.0F) : 0.0F;  // not a number is 0
    }
    values[cells] = values[cells - 1];
  }
};

template <typename Sample>
void mix(const ConstPlane& changed, const Plane& plane, int y, int begin, int end, float weight,
         float slope) {
  const auto* from = reinterpret_cast<const Sample*>(changed.row(y));
  auto* to = reinterpret_cast<Sample*>(plane.row(y));
  for (int x = begin; x < end; ++x) {
    const float w = std::clamp(weight + slope * static_cast<float>(x - begin), 0.0F, 1.0F);
    Sample& sample = to[static_cast<std::ptrdiff_t>(x) * plane.step];
    const auto own = static_cast<float>(sample >> plane.shift);
    const auto other =
        static_cast<float>(from[static_cast<std::ptrdiff_t>(x) * changed.step] >> changed.shift);
    sample = static_cast<Sample>(static_cast<int>(own + w * (other - own) + 0.5F) << plane.shift);
  }
}

// From the middle of one cell to that of the next the weight is a straight line.
template <typename Sample>
void mix_row(const ConstMatrix& map, const ConstPlane& changed, const Plane& plane, int y) {
  const Line line(map, CellPlace(y, plane.height, map.rows));
  const double samples_a_cell = static_cast<double>(plane.width) / line.cells;
  int begin = 0;
  for (int cell = -1; cell < line.cells && begin < plane.width; ++cell) {
    // This line ends at the middle of cell + 1, whose left half belongs to it.
    const int end =
        cell + 1 < line.cells
            ? std::min(plane.width, static_cast<int>(std::ceil((cell + 1.5) * samples_a_cell - 0.5)))
            : plane.width;
    const float first = line.values[std::max(cell, 0)];
    const float difference = cell < 0 ? 0 : line.values[cell + 1] - first;
    if (first != 0 || difference != 0) {
      const double share = (begin + 0.5) / samples_a_cell - 0.5 - cell;
      mix<Sample>(changed, plane, y, begin, end, first + difference * static_cast<float>(share),
                  difference / static_cast<float>(samples_a_cell));
    }
    begin = std::max(begin, end);
  }
}

}  // namespace

void mix_by_map(const ConstMatrix& map, std::span<const ConstPlane> changed, std::span<const Plane> frame,
                const ColourFormat& format, int threads) {
  grade::check_frames(kName, changed, frame, format);
  grade::check_threads(kName, threads);
  if (map.rows < 1 || map.columns < 1 || map.columns > kMostCells) {
    throw InvalidArgument(std::string(kName) + ": expected a map of 1x1 cells or more, at most " +
                          std::to_string(kMostCells) + " in a row, got " + std::to_string(map.columns) + "x" +
                          std::to_string(map.rows));
  }
  attention::check_matrix(kName, "map", map, map.rows, map.columns);
  for (std::size_t i = 0; i < frame.size(); ++i) {
    if (changed[i].bit_depth != frame[i].bit_depth) {
      throw InvalidArgument(std::string(kName) + ": expected one bit depth, got " +
                            std::to_string(changed[i].bit_depth) + " and " +
                            std::to_string(frame[i].bit_depth));
    }
    const auto row = frame[i].bytes_per_sample() == 1 ? mix_row<std::uint8_t> : mix_row<std::uint16_t>;
    Workers::shared().run(frame[i].height, thread_count(threads),
                          [&](int y, int) { row(map, changed[i], frame[i], y); });
  }
}

}  // namespace nonlocal
