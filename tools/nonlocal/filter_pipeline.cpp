#include "filter_pipeline.h"

#include <algorithm>

namespace nonlocal::tools {
namespace {

void add_input(PipelineText& text, const FilterJob& job) {
  text.add("filesrc").property("location", job.input).add("! parsebin name=in");
}

// From the demuxer to coded frames in the form that muxers take.
void add_video(PipelineText& text, const FilterJob& job, const MediaFile& media) {
  const Codec& codec = codec_named(job.codec);
  text.add("in. ! " + media.video_type + " ! decodebin ! queue").property("name", kDecodedName);
  text.add("! videoconvert !");
  add_filters(text, job.chain);
  text.add("! queue").property("name", kFilteredName).add("! videoconvert !");
  if (codec.needs_even && (media.width % 2 || media.height % 2))
    text.add("video/x-raw,format={Y444,Y444_10LE} !");
  // Decoders fill in a guess where the input leaves its colours unsaid, which encoders would write.
  if (media.colour_unknown) text.add("capssetter caps=video/x-raw,colorimetry=0:0:0:0 !");
  text.add(encoder_of(codec, job.quality)).property("name", kEncoderName);
  text.add("! " + codec.coded);
}

// The encoder holds back more frames than a queue holds audio: without limits, or it waits for ever.
constexpr const char* kPatientQueue = "! queue max-size-time=0 max-size-buffers=0 max-size-bytes=0";

// The pads are named: a muxer asked for just any pad gives one for video.
void add_audio(PipelineText& text, const MediaFile& media) {
  for (size_t i = 0; i < media.audio.size(); ++i) {
    const AudioStream& audio = media.audio[i];
    text.add("in. ! " + audio.type).add(kPatientQueue);
    // AAC out of a transport stream has headers that the muxers do not take.
    if (audio.mpeg_version == 2 || audio.mpeg_version == 4) text.add("! aacparse");
    text.add("! mux.audio_" + std::to_string(i));
  }
}

void add_subtitles(PipelineText& text, const FilterJob& job, const MediaFile& media) {
  int pad = 0;
  for (const std::string& type : media.subtitles) {
    if (!holds_subtitles(job.output, type)) continue;
    text.add("in. ! " + type).add(kPatientQueue).add("! mux.subtitle_" + std::to_string(pad++));
  }
}

void add_muxer(PipelineText& text, const FilterJob& job, const std::string& path) {
  text.add(muxer_of(job.output)).add("name=mux ! filesink").property("name", kSinkName);
  text.property("location", path);
}

}  // namespace

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
  add_video(text, job, media);
  text.add("! gdppay").property("name", kStoreName);
  text.add("! filesink").property("name", kSinkName).property("location", path);
  return text;
}

PipelineText join_pipeline(const FilterJob& job, const MediaFile& media, const std::string& path) {
  PipelineText text;
  text.add("appsrc format=time max-bytes=0").property("name", kJoinedName);
  if (!media.tags.empty()) text.add("! taginject scope=stream").property("tags", media.tags);
  text.add("! mux.video_0");
  if (!media.audio.empty() || !media.subtitles.empty()) add_input(text, job);
  add_audio(text, media);
  add_subtitles(text, job, media);
  add_muxer(text, job, path);
  return text;
}

int subtitles_kept(const FilterJob& job, const MediaFile& media) {
  return static_cast<int>(std::ranges::count_if(
      media.subtitles, [&](const std::string& type) { return holds_subtitles(job.output, type); }));
}

int streams_left_out(const FilterJob& job, const MediaFile& media) {
  return media.other_streams + static_cast<int>(media.subtitles.size()) - subtitles_kept(job, media);
}

}  // namespace nonlocal::tools
