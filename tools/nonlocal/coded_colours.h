// Colours said in coded frames, where GStreamer 1.22's encoders leave them out: ProRes' of all kinds, VP9's
// matrix of BT.2020, and VP9's matrix where nothing is known, for which they write a guess.
#pragma once

#include <gst/gst.h>

namespace nonlocal::tools {

// Writes what `caps` say of the colours into a coded frame of ProRes or VP9, which must be writable; other
// frames, and frames too short to have a header, stay as they are. Sources: SMPTE RDD 36, 6.1.1, and the VP9
// bitstream specification, 7.2.
void write_colours(GstBuffer* frame, const GstCaps* caps);

}  // namespace nonlocal::tools
