// When a recording's frames are shown, and from which of them it can be decoded: read without decoding.
#pragma once

#include <gst/gst.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "media_file.h"

namespace nonlocal::tools {

struct FrameIndex {
  int64_t frames = 0;
  std::vector<GstClockTime>
      times;                  // stream times, rising: of all frames; empty where some have none of their own
  std::vector<int64_t> keys;  // which of them are key frames, rising
};

// `tick` is called about ten times a second with the frames found so far. Throws Failure, and Interrupted.
FrameIndex index_frames(const std::string& path, const MediaFile& media,
                        const std::function<void(int64_t)>& tick);

}  // namespace nonlocal::tools
