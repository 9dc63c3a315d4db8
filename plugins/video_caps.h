// What raw video the elements take as it is.
#pragma once

#include <gst/video/video.h>

namespace nonlocal {

// The library reads samples in the machine's byte order.
#if G_BYTE_ORDER == G_LITTLE_ENDIAN
#define NONLOCAL_DEEP_FORMATS "GRAY16_LE, I420_10LE, I422_10LE, Y444_10LE, P010_10LE"
#else
#define NONLOCAL_DEEP_FORMATS "GRAY16_BE, I420_10BE, I422_10BE, Y444_10BE, P010_10BE"
#endif
#define NONLOCAL_RGB_FORMATS "RGB, BGR, RGBx, BGRx, RGBA, BGRA"

// The sizes are the library's limits, too.
inline constexpr const char* kVideoCaps =
    "video/x-raw, "
    "format = (string) { I420, YV12, NV12, NV21, YUY2, Y42B, Y444, GRAY8, " NONLOCAL_RGB_FORMATS
    ", " NONLOCAL_DEEP_FORMATS
    " }, "
    "width = (int) [ 1, 32768 ], height = (int) [ 1, 32768 ], framerate = " GST_VIDEO_FPS_RANGE;

// Those of them that have the channels R, G and B.
inline constexpr const char* kRgbCaps = "video/x-raw, format = (string) { " NONLOCAL_RGB_FORMATS " }";

// A sink and a source pad, always there, of kVideoCaps.
inline void add_video_pads(GstElementClass* element_class) {
  GstCaps* caps = gst_caps_from_string(kVideoCaps);
  gst_element_class_add_pad_template(element_class,
                                     gst_pad_template_new("sink", GST_PAD_SINK, GST_PAD_ALWAYS, caps));
  gst_element_class_add_pad_template(element_class,
                                     gst_pad_template_new("src", GST_PAD_SRC, GST_PAD_ALWAYS, caps));
  gst_caps_unref(caps);
}

#undef NONLOCAL_DEEP_FORMATS
#undef NONLOCAL_RGB_FORMATS

}  // namespace nonlocal
