// nonlocaldenoise: removes noise from raw video by non-local means.
//
//   gst-launch-1.0 v4l2src ! videoconvert ! nonlocaldenoise ! autovideosink
//
// Luma and chroma (or the channels of RGB together) are filtered each with their own strength, in the format
// that comes; the noise is estimated unless `sigma` says how strong it is. The element adds no latency,
// passes buffers on as they are when nothing is to be done, and works in place otherwise: a buffer that
// others share is copied. Of interlaced frames each field is filtered alone. `gst-inspect-1.0
// nonlocaldenoise` lists the properties.
//
// Messages (an element message `nonlocaldenoise`, unless `message` is false): once a second of the stream,
// when the noise level changes visibly and when the adaptive search size changes; with
//   timestamp, stream-time, running-time, duration   guint64, of the buffer, in ns
//   noise-level                                      gdouble, sigma of luma (of RGB) in 8-bit code values
//   search-size                                      gint, in use
#pragma once

#include <gst/video/gstvideofilter.h>
#include <gst/video/video.h>

G_BEGIN_DECLS

#define GST_TYPE_NONLOCAL_DENOISE (gst_nonlocal_denoise_get_type())
G_DECLARE_FINAL_TYPE(GstNonlocalDenoise, gst_nonlocal_denoise, GST, NONLOCAL_DENOISE, GstVideoFilter)

GST_ELEMENT_REGISTER_DECLARE(nonlocaldenoise)

G_END_DECLS
