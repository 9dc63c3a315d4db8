// What a stream's caps say of its colours.
#pragma once

#include <gst/video/video.h>

#include "nonlocal/colour_format.h"

namespace nonlocal {

// Where the caps do not say: BT.709 from 720 rows on, else BT.601; limited range but for RGB.
ColourFormat colour_format_of(const GstVideoInfo& info);

}  // namespace nonlocal
