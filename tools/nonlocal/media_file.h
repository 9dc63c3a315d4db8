// What is in a media file, as far as a filter needs to know.
#pragma once

#include <gst/gst.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace nonlocal::tools {

struct AudioStream {
  std::string type;                    // of the coded stream: audio/mpeg, audio/x-opus, ...
  int mpeg_version = 0;                // 2 and 4 for AAC, 1 for MP3, 0 for what is not audio/mpeg
  int bits = 0;                        // of a sample; 0: not known
  std::shared_ptr<GstCaps> caps = {};  // all that is known of it

  // PCM as DVDs and Blu-ray discs pack it: no file that is written here holds it so, but its samples.
  [[nodiscard]] bool is_packed_pcm() const {
    return type.starts_with("audio/x-private") && type.ends_with("lpcm");
  }
  [[nodiscard]] bool is_pcm() const { return type == "audio/x-raw" || is_packed_pcm(); }
};

struct MediaFile {
  bool is_matroska = false;
  std::string video_type;       // of the first video stream as coded: video/x-h264, image/jpeg, ...
  bool colour_unknown = false;  // the coded stream says nothing on its matrix, transfer and primaries
  int width = 0;
  int height = 0;
  double frame_rate = 0;       // 0: not known, or variable
  double seconds = 0;          // 0: not known
  bool frame_by_frame = true;  // each packet of the coded stream is a frame to show
  int bits = 8;                // of a sample
  std::string
      orientation;        // how to turn frames to show them, by GStreamer's name: rotate-90; empty: not said
  std::string mastering;  // HDR10: GStreamer's mastering-display-info; empty: none
  std::string light_level;  // and content-light-level
  std::vector<AudioStream> audio;
  std::vector<std::string> subtitles;  // types
  int other_streams = 0;               // further videos: what a filtered file leaves out
  // What the file says of itself, as its title, but nothing of how it is coded; and its chapters. Null:
  // nothing.
  std::shared_ptr<const GstTagList> tags;
  std::shared_ptr<GstToc> chapters;

  // How many frames this should come to; 0: not known.
  [[nodiscard]] int64_t expected_frames() const;
};

// Reads the head of the file at `path`. Throws Failure if it is missing, a pipe, no media file or a playlist,
// or has no video in it.
MediaFile inspect(const std::string& path);

}  // namespace nonlocal::tools
