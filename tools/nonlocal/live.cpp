// nonlocal live: a camera through the filters, with a web page to look at it and to find the settings.
#include <glib-unix.h>
#include <CLI/CLI.hpp>

#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "commands.h"
#include "failure.h"
#include "gst.h"
#include "json_text.h"
#include "live_frames.h"
#include "live_pipeline.h"
#include "live_server.h"
#include "live_settings.h"
#include "live_source.h"
#include "model_file.h"
#include "option_checks.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

using nlohmann::json;

struct LiveOptions {
  std::string source;
  std::string size = "1280x720";
  int fps = 25;
  std::string address = "127.0.0.1";
  int port = 0;
  double duration = 0;
  json settings = json::object();
};

constexpr guint kTick = 1000;  // milliseconds between two points of the page's curves

// All of it runs in the main thread, but for frames, which come from the thread that encodes them.
class LiveSession {
 public:
  explicit LiveSession(const LiveOptions& options);
  ~LiveSession();
  LiveSession(const LiveSession&) = delete;
  LiveSession& operator=(const LiveSession&) = delete;

  // Until Ctrl-C, a polite kill, or the end of the stream. Throws Failure for an error in the pipeline.
  void run();

 private:
  [[nodiscard]] json state() const;
  [[nodiscard]] std::string greeting() const;
  std::string hear(const std::string& text);
  void use_readiness();
  void show(BytesPtr frame);
  void tick();
  void announce();
  void begin_again();
  void see(GstMessage* posted);
  void see_element(const GstStructure* structure);
  void end() { g_main_loop_quit(loop_.get()); }
  void fail(const std::string& reason);
  void attach();

  template <void (LiveSession::*act)()>
  static gboolean again(gpointer self) {
    (static_cast<LiveSession*>(self)->*act)();
    return G_SOURCE_CONTINUE;
  }

  const LiveOptions& options_;
  std::unique_ptr<GMainLoop, Releaser<g_main_loop_unref>> loop_{g_main_loop_new(nullptr, FALSE)};
  LiveServer server_;
  LiveFrames frames_;
  LivePipeline pipeline_;

  std::vector<guint> sources_;  // of the main loop
  std::optional<std::string> failure_;
  bool is_announced_ = false;
  bool has_ended_ = false;
  int64_t frames_until_end_ = 0;  // all that had come when the stream ended last
  json prompt_ = json::object();  // what the grade has last said of its prompt
  LiveFrames::Counts counted_;
  gint64 counted_at_ = 0;
};

LiveSettings settings_of(const LiveOptions& options) {
  LiveSettings settings;
  settings.change(options.settings);
  return settings;
}

LiveSession::LiveSession(const LiveOptions& options)
    : options_(options),
      server_(options.address, options.port,
              {.greeting = [this] { return greeting(); },
               .text = [this](const std::string& text) { return hear(text); },
               .readiness_changed = [this] { use_readiness(); }}),
      frames_([this](BytesPtr frame) { show(std::move(frame)); }),
      pipeline_(live_source(options.source, options.size, options.fps), settings_of(options), frames_) {}

LiveSession::~LiveSession() {
  for (const guint source : sources_) g_source_remove(source);
}

json LiveSession::state() const {
  return {{"settings", pipeline_.settings().all()},
          {"regions", pipeline_.settings().finds_regions()},
          {"line", pipeline_.command()}};
}

std::string LiveSession::greeting() const {
  json greeting = state();
  greeting.update({{"source", pipeline_.source()}, {"prompt", prompt_}});
  return json_text(greeting);
}

// Files and folders are named on the command line alone: a page is no way to look around on this machine.
void check_models(const json& asked, const json& begun) {
  for (const LiveStage& stage : live_stages()) {
    const json::json_pointer place("/" + std::string(stage.name) + "/model");
    if (!asked.contains(place) || !asked[place].is_string()) continue;
    const auto& model = asked[place].get_ref<const std::string&>();
    const bool is_named = begun.contains(place) && begun[place] == model;
    if (!is_named && (model.find('/') != std::string::npos || is_model_folder(model)))
      throw Failure(std::string(stage.name) +
                    ".model: files and folders are named where the program is started, not " + model);
  }
}

// {"settings": {...}} changes settings, and all browsers hear of it; an {"error": ...} goes to its sender
// alone.
std::string LiveSession::hear(const std::string& text) {
  try {
    const json asked = json::parse(text);
    if (!asked.is_object() || !asked.contains("settings"))
      throw Failure("expected an object with \"settings\"");
    check_models(asked["settings"], options_.settings);
    pipeline_.change(asked["settings"]);
    server_.tell(json_text(state()));
    return "";
  } catch (const std::exception& error) {
    json answer = state();
    answer["error"] = one_line(error.what());
    return json_text(answer);
  }
}

void LiveSession::use_readiness() {
  frames_.set_watched(server_.is_watched());
  if (server_.is_ready()) frames_.want();
}

// From the encoder's thread into the main one.
void LiveSession::show(BytesPtr frame) {
  struct Task {
    LiveSession* self;
    BytesPtr frame;
  };
  const auto act = [](gpointer data) -> gboolean {
    auto* task = static_cast<Task*>(data);
    task->self->server_.show(task->frame.get());
    if (task->self->server_.is_ready()) task->self->frames_.want();
    return G_SOURCE_REMOVE;
  };
  // Not g_main_context_invoke(): where the loop has ended, that would act in this thread.
  g_idle_add_full(G_PRIORITY_DEFAULT, act, new Task{this, std::move(frame)},
                  [](gpointer data) { delete static_cast<Task*>(data); });
}

void LiveSession::tick() {
  const LiveFrames::Counts now = frames_.counts();
  const gint64 time = g_get_monotonic_time();
  const double seconds = static_cast<double>(time - counted_at_) / G_USEC_PER_SEC;
  const json status = {{"fps", static_cast<double>(now.after - counted_.after) / seconds},
                       {"noise", pipeline_.noise()},
                       {"milliseconds", now.milliseconds},
                       {"frames", now.after}};
  counted_ = now;
  counted_at_ = time;
  server_.tell(json_text({{"status", status}}));
  server_.drop_stuck_browsers();
}

// The address is good once there is something to see.
void LiveSession::announce() {
  if (is_announced_ || frames_.counts().after == 0) return;
  is_announced_ = true;
  std::printf("%s\n", server_.url().c_str());
  std::fflush(stdout);
}

// Some time after the end, in which a frame could have been shown: a file of one frame would spin.
void LiveSession::begin_again() try {
  if (!std::exchange(has_ended_, false)) return;
  const int64_t frames = frames_.counts().after;
  if (std::exchange(frames_until_end_, frames) == frames)
    return fail(pipeline_.source() + ": it has ended, and no frame has come of it");
  if (!pipeline_.begin_again()) end();
} catch (const std::exception& error) {
  fail(error.what());
}

void LiveSession::fail(const std::string& reason) {
  failure_ = reason;
  end();
}

void LiveSession::see_element(const GstStructure* structure) {
  const GValue* words = gst_structure_get_value(structure, "unknown-words");
  if (!words) return;
  json unknown = json::array();
  for (guint i = 0; i < gst_value_list_get_size(words); ++i)
    unknown.push_back(g_value_get_string(gst_value_list_get_value(words, i)));
  prompt_ = {{"unknown", unknown}};
  server_.tell(json_text({{"prompt", prompt_}}));
}

void LiveSession::see(GstMessage* posted) {
  switch (GST_MESSAGE_TYPE(posted)) {
    case GST_MESSAGE_ERROR:
      return fail(error_text(posted));
    case GST_MESSAGE_WARNING:
      return server_.tell(json_text({{"warning", error_text(posted)}}));
    case GST_MESSAGE_EOS:
      has_ended_ = true;
      return;
    case GST_MESSAGE_LATENCY:
      gst_bin_recalculate_latency(GST_BIN(pipeline_.get()));
      return;
    case GST_MESSAGE_ELEMENT:
      return see_element(gst_message_get_structure(posted));
    default:
      return;
  }
}

void LiveSession::attach() {
  constexpr guint kOften = 40;  // milliseconds: a frame's time
  const auto stop = [](gpointer self) -> gboolean {
    static_cast<LiveSession*>(self)->end();
    return G_SOURCE_CONTINUE;
  };
  const auto see = [](GstBus*, GstMessage* message, gpointer self) -> gboolean {
    static_cast<LiveSession*>(self)->see(message);
    return G_SOURCE_CONTINUE;
  };
  const std::unique_ptr<GstBus, Releaser<gst_object_unref>> bus{gst_element_get_bus(pipeline_.get())};
  sources_ = {g_unix_signal_add(SIGINT, stop, this),
              g_unix_signal_add(SIGTERM, stop, this),
              gst_bus_add_watch(bus.get(), see, this),
              g_timeout_add(kTick, again<&LiveSession::tick>, this),
              g_timeout_add(kOften, again<&LiveSession::announce>, this),
              g_timeout_add(kOften, again<&LiveSession::begin_again>, this)};
  if (options_.duration > 0)
    sources_.push_back(g_timeout_add(static_cast<guint>(std::lround(options_.duration * 1000)), stop, this));
}

void LiveSession::run() {
  counted_at_ = g_get_monotonic_time();
  pipeline_.play();
  attach();
  g_main_loop_run(loop_.get());
  if (failure_) throw Failure(*failure_);
  std::printf("%s\n", pipeline_.command().c_str());
}

void run(const LiveOptions& options) {
  start_gstreamer();
  LiveSession session(options);
  session.run();
}

}  // namespace

void add_live(CLI::App& app) {
  auto* command = app.add_subcommand(
      "live", "Filter live pictures, with a web page to compare before and after and to find the settings");
  const auto options = std::make_shared<LiveOptions>();
  command->add_option("SOURCE", options->source,
                      "A camera such as /dev/video0, an rtsp:// address, a file, which is played again and "
                      "again, a picture, or test; none: the first camera");
  command
      ->add_option(
          "--address", options->address,
          "IP address to serve the page at; 127.0.0.1: this machine alone; 0.0.0.0: all of its networks. "
          "Browsers are to open the page by an IP address, too, not by a name")
      ->capture_default_str();
  command->add_option("--port", options->port, "Port of the page; 0: one that is free")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();

  const auto setting = [&](const std::string& flag, const char* stage, const char* name,
                           const std::string& help) {
    command->add_option_function<std::string>(
        flag, [options, stage, name](const std::string& value) { options->settings[stage][name] = value; },
        help);
  };
  setting("--preset", "denoise", "preset", "Of the denoiser, to begin with: fast, balanced or quality");
  command->add_option_function<std::string>(
      "--attention",
      [options](const std::string& model) {
        options->settings["attention"] = {{"on", true}, {"model", model}};
      },
      "Begin with this network on: restore, restore_noisy, another name, or a file with a /");
  setting("--prompt", "grade", "prompt", "The prompt to begin with");
  setting("--prompt-model", "grade", "model",
          "What reads prompts: grade, or a file; or a folder of CLIP or CLIPSeg, which finds regions too");

  command->add_option("--size", options->size, "WIDTHxHEIGHT of the test's pictures")->capture_default_str();
  command->add_option("--fps", options->fps, "Frames a second of the test's pictures, and of a picture")
      ->check(CLI::Range(1, 120))
      ->capture_default_str();
  command->add_option("--duration", options->duration, "Seconds until it ends; 0: at Ctrl-C")
      ->check(number_within(0, 1e6))
      ->capture_default_str();
  command->callback([options] { run(*options); });
}

}  // namespace nonlocal::tools
