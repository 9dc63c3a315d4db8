// The clean version of a noisy clip, frame by frame, to measure against.
#pragma once

#include <gst/app/gstappsink.h>

#include <cstdint>
#include <string>

#include "gst.h"

namespace nonlocal::tools {

class Reference {
 public:
  explicit Reference(std::string path);

  // Frame `index`, counted from 0, converted to the format of `caps` (raw video); null behind the end. Frames
  // before it are gone from then on. Throws Failure.
  SamplePtr frame(int64_t index, GstCaps* caps);

 private:
  std::string path_;
  Pipeline pipeline_;
  ElementPtr sink_;
  bool playing_ = false;
  int64_t next_ = 0;
};

}  // namespace nonlocal::tools
