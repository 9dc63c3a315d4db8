#include "grade/frame_check.h"

#include <cmath>
#include <string>

#include "core/planes.h"
#include "grade/colour_space.h"
#include "nonlocal/error.h"

namespace nonlocal::grade {
namespace {

[[noreturn]] void fail(const char* who, const std::string& problem) {
  throw InvalidArgument(std::string(who) + ": " + problem);
}

std::string size_of(const ConstPlane& p) { return std::to_string(p.width) + "x" + std::to_string(p.height); }

bool is_whole_or_half(int size, int whole) { return size == whole || size == (whole + 1) / 2; }

void check_sizes(const char* who, std::span<const ConstPlane> in, const ColourFormat& format) {
  const bool is_rgb = format.model == ColourModel::kRgb;
  for (const ConstPlane& p : in.subspan(1)) {
    const bool fits = is_rgb ? p.width == in[0].width && p.height == in[0].height
                             : is_whole_or_half(p.width, in[0].width) &&
                                   is_whole_or_half(p.height, in[0].height) && p.width == in[1].width &&
                                   p.height == in[1].height;
    if (!fits || p.bit_depth != in[0].bit_depth) {
      fail(who, std::string("expected planes of ") +
                    (is_rgb ? "one size" : "one size or chroma of half of it") +
                    " and one bit depth, got one of " + size_of(p) + " of " + std::to_string(p.bit_depth) +
                    " bits beside " + size_of(in[0]) + " of " + std::to_string(in[0].bit_depth));
    }
  }
}

void check_memory(const char* who, std::span<const ConstPlane> in, std::span<const Plane> out) {
  for (std::size_t i = 0; i < in.size(); ++i) {
    for (std::size_t k = 0; k < in.size(); ++k) {
      if (overlap(in[i], out[k]) && !(is_same_memory(in[i], out[i]) && is_same_memory(in[k], out[k]))) {
        fail(who, "expected the output in the input's place or elsewhere, they overlap");
      }
    }
  }
}

FloatScale float_scale(const ColourFormat& format, int channel, int bit_depth) {
  const LevelScale s = level_scale(format, channel, bit_depth);
  return {static_cast<float>(s.by), static_cast<float>(s.plus), static_cast<float>(1 / s.by),
          static_cast<float>(-s.plus / s.by), static_cast<float>((1 << bit_depth) - 1)};
}

std::array<ChromaTaps, 2> chroma_taps(bool is_half, bool is_at_even) {
  if (!is_half) {
    return {{{0, 1, 0}, {0, 1, 0}}};
  }
  if (is_at_even) {
    return {{{0, 1, 0}, {0, 0.5F, 0.5F}}};
  }
  return {{{-1, 0.25F, 0.75F}, {0, 0.75F, 0.25F}}};
}

}  // namespace

bool is_same_memory(const ConstPlane& a, const ConstPlane& b) {
  return a.data == b.data && a.stride == b.stride && a.step == b.step &&
         a.bytes_per_sample() == b.bytes_per_sample();
}

void check_frame(const char* who, std::span<const ConstPlane> in, const ColourFormat& format) {
  const std::size_t planes = format.model == ColourModel::kGray ? 1 : 3;
  if (in.size() != planes) {
    fail(who, "expected " + std::to_string(planes) + " planes, got " + std::to_string(in.size()));
  }
  for (const ConstPlane& p : in) {
    check_plane(who, p);
  }
  check_sizes(who, in, format);
}

void check_frames(const char* who, std::span<const ConstPlane> in, std::span<const Plane> out,
                  const ColourFormat& format) {
  check_frame(who, in, format);
  if (out.size() != in.size()) {
    fail(who, "expected " + std::to_string(in.size()) + " planes for the output, got " +
                  std::to_string(out.size()));
  }
  for (std::size_t i = 0; i < in.size(); ++i) {
    check_plane(who, out[i]);
    if (out[i].width != in[i].width || out[i].height != in[i].height ||
        out[i].bit_depth != out[0].bit_depth) {
      fail(who, "expected the output's planes to have the input's sizes and one bit depth, got " +
                    size_of(out[i]) + " of " + std::to_string(out[i].bit_depth) + " bits for " +
                    size_of(in[i]));
    }
  }
  check_memory(who, in, out);
}

FrameJob make_frame_job(std::span<const ConstPlane> in, std::span<const Plane> out,
                        const ColourFormat& format, double strength) {
  FrameJob job{};
  job.planes = static_cast<int>(in.size());
  job.width = in[0].width;
  job.height = in[0].height;
  for (int c = 0; c < job.planes; ++c) {
    job.in[c] = in[c];
    job.in_scale[c] = float_scale(format, c, in[c].bit_depth);
    if (!out.empty()) {
      job.out[c] = out[c];
      job.out_scale[c] = float_scale(format, c, out[c].bit_depth);
    }
  }
  if (job.planes == 3) {
    // A single column is as wide as half of it: no matter.
    job.half_x = in[1].width < in[0].width ? 1 : 0;
    job.half_y = in[1].height < in[0].height ? 1 : 0;
  }
  job.x_taps = chroma_taps(job.half_x != 0, format.site != ChromaSite::kCentre);
  job.y_taps = chroma_taps(job.half_y != 0, format.site == ChromaSite::kTopLeft);
  job.strength = static_cast<float>(strength);
  return job;
}

}  // namespace nonlocal::grade
