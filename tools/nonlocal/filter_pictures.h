// Picture files through the filters: each picture is a frame, and several are one clip, in their order.
#pragma once

#include <string>
#include <vector>

#include "filter_report.h"

namespace nonlocal::tools {

struct PictureClip {
  std::vector<std::string> inputs;   // of one size and one depth
  std::vector<std::string> outputs;  // as many
};

// Each file has its name once it is whole, in the place of an older one; those before one that fails stay.
// Gray stays gray, but where a prompt may colour it; alpha passes by the filters. 16-bit gray is filtered as
// it is, 16-bit colour with 10 bits, the most that our elements take, or 8 by a network of three channels:
// the report is warned of this, and of outputs that cannot hold the input's depth or alpha. Of `request`,
// only the job's filters and names, for the report, are used. Throws Failure, and Interrupted.
FilterResult filter_pictures(const FilterRequest& request, const PictureClip& clip, FilterReport& report);

}  // namespace nonlocal::tools
