// What filtered video is encoded with, and the files that hold it.
#pragma once

#include <string>

#include "media_file.h"

namespace nonlocal::tools {

constexpr int kMostBits = 10;  // of a sample, that filters take

struct Codec {
  std::string name;              // as --codec takes it
  std::string encoder;           // the element and what is always set on it
  std::string odd_encoder = {};  // for frames of odd sizes, where they need another
  std::string quality = {};      // the quality's setting, with %d in its place; empty: it has none
  int worst = 0;                 // quality goes from 0, the best, to this
  int usual = 0;
  int most_bits = 0;        // of a sample
  bool needs_even = false;  // 4:2:0 only where width and height are even
  bool needs_even_width = false;
  bool says_colours = true;     // matrix, transfer and primaries, in the stream
  bool says_mastering = false;  // HDR10's, in the stream
  std::string unsaid = {};      // goes on with the settings where the input leaves its colours unsaid
  std::string type;             // of coded frames
  std::string coded;            // what comes behind the encoder, for the form that muxers take
  std::string containers;       // the extensions of files that can hold it
};

// Throws Failure for a name that is none.
const Codec& codec_named(const std::string& name);

// "h264, h265, ..."
std::string codec_names();

// The element with its quality set; -1: the usual one. Throws Failure for one out of range. `is_odd`: width
// or height of the frames is.
std::string encoder_of(const Codec& codec, int quality, bool is_odd = false);

// Throws Failure for a name that is of no container here, or of one that cannot hold the codec.
void check_container(const std::string& output, const Codec& codec);

// Throws Failure where the codec cannot hold the bits of the input's samples that the filters take, or its
// size.
void check_samples(const std::string& input, const Codec& codec, const MediaFile& media);

// Throws Failure where the output cannot hold the input's audio as it is.
void check_audio(const std::string& output, const MediaFile& media);

// Whether the output holds subtitles of this type as they are.
bool holds_subtitles(const std::string& output, const std::string& type);

// Whether the output is a Matroska or a WebM file: the only ones that GStreamer 1.22 writes chapters into.
bool is_matroska(const std::string& output);

// What the output does not say of the input's colours, a line for the user; empty: nothing.
std::string lost_colours(const std::string& output, const Codec& codec, const MediaFile& media);

// The element that writes `output`.
std::string muxer_of(const std::string& output);

}  // namespace nonlocal::tools
