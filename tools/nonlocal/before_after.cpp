#include "before_after.h"

#include <gst/video/video.h>

#include <opencv2/imgproc.hpp>

#include "failure.h"
#include "gst.h"
#include "region.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

constexpr int kZoom = 4;
constexpr int kSmallest = 64;
const cv::Scalar kLine{255, 255, 255};

// Where the filtered picture varies most.
cv::Rect most_detailed(const cv::Mat& picture, cv::Size size) {
  cv::Mat gray;
  cv::cvtColor(picture, gray, cv::COLOR_BGR2GRAY);
  return strongest(gradient_energy(gray), size).place;
}

void label(cv::Mat picture, const std::string& text, cv::Point bottom_left) {
  const double scale = std::max(0.4, picture.cols / 1600.0);
  for (const auto& [colour, width] : {std::pair{cv::Scalar(0, 0, 0), 3}, std::pair{kLine, 1}})
    cv::putText(picture, text, bottom_left, cv::FONT_HERSHEY_SIMPLEX, scale, colour, width, cv::LINE_AA);
}

cv::Mat enlarged(const cv::Mat& picture, const cv::Rect& region, cv::Size size) {
  cv::Mat result;
  cv::resize(picture(region), result, size, 0, 0, cv::INTER_CUBIC);
  return result;
}

}  // namespace

cv::Mat before_after(const cv::Mat& before, const cv::Mat& after) {
  const int width = before.cols;
  const int height = before.rows;
  const int middle = width / 2;
  const bool with_details = width >= kSmallest && height >= kSmallest;
  cv::Mat result(height + (with_details ? height / 2 : 0), width, CV_8UC3, cv::Scalar::all(0));
  const cv::Rect left(0, 0, middle, height);
  const cv::Rect right(middle, 0, width - middle, height);
  before(left).copyTo(result(left));
  after(right).copyTo(result(right));
  if (!with_details) return result;

  const cv::Rect region = most_detailed(after, {middle / kZoom, height / 2 / kZoom});
  const cv::Rect below_left(0, height, middle, height / 2);
  const cv::Rect below_right(middle, height, width - middle, height / 2);
  enlarged(before, region, below_left.size()).copyTo(result(below_left));
  enlarged(after, region, below_right.size()).copyTo(result(below_right));
  cv::line(result, {middle, 0}, {middle, result.rows}, kLine, 1);
  cv::line(result, {0, height}, {width, height}, kLine, 1);
  const int margin = std::max(6, width / 100);
  label(result, "before", {margin, height - margin});
  label(result, "after", {middle + margin, height - margin});
  return result;
}

cv::Mat to_bgr(GstSample* sample) {
  GstVideoInfo info;
  if (!sample || !gst_video_info_from_caps(&info, gst_sample_get_caps(sample)))
    throw Failure("no frame came for the picture");
  const CapsPtr caps{gst_caps_new_simple("video/x-raw", "format", G_TYPE_STRING, "BGR", "width", G_TYPE_INT,
                                         info.width, "height", G_TYPE_INT, info.height, nullptr)};
  GError* raw_error = nullptr;
  const SamplePtr converted{gst_video_convert_sample(sample, caps.get(), GST_CLOCK_TIME_NONE, &raw_error)};
  const ErrorPtr error{raw_error};
  GstVideoFrame frame;
  if (!converted || !gst_video_info_from_caps(&info, gst_sample_get_caps(converted.get())) ||
      !gst_video_frame_map(&frame, &info, gst_sample_get_buffer(converted.get()), GST_MAP_READ))
    throw Failure("the frame for the picture could not be converted" +
                  (error ? ": " + one_line(error->message) : std::string()));
  const cv::Mat view(info.height, info.width, CV_8UC3, GST_VIDEO_FRAME_PLANE_DATA(&frame, 0),
                     GST_VIDEO_FRAME_PLANE_STRIDE(&frame, 0));
  cv::Mat picture = view.clone();
  gst_video_frame_unmap(&frame);
  return picture;
}

}  // namespace nonlocal::tools
