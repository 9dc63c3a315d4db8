// Frames that wait for later ones, and those as the denoiser reads them.
#pragma once

#include <gst/video/video.h>

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "nonlocal/video_denoiser.h"
#include "video_planes.h"

namespace nonlocal {

constexpr int kMostAhead = 8;

// Buffers in the order in which they came; it owns them.
class WaitingFrames {
 public:
  WaitingFrames() = default;
  WaitingFrames(WaitingFrames&& other) noexcept : frames_(std::exchange(other.frames_, {})) {}
  WaitingFrames& operator=(WaitingFrames&& other) noexcept {
    std::swap(frames_, other.frames_);
    return *this;
  }
  ~WaitingFrames() { clear(); }

  [[nodiscard]] int count() const { return static_cast<int>(frames_.size()); }
  [[nodiscard]] GstBuffer* at(std::size_t i) const { return frames_[i]; }
  void push(GstBuffer* frame) {
    frames_.reserve(kMostAhead + 1);
    frames_.push_back(frame);
  }
  GstBuffer* pop() {
    GstBuffer* first = frames_.front();
    frames_.erase(frames_.begin());
    return first;
  }
  void clear() {
    for (GstBuffer* frame : frames_) {
      gst_buffer_unref(frame);
    }
    frames_.clear();
  }

 private:
  std::vector<GstBuffer*> frames_;
};

// The frames ahead, mapped for reading as long as it lives.
class FramesAhead {
 public:
  // The first of those that wait, `most` at most, up to one that cannot be mapped.
  FramesAhead(const WaitingFrames& waiting, int most, const GstVideoInfo& info);
  FramesAhead(const FramesAhead&) = delete;
  FramesAhead& operator=(const FramesAhead&) = delete;
  ~FramesAhead();

  // One field of each, or all of each. Valid until the next call.
  std::span<const VideoFrame> views(std::optional<int> field);

 private:
  struct Planes {
    std::array<ConstPlane, 3> luma;
    std::array<ConstPlane, 3> chroma;

    VideoFrame set(const FramePlanes& planes);
  };

  std::array<GstVideoFrame, kMostAhead> frames_;
  std::array<Planes, kMostAhead> planes_;
  std::array<VideoFrame, kMostAhead> views_;
  std::size_t count_ = 0;
};

}  // namespace nonlocal
