// What the elements have in common: properties, control sources, messages about frames.
#pragma once

#include <gst/base/gstbasetransform.h>
#include <gst/gst.h>

#include <string>

namespace nonlocal {

// Properties that may change while frames flow; those of them that control sources may drive; and those that
// are read when the element starts.
inline constexpr auto kPlain =
    GParamFlags(G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING);
inline constexpr auto kTunable = GParamFlags(kPlain | GST_PARAM_CONTROLLABLE);
inline constexpr auto kWeights =
    GParamFlags(G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY);

// The property n-threads.
GParamSpec* threads_property(int otherwise);

// A text property's value, or `otherwise` where it is empty.
std::string text_of(const GValue* value, const char* otherwise = "");

// The buffer's times; GST_CLOCK_TIME_NONE where it has none, or where its segment is not of times but of
// bytes, as an appsrc sends it that nobody told otherwise.
GstClockTime stream_time_of(GstBaseTransform* trans, GstBuffer* buffer);
GstClockTime running_time_of(GstBaseTransform* trans, GstBuffer* buffer);

// Brings controlled properties to what they are at this buffer's stream time, if it has one.
void sync_controlled(GstBaseTransform* trans, GstBuffer* buffer);

// An element message's structure, with the times of the buffer that it is about.
GstStructure* structure_about(const char* name, GstBaseTransform* trans, GstBuffer* buffer);

}  // namespace nonlocal
