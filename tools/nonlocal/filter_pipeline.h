// The pipelines that filter a file, as text. The whole is demux, decode, filter, encode, mux, and the streams
// besides the video pass by as they are: what a user can paste into a shell. The program runs it in two
// halves: one that filters a segment into a file of its own, and one that joins these with the other streams.
#pragma once

#include <string>

#include "codec.h"
#include "filter_chain.h"
#include "gst.h"
#include "media_file.h"
#include "pipeline_text.h"

namespace nonlocal::tools {

struct FilterJob {
  std::string input;
  std::string output;
  FilterChain chain;
  std::string codec = "h264";
  int quality = -1;  // the codec's; -1: the usual
};

// The names of the elements that a program wants to watch. Filters: filter_name().
inline constexpr const char* kDecodedName = "decoded";    // a queue: frames as decoded
inline constexpr const char* kFilteredName = "filtered";  // a queue: frames behind the last filter
inline constexpr const char* kEncoderName = "encode";
inline constexpr const char* kStoreName = "store";    // a gdppay: a segment's coded frames
inline constexpr const char* kJoinedName = "joined";  // an appsrc: coded frames of all segments
inline constexpr const char* kSinkName = "out";
// And a number, from 0 on.
inline constexpr const char* kAudioName = "sound";         // a queue: what passes by as it is
inline constexpr const char* kSubtitleName = "subtitles";  // another
inline constexpr const char* kUnusedName = "unused";       // a sink, of add_unused()

// "videoconvert ! FILTERS ! videoconvert !": what raw frames pass.
void add_filtering(PipelineText& text, const FilterJob& job, const MediaFile& media);

// "ENCODER ! ...": raw frames to coded ones in the form that muxers take.
void add_coding(PipelineText& text, const FilterJob& job, const MediaFile& media);

PipelineText filter_pipeline(const FilterJob& job, const MediaFile& media);

// Writes coded frames by GStreamer's data protocol, which keeps all that is known of each.
PipelineText segment_pipeline(const FilterJob& job, const MediaFile& media, const std::string& path);

PipelineText join_pipeline(const FilterJob& job, const MediaFile& media, const std::string& path);

// Reads the streams beside the video and forgets them, as join_pipeline() does with the video: a demuxer that
// meets one before it has seen what is wanted, as FLV's may, gives up where nothing takes what it has.
void add_unused(PipelineText& text, const MediaFile& media);

// The pipeline ends without what is unused. Before it plays.
void end_without_unused(const Pipeline& pipeline);

// Of join_pipeline(): what passes by is written where it is shown, as the video is, whatever the file begins
// at. Before it plays.
void mux_by_stream_time(const Pipeline& pipeline, const MediaFile& media);

// Of join_pipeline(): the muxer writes what the input says of itself, and its chapters where the output has a
// place for them. What passes by would bring them along; a video alone does not. Before it plays.
void keep_tags(const Pipeline& pipeline, const MediaFile& media);

// How many subtitle streams the output takes, and how many streams of any kind it has no place for.
int subtitles_kept(const FilterJob& job, const MediaFile& media);
int streams_left_out(const FilterJob& job, const MediaFile& media);

}  // namespace nonlocal::tools
