#include "y4m_reader.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <sstream>
#include <string_view>

#include "failure.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

constexpr size_t kLongestLine = 4096;
constexpr int kMostPixels = 32768;  // of a side
constexpr const char* kName = "stdin: ";

struct Coding {
  GstVideoFormat format;
  GstVideoChromaSite site = GST_VIDEO_CHROMA_SITE_UNKNOWN;
};

Coding coding_of(const std::string& name) {
  static const std::map<std::string, Coding> kCodings = {
      {"420", {GST_VIDEO_FORMAT_I420, GST_VIDEO_CHROMA_SITE_JPEG}},
      {"420jpeg", {GST_VIDEO_FORMAT_I420, GST_VIDEO_CHROMA_SITE_JPEG}},
      {"420mpeg2", {GST_VIDEO_FORMAT_I420, GST_VIDEO_CHROMA_SITE_MPEG2}},
      {"420paldv", {GST_VIDEO_FORMAT_I420, GST_VIDEO_CHROMA_SITE_DV}},
      {"422", {GST_VIDEO_FORMAT_Y42B}},
      {"444", {GST_VIDEO_FORMAT_Y444}},
      {"mono", {GST_VIDEO_FORMAT_GRAY8}},
      {"420p10", {GST_VIDEO_FORMAT_I420_10LE}},
      {"422p10", {GST_VIDEO_FORMAT_I422_10LE}},
      {"444p10", {GST_VIDEO_FORMAT_Y444_10LE}},
      {"420p12", {GST_VIDEO_FORMAT_I420_12LE}},
      {"422p12", {GST_VIDEO_FORMAT_I422_12LE}},
      {"444p12", {GST_VIDEO_FORMAT_Y444_12LE}}};
  const auto found = kCodings.find(name);
  if (found == kCodings.end())
    throw Failure(kName + ("YUV4MPEG2 of C" + name) +
                  ": expected 420, 422, 444 or mono, or one of the first three with p10 or p12");
  return found->second;
}

GstVideoInterlaceMode interlace_mode_of(const std::string& value) {
  if (value == "t" || value == "b") return GST_VIDEO_INTERLACE_MODE_INTERLEAVED;
  return value == "m" ? GST_VIDEO_INTERLACE_MODE_MIXED : GST_VIDEO_INTERLACE_MODE_PROGRESSIVE;
}

// "30000:1001"; 0:0 where it is not known.
bool read_ratio(const std::string& text, int& numerator, int& denominator) {
  int end = 0;
  return std::sscanf(text.c_str(), "%d:%d%n", &numerator, &denominator, &end) == 2 &&
         end == static_cast<int>(text.size()) && numerator >= 0 && denominator >= 0;
}

int side_of(const std::string& text) {
  int side = 0;
  int end = 0;
  const bool fits = std::sscanf(text.c_str(), "%d%n", &side, &end) == 1 &&
                    end == static_cast<int>(text.size()) && side > 0 && side <= kMostPixels;
  if (!fits) throw Failure(kName + ("YUV4MPEG2 of a side of " + text) + ": expected 1 to 32768");
  return side;
}

// Planes one after another, rows one after another.
void lay_out_tightly(GstVideoInfo& info) {
  gsize offset = 0;
  for (guint plane = 0; plane < GST_VIDEO_INFO_N_PLANES(&info); ++plane) {
    info.offset[plane] = offset;
    info.stride[plane] = GST_VIDEO_INFO_COMP_WIDTH(&info, plane) * GST_VIDEO_INFO_COMP_PSTRIDE(&info, plane);
    offset += static_cast<gsize>(info.stride[plane]) * GST_VIDEO_INFO_COMP_HEIGHT(&info, plane);
  }
  info.size = offset;
}

}  // namespace

Y4mReader::Y4mReader(int file) : file_(file) {
  constexpr std::string_view kMagic = "YUV4MPEG2";
  std::array<char, kMagic.size()> begin;
  const End end = read(begin.data(), begin.size(), {});
  if (end == End::kClean) throw Failure(std::string(kName) + "is empty, YUV4MPEG2 was expected");
  if (end != End::kNone || std::string_view(begin.data(), begin.size()) != kMagic)
    throw Failure(std::string(kName) + "is not YUV4MPEG2, which ffmpeg -f yuv4mpegpipe writes");
  take(line({}).value_or(""));
}

void Y4mReader::take(const std::string& header) {
  int width = 0;
  int height = 0;
  int rate[2] = {25, 1};
  int pixel[2] = {0, 0};
  Coding coding = coding_of("420");
  std::string interlaced = "p";
  GstVideoColorRange range = GST_VIDEO_COLOR_RANGE_UNKNOWN;
  std::istringstream fields(header);
  for (std::string field; fields >> field;) {
    const std::string value = field.substr(1);
    if (field[0] == 'W') width = side_of(value);
    if (field[0] == 'H') height = side_of(value);
    if (field[0] == 'C') coding = coding_of(value);
    if (field[0] == 'I') interlaced = value;
    if ((field[0] == 'F' && !read_ratio(value, rate[0], rate[1])) ||
        (field[0] == 'A' && !read_ratio(value, pixel[0], pixel[1])))
      throw Failure(kName + ("YUV4MPEG2 with " + field) + ": expected two numbers, as in " + field[0] +
                    "1:1");
    if (field == "XCOLORRANGE=FULL") range = GST_VIDEO_COLOR_RANGE_0_255;
    if (field == "XCOLORRANGE=LIMITED") range = GST_VIDEO_COLOR_RANGE_16_235;
  }
  if (width == 0 || height == 0) throw Failure(std::string(kName) + "YUV4MPEG2 without width or height");
  if (!gst_video_info_set_interlaced_format(&info_, coding.format, interlace_mode_of(interlaced), width,
                                            height))
    throw Failure(formatted("%sYUV4MPEG2 of %dx%d: GStreamer takes no such frames", kName, width, height));
  info_.fps_n = rate[1] > 0 ? rate[0] : 25;
  info_.fps_d = rate[1] > 0 ? rate[1] : 1;
  if (pixel[0] > 0 && pixel[1] > 0) info_.par_n = pixel[0], info_.par_d = pixel[1];
  if (interlaced == "t") GST_VIDEO_INFO_FIELD_ORDER(&info_) = GST_VIDEO_FIELD_ORDER_TOP_FIELD_FIRST;
  if (interlaced == "b") GST_VIDEO_INFO_FIELD_ORDER(&info_) = GST_VIDEO_FIELD_ORDER_BOTTOM_FIELD_FIRST;
  if (range != GST_VIDEO_COLOR_RANGE_UNKNOWN) info_.colorimetry.range = range;
  info_.chroma_site = coding.site;
  lay_out_tightly(info_);
}

BufferPtr Y4mReader::next(const std::stop_token& stop) {
  const std::optional<std::string> head = line(stop);
  if (!head) return nullptr;
  if (!head->starts_with("FRAME"))
    throw Failure(formatted("%sframe %ld does not begin with FRAME", kName, long(frames_)));
  BufferPtr buffer{gst_buffer_new_allocate(nullptr, info_.size, nullptr)};
  GstMapInfo map;
  if (!buffer || !gst_buffer_map(buffer.get(), &map, GST_MAP_WRITE))
    throw Failure(
        formatted("%sframe %ld: no memory for %zu bytes", kName, long(frames_), size_t(info_.size)));
  const End end = read(reinterpret_cast<char*>(map.data), map.size, stop);
  gst_buffer_unmap(buffer.get(), &map);
  if (end == End::kStopped) return nullptr;
  if (end != End::kNone) throw Failure(formatted("%sbreaks off in frame %ld", kName, long(frames_)));
  gst_buffer_add_video_meta_full(buffer.get(), GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_INFO_FORMAT(&info_),
                                 info_.width, info_.height, GST_VIDEO_INFO_N_PLANES(&info_), info_.offset,
                                 info_.stride);
  const auto time = [&](int64_t frame) {
    return gst_util_uint64_scale(frame, GST_SECOND * info_.fps_d, std::max(info_.fps_n, 1));
  };
  GST_BUFFER_PTS(buffer.get()) = time(frames_);
  GST_BUFFER_DURATION(buffer.get()) = time(frames_ + 1) - time(frames_);
  ++frames_;
  return buffer;
}

// Without its end; none at the end of the stream, and once `stop` is wanted.
std::optional<std::string> Y4mReader::line(const std::stop_token& stop) const {
  std::string text;
  for (char c = 0; text.size() < kLongestLine; text += c) {
    const End end = read(&c, 1, stop);
    if (end == End::kStopped || (end == End::kClean && text.empty())) return std::nullopt;
    if (end != End::kNone) throw Failure(formatted("%sbreaks off at frame %ld", kName, long(frames_)));
    if (c == '\n') return text;
  }
  throw Failure(std::string(kName) + "is not YUV4MPEG2: a line does not end");
}

// Looks up at times: the program that writes may have nothing to say for long.
Y4mReader::End Y4mReader::read(char* bytes, size_t count, const std::stop_token& stop) const {
  constexpr int kTickMs = 100;
  for (size_t done = 0; done < count;) {
    if (stop.stop_requested()) return End::kStopped;
    if (!stop.stop_possible()) check_interrupted();
    pollfd wait{.fd = file_, .events = POLLIN, .revents = 0};
    if (poll(&wait, 1, kTickMs) <= 0) continue;
    const ssize_t got = ::read(file_, bytes + done, count - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Failure(std::string(kName) + "cannot be read: " + std::strerror(errno));
    if (got == 0) return done == 0 ? End::kClean : End::kCut;
    done += got;
  }
  return End::kNone;
}

}  // namespace nonlocal::tools
