// What the library throws, as an element's error message.
#pragma once

#include <gst/gst.h>

#include <memory>

namespace nonlocal {

struct TextReleaser {
  void operator()(gchar* text) const { g_free(text); }
};
using TextPtr = std::unique_ptr<gchar, TextReleaser>;

// The same, with U+FFFD in place of what is no UTF-8, which messages may not hold: files' names may be any
// bytes.
inline TextPtr as_utf8(const char* text) noexcept { return TextPtr(g_utf8_make_valid(text, -1)); }

// To be called where an exception was caught: posts it with the domain that fits. `network` is what the
// element's users call its model ("refinement network"); the size is that of the frames, where it is known.
void post_exception(GstElement* element, const char* network, int width = 0, int height = 0) noexcept;

}  // namespace nonlocal
