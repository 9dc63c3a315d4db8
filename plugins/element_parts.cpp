#include "element_parts.h"

namespace nonlocal {
namespace {

using TimeOf = guint64 (*)(const GstSegment*, GstFormat, guint64);

// GStreamer takes it for a mistake of the program to ask segments of another format.
GstClockTime time_of(GstBaseTransform* trans, GstBuffer* buffer, TimeOf time_in) {
  const GstSegment& segment = trans->segment;
  return segment.format == GST_FORMAT_TIME ? time_in(&segment, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer))
                                           : GST_CLOCK_TIME_NONE;
}

}  // namespace

GParamSpec* threads_property(int otherwise) {
  constexpr int kMostThreads = 256;
  return g_param_spec_int(
      "n-threads", "Threads",
      "Most threads to filter with, as a count: 1 to 256, or 0 (the default) for as many as the "
      "machine has; the output does not depend on it",
      0, kMostThreads, otherwise, kPlain);
}

std::string text_of(const GValue* value, const char* otherwise) {
  const gchar* text = g_value_get_string(value);
  return text == nullptr || *text == '\0' ? otherwise : text;
}

GstClockTime stream_time_of(GstBaseTransform* trans, GstBuffer* buffer) {
  return time_of(trans, buffer, gst_segment_to_stream_time);
}

GstClockTime running_time_of(GstBaseTransform* trans, GstBuffer* buffer) {
  return time_of(trans, buffer, gst_segment_to_running_time);
}

void sync_controlled(GstBaseTransform* trans, GstBuffer* buffer) {
  const GstClockTime time = stream_time_of(trans, buffer);
  if (GST_CLOCK_TIME_IS_VALID(time)) {
    gst_object_sync_values(GST_OBJECT(trans), time);
  }
}

GstStructure* structure_about(const char* name, GstBaseTransform* trans, GstBuffer* buffer) {
  return gst_structure_new(name, "timestamp", G_TYPE_UINT64, GST_BUFFER_PTS(buffer), "stream-time",
                           G_TYPE_UINT64, stream_time_of(trans, buffer), "running-time", G_TYPE_UINT64,
                           running_time_of(trans, buffer), "duration", G_TYPE_UINT64,
                           GST_BUFFER_DURATION(buffer), nullptr);
}

}  // namespace nonlocal
