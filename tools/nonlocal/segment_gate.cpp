#include "segment_gate.h"

#include <chrono>
#include <thread>

#include "filter_pipeline.h"

namespace nonlocal::tools {
namespace {

constexpr auto kFramesAndEvents = static_cast<GstPadProbeType>(
    GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM | GST_PAD_PROBE_TYPE_EVENT_FLUSH);

PadPtr sink_of(const Pipeline& pipeline, const char* element) {
  return PadPtr{gst_element_get_static_pad(pipeline.element(element).get(), "sink")};
}

// The demuxer stops, and ends its streams.
GstPadProbeReturn end_at(GstPadProbeInfo* info) {
  gst_buffer_unref(GST_PAD_PROBE_INFO_BUFFER(info));
  GST_PAD_PROBE_INFO_DATA(info) = nullptr;
  GST_PAD_PROBE_INFO_FLOW_RETURN(info) = GST_FLOW_EOS;
  return GST_PAD_PROBE_HANDLED;
}

}  // namespace

SegmentGate::SegmentGate(Pipeline& pipeline, const Segment& segment, bool jumps)
    : pipeline_(pipeline),
      segment_(segment),
      pad_(sink_of(pipeline, kDecodedName)),
      jumps_(jumps),
      open_(!jumps) {
  const auto decoded = [](GstPad* pad, GstPadProbeInfo* info, gpointer self) {
    return static_cast<SegmentGate*>(self)->decoded(pad, info);
  };
  const auto filtered = [](GstPad* pad, GstPadProbeInfo* info, gpointer self) {
    const GstClockTime time = stream_time(pad, GST_PAD_PROBE_INFO_BUFFER(info));
    return static_cast<SegmentGate*>(self)->segment_.keeps(time) ? GST_PAD_PROBE_OK : GST_PAD_PROBE_DROP;
  };
  gst_pad_add_probe(pad_.get(), kFramesAndEvents, decoded, this, nullptr);
  gst_pad_add_probe(sink_of(pipeline, kFilteredName).get(), GST_PAD_PROBE_TYPE_BUFFER, filtered, this,
                    nullptr);
}

bool SegmentGate::jump() {
  while (!running_) {
    pipeline_.check_errors();
    check_interrupted();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  const auto flags = static_cast<GstSeekFlags>(GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_ACCURATE);
  const auto time = static_cast<gint64>(segment_.feed_begin);
  return gst_pad_push_event(pad_.get(), gst_event_new_seek(1, GST_FORMAT_TIME, flags, GST_SEEK_TYPE_SET, time,
                                                           GST_SEEK_TYPE_NONE, 0));
}

GstPadProbeReturn SegmentGate::decoded(GstPad* pad, GstPadProbeInfo* info) {
  if (info->type & GST_PAD_PROBE_TYPE_BUFFER) return frame(pad, info);
  return event(GST_EVENT_TYPE(GST_PAD_PROBE_INFO_EVENT(info)));
}

// Nothing has passed when the jump flushes: nothing behind needs to know.
GstPadProbeReturn SegmentGate::event(GstEventType type) {
  if (open_) return GST_PAD_PROBE_OK;
  if (type == GST_EVENT_EOS) {
    running_ = true;
    return GST_PAD_PROBE_DROP;
  }
  if (type == GST_EVENT_FLUSH_STOP) open_ = true;
  const bool of_before =
      type == GST_EVENT_FLUSH_START || type == GST_EVENT_FLUSH_STOP || type == GST_EVENT_GAP;
  return of_before ? GST_PAD_PROBE_DROP : GST_PAD_PROBE_OK;
}

GstPadProbeReturn SegmentGate::frame(GstPad* pad, GstPadProbeInfo* info) {
  if (!open_) {
    running_ = true;
    return GST_PAD_PROBE_DROP;
  }
  const GstClockTime time = stream_time(pad, GST_PAD_PROBE_INFO_BUFFER(info));
  const bool is_last = segment_.feed_end == GST_CLOCK_TIME_NONE;
  if (closed_ || too_far_ || (!is_last && time >= segment_.feed_end)) return end_at(info);
  if (time < segment_.feed_begin) return GST_PAD_PROBE_DROP;
  too_far_ = jumps_ && !begun_ && time > segment_.feed_begin;
  begun_ = true;
  return too_far_ ? end_at(info) : GST_PAD_PROBE_OK;
}

}  // namespace nonlocal::tools
