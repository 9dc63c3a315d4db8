#include "video_planes.h"

namespace nonlocal {
namespace {

// Bytes from a plane's start to the component's first sample. GStreamer 1.22 gives that of P010's V in
// samples.
int first_byte(const GstVideoFrame& frame, int component, int bytes_per_sample) {
  const int offset = GST_VIDEO_FRAME_COMP_POFFSET(&frame, component);
  return offset % bytes_per_sample == 0 ? offset : offset * bytes_per_sample;
}

Plane plane_of(const GstVideoFrame& frame, int component) {
  Plane plane;
  plane.width = GST_VIDEO_FRAME_COMP_WIDTH(&frame, component);
  plane.height = GST_VIDEO_FRAME_COMP_HEIGHT(&frame, component);
  plane.stride = GST_VIDEO_FRAME_COMP_STRIDE(&frame, component);
  plane.bit_depth = GST_VIDEO_FRAME_COMP_DEPTH(&frame, component);
  plane.data = static_cast<std::byte*>(
                   GST_VIDEO_FRAME_PLANE_DATA(&frame, GST_VIDEO_FRAME_COMP_PLANE(&frame, component))) +
               first_byte(frame, component, plane.bytes_per_sample());
  plane.step = GST_VIDEO_FRAME_COMP_PSTRIDE(&frame, component) / plane.bytes_per_sample();
  plane.shift = GST_VIDEO_FORMAT_INFO_SHIFT(frame.info.finfo, component);
  return plane;
}

PlaneGroup group_of(const GstVideoFrame& frame, int first_component, int count) {
  PlaneGroup group;
  group.count = count;
  for (int i = 0; i < count; ++i) {
    group.planes[i] = plane_of(frame, first_component + i);
  }
  return group;
}

PlaneGroup field_of(const PlaneGroup& frame, int field) {
  PlaneGroup group;
  for (const Plane& plane : frame.all()) {
    Plane rows = plane;
    rows.data = plane.row(field);
    rows.stride = 2 * plane.stride;
    rows.height = (plane.height + 1 - field) / 2;
    if (rows.height > 0) {
      group.planes[group.count++] = rows;
    }
  }
  return group;
}

}  // namespace

PlaneGroup all_planes(const FramePlanes& frame) {
  PlaneGroup all = frame.luma;
  for (const Plane& plane : frame.chroma.all()) {
    all.planes[all.count++] = plane;
  }
  return all;
}

bool has_chroma(const GstVideoFormatInfo* format) { return GST_VIDEO_FORMAT_INFO_IS_YUV(format); }

FramePlanes planes_of(const GstVideoFrame& frame) {
  const GstVideoFormatInfo* format = frame.info.finfo;
  FramePlanes planes;
  planes.luma = group_of(frame, 0, GST_VIDEO_FORMAT_INFO_IS_RGB(format) ? 3 : 1);
  if (has_chroma(format)) {
    planes.chroma = group_of(frame, 1, 2);
    planes.is_subsampled =
        GST_VIDEO_FORMAT_INFO_W_SUB(format, 1) > 0 && GST_VIDEO_FORMAT_INFO_H_SUB(format, 1) > 0;
  }
  return planes;
}

std::optional<Plane> alpha_of(const GstVideoFrame& frame) {
  if (!GST_VIDEO_INFO_HAS_ALPHA(&frame.info)) {
    return std::nullopt;
  }
  return plane_of(frame, GST_VIDEO_COMP_A);
}

bool is_interlaced(const GstVideoFrame& frame) {
  const GstVideoInterlaceMode mode = GST_VIDEO_INFO_INTERLACE_MODE(&frame.info);
  return mode == GST_VIDEO_INTERLACE_MODE_INTERLEAVED ||
         (mode == GST_VIDEO_INTERLACE_MODE_MIXED && (frame.flags & GST_VIDEO_FRAME_FLAG_INTERLACED) != 0);
}

FramePlanes field_of(const FramePlanes& frame, int field) {
  return {field_of(frame.luma, field), field_of(frame.chroma, field), frame.is_subsampled};
}

}  // namespace nonlocal
