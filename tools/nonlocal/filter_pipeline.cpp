#include "filter_pipeline.h"

#include <gst/gst.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include "failure.h"
#include "gst.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

struct Container {
  std::string_view extension;
  std::string_view muxer;
  std::set<std::string_view> audio;  // what it holds; empty: whatever comes
};

const Container kContainers[] = {
    {".mkv", "matroskamux", {}},
    {".mp4", "mp4mux", {"audio/mpeg", "audio/x-ac3", "audio/x-alac"}},
    {".mov", "qtmux", {"audio/mpeg", "audio/x-ac3", "audio/x-alac", "audio/x-raw"}},
};

const Container* container_of(const std::string& output) {
  std::string extension = std::filesystem::path(output).extension().string();
  std::ranges::transform(extension, extension.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto* found = std::ranges::find(kContainers, extension, &Container::extension);
  return found == std::end(kContainers) ? nullptr : found;
}

void add_video(PipelineText& text, const FilterJob& job, const MediaFile& media) {
  text.add("in. ! " + media.video_type + " ! decodebin ! queue ! videoconvert ! nonlocaldenoise");
  text.property("name", kFilterName);
  for (const auto& [name, value] : job.properties) text.property(name, value);
  text.add("! queue ! videoconvert !");
  // H.264 halves colour only where width and height are even.
  if (media.width % 2 || media.height % 2) text.add("video/x-raw,format={Y444,Y444_10LE} !");
  text.add("x264enc").property("name", kEncoderName);
  text.add("pass=qual").property("quantizer", std::to_string(job.quality)).add("qp-min=0 speed-preset=fast");
  // x264enc and the muxers would write GStreamer's guess where the input leaves its colours unsaid.
  if (media.colour_unknown) text.add("insert-vui=false ! capssetter caps=video/x-h264,colorimetry=0:0:0:0");
  // The pads are named: a muxer asked for just any pad gives one for video.
  text.add("! mux.video_0");
}

void add_audio(PipelineText& text, const FilterJob& job, const MediaFile& media) {
  const Container& container = *container_of(job.output);
  for (size_t i = 0; i < media.audio.size(); ++i) {
    const AudioStream& audio = media.audio[i];
    if (!container.audio.empty() && !container.audio.contains(audio.type))
      throw Failure(job.output + ": a " + std::string(container.extension.substr(1)) +
                    " file cannot hold the input's " + audio.type + " as it is: write a .mkv file");
    // The encoder holds back more frames than a queue holds audio: without limits, or it waits for ever.
    text.add("in. ! " + audio.type + " ! queue max-size-time=0 max-size-buffers=0 max-size-bytes=0");
    // AAC out of a transport stream has headers that the muxers do not take.
    if (audio.mpeg_version == 2 || audio.mpeg_version == 4) text.add("! aacparse");
    text.add("! mux.audio_" + std::to_string(i));
  }
}

std::string range_of(const GParamSpec* spec) {
  if (G_IS_PARAM_SPEC_INT(spec)) {
    const auto* number = G_PARAM_SPEC_INT(spec);
    return formatted("from %d to %d", number->minimum, number->maximum);
  }
  if (G_IS_PARAM_SPEC_DOUBLE(spec)) {
    const auto* number = G_PARAM_SPEC_DOUBLE(spec);
    return formatted("from %g to %g", number->minimum, number->maximum);
  }
  std::string names;
  if (G_IS_PARAM_SPEC_ENUM(spec)) {
    const GEnumClass* values = G_PARAM_SPEC_ENUM(spec)->enum_class;
    for (guint i = 0; i < values->n_values; ++i)
      names += (i ? ", " : "one of ") + std::string(values->values[i].value_nick);
  }
  return names.empty() ? "a " + std::string(g_type_name(spec->value_type)) : names;
}

bool takes(GParamSpec* spec, const std::string& text) {
  GValue value = G_VALUE_INIT;
  g_value_init(&value, spec->value_type);
  const bool valid = gst_value_deserialize(&value, text.c_str()) && !g_param_value_validate(spec, &value);
  g_value_unset(&value);
  return valid;
}

}  // namespace

void check_container(const std::string& output) {
  if (container_of(output)) return;
  throw Failure(output + ": the output's name must end in .mkv, .mp4 or .mov");
}

void check_properties(const std::string& element,
                      const std::vector<std::pair<std::string, std::string>>& properties) {
  const ElementPtr made{gst_element_factory_make(element.c_str(), nullptr)};
  if (!made) throw Failure("GStreamer cannot make the element " + element);
  gst_object_ref_sink(made.get());
  for (const auto& [name, value] : properties) {
    GParamSpec* spec = g_object_class_find_property(G_OBJECT_GET_CLASS(made.get()), name.c_str());
    if (!spec) throw Failure(element + " has no property " + name);
    if (!takes(spec, value))
      throw Failure(element + " takes for " + name + " " + range_of(spec) + ", not " + value);
  }
}

PipelineText filter_pipeline(const FilterJob& job, const MediaFile& media) {
  PipelineText text;
  text.add("filesrc").property("location", job.input).add("! parsebin name=in");
  add_video(text, job, media);
  add_audio(text, job, media);
  text.add(container_of(job.output)->muxer).add("name=mux ! filesink").property("name", kSinkName);
  text.property("location", job.output);
  return text;
}

}  // namespace nonlocal::tools
