// Rows of samples, between the planes' own layouts and what the convolutions read and write.
#pragma once

#include <cstdint>

#include "nonlocal/plane.h"

namespace nonlocal::network {

// Samples x .. x + count - 1 of row y, all within the plane, in 8-bit code values: exact.
void load_codes(const ConstPlane& plane, int x, int y, int count, float* codes);

// Rounds code values to the plane's bit depth, half to even, clamps and stores them.
void store_codes(const float* codes, const Plane& plane, int x, int y, int count);

// (in - offset) * scale, for the convolutions of each type: rounded to nearest, half to even, and for bytes
// clamped.
void convert(const float* in, float offset, float scale, int count, float* out);
void convert(const float* in, float offset, float scale, int count, std::uint16_t* out);  // bfloat16
void convert(const float* in, float offset, float scale, int count, std::uint8_t* out);

// sum += in
void add(const float* in, int count, float* sum);

// to = from + share (to - from)
void blend(const float* from, float share, int count, float* to);

// codes += 255 residual
void add_residual(const float* residual, int count, float* codes);

}  // namespace nonlocal::network
