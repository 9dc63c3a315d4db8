// Frames as they came beside what the filters made of them, as pictures for browsers.
#pragma once

#include <gst/gst.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "gst.h"

namespace nonlocal::tools {

using BytesPtr = std::unique_ptr<GBytes, Releaser<g_bytes_unref>>;

// Watches two pads, joins the frames that have the same time, and encodes pairs in a thread of its own: the
// newest when one is wanted, and none otherwise. The streaming thread waits for neither.
class LiveFrames {
 public:
  // A pair as browsers get it: the length of the first picture in bytes, as a little-endian number of 32
  // bits, and two JPEG pictures, before and after; the second is left out where the frames are one and the
  // same. Called by the encoding thread.
  using Deliver = std::function<void(BytesPtr)>;

  struct Counts {
    int64_t after = 0;        // frames that have left the filters
    double milliseconds = 0;  // that the newest spent in them; 0: not known
  };

  explicit LiveFrames(Deliver deliver);
  ~LiveFrames();
  LiveFrames(const LiveFrames&) = delete;
  LiveFrames& operator=(const LiveFrames&) = delete;

  // The pads must not push any more when this goes out of scope.
  void watch(GstPad* before, GstPad* after);

  // Whether there is anybody to see frames; else none are kept.
  void set_watched(bool is_watched);

  // One more pair is wanted.
  void want();

  [[nodiscard]] Counts counts() const;

 private:
  struct Frame {
    SamplePtr sample;
    gint64 came = 0;  // monotonic time, in microseconds
  };
  struct Pair {
    SamplePtr before;
    SamplePtr after;
  };

  void enters(GstPad* pad, GstBuffer* buffer);
  void leaves(GstPad* pad, GstBuffer* buffer);
  template <void (LiveFrames::*see)(GstPad*, GstBuffer*)>
  void probe(GstPad* pad);
  std::optional<Frame> take(GstClockTime time);
  std::optional<Pair> wait_for_pair();
  void encode_all();

  Deliver deliver_;
  mutable std::mutex mutex_;  // guards everything below
  std::condition_variable changed_;
  bool is_watched_ = false;
  bool is_wanted_ = false;
  bool is_over_ = false;
  std::deque<Frame> in_filters_;
  std::optional<Pair> newest_;
  Counts counts_;

  std::thread encoder_;  // last: it uses the others
};

}  // namespace nonlocal::tools
