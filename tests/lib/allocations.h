// Counts what the process allocates with new. Sanitizers have a new of their own: beside them nothing is
// counted.
#pragma once

namespace nonlocal::testing {

int allocations();

}  // namespace nonlocal::testing
