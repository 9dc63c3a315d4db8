// Where live pictures come from: a camera, a network camera, a file that begins again at its end, a still
// picture, a test.
#pragma once

#include <string>

#include "pipeline_text.h"

namespace nonlocal::tools {

struct LiveSource {
  std::string name;          // for people
  PipelineText text = {};    // elements up to raw video; the last has no "!" behind it
  bool is_recorded = false;  // read as fast as wanted, with an end, and a beginning to go back to
};

// `name`: a V4L2 device such as /dev/video0, an rtsp:// address, a file, "test", or empty for the first
// camera. `size`, WIDTHxHEIGHT, and `fps` are those of the test's pictures; `fps` of a still one, too. Throws
// Failure for what is none of these, or not there.
LiveSource live_source(const std::string& name, const std::string& size, int fps);

}  // namespace nonlocal::tools
