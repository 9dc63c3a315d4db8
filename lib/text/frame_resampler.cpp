#include "text/frame_resampler.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "core/workers.h"
#include "grade/colour_space.h"

namespace nonlocal::text {
namespace {

constexpr int kChannels = 3;

double support_of(PictureFilter filter) { return filter == PictureFilter::kCubic ? 2 : 1; }

double weight_of(PictureFilter filter, double distance) {
  constexpr double a = -0.5;
  const double d = std::abs(distance);
  if (filter == PictureFilter::kLinear) {
    return std::max(1 - d, 0.0);
  }
  if (d <= 1) {
    return ((a + 2) * d - (a + 3)) * d * d + 1;
  }
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

// line[x] = the weighted sum of the rows' codes.
template <typename Sample>
void sum_rows(const ConstPlane& p, const LineTaps& taps, float* line) {
  std::fill_n(line, p.width, 0.0F);
  for (int k = 0; k < taps.count; ++k) {
    const auto* from = reinterpret_cast<const Sample*>(p.row(taps.first + k));
    const float weight = taps.weight[k];
    if (p.step == 1) {
      for (int x = 0; x < p.width; ++x) {
        line[x] += weight * static_cast<float>(from[x] >> p.shift);
      }
    } else {
      for (int x = 0; x < p.width; ++x) {
        line[x] += weight * static_cast<float>(from[static_cast<std::ptrdiff_t>(x) * p.step] >> p.shift);
      }
    }
  }
}

void sum_rows(const ConstPlane& p, const LineTaps& taps, float* line) {
  p.bit_depth > 8 ? sum_rows<std::uint16_t>(p, taps, line) : sum_rows<std::uint8_t>(p, taps, line);
}

}  // namespace

void AxisTaps::make(PictureFilter filter, int samples, double step, double origin, int length, int count) {
  places_.clear();
  weights_.clear();
  const double stretch = std::max(length / (count * step), 1.0);
  const double support = support_of(filter) * stretch;
  for (int i = 0; i < count; ++i) {
    // Sample k covers k to k + 1.
    const double centre = ((i + 0.5) * length / count - origin) / step + 0.5;
    const int first = std::clamp(static_cast<int>(centre - support + 0.5), 0, samples - 1);
    const int last = std::clamp(static_cast<int>(centre + support + 0.5), first + 1, samples);
    places_.push_back({first, last - first, weights_.size()});
    const auto weight = [&](int k) { return weight_of(filter, (k + 0.5 - centre) / stretch); };
    double sum = 0;
    for (int k = first; k < last; ++k) {
      sum += weight(k);
    }
    for (int k = first; k < last; ++k) {
      weights_.push_back(static_cast<float>(weight(k) / sum));
    }
  }
}

void FrameResampler::prepare(const Shape& s) {
  shape_ = s;
  const auto axis = [&](AxisTaps& taps, int samples, int length, bool is_at_first, int count) {
    const bool is_half = samples < length;
    taps.make(filter_, samples, is_half ? 2 : 1, is_half && !is_at_first ? 1 : 0.5, length, count);
  };
  axis(across_[0], s.width, s.width, true, s.columns);
  axis(down_[0], s.height, s.height, true, s.rows);
  axis(across_[1], s.chroma_width, s.width, s.format.site != ChromaSite::kCentre, s.columns);
  axis(down_[1], s.chroma_height, s.height, s.format.site == ChromaSite::kTopLeft, s.rows);
  const std::ptrdiff_t plane = static_cast<std::ptrdiff_t>(s.columns) * s.rows;
  samples_.allocate(static_cast<std::size_t>(kChannels * plane));
  lines_.allocate(static_cast<std::size_t>(s.width) * static_cast<std::size_t>(threads_));
  for (std::size_t c = 0; c < kChannels; ++c) {
    rgb_[c] = {samples_.data() + static_cast<std::ptrdiff_t>(c) * plane, s.columns, s.rows, s.columns};
  }
}

void FrameResampler::make_row(std::span<const ConstPlane> frame, int row, float* line) {
  const std::ptrdiff_t plane = static_cast<std::ptrdiff_t>(shape_.columns) * shape_.rows;
  for (std::size_t c = 0; c < frame.size(); ++c) {
    const std::size_t kind = c == 0 ? 0 : 1;
    sum_rows(frame[c], down_[kind].at(row), line);
    float* to = samples_.data() + static_cast<std::ptrdiff_t>(c) * plane +
                static_cast<std::ptrdiff_t>(row) * shape_.columns;
    for (int x = 0; x < shape_.columns; ++x) {
      const LineTaps taps = across_[kind].at(x);
      to[x] = std::inner_product(taps.weight, taps.weight + taps.count, line + taps.first, 0.0F);
    }
  }
}

// Codes become colours, in place.
void FrameResampler::make_colours(int planes, int bit_depth, int row) {
  const grade::ColourSpace space = grade::colour_space(shape_.format);
  const std::ptrdiff_t plane = static_cast<std::ptrdiff_t>(shape_.columns) * shape_.rows;
  float* at = samples_.data() + static_cast<std::ptrdiff_t>(row) * shape_.columns;
  float by[kChannels][kChannels];
  float plus[kChannels];
  for (int i = 0; i < kChannels; ++i) {
    double sum = space.offset[static_cast<std::size_t>(i)];
    for (int c = 0; c < kChannels; ++c) {
      const grade::LevelScale scale = grade::level_scale(shape_.format, c, bit_depth);
      const double m = space.to_rgb[static_cast<std::size_t>(i)][static_cast<std::size_t>(c)];
      by[i][c] = static_cast<float>(m * scale.by);
      sum += m * scale.plus;
    }
    plus[i] = static_cast<float>(sum);
  }
  for (int x = 0; x < shape_.columns; ++x, ++at) {
    float code[kChannels];
    for (int c = 0; c < kChannels; ++c) {
      code[c] = at[std::min(c, planes - 1) * plane];
    }
    for (int i = 0; i < kChannels; ++i) {
      const float v = by[i][0] * code[0] + by[i][1] * code[1] + by[i][2] * code[2] + plus[i];
      at[i * plane] = std::clamp(v, 0.0F, 1.0F);
    }
  }
}

void FrameResampler::run(std::span<const ConstPlane> frame, const ColourFormat& format, int columns,
                         int rows) {
  const ConstPlane& chroma = frame.back();
  const Shape shape = {format, frame[0].width, frame[0].height, chroma.width, chroma.height, columns, rows};
  if (!(shape == shape_)) {
    prepare(shape);
  }
  Workers::shared().run(rows, threads_, [&](int row, int slot) {
    make_row(frame, row, lines_.data() + static_cast<std::ptrdiff_t>(slot) * shape_.width);
    make_colours(static_cast<int>(frame.size()), frame[0].bit_depth, row);
  });
}

}  // namespace nonlocal::text
