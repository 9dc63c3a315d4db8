#include "frames_ahead.h"

#include <algorithm>

namespace nonlocal {

VideoFrame FramesAhead::Planes::set(const FramePlanes& planes) {
  std::copy(planes.luma.all().begin(), planes.luma.all().end(), luma.begin());
  std::copy(planes.chroma.all().begin(), planes.chroma.all().end(), chroma.begin());
  return {std::span(luma).first(planes.luma.count), std::span(chroma).first(planes.chroma.count)};
}

FramesAhead::FramesAhead(const WaitingFrames& waiting, int most, const GstVideoInfo& info) {
  const auto wanted = static_cast<std::size_t>(std::min(most, waiting.count()));
  GstVideoInfo of_frames = info;
  while (count_ < wanted &&
         gst_video_frame_map(&frames_[count_], &of_frames, waiting.at(count_), GST_MAP_READ)) {
    ++count_;
  }
}

FramesAhead::~FramesAhead() {
  while (count_ > 0) {
    gst_video_frame_unmap(&frames_[--count_]);
  }
}

std::span<const VideoFrame> FramesAhead::views(std::optional<int> field) {
  for (std::size_t i = 0; i < count_; ++i) {
    const FramePlanes planes = planes_of(frames_[i]);
    views_[i] = planes_[i].set(field ? field_of(planes, *field) : planes);
  }
  return std::span(views_).first(count_);
}

}  // namespace nonlocal
