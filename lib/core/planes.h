// What every filter asks of the planes it is given.
#pragma once

#include <span>
#include <string>

#include "nonlocal/plane.h"

namespace nonlocal {

// Throws InvalidArgument, naming `filter`, unless `in` and `out` are 1 to `most` planes of one size and
// depth.
void check_planes(const char* filter, std::span<const ConstPlane> in, std::span<const Plane> out, int most);

// Such as "1920x1080 of 8 bits".
std::string described(const ConstPlane& plane);

// Does a plane of chroma have all of luma's columns, or rows, or half of them, rounded either way?
bool is_all_or_half(int size, int whole);

// Do two planes share memory? Of each all counts from the first byte to the last, what lies between its
// samples too.
bool overlap(const ConstPlane& a, const ConstPlane& b);

// Throws InvalidArgument unless the plane's own fields make sense.
void check_plane(const char* filter, const ConstPlane& plane);

}  // namespace nonlocal
