// The clean version of a noisy clip, frame by frame, to measure against.
#pragma once

#include <gst/app/gstappsink.h>

#include <string>

#include "gst.h"

namespace nonlocal::tools {

class Reference {
 public:
  explicit Reference(std::string path);

  // The next frame, converted to the format of `caps` (raw video); null at the end. Throws Failure.
  SamplePtr next(GstCaps* caps);

 private:
  std::string path_;
  Pipeline pipeline_;
  ElementPtr sink_;
  bool playing_ = false;
};

}  // namespace nonlocal::tools
