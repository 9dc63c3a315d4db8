// Frames filtered as they come, from or to another program: YUV4MPEG2 on stdin or stdout, written "-".
// Nothing is kept that another run could go on from.
#pragma once

#include <functional>

#include "filter_pipeline.h"

namespace nonlocal::tools {

// The name for stdin and stdout.
inline constexpr const char* kStandardStream = "-";

bool is_stream(const FilterJob& job);

struct StreamResult {
  int64_t frames = 0;
  bool is_uneven = false;  // they do not follow each other as their rate says, the one thing a stream can say
};

// How many frames went through; `tick` is called about ten times a second with the frames so far. A file has
// its name only once it is whole. Throws Failure, and Interrupted.
StreamResult run_stream(const FilterJob& job, const std::function<void(int64_t)>& tick);

}  // namespace nonlocal::tools
