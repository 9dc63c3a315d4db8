// textcross: a prompt grades raw video by cross-attention. Pixels ask the prompt's tokens what to change.
//
//   gst-launch-1.0 v4l2src ! videoconvert ! textcross prompt="warm sunset, darker edges" !
//     videoconvert ! autovideosink
//
// nonlocal/cross_attention_filter.h has the formula. A prompt that is set while frames play is read, and its
// look made, on a thread of its own; frames go on with the look before, which then fades into the new one.
// An empty prompt, or strength 0, leaves buffers as they are.
//
// The element adds no latency and works in place otherwise: a buffer that others share is copied. Of
// interlaced frames each field is graded alone. `gst-inspect-1.0 textcross` lists the properties.
#pragma once

#include <gst/video/gstvideofilter.h>
#include <gst/video/video.h>

G_BEGIN_DECLS

#define GST_TYPE_TEXT_CROSS (gst_text_cross_get_type())
G_DECLARE_FINAL_TYPE(GstTextCross, gst_text_cross, GST, TEXT_CROSS, GstVideoFilter)

GST_ELEMENT_REGISTER_DECLARE(textcross)

G_END_DECLS
