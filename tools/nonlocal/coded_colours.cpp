#include "coded_colours.h"

#include <gst/video/video.h>

#include <cstdint>
#include <cstring>
#include <span>

namespace nonlocal::tools {
namespace {

using Bytes = std::span<guint8>;

void write_prores(Bytes frame, const GstVideoColorimetry& colours) {
  constexpr size_t kName = 4;        // behind the frame's size
  constexpr size_t kPrimaries = 22;  // transfer and matrix follow
  if (frame.size() < kPrimaries + 3 || std::memcmp(&frame[kName], "icpf", 4) != 0) return;
  frame[kPrimaries] = gst_video_color_primaries_to_iso(colours.primaries);
  frame[kPrimaries + 1] = gst_video_transfer_function_to_iso(colours.transfer);
  frame[kPrimaries + 2] = gst_video_color_matrix_to_iso(colours.matrix);
}

unsigned bits(Bytes frame, unsigned first, unsigned count) {
  unsigned value = 0;
  for (unsigned bit = first; bit < first + count; ++bit)
    value = value << 1 | (frame[bit / 8] >> (7 - bit % 8) & 1u);
  return value;
}

void set_bits(Bytes frame, unsigned first, unsigned count, unsigned value) {
  for (unsigned i = 0; i < count; ++i) {
    const unsigned bit = first + i;
    const unsigned mask = 0x80u >> bit % 8;
    const bool on = value >> (count - 1 - i) & 1;
    frame[bit / 8] = static_cast<guint8>(on ? frame[bit / 8] | mask : frame[bit / 8] & ~mask);
  }
}

// frame_marker, profile (and a reserved bit behind the last one), show_existing_frame, frame_type,
// show_frame, error_resilient_mode, the sync code, the depth in the two last profiles, color_space.
void write_vp9(Bytes frame, const GstVideoColorimetry& colours) {
  constexpr unsigned kSync = 0x498342;
  constexpr unsigned kUnknown = 0;
  constexpr unsigned kBt2020 = 5;
  const bool knows = colours.matrix != GST_VIDEO_COLOR_MATRIX_UNKNOWN;
  if (frame.size() < 8 || (knows && colours.matrix != GST_VIDEO_COLOR_MATRIX_BT2020)) return;
  const unsigned profile = bits(frame, 2, 1) | bits(frame, 3, 1) << 1;
  const unsigned type = profile == 3 ? 5 : 4;
  const bool is_key = bits(frame, type, 2) == 0;
  if (!is_key || bits(frame, type + 4, 24) != kSync) return;
  set_bits(frame, type + 28 + (profile >= 2 ? 1 : 0), 3, knows ? kBt2020 : kUnknown);
}

}  // namespace

void write_colours(GstBuffer* frame, const GstCaps* caps) {
  const GstStructure* coded = gst_caps_get_structure(caps, 0);
  const bool is_prores = gst_structure_has_name(coded, "video/x-prores");
  if (!is_prores && !gst_structure_has_name(coded, "video/x-vp9")) return;
  GstVideoColorimetry colours;
  const char* said = gst_structure_get_string(coded, "colorimetry");
  if (!said || !gst_video_colorimetry_from_string(&colours, said)) return;
  GstMapInfo map;
  if (!gst_buffer_map(frame, &map, GST_MAP_READWRITE)) return;
  is_prores ? write_prores({map.data, map.size}, colours) : write_vp9({map.data, map.size}, colours);
  gst_buffer_unmap(frame, &map);
}

}  // namespace nonlocal::tools
