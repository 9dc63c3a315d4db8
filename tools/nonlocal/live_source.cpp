#include "live_source.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "failure.h"
#include "picture_names.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

namespace fs = std::filesystem;

std::string first_camera() {
  std::vector<std::string> cameras;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator("/dev", error)) {
    if (entry.path().filename().string().starts_with("video")) cameras.push_back(entry.path().string());
  }
  if (cameras.empty())
    throw Failure("there is no camera (no /dev/video*): name an rtsp:// address, a file, or test");
  return *std::ranges::min_element(cameras, {}, [](const std::string& path) {
    return std::pair(path.size(), path);  // video2 before video10
  });
}

LiveSource camera(const std::string& device) {
  LiveSource source{.name = device};
  source.text.add("v4l2src").property("device", device).add("! decodebin");
  return source;
}

// A server may send sound too: only the video is taken. Late packets are dropped, so that the delay stays.
LiveSource network_camera(const std::string& address) {
  LiveSource source{.name = address};
  source.text.add("rtspsrc")
      .property("location", address)
      .add("latency=100 drop-on-latency=true name=camera camera. !");
  source.text.add("application/x-rtp,media=video ! parsebin ! decodebin");
  return source;
}

LiveSource file(const std::string& path) {
  LiveSource source{.name = path, .is_recorded = true};
  source.text.add("filesrc").property("location", path).add("! decodebin");
  return source;
}

// Decoded once, and shown again and again.
LiveSource picture(const std::string& path, int fps) {
  LiveSource source{.name = path};
  source.text.add("filesrc").property("location", path).add("! decodebin ! imagefreeze is-live=true !");
  source.text.add(formatted("video/x-raw,framerate=%d/1", fps));
  return source;
}

// Files alone can be read again from the beginning, and closed while they are read: a FIFO can't.
LiveSource in_file_system(const std::string& path, int fps) {
  std::error_code error;
  switch (fs::status(path, error).type()) {
    case fs::file_type::character:
      return camera(path);
    case fs::file_type::regular:
      return is_picture_name(path) ? picture(path, fps) : file(path);
    case fs::file_type::not_found:
    case fs::file_type::none:
      throw Failure(path + ": no such file, nor is it a camera (/dev/video0), an rtsp:// address or test");
    default:
      throw Failure(path + ": neither a regular file nor a camera");
  }
}

// Colour bars that move, under white noise: snow's luma is spread evenly over 0 to 255, sigma 74.
LiveSource test_pictures(const std::string& size, int fps) {
  int width = 0;
  int height = 0;
  if (!read_size(size, width, height) || width < 16 || height < 16 || width > 8192 || height > 8192)
    throw Failure("--size takes WIDTHxHEIGHT, each from 16 to 8192, not " + size);
  const std::string frames =
      formatted("! video/x-raw,format=I420,width=%d,height=%d,framerate=%d/1 !", width, height, fps);
  LiveSource source{.name = "test"};
  source.text.add("videotestsrc is-live=true horizontal-speed=2").add(frames).add("mix.sink_0");
  source.text.add("videotestsrc is-live=true pattern=snow").add(frames).add("mix.sink_1");
  source.text.add("compositor name=mix sink_1::alpha=0.2");
  return source;
}

}  // namespace

LiveSource live_source(const std::string& name, const std::string& size, int fps) {
  if (name == "test") return test_pictures(size, fps);
  if (name.starts_with("rtsp://") || name.starts_with("rtsps://")) return network_camera(name);
  return in_file_system(name.empty() ? first_camera() : name, fps);
}

}  // namespace nonlocal::tools
