// Counts what the process allocates with new.
#pragma once

namespace nonlocal::testing {

int allocations();

}  // namespace nonlocal::testing
