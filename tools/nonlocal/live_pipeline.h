// A source and the filters behind it, played without end, with settings that act at once.
#pragma once

#include <gst/gst.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "gst.h"
#include "live_frames.h"
#include "live_settings.h"
#include "live_source.h"

namespace nonlocal::tools {

// A filter on its way into the pipeline: it runs already, and stops if it doesn't get there.
struct FreshReleaser {
  void operator()(GstElement* element) const;
};
using FreshPtr = std::unique_ptr<GstElement, FreshReleaser>;

class LivePipeline {
 public:
  // `frames` sees each frame before and after the filters; it must outlive this.
  LivePipeline(LiveSource source, LiveSettings settings, LiveFrames& frames);
  ~LivePipeline();
  LivePipeline(const LivePipeline&) = delete;
  LivePipeline& operator=(const LivePipeline&) = delete;

  void play() { pipeline_.play(); }

  // As LiveSettings::change(), and the next frame is filtered so. A model that cannot be opened is a Failure
  // too: the filters then go on with those that they have.
  void change(const nlohmann::json& changes);

  // At the end of the stream: plays a file again. False where the source has ended for good. Throws Failure
  // where the file can't be opened any more.
  bool begin_again();

  [[nodiscard]] GstElement* get() const { return pipeline_.get(); }
  [[nodiscard]] const std::string& source() const { return source_.name; }
  [[nodiscard]] const LiveSettings& settings() const { return settings_; }

  // The gst-launch-1.0 line that shows the same on a display.
  [[nodiscard]] std::string command() const;

  // The noise in the newest frame, in 8-bit code values.
  [[nodiscard]] double noise() const;

 private:
  [[nodiscard]] FreshPtr open(const LiveStage& stage, const LiveSettings& settings) const;
  void exchange(const LiveStage& stage, FreshPtr fresh);

  LiveSource source_;
  LiveSettings settings_;
  Pipeline pipeline_;
  std::map<std::string, ElementPtr>
      filters_;  // by the stage's name; the newest, if on its way into the pipeline
};

}  // namespace nonlocal::tools
