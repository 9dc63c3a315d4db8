#include <algorithm>
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
using grade::MapRow;

constexpr const char* kName = "mix_by_map";

template <typename Sample>
void mix(const ConstPlane& changed, const Plane& plane, int y, int begin, int end, float weight,
         float slope) {
  const auto* from = reinterpret_cast<const Sample*>(changed.row(y));
  auto* to = reinterpret_cast<Sample*>(plane.row(y));
  for (int x = begin; x < end; ++x) {
    const float at = weight + slope * static_cast<float>(x - begin);
    const float w = at > 0 ? std::min(at, 1.0F) : 0;  // where it is not a number, too
    Sample& sample = to[static_cast<std::ptrdiff_t>(x) * plane.step];
    const auto own = static_cast<float>(sample >> plane.shift);
    const auto other =
        static_cast<float>(from[static_cast<std::ptrdiff_t>(x) * changed.step] >> changed.shift);
    sample = static_cast<Sample>(static_cast<int>(own + w * (other - own) + 0.5F) << plane.shift);
  }
}

template <typename Sample>
void mix_row(const ConstMatrix& map, const ConstPlane& changed, const Plane& plane, int y) {
  const MapRow row(map, CellPlace(y, plane.height, map.rows));
  row.for_each_piece(plane.width, [&](int begin, int end, float weight, float slope) {
    if (weight > 0 || slope != 0) {
      mix<Sample>(changed, plane, y, begin, end, weight, slope);
    }
  });
}

}  // namespace

void grade::check_map(const char* who, const ConstMatrix& map) {
  if (map.rows < 1 || map.columns < 1 || map.columns > kMostMapColumns) {
    throw InvalidArgument(std::string(who) + ": expected a map of 1x1 cells or more, at most " +
                          std::to_string(kMostMapColumns) + " in a row, got " + std::to_string(map.rows) +
                          "x" + std::to_string(map.columns));
  }
  attention::check_matrix(who, "map", map, map.rows, map.columns);
}

void mix_by_map(const ConstMatrix& map, std::span<const ConstPlane> changed, std::span<const Plane> frame,
                const ColourFormat& format, int threads) {
  grade::check_frames(kName, changed, frame, format);
  grade::check_threads(kName, threads);
  grade::check_map(kName, map);
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
