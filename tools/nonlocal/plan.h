// A recording filtered in parts, by many processes or machines: plan, filter --segment, join.
#pragma once

#include <string>

namespace nonlocal::tools {

// Filters one segment of the plan in `folder`, unless it is finished already. Throws Failure, also for a
// number that the plan has not.
void filter_segment(const std::string& folder, int index, bool quiet);

}  // namespace nonlocal::tools
