#include "live_settings.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "failure.h"
#include "filter_pipeline.h"
#include "gst.h"
#include "model_file.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

using nlohmann::json;

constexpr const char* kOn = "on";
constexpr size_t kLongestText = 2000;  // bytes

ElementPtr make(const LiveStage& stage) {
  ElementPtr element{gst_element_factory_make(stage.element, nullptr)};
  if (!element) throw Failure(std::string("GStreamer cannot make the element ") + stage.element);
  gst_object_ref_sink(element.get());
  return element;
}

std::vector<const char*> properties_of(const LiveStage& stage) {
  std::vector<const char*> all = stage.strengths;
  all.insert(all.end(), stage.others.begin(), stage.others.end());
  return all;
}

json value_of(GstElement* element, const GParamSpec* spec) {
  GValue value = G_VALUE_INIT;
  g_object_get_property(G_OBJECT(element), spec->name, &value);
  json found;
  if (G_VALUE_HOLDS_DOUBLE(&value)) {
    found = g_value_get_double(&value);
  } else {
    const char* text = G_VALUE_HOLDS_STRING(&value) ? g_value_get_string(&value) : nullptr;
    const StringPtr nick{G_VALUE_HOLDS_ENUM(&value) ? gst_value_serialize(&value) : nullptr};
    found = nick ? nick.get() : text ? text : "";
  }
  g_value_unset(&value);
  return found;
}

json defaults_of(const LiveStage& stage) {
  const ElementPtr element = make(stage);
  json defaults = {{kOn, stage.is_on}};
  for (const char* name : properties_of(stage)) {
    const GParamSpec* spec = g_object_class_find_property(G_OBJECT_GET_CLASS(element.get()), name);
    if (spec) defaults[name] = value_of(element.get(), spec);
  }
  return defaults;
}

std::string text_of(const json& value) {
  return value.is_number() ? formatted("%.10g", value.get<double>()) : value.get<std::string>();
}

bool is_text(const LiveStage& stage, const std::string& property) {
  const ElementPtr element = make(stage);
  const GParamSpec* spec = g_object_class_find_property(G_OBJECT_GET_CLASS(element.get()), property.c_str());
  return G_IS_PARAM_SPEC_STRING(spec);
}

void check_value(const LiveStage& stage, const std::string& name, const json& value, const json& now) {
  const std::string full_name = std::string(stage.name) + "." + name;
  if (!(now.is_number() ? value.is_number() : value.type() == now.type()))
    throw Failure(full_name + " takes a " + now.type_name() + ", not a " + value.type_name());
  if (name == kOn) return;
  if (!is_text(stage, name)) return check_properties(stage.element, {{name, text_of(value)}});
  if (value.get_ref<const std::string&>().size() > kLongestText)
    throw Failure(formatted("%s takes a text of at most %zu bytes", full_name.c_str(), kLongestText));
}

const LiveStage* find_stage(const std::string& name) {
  const auto found = std::ranges::find(live_stages(), name, &LiveStage::name);
  return found == live_stages().end() ? nullptr : &*found;
}

bool acts(const LiveStage& stage, const json& values) {
  if (!values[kOn].get<bool>()) return false;
  if (values.contains("prompt") && values["prompt"].get_ref<const std::string&>().empty()) return false;
  return std::ranges::any_of(stage.strengths, [&](const char* name) { return values[name] != 0; });
}

}  // namespace

const std::vector<LiveStage>& live_stages() {
  // Better a smaller search than frames that come too late; a prompt is seen at once, not after a fade.
  static const std::vector<LiveStage> stages = {
      {"denoise",
       "nonlocaldenoise",
       {"strength", "chroma-strength"},
       {"preset", "sigma"},
       {{"adaptive", "true"}},
       true},
      {"attention", "selfattention", {"strength"}, {"model"}, {}, false},
      {"grade", "textcross", {"strength"}, {"prompt", "region", "model"}, {{"transition", "0"}}, true},
  };
  return stages;
}

LiveSettings::LiveSettings() {
  for (const LiveStage& stage : live_stages()) defaults_[stage.name] = defaults_of(stage);
  values_ = defaults_;
}

void LiveSettings::change(const json& changes) {
  if (!changes.is_object()) throw Failure("settings are an object of objects, one a filter");
  json changed = values_;
  for (const auto& [name, properties] : changes.items()) {
    const LiveStage* stage = find_stage(name);
    if (!stage || !properties.is_object()) throw Failure("settings: there is no filter " + name);
    for (const auto& [property, value] : properties.items()) {
      if (!changed[name].contains(property)) throw Failure(name + " has no setting " + property);
      check_value(*stage, property, value, changed[name][property]);
      changed[name][property] = value;
    }
  }
  values_ = std::move(changed);
}

bool LiveSettings::finds_regions() const {
  const json& grade = values_["grade"];
  return grade.contains("region") && is_model_folder(grade["model"].get<std::string>());
}

void LiveSettings::apply(const LiveStage& stage, GstElement* element) const {
  const json& values = values_[stage.name];
  const bool is_on = values[kOn].get<bool>();
  for (const auto& [name, value] : stage.fixed) gst_util_set_object_arg(G_OBJECT(element), name, value);
  for (const char* name : stage.strengths)
    g_object_set(element, name, is_on ? values[name].get<double>() : 0.0, nullptr);
  for (const char* name : stage.others) {
    if (!values.contains(name)) continue;
    const std::string wanted = text_of(values[name]);
    const GParamSpec* spec = g_object_class_find_property(G_OBJECT_GET_CLASS(element), name);
    // As it is: GStreamer's own way from a text would take quotation marks for its own.
    if (!G_IS_PARAM_SPEC_STRING(spec)) {
      gst_util_set_object_arg(G_OBJECT(element), name, wanted.c_str());
    } else if (text_of(value_of(element, spec)) != wanted) {  // a prompt set is a prompt read again
      g_object_set(element, name, wanted.c_str(), nullptr);
    }
  }
}

void LiveSettings::add_to(PipelineText& text) const {
  for (const LiveStage& stage : live_stages()) {
    const json& values = values_[stage.name];
    if (!acts(stage, values)) continue;
    text.add("! videoconvert !").add(stage.element);
    for (const auto& [name, value] : stage.fixed) text.property(name, value);
    for (const char* name : properties_of(stage)) {
      if (name == std::string_view("region") && !finds_regions()) continue;
      if (values.contains(name) && values[name] != defaults_[stage.name][name])
        text.property(name, text_of(values[name]));
    }
  }
}

}  // namespace nonlocal::tools
