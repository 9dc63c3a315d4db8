// How a recording is turned when it is shown. GStreamer reads it, and no muxer of GStreamer 1.22 writes it:
// MP4 and QuickTime files get it written here, into other kinds of file frames go turned.
#pragma once

#include <filesystem>
#include <string>

namespace nonlocal::tools {

// Of GStreamer's names: rotate-90, flip-rotate-270... Whether the file's kind can say it.
bool says_orientation(const std::filesystem::path& file);

// Writes the matrix of the video track into a finished MP4 or QuickTime file (ISO/IEC 14496-12, 8.3.2), for
// frames of this size. Throws Failure for a file without such a track.
void write_orientation(const std::filesystem::path& file, const std::string& orientation, int width,
                       int height);

}  // namespace nonlocal::tools
