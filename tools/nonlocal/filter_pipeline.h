// The pipeline that filters a file: demux, decode, denoise, encode, mux; audio passes by, not re-encoded.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "media_file.h"
#include "pipeline_text.h"

namespace nonlocal::tools {

struct FilterJob {
  std::string input;
  std::string output;                                           // .mkv, .mp4 or .mov
  std::vector<std::pair<std::string, std::string>> properties;  // of nonlocaldenoise, as the user gave them
  int quality = 18;                                             // x264's rate factor: 0 (lossless) to 50
};

// The names of the elements that a program wants to watch.
inline constexpr const char* kFilterName = "denoise";
inline constexpr const char* kEncoderName = "encode";
inline constexpr const char* kSinkName = "out";

// Throws Failure for an output that no muxer here makes.
void check_container(const std::string& output);

// Throws Failure for a property that the element has not, and for a value that it does not take, with the
// range that it does take.
void check_properties(const std::string& element,
                      const std::vector<std::pair<std::string, std::string>>& properties);

// Throws Failure if the output's container cannot hold the input's audio.
PipelineText filter_pipeline(const FilterJob& job, const MediaFile& media);

}  // namespace nonlocal::tools
