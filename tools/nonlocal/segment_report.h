// What a filtered segment says of itself.
#pragma once

#include <gst/gst.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "psnr.h"

namespace nonlocal::tools {

struct SegmentReport {
  int64_t frames_in = 0;            // decoded, of those that it keeps
  std::vector<GstClockTime> times;  // of its coded frames, as they follow each other: stream time
  std::string format;               // GStreamer's name of the frames' format in the filters
  std::string decoded;              // as they came out of the decoder
  std::string coded;                // and as they went into the encoder
  double noise_sum = 0;             // of nonlocaldenoise's noise-level, in 8-bit code values, over the frames
  int64_t compared = 0;             // frames that a clean version was there for
  Psnr before;                      // sums over those
  Psnr after;

  [[nodiscard]] int64_t frames_out() const { return static_cast<int64_t>(times.size()); }

  // Adds up what another one counted and summed; times stay this one's.
  void add(const SegmentReport& other);
};

nlohmann::json to_json(const SegmentReport& report);
SegmentReport report_of(const nlohmann::json& value);

}  // namespace nonlocal::tools
