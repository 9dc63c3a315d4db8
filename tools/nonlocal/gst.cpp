#include "gst.h"

#include <gst/app/gstappsink.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>

#include "failure.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

namespace fs = std::filesystem;

constexpr GstClockTime kTick = 100 * GST_MSECOND;

volatile std::sig_atomic_t interrupt_came = 0;

void on_interrupt(int) { interrupt_came = 1; }

std::optional<fs::path> folder_beside_program(const char* relative) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path folder = fs::weakly_canonical(program.parent_path() / relative, error);
  if (!error && fs::exists(folder / "libgstnonlocal.so", error)) return folder;
  return std::nullopt;
}

bool is_registered(const char* element) {
  const std::unique_ptr<GstElementFactory, Releaser<gst_object_unref>> factory{
      gst_element_factory_find(element)};
  return factory != nullptr;
}

// Plugins in GST_PLUGIN_PATH come before installed ones.
void put_first(const fs::path& folder) {
  const char* before = std::getenv("GST_PLUGIN_PATH");
  const std::string path = before && *before ? folder.string() + ":" + before : folder.string();
  setenv("GST_PLUGIN_PATH", path.c_str(), 1);
}

std::string& told_folder() {
  static std::string folder;
  return folder;
}

void init() {
  GError* error = nullptr;
  if (gst_init_check(nullptr, nullptr, &error)) return;
  const ErrorPtr owned{error};
  throw Failure(std::string("GStreamer does not start: ") + (error ? error->message : "unknown reason"));
}

// parsebin shows no stream before every parser has said what comes out of it. Those of subtitles say it with
// the first text, which may lie behind frames that nobody takes yet: GStreamer 1.22 waits for ever.
gboolean has_parser_that_speaks(GstElement*, GstPad*, GstCaps* caps, gpointer) {
  const char* type = gst_structure_get_name(gst_caps_get_structure(caps, 0));
  return !g_str_equal(type, "application/x-ass") && !g_str_equal(type, "application/x-ssa");
}

}  // namespace

void start_gstreamer() {
  // The path must be set before GStreamer starts: it reads it once.
  const std::optional<fs::path> built = folder_beside_program(NONLOCAL_BUILT_PLUGINS);
  const std::optional<fs::path> found = built ? built : folder_beside_program(NONLOCAL_INSTALLED_PLUGINS);
  const bool system_wide = found && found->string().starts_with("/usr/lib/");
  if (found && !system_wide) {
    put_first(*found);
    told_folder() = found->string();
  }
  init();
  if (!is_registered("nonlocaldenoise"))
    throw Failure(
        "GStreamer finds no element nonlocaldenoise: set GST_PLUGIN_PATH to the folder of libgstnonlocal.so");
}

std::string plugin_folder() { return told_folder(); }

std::string error_text(GstMessage* message) {
  GError* raw_error = nullptr;
  gchar* raw_details = nullptr;
  const bool is_warning = GST_MESSAGE_TYPE(message) == GST_MESSAGE_WARNING;
  (is_warning ? gst_message_parse_warning : gst_message_parse_error)(message, &raw_error, &raw_details);
  const ErrorPtr error{raw_error};
  const StringPtr details{raw_details};
  return one_line(std::string(error->message) + " (" + GST_MESSAGE_SRC_NAME(message) + ")");
}

Pipeline::Pipeline(const std::string& description) {
  if (!g_utf8_validate(description.c_str(), -1, nullptr))
    throw Failure("a file's name is not UTF-8, the only one that GStreamer takes in a pipeline");
  GError* raw_error = nullptr;
  pipeline_.reset(
      gst_parse_launch_full(description.c_str(), nullptr, GST_PARSE_FLAG_FATAL_ERRORS, &raw_error));
  const ErrorPtr error{raw_error};
  if (error) {
    pipeline_.reset();
    throw Failure(one_line(error->message) + " (is every package of tools/dependencies installed?)");
  }
  const ElementPtr parser = element(kParserName);
  if (parser && g_signal_lookup("autoplug-continue", G_OBJECT_TYPE(parser.get())))
    g_signal_connect(parser.get(), "autoplug-continue", G_CALLBACK(has_parser_that_speaks), nullptr);
}

Pipeline::~Pipeline() {
  if (pipeline_) stop();
}

void Pipeline::stop() { gst_element_set_state(pipeline_.get(), GST_STATE_NULL); }

ElementPtr Pipeline::element(const char* name) const {
  return ElementPtr{gst_bin_get_by_name(GST_BIN(pipeline_.get()), name)};
}

void Pipeline::play() {
  if (gst_element_set_state(pipeline_.get(), GST_STATE_PLAYING) != GST_STATE_CHANGE_FAILURE) return;
  check_errors();
  throw Failure("the pipeline does not start");
}

void Pipeline::fail(GstMessage* message) const { throw Failure(error_text(message)); }

void Pipeline::check_errors() {
  const std::unique_ptr<GstBus, Releaser<gst_object_unref>> bus{gst_element_get_bus(pipeline_.get())};
  const MessagePtr message{gst_bus_pop_filtered(bus.get(), GST_MESSAGE_ERROR)};
  if (message) fail(message.get());
}

void Pipeline::wait_for_end(const std::function<void()>& tick, std::function<void()> interrupted) {
  const bool throws = !interrupted;
  const std::unique_ptr<GstBus, Releaser<gst_object_unref>> bus{gst_element_get_bus(pipeline_.get())};
  const auto ends = static_cast<GstMessageType>(GST_MESSAGE_ERROR | GST_MESSAGE_EOS);
  while (true) {
    const MessagePtr message{gst_bus_timed_pop_filtered(bus.get(), kTick, ends)};
    tick();
    if (throws) check_interrupted();
    if (is_interrupted() && interrupted) std::exchange(interrupted, nullptr)();
    if (!message) continue;
    if (GST_MESSAGE_TYPE(message.get()) == GST_MESSAGE_EOS) return;
    fail(message.get());
  }
}

void Pipeline::watch(const char* element, const char* pad, std::function<void(GstPad*, GstBuffer*)> see) {
  using See = std::function<void(GstPad*, GstBuffer*)>;
  const auto probe = [](GstPad* at, GstPadProbeInfo* info, gpointer user) {
    (*static_cast<See*>(user))(at, GST_PAD_PROBE_INFO_BUFFER(info));
    return GST_PAD_PROBE_OK;
  };
  const auto destroy = [](gpointer user) { delete static_cast<See*>(user); };
  const PadPtr found{gst_element_get_static_pad(this->element(element).get(), pad)};
  gst_pad_add_probe(found.get(), GST_PAD_PROBE_TYPE_BUFFER, probe, new See(std::move(see)), destroy);
}

SamplePtr Pipeline::next_sample(GstElement* sink) {
  while (true) {
    SamplePtr sample{gst_app_sink_try_pull_sample(GST_APP_SINK(sink), kTick)};
    if (sample || gst_app_sink_is_eos(GST_APP_SINK(sink))) return sample;
    check_errors();
    check_interrupted();
  }
}

GstClockTime stream_time(GstPad* pad, GstBuffer* buffer) {
  const EventPtr event{gst_pad_get_sticky_event(pad, GST_EVENT_SEGMENT, 0)};
  if (!event || !GST_BUFFER_PTS_IS_VALID(buffer)) return GST_CLOCK_TIME_NONE;
  const GstSegment* segment = nullptr;
  gst_event_parse_segment(event.get(), &segment);
  return gst_segment_to_stream_time(segment, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer));
}

std::string size_of(GstCaps* caps) {
  int width = 0;
  int height = 0;
  gst_structure_get(gst_caps_get_structure(caps, 0), "width", G_TYPE_INT, &width, "height", G_TYPE_INT,
                    &height, nullptr);
  return std::to_string(width) + "x" + std::to_string(height);
}

namespace {

// From here on all segments of time that come to the pad are changed.
template <void change(GstSegment&)>
void change_segments(GstPad* pad) {
  const auto probe = [](GstPad*, GstPadProbeInfo* info, gpointer) {
    GstEvent* event = GST_PAD_PROBE_INFO_EVENT(info);
    if (GST_EVENT_TYPE(event) != GST_EVENT_SEGMENT) return GST_PAD_PROBE_OK;
    GstSegment segment;
    gst_event_copy_segment(event, &segment);
    if (segment.format != GST_FORMAT_TIME) return GST_PAD_PROBE_OK;
    change(segment);
    GST_PAD_PROBE_INFO_DATA(info) = gst_event_new_segment(&segment);
    gst_event_set_seqnum(GST_PAD_PROBE_INFO_EVENT(info), gst_event_get_seqnum(event));
    gst_event_unref(event);
    return GST_PAD_PROBE_OK;
  };
  gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, probe, nullptr, nullptr);
}

void begin_at_zero(GstSegment& segment) {
  if (segment.time == 0) segment.start = 0;
}

void run_from_its_time(GstSegment& segment) { segment.base = segment.time; }

}  // namespace

void begin_segments_at_zero(GstPad* pad) { change_segments<begin_at_zero>(pad); }

void run_by_stream_time(GstPad* pad) { change_segments<run_from_its_time>(pad); }

void catch_interrupts() {
  interrupt_came = 0;
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESETHAND;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool is_interrupted() { return interrupt_came; }

void check_interrupted() {
  if (interrupt_came) throw Interrupted("interrupted: nothing was written");
}

}  // namespace nonlocal::tools
