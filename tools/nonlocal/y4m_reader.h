// Raw video as programs pipe it to one another: YUV4MPEG2, as mjpegtools and FFmpeg write it
// (https://wiki.multimedia.cx/index.php/YUV4MPEG2). GStreamer 1.22's y4mdec takes no header above 80 bytes,
// which FFmpeg's usually are, no more than 8 bits, few sizes, and a stream that breaks off for one that ends.
#pragma once

#include <gst/video/video.h>

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

#include "gst.h"

namespace nonlocal::tools {

using BufferPtr = std::unique_ptr<GstBuffer, MiniObjectReleaser>;

class Y4mReader {
 public:
  // Reads the header: 4:2:0, 4:2:2, 4:4:4 or gray, of 8, 10 or 12 bits. Throws Failure for anything else, and
  // Interrupted. `file` stays open.
  explicit Y4mReader(int file);

  // Of the frames, whose rows lie without room between them.
  [[nodiscard]] const GstVideoInfo& info() const { return info_; }

  // The next frame; null at the end, and once `stop` is wanted. Throws Failure where a frame breaks off.
  BufferPtr next(const std::stop_token& stop);

 private:
  enum class End { kNone, kClean, kCut, kStopped };

  End read(char* bytes, size_t count, const std::stop_token& stop) const;
  std::optional<std::string> line(const std::stop_token& stop) const;
  void take(const std::string& header);

  int file_;
  GstVideoInfo info_;
  int64_t frames_ = 0;
};

}  // namespace nonlocal::tools
