// An application's own frames through the elements and back: frames WIDTH HEIGHT [PROMPT] <IN >OUT
//
// Raw I420 frames come from stdin and go to stdout, as `ffmpeg -f rawvideo -pix_fmt yuv420p` writes and reads
// them. One thread pushes into an appsrc, the other pulls out of an appsink: elements may wait for later
// frames before they give the first.
#include <gst/app/gstappsink.h>
#include <gst/app/gstappsrc.h>
#include <gst/gst.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>

namespace {

constexpr int kFramesPerSecond = 25;

[[noreturn]] void fail(const std::string& message) {
  std::cerr << "frames: " << message << '\n';
  std::quick_exit(1);  // the other thread may wait for stdin
}

// Both ends wait rather than hold ever more frames.
GstElement* make_pipeline(int width, int height, const char* prompt) {
  const std::string text =
      "appsrc name=in format=time block=true max-buffers=4 max-bytes=0 caps=video/x-raw,format=I420,width=" +
      std::to_string(width) + ",height=" + std::to_string(height) +
      ",framerate=" + std::to_string(kFramesPerSecond) +
      "/1 ! nonlocaldenoise ! textcross name=grade transition=0 ! appsink name=out sync=false max-buffers=4";
  GError* error = nullptr;
  GstElement* pipeline = gst_parse_launch_full(text.c_str(), nullptr, GST_PARSE_FLAG_FATAL_ERRORS, &error);
  if (!pipeline) fail(error->message);
  GstElement* grade = gst_bin_get_by_name(GST_BIN(pipeline), "grade");
  g_object_set(grade, "prompt", prompt, nullptr);
  gst_object_unref(grade);
  return pipeline;
}

void push_frames(GstAppSrc* source, gsize size) {
  for (guint64 count = 0;; ++count) {
    GstBuffer* buffer = gst_buffer_new_allocate(nullptr, size, nullptr);
    GstMapInfo map;
    gst_buffer_map(buffer, &map, GST_MAP_WRITE);
    const bool is_whole = std::fread(map.data, 1, size, stdin) == size;
    gst_buffer_unmap(buffer, &map);
    GST_BUFFER_PTS(buffer) = count * GST_SECOND / kFramesPerSecond;
    GST_BUFFER_DURATION(buffer) = GST_SECOND / kFramesPerSecond;
    if (!is_whole) {
      gst_buffer_unref(buffer);
      gst_app_src_end_of_stream(source);
      return;
    }
    if (gst_app_src_push_buffer(source, buffer) != GST_FLOW_OK) return;  // takes the buffer over
  }
}

// Until the end, which comes after an error, too.
void pull_frames(GstAppSink* sink) {
  while (GstSample* sample = gst_app_sink_pull_sample(sink)) {
    GstMapInfo map;
    gst_buffer_map(gst_sample_get_buffer(sample), &map, GST_MAP_READ);
    std::fwrite(map.data, 1, map.size, stdout);
    gst_buffer_unmap(gst_sample_get_buffer(sample), &map);
    gst_sample_unref(sample);
  }
}

void check_errors(GstElement* pipeline) {
  GstBus* bus = gst_element_get_bus(pipeline);
  if (GstMessage* message = gst_bus_pop_filtered(bus, GST_MESSAGE_ERROR)) {
    GError* error = nullptr;
    gst_message_parse_error(message, &error, nullptr);
    fail(error->message);
  }
  gst_object_unref(bus);
}

}  // namespace

int main(int argc, char** argv) {
  gst_init(&argc, &argv);
  const int width = argc > 2 ? std::atoi(argv[1]) : 0;
  const int height = argc > 2 ? std::atoi(argv[2]) : 0;
  // GStreamer pads rows of I420 to four bytes; other widths would need GstVideoFrame to copy rows.
  if (width < 8 || width % 8 || height < 2 || height % 2)
    fail("expected WIDTH, a multiple of 8, HEIGHT, even, and perhaps a PROMPT");

  GstElement* pipeline = make_pipeline(width, height, argc > 3 ? argv[3] : "");
  GstElement* source = gst_bin_get_by_name(GST_BIN(pipeline), "in");
  GstElement* sink = gst_bin_get_by_name(GST_BIN(pipeline), "out");
  gst_element_set_state(pipeline, GST_STATE_PLAYING);
  std::thread pushing(push_frames, GST_APP_SRC(source), gsize(width) * height * 3 / 2);
  pull_frames(GST_APP_SINK(sink));
  check_errors(pipeline);
  pushing.join();
  gst_element_set_state(pipeline, GST_STATE_NULL);
  gst_object_unref(source);
  gst_object_unref(sink);
  gst_object_unref(pipeline);
  return std::fflush(stdout) == 0 && !std::ferror(stdout) ? 0 : 1;
}
