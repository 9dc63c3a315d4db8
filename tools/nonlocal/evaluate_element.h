// One of the elements in a pipeline of its own.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "evaluate_filter.h"

namespace nonlocal::tools {

using Property = std::pair<std::string, std::string>;
using Properties = std::vector<Property>;

struct ElementSetting {
  std::string element = "nonlocaldenoise";  // or selfattention
  Properties properties;
};

// The element as it reads in a pipeline: "nonlocaldenoise preset=fast".
std::string element_text(const ElementSetting& setting);

// Starts the element afresh, gives it all frames of `noisy`, one by one, then the end of the stream, and
// collects what comes. A frame's time is from when it enters, or the frame before left, to when it leaves:
// the element's own time where it filters a frame before it takes the next, and the time between two frames
// where it looks ahead. Throws Failure where not as many frames come as went in.
Filtered run_element(const Sequence& noisy, const ElementSetting& setting, const Tick& tick);

}  // namespace nonlocal::tools
