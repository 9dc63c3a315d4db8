#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <vector>

#include "core/workers.h"
#include "grade/colour_space.h"
#include "grade/folded.h"
#include "grade/frame_check.h"
#include "grade/map_cells.h"
#include "nonlocal/error.h"
#include "nonlocal/relevance.h"

namespace nonlocal {
namespace {

constexpr const char* kName = "blend_heat_map";
constexpr int kSteps = 1024;

using grade::CellPlace;
using grade::MapRow;
using Colour = std::array<double, 3>;

// The curve in CIELAB that colours lie on.
Colour curve(double t) {
  const double hue = (280 + 180 * t) * std::numbers::pi / 180;
  const double chroma = 20 + 35 * t + 35 * std::sin(std::numbers::pi * t);
  return {10 + 78 * t, chroma * std::cos(hue), chroma * std::sin(hue)};
}

// ISO/CIE 11664-4, white D65.
Colour lab_to_xyz(const Colour& lab) {
  const double fy = (lab[0] + 16) / 116;
  const auto inverse = [](double f) {
    constexpr double kEdge = 6.0 / 29;
    return f > kEdge ? f * f * f : 3 * kEdge * kEdge * (f - 4.0 / 29);
  };
  return {0.95047 * inverse(fy + lab[1] / 500), inverse(fy), 1.08883 * inverse(fy - lab[2] / 200)};
}

// IEC 61966-2-1.
Colour xyz_to_srgb(const Colour& xyz) {
  constexpr double kMatrix[3][3] = {{3.2404542, -1.5371385, -0.4985314},
                                    {-0.9692660, 1.8760108, 0.0415560},
                                    {0.0556434, -0.2040259, 1.0572252}};
  Colour colour{};
  for (int i = 0; i < 3; ++i) {
    const double linear = kMatrix[i][0] * xyz[0] + kMatrix[i][1] * xyz[1] + kMatrix[i][2] * xyz[2];
    const double v = linear <= 0.0031308 ? 12.92 * linear : 1.055 * std::pow(linear, 1 / 2.4) - 0.055;
    colour[i] = std::clamp(v, 0.0, 1.0);
  }
  return colour;
}

// Colours at even steps of the curve's length.
std::array<Colour, kSteps + 1> make_colours() {
  constexpr int kPieces = 16 * kSteps;
  std::vector<double> length = {0};
  Colour before = curve(0);
  for (int i = 1; i <= kPieces; ++i) {
    const Colour now = curve(static_cast<double>(i) / kPieces);
    length.push_back(length.back() + std::hypot(now[0] - before[0], now[1] - before[1], now[2] - before[2]));
    before = now;
  }
  std::array<Colour, kSteps + 1> colours;
  for (int i = 0; i <= kSteps; ++i) {
    const double wanted = length.back() * i / kSteps;
    const auto after = std::lower_bound(length.begin() + 1, length.end() - 1, wanted);
    const double piece =
        static_cast<double>(after - length.begin()) - (*after - wanted) / (*after - *(after - 1));
    colours[i] = xyz_to_srgb(lab_to_xyz(curve(piece / kPieces)));
  }
  return colours;
}

const std::array<Colour, kSteps + 1>& colours() {
  static const std::array<Colour, kSteps + 1> all = make_colours();
  return all;
}

template <typename T>
T* sample(std::byte* row, const Plane& p, int x) {
  return reinterpret_cast<T*>(row) + static_cast<std::ptrdiff_t>(x) * p.step;
}

// One plane's part: the codes of the colour map, and how they are mixed.
struct Layer {
  ConstPlane in;
  Plane out;
  float in_by, in_plus;  // what the frame's own code adds
  std::array<float, kSteps + 1> code;
};

template <typename In, typename Out>
void blend_row(const Layer& l, const ConstMatrix& map, float scale, int y) {
  const auto* from = reinterpret_cast<const In*>(l.in.row(y));
  const auto most = static_cast<float>((1 << l.out.bit_depth) - 1);
  const MapRow row(map, CellPlace(y, l.in.height, map.rows));
  row.for_each_piece(l.in.width, [&](int begin, int end, float value, float slope) {
    for (int x = begin; x < end; ++x) {
      const float at = (value + slope * static_cast<float>(x - begin)) * scale;
      const long step = at > 0 ? std::lrint(std::min(at, static_cast<float>(kSteps))) : 0;
      const int own = from[static_cast<std::ptrdiff_t>(x) * l.in.step] >> l.in.shift;
      const float code = static_cast<float>(own) * l.in_by + l.in_plus + l.code[step];
      *sample<Out>(l.out.row(y), l.out, x) =
          static_cast<Out>(std::lrint(std::clamp(code, 0.0F, most)) << l.out.shift);
    }
  });
}

void blend_row(const Layer& l, const ConstMatrix& map, float scale, int y) {
  if (l.in.bit_depth > 8) {
    l.out.bit_depth > 8 ? blend_row<std::uint16_t, std::uint16_t>(l, map, scale, y)
                        : blend_row<std::uint16_t, std::uint8_t>(l, map, scale, y);
  } else {
    l.out.bit_depth > 8 ? blend_row<std::uint8_t, std::uint16_t>(l, map, scale, y)
                        : blend_row<std::uint8_t, std::uint8_t>(l, map, scale, y);
  }
}

Layer make_layer(const grade::FrameJob& job, const ColourFormat& format, int plane, double opacity) {
  const grade::ColourSpace space = grade::colour_space(format);
  Layer l{job.in[plane], job.out[plane], 0, 0, {}};
  // level = code * by + plus of the input, and back for the output.
  const grade::FloatScale& in = job.in_scale[plane];
  const grade::FloatScale& out = job.out_scale[plane];
  const auto own = static_cast<float>(1 - opacity);
  l.in_by = own * in.by * out.inverse;
  l.in_plus = own * (in.plus * out.inverse + out.inverse_plus);
  for (int i = 0; i <= kSteps; ++i) {
    double level = grade::level_origin(format, plane);
    for (int c = 0; c < 3; ++c) {
      level += space.from_rgb[plane][c] * colours()[i][c];
    }
    l.code[i] = static_cast<float>(opacity * (level * out.inverse + out.inverse_plus));
  }
  return l;
}

}  // namespace

std::array<double, 3> heat_colour(double value) {
  const double at = std::clamp(std::isnan(value) ? 0.0 : value, 0.0, 1.0) * kSteps;
  const int before = std::min(static_cast<int>(at), kSteps - 1);
  Colour colour{};
  for (int c = 0; c < 3; ++c) {
    const double from = colours()[before][c];
    colour[c] = from + (at - before) * (colours()[before + 1][c] - from);
  }
  return colour;
}

void blend_heat_map(const ConstMatrix& map, std::span<const ConstPlane> in, std::span<const Plane> out,
                    const ColourFormat& format, const HeatMapParameters& parameters) {
  grade::check_frames(kName, in, out, format);
  grade::check_threads(kName, parameters.threads);
  grade::check_map(kName, map);
  if (!(parameters.most > 0 && std::isfinite(parameters.most)) ||
      !(parameters.opacity >= 0 && parameters.opacity <= 1)) {
    throw InvalidArgument(std::string(kName) + ": expected most above 0 and an opacity of 0 to 1, got " +
                          std::to_string(parameters.most) + " and " + std::to_string(parameters.opacity));
  }
  const grade::FrameJob job = grade::make_frame_job(in, out, format, 1);
  const auto scale = static_cast<float>(kSteps / parameters.most);
  for (int plane = 0; plane < job.planes; ++plane) {
    const Layer layer = make_layer(job, format, plane, parameters.opacity);
    Workers::shared().run(layer.in.height, thread_count(parameters.threads),
                          [&](int y, int) { blend_row(layer, map, scale, y); });
  }
}

}  // namespace nonlocal
