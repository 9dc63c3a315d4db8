// What a live page can set: which filters act, and their properties.
#pragma once

#include <gst/gst.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "pipeline_text.h"

namespace nonlocal::tools {

// A filter of the pipeline.
struct LiveStage {
  const char* name;     // in the pipeline, and in settings
  const char* element;  // GStreamer's name
  std::vector<const char*> strengths;
  std::vector<const char*> others;  // properties; those that the element lacks are left out
  std::vector<std::pair<const char*, const char*>> fixed;  // properties that live pictures want so
  bool is_on;                                              // at the start
};

// In the order in which frames pass them.
const std::vector<LiveStage>& live_stages();

// One object a stage: {"denoise": {"on": true, "strength": 1, "preset": "balanced", ...}, "attention": ...}.
// Numbers are numbers; enumerations and texts are strings. A stage that is off has its strengths at 0 in the
// pipeline, so that frames pass it untouched.
class LiveSettings {
 public:
  // The elements' defaults.
  LiveSettings();

  // Takes over what `changes`, an object of the same form that may leave out anything, says. Throws Failure
  // where it names what is not there or has a value that is not taken, and changes nothing then.
  void change(const nlohmann::json& changes);

  [[nodiscard]] const nlohmann::json& all() const { return values_; }

  // The model that reads prompts is a folder: without one a region is nothing that anybody looks for.
  [[nodiscard]] bool finds_regions() const;

  // Sets the stage's element to what is said here.
  void apply(const LiveStage& stage, GstElement* element) const;

  // Adds the stages that act, each after a "!", with what differs from their defaults.
  void add_to(PipelineText& text) const;

 private:
  nlohmann::json defaults_;
  nlohmann::json values_;
};

}  // namespace nonlocal::tools
