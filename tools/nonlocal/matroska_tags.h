// GStreamer 1.22's muxer writes a Matroska file's tags as gst_value_serialize() does, where they are not one
// plain word: "A\ walk", with the quotes, for a film called A walk. Here they get their own words back.
#pragma once

#include <filesystem>

namespace nonlocal::tools {

// Of a finished .mkv or .webm file, in place: a text gets shorter, and is padded with zeros as EBML allows
// (RFC 8794, 7.4). Texts that were not written so stay as they are. Throws Failure where it cannot be
// written.
void mend_tags(const std::filesystem::path& file);

}  // namespace nonlocal::tools
