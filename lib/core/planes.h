// What every filter asks of the planes it is given.
#pragma once

#include <span>

#include "nonlocal/plane.h"

namespace nonlocal {

// Throws InvalidArgument, naming `filter`, unless `in` and `out` are 1 to `most` planes of one size and
// depth.
void check_planes(const char* filter, std::span<const ConstPlane> in, std::span<const Plane> out, int most);

// Do two planes share memory? Of each all counts from the first byte to the last, what lies between its
// samples too.
bool overlap(const ConstPlane& a, const ConstPlane& b);

// Throws InvalidArgument unless the plane's own fields make sense.
void check_plane(const char* filter, const ConstPlane& plane);

}  // namespace nonlocal
