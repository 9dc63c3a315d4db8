#include "reference.h"

#include <gst/video/video.h>

#include "failure.h"
#include "pipeline_text.h"

namespace nonlocal::tools {
namespace {

std::string decoding(const std::string& path) {
  PipelineText text;
  text.add("filesrc").property("location", path);
  text.add("! decodebin ! videoconvert ! appsink name=frames sync=false max-buffers=4");
  return text.description();
}

// Only what the samples' meaning depends on: a frame rate or a pixel's shape need not agree.
CapsPtr sample_format(GstCaps* caps) {
  CapsPtr wanted{gst_caps_new_empty_simple("video/x-raw")};
  const GstStructure* given = gst_caps_get_structure(caps, 0);
  for (const char* field : {"format", "colorimetry"})
    if (const GValue* value = gst_structure_get_value(given, field))
      gst_caps_set_value(wanted.get(), field, value);
  return wanted;
}

}  // namespace

Reference::Reference(std::string path)
    : path_(std::move(path)), pipeline_(decoding(path_)), sink_(pipeline_.element("frames")) {}

SamplePtr Reference::frame(int64_t index, GstCaps* caps) {
  if (!playing_) {
    gst_app_sink_set_caps(GST_APP_SINK(sink_.get()), sample_format(caps).get());
    pipeline_.play();
    playing_ = true;
  }
  SamplePtr sample;
  do {
    sample.reset(gst_app_sink_pull_sample(GST_APP_SINK(sink_.get())));
  } while (sample && next_++ < index);
  if (!sample) pipeline_.check_errors();
  return sample;
}

}  // namespace nonlocal::tools
