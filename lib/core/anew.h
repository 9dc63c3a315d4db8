// What an object does with its state where memory runs out.
#pragma once

#include <new>

namespace nonlocal {

// run(), which changes `state`. If memory runs out it may be half made: it is as new then, and so the next
// frame finds nothing that was never allocated. Throws what run() throws.
template <typename State, typename Run>
auto or_anew(State& state, const Run& run) {
  try {
    return run();
  } catch (const std::bad_alloc&) {
    state = State();
    throw;
  }
}

}  // namespace nonlocal
