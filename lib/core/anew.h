// What an object does with its state where memory runs out.
#pragma once

#include <new>

namespace nonlocal {

// run(), which changes `state`. If memory runs out it may be half made: it is as new then, as make() makes
// it, and so the next frame finds nothing that was never allocated. Throws what run() throws.
template <typename State, typename Run, typename Make>
auto or_anew(State& state, const Run& run, const Make& make) {
  try {
    return run();
  } catch (const std::bad_alloc&) {
    state = make();
    throw;
  }
}

template <typename State, typename Run>
auto or_anew(State& state, const Run& run) {
  return or_anew(state, run, [] { return State(); });
}

}  // namespace nonlocal
