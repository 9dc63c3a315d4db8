// The pipelines that filter a file, as text. The whole is demux, decode, filter, encode, mux, and the streams
// besides the video pass by as they are: what a user can paste into a shell. The program runs it in two
// halves: one that filters a segment into a file of its own, and one that joins these with the other streams.
#pragma once

#include <string>

#include "codec.h"
#include "filter_chain.h"
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

// "videoconvert ! FILTERS ! videoconvert !": what raw frames pass.
void add_filtering(PipelineText& text, const FilterJob& job, const MediaFile& media);

// "ENCODER ! ...": raw frames to coded ones in the form that muxers take.
void add_coding(PipelineText& text, const FilterJob& job, const MediaFile& media);

PipelineText filter_pipeline(const FilterJob& job, const MediaFile& media);

// Writes coded frames by GStreamer's data protocol, which keeps all that is known of each.
PipelineText segment_pipeline(const FilterJob& job, const MediaFile& media, const std::string& path);

PipelineText join_pipeline(const FilterJob& job, const MediaFile& media, const std::string& path);

// How many subtitle streams the output takes, and how many streams of any kind it has no place for.
int subtitles_kept(const FilterJob& job, const MediaFile& media);
int streams_left_out(const FilterJob& job, const MediaFile& media);

}  // namespace nonlocal::tools
