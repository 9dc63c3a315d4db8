// selfattention: runs a trained network of convolutions, non-local blocks and attention on raw video.
//
//   gst-launch-1.0 filesrc location=film.mp4 ! decodebin ! selfattention model=/path/net.safetensors !
//     videoconvert ! autovideosink
//
// The network is a file of the library's general format (lib/network/README.md). One of one channel filters
// luma, and leaves chroma as it is, or each of R, G and B; one of three filters R, G and B together and takes
// no other formats. Its output must have the frame's size. Networks that look at frames before the present
// one forget them at a flush, a seek, new caps, a discontinuity, and while strength is 0.
//
// The element adds no latency, passes buffers on as they are when strength is 0 and works in place otherwise:
// a buffer that others share is copied. Of interlaced frames each field is filtered alone. `gst-inspect-1.0
// selfattention` lists the properties.
#pragma once

#include <gst/video/gstvideofilter.h>
#include <gst/video/video.h>

G_BEGIN_DECLS

#define GST_TYPE_SELF_ATTENTION (gst_self_attention_get_type())
G_DECLARE_FINAL_TYPE(GstSelfAttention, gst_self_attention, GST, SELF_ATTENTION, GstVideoFilter)

GST_ELEMENT_REGISTER_DECLARE(selfattention)

G_END_DECLS
