#include "element_parts.h"

namespace nonlocal {

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

void sync_controlled(GstBaseTransform* trans, GstBuffer* buffer) {
  const GstClockTime time =
      gst_segment_to_stream_time(&trans->segment, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer));
  if (GST_CLOCK_TIME_IS_VALID(time)) {
    gst_object_sync_values(GST_OBJECT(trans), time);
  }
}

GstStructure* structure_about(const char* name, GstBaseTransform* trans, GstBuffer* buffer) {
  const GstSegment& segment = trans->segment;
  const guint64 time = GST_BUFFER_PTS(buffer);
  return gst_structure_new(name, "timestamp", G_TYPE_UINT64, time, "stream-time", G_TYPE_UINT64,
                           gst_segment_to_stream_time(&segment, GST_FORMAT_TIME, time), "running-time",
                           G_TYPE_UINT64, gst_segment_to_running_time(&segment, GST_FORMAT_TIME, time),
                           "duration", G_TYPE_UINT64, GST_BUFFER_DURATION(buffer), nullptr);
}

}  // namespace nonlocal
