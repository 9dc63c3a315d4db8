#include "filter_chain.h"

#include <gst/gst.h>

#include <algorithm>

#include "failure.h"
#include "gst.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

// Fusion over time averages n frames where nothing moves: what is left of the noise's variance is 1/n, and frames before
// as many as these could take away no more than that.
constexpr int kToSettle = 12;

// Of maps of regions, each of which counts for less than half of what is made of the one behind it.
constexpr int kRegionsToSettle = 4;

std::string range_of(const GParamSpec* spec) {
  if (G_IS_PARAM_SPEC_INT(spec)) {
    const auto* number = G_PARAM_SPEC_INT(spec);
    return formatted("from %d to %d", number->minimum, number->maximum);
  }
  if (G_IS_PARAM_SPEC_DOUBLE(spec)) {
    const auto* number = G_PARAM_SPEC_DOUBLE(spec);
    return formatted("from %g to %g", number->minimum, number->maximum);
  }
  std::string names;
  if (G_IS_PARAM_SPEC_ENUM(spec)) {
    const GEnumClass* values = G_PARAM_SPEC_ENUM(spec)->enum_class;
    for (guint i = 0; i < values->n_values; ++i)
      names += (i ? ", " : "one of ") + std::string(values->values[i].value_nick);
  }
  return names.empty() ? "a " + std::string(g_type_name(spec->value_type)) : names;
}

bool takes(GParamSpec* spec, const std::string& text) {
  GValue value = G_VALUE_INIT;
  g_value_init(&value, spec->value_type);
  const bool valid = gst_value_deserialize(&value, text.c_str()) && !g_param_value_validate(spec, &value);
  g_value_unset(&value);
  return valid;
}

// How many frames the network of a selfattention looks at: the element knows once it has opened it. One that
// cannot be opened says so when the pipeline starts.
int frames_of_network(const Filter& filter) {
  const ElementPtr element{gst_element_factory_make(filter.element.c_str(), nullptr)};
  gst_object_ref_sink(element.get());
  for (const auto& [name, value] : filter.properties)
    gst_util_set_object_arg(G_OBJECT(element.get()), name.c_str(), value.c_str());
  int frames = 0;
  if (gst_element_set_state(element.get(), GST_STATE_PAUSED) != GST_STATE_CHANGE_FAILURE)
    g_object_get(element.get(), "frames", &frames, nullptr);
  gst_element_set_state(element.get(), GST_STATE_NULL);
  return frames;
}

Reach reach_of(const Filter& filter) {
  if (filter.element == "nonlocaldenoise") {
    constexpr int kAheadOfQuality = 2;
    const std::string ahead = value_of(filter, "look-ahead");
    const bool presets = ahead.empty() || ahead == "-1";
    if (!presets) return {kToSettle, std::stoi(ahead)};
    return {kToSettle, value_of(filter, "preset") == "quality" ? kAheadOfQuality : 0};
  }
  if (filter.element == "selfattention") return {std::max(frames_of_network(filter) - 1, 0), 0};
  const std::string interval = value_of(filter, "region-interval");
  return {interval.empty() ? 0 : kRegionsToSettle * std::stoi(interval), 0};
}

}  // namespace

std::string value_of(const Filter& filter, const std::string& property) {
  std::string value;
  for (const auto& [name, given] : filter.properties)
    if (name == property) value = given;
  return value;
}

void check_properties(const std::string& element, const Properties& properties) {
  const ElementPtr made{gst_element_factory_make(element.c_str(), nullptr)};
  if (!made) throw Failure("GStreamer cannot make the element " + element);
  gst_object_ref_sink(made.get());
  for (const auto& [name, value] : properties) {
    GParamSpec* spec = g_object_class_find_property(G_OBJECT_GET_CLASS(made.get()), name.c_str());
    if (!spec) throw Failure(element + " has no property " + name);
    if (!takes(spec, value))
      throw Failure(element + " takes for " + name + " " + range_of(spec) + ", not " + value);
  }
}

Reach reach_of(const FilterChain& chain) {
  Reach all;
  for (const Filter& filter : chain) {
    const Reach one = reach_of(filter);
    all.before += one.before;
    all.after += one.after;
  }
  return all;
}

std::string filter_name(size_t index) { return "filter" + std::to_string(index); }

void add_filters(PipelineText& text, const FilterChain& chain) {
  for (size_t i = 0; i < chain.size(); ++i) {
    if (i > 0) text.add("!");
    text.add(chain[i].element).property("name", filter_name(i));
    for (const auto& [name, value] : chain[i].properties) text.property(name, value);
  }
}

}  // namespace nonlocal::tools
