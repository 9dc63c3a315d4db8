#include "planes.h"

#include <opencv2/imgproc.hpp>

#include "before_after.h"
#include "failure.h"

namespace nonlocal::tools {
namespace {

class MappedBuffer {
 public:
  MappedBuffer(GstBuffer* buffer, const GstVideoInfo& info, GstMapFlags flags) {
    if (!gst_video_frame_map(&frame_, &info, buffer, flags)) throw Failure("a frame could not be read");
  }
  ~MappedBuffer() { gst_video_frame_unmap(&frame_); }
  MappedBuffer(const MappedBuffer&) = delete;
  MappedBuffer& operator=(const MappedBuffer&) = delete;

  [[nodiscard]] int count() const { return static_cast<int>(GST_VIDEO_FRAME_N_PLANES(&frame_)); }

  // A view, valid as long as this.
  cv::Mat plane(int i) {
    return {GST_VIDEO_FRAME_COMP_HEIGHT(&frame_, i), GST_VIDEO_FRAME_COMP_WIDTH(&frame_, i), CV_8U,
            GST_VIDEO_FRAME_PLANE_DATA(&frame_, i),
            static_cast<size_t>(GST_VIDEO_FRAME_PLANE_STRIDE(&frame_, i))};
  }

 private:
  GstVideoFrame frame_ = {};
};

}  // namespace

BufferPtr to_buffer(const Planes& planes, const GstVideoInfo& info) {
  BufferPtr buffer{gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&info), nullptr)};
  MappedBuffer mapped(buffer.get(), info, GST_MAP_WRITE);
  for (int i = 0; i < mapped.count(); ++i) planes[i].copyTo(mapped.plane(i));
  return buffer;
}

Planes to_planes(GstBuffer* buffer, const GstVideoInfo& info) {
  MappedBuffer mapped(buffer, info, GST_MAP_READ);
  Planes planes;
  for (int i = 0; i < mapped.count(); ++i) planes.push_back(mapped.plane(i).clone());
  return planes;
}

cv::Mat to_bgr(const Planes& planes, const GstVideoInfo& info) {
  if (planes.size() > 1) {
    const CapsPtr caps{gst_video_info_to_caps(&info)};
    const SamplePtr sample{gst_sample_new(to_buffer(planes, info).get(), caps.get(), nullptr, nullptr)};
    return to_bgr(sample.get());
  }
  cv::Mat bgr;
  cv::cvtColor(planes[0], bgr, cv::COLOR_GRAY2BGR);
  return bgr;
}

}  // namespace nonlocal::tools
