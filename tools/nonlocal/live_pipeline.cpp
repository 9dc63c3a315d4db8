#include "live_pipeline.h"

#include <algorithm>
#include <utility>

#include "failure.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

using nlohmann::json;

constexpr const char* kQueueName = "queue";
constexpr const char* kOutName = "out";
constexpr const char* kClockName = "clock";
constexpr GstClockTime kFrameTime = GST_SECOND / 25;  // of frames that don't say theirs

// The colon links what decodebin finds each time that the file is opened; a "!" would the first time alone.
// Frames that come while the filters are at work push those that wait out of the queue: the delay stays.
std::string description_of(const LiveSource& source) {
  PipelineText text = source.text;
  if (source.is_recorded) text.add(": clocksync").property("name", kClockName);
  text.add("! videoconvert ! video/x-raw,format=I420 ! queue leaky=downstream max-size-buffers=1");
  text.add("max-size-time=0 max-size-bytes=0").property("name", kQueueName);
  for (const LiveStage& stage : live_stages()) {
    text.add("! videoconvert !").add(stage.element).property("name", stage.name);
  }
  return text.add("! fakesink sync=false").property("name", kOutName).description();
}

PadPtr pad_of(GstElement* element, const char* name) {
  return PadPtr{gst_element_get_static_pad(element, name)};
}

// A stream of JPEG pictures has no times, and a GIF's are all the same: such frames come one after the other.
// `data`: the time of the frame before.
GstPadProbeReturn give_time(GstPad*, GstPadProbeInfo* info, gpointer data) {
  auto& before = *static_cast<GstClockTime*>(data);
  if (GST_PAD_PROBE_INFO_TYPE(info) & GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM) {
    if (GST_EVENT_TYPE(GST_PAD_PROBE_INFO_EVENT(info)) == GST_EVENT_SEGMENT) before = GST_CLOCK_TIME_NONE;
    return GST_PAD_PROBE_OK;
  }
  GstBuffer* buffer = GST_PAD_PROBE_INFO_BUFFER(info);
  const bool is_first = !GST_CLOCK_TIME_IS_VALID(before);
  if (!GST_BUFFER_PTS_IS_VALID(buffer) || (!is_first && GST_BUFFER_PTS(buffer) <= before)) {
    buffer = gst_buffer_make_writable(buffer);
    GST_PAD_PROBE_INFO_DATA(info) = buffer;
    const GstClockTime duration = GST_BUFFER_DURATION_IS_VALID(buffer) ? GST_BUFFER_DURATION(buffer) : 0;
    GST_BUFFER_PTS(buffer) = is_first ? 0 : before + std::max(duration, kFrameTime);
  }
  before = GST_BUFFER_PTS(buffer);
  return GST_PAD_PROBE_OK;
}

void give_times(GstElement* element) {
  gst_pad_add_probe(pad_of(element, "sink").get(),
                    GstPadProbeType(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM),
                    give_time, new GstClockTime(GST_CLOCK_TIME_NONE),
                    [](gpointer data) { delete static_cast<GstClockTime*>(data); });
}

// The stages' properties that are read only when an element starts.
bool starts_anew(const LiveStage& stage, const json& before, const json& after) {
  return before[stage.name].contains("model") && before[stage.name]["model"] != after[stage.name]["model"];
}

// A filter that is to take another's place.
struct Exchange {
  ElementPtr pipeline;
  std::string name;
  FreshPtr fresh;  // the pipeline may have ended before
};

// Runs between two frames, upstream of the filters.
GstPadProbeReturn exchange_now(GstPad*, GstPadProbeInfo*, gpointer data) {
  const auto& [pipeline, name, fresh] = *static_cast<Exchange*>(data);
  const ElementPtr old{gst_bin_get_by_name(GST_BIN(pipeline.get()), name.c_str())};
  const PadPtr upstream{gst_pad_get_peer(pad_of(old.get(), "sink").get())};
  const PadPtr downstream{gst_pad_get_peer(pad_of(old.get(), "src").get())};
  gst_bin_remove(GST_BIN(pipeline.get()), old.get());  // which unlinks it
  gst_element_set_state(old.get(), GST_STATE_NULL);
  gst_bin_add(GST_BIN(pipeline.get()), fresh.get());
  gst_pad_link(upstream.get(), pad_of(fresh.get(), "sink").get());
  gst_pad_link(pad_of(fresh.get(), "src").get(), downstream.get());
  gst_element_sync_state_with_parent(fresh.get());
  return GST_PAD_PROBE_REMOVE;
}

ElementPtr share(GstElement* element) {
  return ElementPtr{static_cast<GstElement*>(gst_object_ref(element))};
}

}  // namespace

void FreshReleaser::operator()(GstElement* element) const {
  if (!GST_OBJECT_PARENT(element)) gst_element_set_state(element, GST_STATE_NULL);
  gst_object_unref(element);
}

LivePipeline::LivePipeline(LiveSource source, LiveSettings settings, LiveFrames& frames)
    : source_(std::move(source)), settings_(std::move(settings)), pipeline_(description_of(source_)) {
  for (const LiveStage& stage : live_stages()) {
    ElementPtr filter = pipeline_.element(stage.name);
    settings_.apply(stage, filter.get());
    filters_[stage.name] = std::move(filter);
  }
  if (source_.is_recorded) give_times(pipeline_.element(kClockName).get());
  frames.watch(pad_of(pipeline_.element(kQueueName).get(), "src").get(),
               pad_of(pipeline_.element(kOutName).get(), "sink").get());
}

LivePipeline::~LivePipeline() { pipeline_.stop(); }

void LivePipeline::change(const json& changes) {
  LiveSettings changed = settings_;
  changed.change(changes);
  std::vector<std::pair<const LiveStage*, FreshPtr>> opened;
  for (const LiveStage& stage : live_stages()) {
    if (starts_anew(stage, settings_.all(), changed.all())) opened.emplace_back(&stage, open(stage, changed));
  }
  settings_ = std::move(changed);
  for (auto& [stage, fresh] : opened) exchange(*stage, std::move(fresh));
  for (const LiveStage& stage : live_stages()) settings_.apply(stage, filters_[stage.name].get());
}

// Beside the pipeline: what goes wrong here does not touch it.
FreshPtr LivePipeline::open(const LiveStage& stage, const LiveSettings& settings) const {
  FreshPtr fresh{gst_element_factory_make(stage.element, stage.name)};
  gst_object_ref_sink(fresh.get());
  settings.apply(stage, fresh.get());
  const std::unique_ptr<GstBus, Releaser<gst_object_unref>> bus{gst_bus_new()};
  gst_element_set_bus(fresh.get(), bus.get());
  const bool has_opened = gst_element_set_state(fresh.get(), GST_STATE_PAUSED) != GST_STATE_CHANGE_FAILURE;
  gst_element_set_bus(fresh.get(), nullptr);
  if (has_opened) return fresh;
  const MessagePtr message{gst_bus_pop_filtered(bus.get(), GST_MESSAGE_ERROR)};
  throw Failure(std::string(stage.name) + ": " + (message ? error_text(message.get()) : "it does not start"));
}

void LivePipeline::exchange(const LiveStage& stage, FreshPtr fresh) {
  filters_[stage.name] = share(fresh.get());
  auto* task = new Exchange{share(pipeline_.get()), stage.name, std::move(fresh)};
  const auto release = [](gpointer data) { delete static_cast<Exchange*>(data); };
  gst_pad_add_probe(pad_of(pipeline_.element(kQueueName).get(), "src").get(),
                    GstPadProbeType(GST_PAD_PROBE_TYPE_BLOCK | GST_PAD_PROBE_TYPE_BUFFER), exchange_now, task,
                    release);
}

bool LivePipeline::begin_again() {
  if (!source_.is_recorded) return false;
  constexpr auto kFlags = GstSeekFlags(GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_KEY_UNIT);
  if (gst_element_seek_simple(pipeline_.get(), GST_FORMAT_TIME, kFlags, 0)) return true;
  pipeline_.stop();  // what cannot be wound back is opened again
  pipeline_.play();
  return true;
}

std::string LivePipeline::command() const {
  PipelineText text = source_.text;
  settings_.add_to(text);
  return text.add("! videoconvert ! autovideosink").command(plugin_folder());
}

double LivePipeline::noise() const {
  double noise = 0;
  g_object_get(filters_.at("denoise").get(), "noise-level", &noise, nullptr);
  return noise;
}

}  // namespace nonlocal::tools
