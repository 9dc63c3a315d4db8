#include "filter_pipeline.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <vector>

#include "orientation.h"

namespace nonlocal::tools {
namespace {

constexpr const char* kMuxerName = "mux";

void add_input(PipelineText& text, const FilterJob& job) {
  text.add("filesrc").property("location", job.input).add("! parsebin name=in");
}

// videoflip has names of its own.
std::string flip_of(const std::string& orientation) {
  const std::map<std::string, std::string> kNames = {{"rotate-90", "90r"},        {"rotate-180", "180"},
                                                     {"rotate-270", "90l"},       {"flip-rotate-0", "horiz"},
                                                     {"flip-rotate-90", "ur-ll"}, {"flip-rotate-180", "vert"},
                                                     {"flip-rotate-270", "ul-lr"}};
  return kNames.at(orientation);
}

std::vector<std::string> split(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> parts;
  for (std::string part; std::getline(in, part, ':');) parts.push_back(part);
  return parts;
}

// x264enc does not pass on what its input says of the mastering display, x264 has its own way to write it.
// Both have primaries in units of 1/50000 and luminances of 1/10000 cd/m²: GStreamer red, green, blue, white,
// most, least.
std::string x264_light_options(const MediaFile& media) {
  const std::vector<std::string> m = split(media.mastering);
  if (m.size() != 10) return "";
  const auto pair = [&](const char* name, size_t i) { return name + ("(" + m[i] + "," + m[i + 1] + ")"); };
  std::string options =
      "mastering-display=" + pair("G", 2) + pair("B", 4) + pair("R", 0) + pair("WP", 6) + pair("L", 8);
  const std::vector<std::string> light = split(media.light_level);
  if (light.size() == 2) options += ":cll=" + light[0] + "," + light[1];
  return options;
}

// From the demuxer to coded frames in the form that muxers take.
void add_video(PipelineText& text, const FilterJob& job, const MediaFile& media) {
  text.add("in. ! " + media.video_type + " ! decodebin ! queue").property("name", kDecodedName).add("!");
  add_filtering(text, job, media);
  add_coding(text, job, media);
}

// The encoder holds back more frames than a queue holds audio: without limits, or it waits for ever.
constexpr const char* kPatientQueue = "! queue max-size-time=0 max-size-buffers=0 max-size-bytes=0";

std::string nth(const char* name, size_t i) { return name + std::to_string(i); }

// The pads are named: a muxer asked for just any pad gives one for video.
void add_audio(PipelineText& text, const MediaFile& media) {
  for (size_t i = 0; i < media.audio.size(); ++i) {
    const AudioStream& audio = media.audio[i];
    text.add("in. ! " + audio.type).add(kPatientQueue).property("name", nth(kAudioName, i));
    // AAC out of a transport stream has headers that the muxers do not take.
    if (audio.mpeg_version == 2 || audio.mpeg_version == 4) text.add("! aacparse");
    if (audio.is_packed_pcm()) text.add("! dvdlpcmdec");
    if (audio.is_pcm())
      text.add("! audioconvert dithering=none");  // to the order of bytes that the muxer takes
    text.add("! mux.audio_" + std::to_string(i));
  }
}

void add_subtitles(PipelineText& text, const FilterJob& job, const MediaFile& media) {
  size_t pad = 0;
  for (const std::string& type : media.subtitles) {
    if (!holds_subtitles(job.output, type)) continue;
    text.add("in. ! " + type).add(kPatientQueue).property("name", nth(kSubtitleName, pad));
    // Demuxers call text with marks like <i> by a name that muxers, which write such marks, do not take.
    if (type == "text/x-raw") text.add("! capssetter caps=text/x-raw,format=utf8");
    text.add("! mux.subtitle_" + std::to_string(pad++));
  }
}

void add_unused_stream(PipelineText& text, const std::string& type, size_t i) {
  text.add("in. ! " + type).add(kPatientQueue).add("! fakesink sync=false async=false");
  text.property("name", nth(kUnusedName, i));
}

void add_muxer(PipelineText& text, const FilterJob& job, const std::string& path) {
  text.add(muxer_of(job.output)).property("name", kMuxerName).add("! filesink");
  text.property("name", kSinkName);
  text.property("location", path);
}

}  // namespace

void add_filtering(PipelineText& text, const FilterJob& job, const MediaFile& media) {
  text.add("videoconvert !");
  // The filters take up to 10 bits; left alone, the two conversions agree on 8.
  if (media.bits > kMostBits) text.add("video/x-raw,format={I420_10LE,I422_10LE,Y444_10LE} !");
  add_filters(text, job.chain);
  text.add("! queue").property("name", kFilteredName).add("! videoconvert !");
}

void add_coding(PipelineText& text, const FilterJob& job, const MediaFile& media) {
  const Codec& codec = codec_named(job.codec);
  const bool is_odd = media.width % 2 || media.height % 2;
  if (codec.needs_even && is_odd) text.add("video/x-raw,format={Y444,Y444_10LE} !");
  if (!media.orientation.empty() && !says_orientation(job.output))
    text.add("videoflip video-direction=" + flip_of(media.orientation) + " ! videoconvert !");
  // Decoders fill in a guess where the input leaves its colours unsaid, which encoders and muxers would
  // write.
  const std::string unsaid = media.colour_unknown ? codec.unsaid : "";
  text.add(encoder_of(codec, job.quality, is_odd) + unsaid).property("name", kEncoderName);
  if (codec.name == "h264" && !media.mastering.empty())
    text.property("option-string", x264_light_options(media));
  if (media.colour_unknown) text.add("! capssetter caps=" + codec.type + ",colorimetry=0:0:0:0");
  text.add("! " + codec.coded);
}

PipelineText filter_pipeline(const FilterJob& job, const MediaFile& media) {
  PipelineText text;
  add_input(text, job);
  add_video(text, job, media);
  text.add("! mux.video_0");
  add_audio(text, media);
  add_subtitles(text, job, media);
  add_muxer(text, job, job.output);
  return text;
}

PipelineText segment_pipeline(const FilterJob& job, const MediaFile& media, const std::string& path) {
  PipelineText text;
  add_input(text, job);
  add_unused(text, media);
  add_video(text, job, media);
  text.add("! gdppay").property("name", kStoreName);
  text.add("! filesink").property("name", kSinkName).property("location", path);
  return text;
}

PipelineText join_pipeline(const FilterJob& job, const MediaFile& media, const std::string& path) {
  PipelineText text;
  text.add("appsrc format=time max-bytes=0 handle-segment-change=true").property("name", kJoinedName);
  text.add("! mux.video_0");
  if (!media.audio.empty() || !media.subtitles.empty()) {
    add_input(text, job);
    add_unused_stream(text, media.video_type, 0);
  }
  add_audio(text, media);
  add_subtitles(text, job, media);
  add_muxer(text, job, path);
  return text;
}

void add_unused(PipelineText& text, const MediaFile& media) {
  std::vector<std::string> types;
  for (const AudioStream& audio : media.audio) types.push_back(audio.type);
  for (const std::string& type : media.subtitles)
    if (!type.empty()) types.push_back(type);
  for (size_t i = 0; i < types.size(); ++i) add_unused_stream(text, types[i], i);
}

void end_without_unused(const Pipeline& pipeline) {
  for (size_t i = 0; const ElementPtr sink = pipeline.element(nth(kUnusedName, i).c_str()); ++i)
    GST_OBJECT_FLAG_UNSET(sink.get(), GST_ELEMENT_FLAG_SINK);
}

void mux_by_stream_time(const Pipeline& pipeline, const MediaFile& media) {
  for (const char* name : {kAudioName, kSubtitleName})
    for (size_t i = 0; const ElementPtr queue = pipeline.element(nth(name, i).c_str()); ++i) {
      const PadPtr pad{gst_element_get_static_pad(queue.get(), "sink")};
      if (media.is_matroska) begin_segments_at_zero(pad.get());
      run_by_stream_time(pad.get());
    }
}

void keep_tags(const Pipeline& pipeline, const MediaFile& media) {
  const ElementPtr muxer = pipeline.element(kMuxerName);
  if (media.tags && GST_IS_TAG_SETTER(muxer.get()))
    gst_tag_setter_merge_tags(GST_TAG_SETTER(muxer.get()), media.tags.get(), GST_TAG_MERGE_REPLACE);
  if (media.chapters && GST_IS_TOC_SETTER(muxer.get()))
    gst_toc_setter_set_toc(GST_TOC_SETTER(muxer.get()), media.chapters.get());
}

int subtitles_kept(const FilterJob& job, const MediaFile& media) {
  return static_cast<int>(std::ranges::count_if(
      media.subtitles, [&](const std::string& type) { return holds_subtitles(job.output, type); }));
}

int streams_left_out(const FilterJob& job, const MediaFile& media) {
  return media.other_streams + static_cast<int>(media.subtitles.size()) - subtitles_kept(job, media);
}

}  // namespace nonlocal::tools
