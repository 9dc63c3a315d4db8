#include "colour_of_video.h"

namespace nonlocal {
namespace {

ColourMatrix matrix_of(const GstVideoInfo& info) {
  constexpr int kHighDefinition = 720;
  switch (info.colorimetry.matrix) {
    case GST_VIDEO_COLOR_MATRIX_BT601:
    case GST_VIDEO_COLOR_MATRIX_FCC:  // nearly the same
      return ColourMatrix::kBt601;
    case GST_VIDEO_COLOR_MATRIX_BT709:
    case GST_VIDEO_COLOR_MATRIX_SMPTE240M:
      return ColourMatrix::kBt709;
    case GST_VIDEO_COLOR_MATRIX_BT2020:
      return ColourMatrix::kBt2020;
    default:
      return GST_VIDEO_INFO_HEIGHT(&info) >= kHighDefinition ? ColourMatrix::kBt709 : ColourMatrix::kBt601;
  }
}

ChromaSite site_of(const GstVideoInfo& info) {
  const int site = GST_VIDEO_INFO_CHROMA_SITE(&info);
  if (site == GST_VIDEO_CHROMA_SITE_COSITED) {
    return ChromaSite::kTopLeft;
  }
  // "none" of both directions: between the samples of luma.
  return (site & GST_VIDEO_CHROMA_SITE_NONE) != 0 && (site & GST_VIDEO_CHROMA_SITE_H_COSITED) == 0
             ? ChromaSite::kCentre
             : ChromaSite::kLeft;
}

}  // namespace

ColourFormat colour_format_of(const GstVideoInfo& info) {
  ColourFormat format;
  format.matrix = matrix_of(info);
  if (GST_VIDEO_INFO_IS_RGB(&info)) {
    format.model = ColourModel::kRgb;
    format.matrix = ColourMatrix::kBt709;
    return format;
  }
  format.model = GST_VIDEO_INFO_IS_GRAY(&info) ? ColourModel::kGray : ColourModel::kYCbCr;
  format.range =
      info.colorimetry.range == GST_VIDEO_COLOR_RANGE_0_255 ? ColourRange::kFull : ColourRange::kLimited;
  format.site = site_of(info);
  return format;
}

}  // namespace nonlocal
