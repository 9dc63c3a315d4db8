// What a video encoder leaves of frames.
#pragma once

#include "evaluate_material.h"

namespace nonlocal::tools {

// Coded by x264 (the command ffmpeg; preset medium, key frames 250 apart) and decoded again; `crf` is its
// constant rate factor. GRAY8 is coded in full range. Throws Failure.
Sequence through_x264(const Sequence& sequence, double crf, const Tick& tick);

}  // namespace nonlocal::tools
