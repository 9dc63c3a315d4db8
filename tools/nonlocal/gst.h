// GStreamer made safe to hold: owning pointers, start-up with our plugin, and running a pipeline to its end.
#pragma once

#include <gst/gst.h>

#include <functional>
#include <memory>
#include <string>

namespace nonlocal::tools {

template <auto release>
struct Releaser {
  template <typename T>
  void operator()(T* pointer) const {
    release(pointer);
  }
};

// Their own unref functions are inline: as template arguments they would differ from file to file.
struct MiniObjectReleaser {
  template <typename T>
  void operator()(T* object) const {
    gst_mini_object_unref(GST_MINI_OBJECT_CAST(object));
  }
};

using CapsPtr = std::unique_ptr<GstCaps, MiniObjectReleaser>;
using SamplePtr = std::unique_ptr<GstSample, MiniObjectReleaser>;
using EventPtr = std::unique_ptr<GstEvent, MiniObjectReleaser>;
using MessagePtr = std::unique_ptr<GstMessage, MiniObjectReleaser>;
using ErrorPtr = std::unique_ptr<GError, Releaser<g_error_free>>;
using StringPtr = std::unique_ptr<char, Releaser<g_free>>;
using ElementPtr = std::unique_ptr<GstElement, Releaser<gst_object_unref>>;
using PadPtr = std::unique_ptr<GstPad, Releaser<gst_object_unref>>;

// Starts GStreamer with the plugin that belongs to this program: the build tree's for a program in a build
// tree, else the installed one. Throws Failure where there is no element nonlocaldenoise then.
void start_gstreamer();

// The folder that GST_PLUGIN_PATH must name so that gst-launch-1.0 finds the same plugin; empty where it
// needs no telling.
std::string plugin_folder();

// What an error or a warning of an element says, and which element, in one line.
std::string error_text(GstMessage* message);

// Of the parsebin in a pipeline that reads a file.
inline constexpr const char* kParserName = "in";

// A pipeline from the text that gst_parse_launch reads. It stops when this goes out of scope.
class Pipeline {
 public:
  explicit Pipeline(const std::string& description);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  [[nodiscard]] GstElement* get() const { return pipeline_.get(); }
  [[nodiscard]] ElementPtr element(const char* name) const;

  void play();
  void stop();

  // Waits for the end of the stream, calling `tick` about ten times a second. Throws Failure for an error
  // in the pipeline, and for Ctrl-C Interrupted, or calls `interrupted` once and goes on, where it is given.
  void wait_for_end(const std::function<void()>& tick, std::function<void()> interrupted = nullptr);

  // Calls `see` with each buffer at an element's pad, on a streaming thread. Until stop() it must live.
  void watch(const char* element, const char* pad, std::function<void(GstPad*, GstBuffer*)> see);

  // The next sample of an appsink in the pipeline; null at the end of the stream. Throws as wait_for_end().
  SamplePtr next_sample(GstElement* sink);

  // Throws Failure with the first error that the pipeline has reported so far, if any.
  void check_errors();

 private:
  [[noreturn]] void fail(GstMessage* message) const;

  ElementPtr pipeline_;
};

// When a buffer at a pad is shown, counted from the beginning of the file, however it was sought in; NONE for
// one that has no time, and for one outside of what is shown.
GstClockTime stream_time(GstPad* pad, GstBuffer* buffer);

// Of a video's frames: "320x240".
std::string size_of(GstCaps* caps);

// Of a pad that plays a Matroska file from its beginning: GStreamer 1.22's demuxer begins its segment at the
// first packet that it meets, and begins it anew once an earlier one of another stream comes. From here on
// segments begin at 0, as the file does; else stream_time() of the frames between would be too early.
void begin_segments_at_zero(GstPad* pad);

// Of a pad that plays a file from its beginning, before what goes by the running time of buffers, as muxers
// do: from here on that is their stream_time(). Demuxers let both differ where a file does not begin at 0.
void run_by_stream_time(GstPad* pad);

// From here on Ctrl-C and a polite kill set a flag, which wait_for_end() and check_interrupted() turn into
// Interrupted. A second Ctrl-C ends the process at once. Called again, what came before is forgotten.
void catch_interrupts();
void check_interrupted();
bool is_interrupted();

}  // namespace nonlocal::tools
