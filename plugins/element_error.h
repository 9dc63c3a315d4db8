// What the library throws, as an element's error message.
#pragma once

#include <gst/gst.h>

namespace nonlocal {

// To be called where an exception was caught: posts it with the domain that fits. `network` is what the
// element's users call its model ("refinement network"); the size is that of the frames, where it is known.
void post_exception(GstElement* element, const char* network, int width = 0, int height = 0) noexcept;

}  // namespace nonlocal
