#include "evaluate_material.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>

#include "failure.h"
#include "media_file.h"
#include "noise.h"
#include "pipeline_text.h"
#include "progress.h"
#include "text.h"
#include "yuv420.h"

namespace nonlocal::tools {
namespace {

namespace fs = std::filesystem;

constexpr int kSmallest = 32;

size_t bytes(const Planes& planes) {
  size_t sum = 0;
  for (const cv::Mat& plane : planes) sum += plane.total();
  return sum;
}

// Even, so that chroma is half of it.
cv::Size scaled_size(cv::Size size, double scale) {
  const auto scaled = [&](int n) { return scale == 1 ? n : 2 * static_cast<int>(n * scale / 2); };
  return {scaled(size.width), scaled(size.height)};
}

void check_size(const std::string& name, cv::Size size) {
  if (std::min(size.width, size.height) >= kSmallest) return;
  throw Failure(formatted("%s: frames of at least %dx%d are expected, not %dx%d", name.c_str(), kSmallest,
                          kSmallest, size.width, size.height));
}

cv::Mat scaled_plane(const cv::Mat& plane, cv::Size size) {
  if (plane.size() == size) return plane;
  cv::Mat scaled;
  cv::resize(plane, scaled, size, 0, 0, cv::INTER_AREA);
  return scaled;
}

Planes scaled_planes(const Planes& planes, cv::Size size) {
  Planes scaled;
  for (size_t i = 0; i < planes.size(); ++i)
    scaled.push_back(scaled_plane(planes[i], i == 0 ? size : (size + cv::Size(1, 1)) / 2));
  return scaled;
}

// As the decoded frames', but for size and format.
GstVideoInfo info_like(const GstVideoInfo& decoded, GstVideoFormat format, cv::Size size) {
  GstVideoInfo info;
  gst_video_info_set_format(&info, format, size.width, size.height);
  info.fps_n = decoded.fps_n > 0 ? decoded.fps_n : 25;
  info.fps_d = decoded.fps_n > 0 ? decoded.fps_d : 1;
  if (format == GST_VIDEO_FORMAT_I420) {
    info.colorimetry = decoded.colorimetry;
    info.chroma_site = decoded.chroma_site;
  }
  return info;
}

std::string decoding(const std::string& path) {
  PipelineText text;
  text.add("filesrc").property("location", path);
  text.add("! decodebin ! videoconvert ! video/x-raw,format=I420");
  text.add("! appsink name=frames sync=false max-buffers=4");
  return text.description();
}

// Luma is taken from I420, not converted to GRAY8: that would stretch its range.
void take_frame(Sequence& clip, GstSample* sample, const MaterialOptions& options) {
  GstVideoInfo decoded;
  if (!gst_video_info_from_caps(&decoded, gst_sample_get_caps(sample)))
    throw Failure(options.path + ": its frames have no format");
  const bool is_gray = options.format == "GRAY8";
  const cv::Size size = scaled_size({decoded.width, decoded.height}, options.scale);
  check_size(options.path, size);
  if (clip.frames.empty())
    clip.info = info_like(decoded, is_gray ? GST_VIDEO_FORMAT_GRAY8 : GST_VIDEO_FORMAT_I420, size);
  if (size != clip.size()) throw Failure(options.path + ": its frames change their size");
  Planes planes = to_planes(gst_sample_get_buffer(sample), decoded);
  if (is_gray) planes.resize(1);
  clip.frames.push_back(scaled_planes(planes, size));
}

Material read_clip(const MaterialOptions& options) {
  const MediaFile media = inspect(options.path);
  Material material{true, options.format, {{fs::path(options.path).filename(), {}, {}}}, false};
  Sequence& clip = material.sequences[0];
  Pipeline pipeline(decoding(options.path));
  const ElementPtr sink = pipeline.element("frames");
  pipeline.play();
  Progress progress(options.frames > 0 ? options.start + options.frames : media.expected_frames(),
                    options.quiet);
  for (int64_t index = 0; options.frames == 0 || index < options.start + options.frames; ++index) {
    const SamplePtr sample = pipeline.next_sample(sink.get());
    if (!sample) break;
    progress.show(index + 1, "reading");
    if (index < options.start) continue;
    if (options.frames == 0 && !clip.frames.empty() &&
        (clip.frames.size() + 1) * bytes(clip.frames[0]) > kMemory) {
      material.is_cut = true;
      break;
    }
    take_frame(clip, sample.get(), options);
  }
  pipeline.check_errors();
  if (clip.frames.empty())
    throw Failure(formatted("%s: has no frame %ld", options.path.c_str(), long(options.start)));
  return material;
}

bool is_picture(const fs::path& path) {
  std::string extension = path.extension().string();
  std::ranges::transform(extension, extension.begin(), [](unsigned char c) { return std::tolower(c); });
  return extension == ".png" || extension == ".jpg" || extension == ".jpeg";
}

std::vector<fs::path> pictures_in(const std::string& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.is_regular_file() && is_picture(entry.path())) paths.push_back(entry.path());
  if (error) throw Failure(folder + ": cannot be read: " + error.message());
  if (paths.empty()) throw Failure(folder + ": no pictures (.png, .jpg, .jpeg) in it");
  std::ranges::sort(paths);
  return paths;
}

Sequence read_picture(const fs::path& path, const MaterialOptions& options) {
  cv::Mat bgr = cv::imread(path.string(), cv::IMREAD_COLOR);
  if (bgr.empty()) throw Failure(path.string() + ": is no picture that can be read");
  bgr = scaled_plane(bgr, scaled_size(bgr.size(), options.scale));
  check_size(path.string(), bgr.size());
  Sequence still{path.filename(), {}, {}};
  GstVideoInfo decoded;
  gst_video_info_init(&decoded);
  if (options.format == "GRAY8") {
    cv::Mat gray;
    cv::cvtColor(bgr, gray, cv::COLOR_BGR2GRAY);
    still.frames = {{gray}};
    still.info = info_like(decoded, GST_VIDEO_FORMAT_GRAY8, bgr.size());
  } else {
    gst_video_colorimetry_from_string(&decoded.colorimetry, GST_VIDEO_COLORIMETRY_BT709);
    const Yuv420 yuv = to_yuv420(bgr(cv::Rect(0, 0, bgr.cols & ~1, bgr.rows & ~1)));
    still.frames = {{yuv.y.clone(), yuv.u.clone(), yuv.v.clone()}};
    still.info = info_like(decoded, GST_VIDEO_FORMAT_I420, yuv.y.size());
  }
  return still;
}

Material read_pictures(const MaterialOptions& options) {
  std::vector<fs::path> paths = pictures_in(options.path);
  const auto all = static_cast<int64_t>(paths.size());
  if (options.start >= all)
    throw Failure(formatted("%s: has %ld pictures, none after --start %ld", options.path.c_str(), long(all),
                            long(options.start)));
  paths.erase(paths.begin(), paths.begin() + options.start);
  if (options.frames > 0 && options.frames < std::ssize(paths)) paths.resize(options.frames);
  Material material{false, options.format, {}, false};
  Progress progress(std::ssize(paths), options.quiet, "picture");
  size_t used = 0;
  for (const fs::path& path : paths) {
    check_interrupted();
    material.sequences.push_back(read_picture(path, options));
    used += bytes(material.sequences.back().frames[0]);
    progress.show(std::ssize(material.sequences), "reading");
    if (options.frames == 0 && used > kMemory && material.sequences.size() < paths.size()) {
      material.is_cut = true;
      break;
    }
  }
  return material;
}

}  // namespace

int64_t Material::count() const {
  int64_t sum = 0;
  for (const Sequence& sequence : sequences) sum += std::ssize(sequence.frames);
  return sum;
}

std::vector<std::string> Material::plane_names() const {
  return format == "GRAY8" ? std::vector<std::string>{"Y"} : std::vector<std::string>{"Y", "U", "V"};
}

Material read_material(const MaterialOptions& options) {
  std::error_code ignored;
  const bool is_folder = fs::is_directory(options.path, ignored);
  MaterialOptions chosen = options;
  if (chosen.format.empty()) chosen.format = is_folder ? "GRAY8" : "I420";
  return is_folder ? read_pictures(chosen) : read_clip(chosen);
}

std::vector<Sequence> with_noise(const std::vector<Sequence>& clean, const std::string& kind, double sigma,
                                 uint64_t seed, const Tick& tick) {
  std::vector<Sequence> noisy;
  uint64_t index = 0;
  for (const Sequence& sequence : clean) {
    noisy.push_back({sequence.name, sequence.info, {}});
    for (const Planes& planes : sequence.frames) {
      check_interrupted();
      cv::RNG rng(frame_seed(seed, index++));
      Planes& copies = noisy.back().frames.emplace_back();
      for (const cv::Mat& plane : planes) copies.push_back(plane.clone());
      add_noise(copies, kind, sigma, rng);
      tick(1);
    }
  }
  return noisy;
}

}  // namespace nonlocal::tools
