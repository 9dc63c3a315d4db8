// What the tests of the elements share: frames of seeded noise, views of their samples, and the element in a
// GstHarness.
#pragma once

#include <gst/check/gstharness.h>
#include <gst/gst.h>
#include <gst/video/video.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace nonlocal::test {

struct Release {
  void operator()(GstBuffer* buffer) const { gst_buffer_unref(buffer); }
  void operator()(GstMessage* message) const { gst_message_unref(message); }
  void operator()(GstCaps* caps) const { gst_caps_unref(caps); }
  void operator()(void* object) const { gst_object_unref(object); }
};
using Buffer = std::unique_ptr<GstBuffer, Release>;
using Message = std::unique_ptr<GstMessage, Release>;
using Caps = std::unique_ptr<GstCaps, Release>;
using Element = std::unique_ptr<GstElement, Release>;
using Bus = std::unique_ptr<GstBus, Release>;
using Pad = std::unique_ptr<GstPad, Release>;

using Bytes = std::vector<std::uint8_t>;

constexpr int kFrameRate = 25;
constexpr GstClockTime kFrameDuration = GST_SECOND / kFrameRate;

// All formats that an element must take without conversion.
const std::vector<GstVideoFormat>& formats();

GstVideoInfo video_info(GstVideoFormat format, int width, int height,
                        GstVideoInterlaceMode mode = GST_VIDEO_INTERLACE_MODE_PROGRESSIVE);
Caps caps_of(const GstVideoInfo& info);

// A slope with noise of about `sigma` 8-bit code values in every component, full range at the ends; frame
// `index` of a stream of kFrameRate. The bytes that are no samples (alpha, padding) hold junk.
Buffer noisy_frame(const GstVideoInfo& info, int index = 0, unsigned seed = 1, double sigma = 20);

// The same samples with every plane elsewhere: offsets and strides that only GstVideoMeta tells, junk in
// between.
Buffer padded_frame(GstBuffer* packed, const GstVideoInfo& info);

Bytes bytes_of(GstBuffer* buffer);

// The stored values (shifted to their low bits) of one component, row by row.
std::vector<int> samples_of(GstBuffer* buffer, const GstVideoInfo& info, int component);
std::vector<std::vector<int>> all_samples_of(GstBuffer* buffer, const GstVideoInfo& info);

// Which of the buffer's bytes belong to samples of `info`'s colour components (not alpha).
std::vector<bool> sample_bytes(GstBuffer* buffer, const GstVideoInfo& info);

// An element, or a line of them as gst-launch takes it, in a harness with a bus.
class Harness {
 public:
  explicit Harness(const GstVideoInfo& info, const std::string& line = "nonlocaldenoise",
                   const std::string& element = "nonlocaldenoise");
  ~Harness();
  Harness(const Harness&) = delete;
  Harness& operator=(const Harness&) = delete;

  GstHarness* operator->() { return harness_; }
  GstHarness* get() { return harness_; }
  GstElement* element() { return element_.get(); }  // the one of that name in the line

  // As gst-launch would set it.
  Harness& set(const char* property, const std::string& value);
  double number(const char* property);

  GstFlowReturn push(Buffer buffer);
  Buffer pull();      // null if none has come out
  int count_ready();  // frames that have come out and were not pulled
  Buffer filter(Buffer buffer);

  void set_format(const GstVideoInfo& info);
  void flush();                            // with a new segment afterwards
  void restart(const GstVideoInfo& info);  // to READY and back, with a new stream
  void send_segment(GstClockTime start = 0);
  void send_qos(GstClockTimeDiff lateness, GstClockTime running_time, double proportion = 2);

  // Those of these types that were posted and not taken before.
  std::vector<Message> messages(GstMessageType types = GST_MESSAGE_ANY);
  // The element's own.
  std::vector<Message> reports();

 private:
  template <typename Wanted>
  std::vector<Message> take_messages(const Wanted& wanted);

  GstHarness* harness_;
  Element element_;
  Bus bus_;
  std::vector<Message> inbox_;
};

// What the frames come out as, from a fresh element with these "property=value" settings.
std::vector<Bytes> filter_all(const GstVideoInfo& info, const std::vector<std::string>& settings, int frames,
                              int first = 0);

// Frames 5 to 8, of `info`, after frames 0 to 4 of something else, with `between` called in between; a frame
// that did not come out is empty.
std::vector<Bytes> later_frames(Harness& harness, const GstVideoInfo& first, const GstVideoInfo& info,
                                const std::function<void(Harness&)>& between);

// What an error message says.
struct ErrorReport {
  GQuark domain = 0;
  int code = -1;
  std::string text;
};
ErrorReport error_of(GstMessage* message);

// Plays to the end and returns the first error, or none.
ErrorReport play_to_error(GstElement* pipeline);
// Its text, or "".
std::string play(GstElement* pipeline);
Element parse(const std::string& pipeline);

}  // namespace nonlocal::test
