// What the filters of this folder ask of their parameters and frames, before anything is written.
#pragma once

#include <span>

#include "nonlocal/non_local_means.h"
#include "nonlocal/video_denoiser.h"

namespace nonlocal {

// Throws InvalidArgument unless every parameter is in its range.
void check_parameters(const NonLocalMeansParameters& parameters);

// Throws InvalidArgument unless VideoDenoiser can filter such planes so.
void check_frame(std::span<const Plane> luma, std::span<const Plane> chroma,
                 const VideoDenoiserParameters& parameters);

}  // namespace nonlocal
