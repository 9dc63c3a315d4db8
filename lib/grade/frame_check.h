// What grading asks of a frame's planes, and how it sees them.
#pragma once

#include <span>

#include "grade/frame_job.h"
#include "nonlocal/colour_format.h"
#include "nonlocal/plane.h"

namespace nonlocal::grade {

// Throws InvalidArgument, naming `who`, unless there are as many planes as the format says, of sizes and
// depths that fit.
void check_frame(const char* who, std::span<const ConstPlane> in, const ColourFormat& format);

// And unless `out` has the same sizes and lies in the place of `in` or elsewhere.
void check_frames(const char* who, std::span<const ConstPlane> in, std::span<const Plane> out,
                  const ColourFormat& format);

// Has every sample of one its place in the other?
bool is_same_memory(const ConstPlane& a, const ConstPlane& b);

// `out` may be none.
FrameJob make_frame_job(std::span<const ConstPlane> in, std::span<const Plane> out,
                        const ColourFormat& format, double strength);

}  // namespace nonlocal::grade
