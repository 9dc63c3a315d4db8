#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>

#include "core/workers.h"
#include "grade/colour_space.h"
#include "grade/folded.h"
#include "grade/frame_check.h"
#include "grade/map_cells.h"
#include "nonlocal/error.h"
#include "nonlocal/relevance.h"

namespace nonlocal {
namespace {

using grade::CellPlace;
using grade::MapRow;

constexpr const char* kName = "paint_mask";

// One plane, and its codes of black and white.
struct Layer {
  Plane out;
  float black;
  float white;
};

Layer make_layer(const Plane& out, const grade::FloatScale& scale, const ColourFormat& format, int plane) {
  const grade::ColourSpace space = grade::colour_space(format);
  const double black = grade::level_origin(format, plane);
  double white = black;
  for (const double share : space.from_rgb[plane]) {
    white += share;
  }
  const auto code = [&scale](double level) {
    return std::clamp(std::round(static_cast<float>(level) * scale.inverse + scale.inverse_plus), 0.0F,
                      scale.most);
  };
  return {out, code(black), code(white)};
}

template <typename Sample>
void paint_row(const Layer& l, const ConstMatrix& map, float scale, int y) {
  auto* to = reinterpret_cast<Sample*>(l.out.row(y));
  const float by = (l.white - l.black) * scale;
  const MapRow row(map, CellPlace(y, l.out.height, map.rows));
  row.for_each_piece(l.out.width, [&](int begin, int end, float value, float slope) {
    const float first = l.black + by * value + 0.5F;
    const float step = by * slope;
    const float least = l.black + 0.5F;
    const float most = l.white + 0.5F;
    for (int x = begin; x < end; ++x) {
      const float at = first + step * static_cast<float>(x - begin);
      const float code = at > least ? std::min(at, most) : least;  // where it is not a number, too
      to[static_cast<std::ptrdiff_t>(x) * l.out.step] =
          static_cast<Sample>(static_cast<int>(code) << l.out.shift);
    }
  });
}

}  // namespace

void paint_mask(const ConstMatrix& map, std::span<const Plane> frame, const ColourFormat& format,
                const MaskParameters& parameters) {
  std::array<ConstPlane, 4> planes;  // one more than any format has, to be refused
  const std::span<const ConstPlane> seen = std::span(planes).first(std::min(frame.size(), planes.size()));
  std::copy_n(frame.begin(), seen.size(), planes.begin());
  grade::check_frame(kName, seen, format);
  grade::check_threads(kName, parameters.threads);
  grade::check_map(kName, map);
  if (!(parameters.most > 0 && std::isfinite(parameters.most))) {
    throw InvalidArgument(std::string(kName) + ": expected most above 0, got " +
                          std::to_string(parameters.most));
  }
  const grade::FrameJob job = grade::make_frame_job(seen, {}, format, 1);
  const auto scale = static_cast<float>(1 / parameters.most);
  for (int plane = 0; plane < job.planes; ++plane) {
    const Layer layer = make_layer(frame[plane], job.in_scale[plane], format, plane);
    const auto row = layer.out.bytes_per_sample() == 1 ? paint_row<std::uint8_t> : paint_row<std::uint16_t>;
    Workers::shared().run(layer.out.height, thread_count(parameters.threads),
                          [&](int y, int) { row(layer, map, scale, y); });
  }
}

}  // namespace nonlocal
