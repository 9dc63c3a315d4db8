#include "selfattention.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "element_error.h"
#include "element_parts.h"
#include "nonlocal/error.h"
#include "nonlocal/network.h"
#include "video_caps.h"
#include "video_planes.h"

GST_DEBUG_CATEGORY_STATIC(self_attention_debug);
#define GST_CAT_DEFAULT self_attention_debug

namespace {

using nonlocal::ConstPlane;
using nonlocal::FramePlanes;
using nonlocal::Network;
using nonlocal::NetworkPrecision;
using nonlocal::PlaneGroup;

// ---------------------------------------------------------------------------------------------- settings

enum Precision { PRECISION_AUTO, PRECISION_F32, PRECISION_BF16, PRECISION_INT8 };

constexpr const char* kDefaultModel = "restore";
constexpr double kMostCondition = 1e6;
constexpr int kMostFrames = 64;  // the format's limit

// What is opened when the element starts.
struct Model {
  std::string name = kDefaultModel;  // or a file
  Precision precision = PRECISION_AUTO;
  int temporal_radius = -1;

  [[nodiscard]] NetworkPrecision network_precision() const {
    switch (precision) {
      case PRECISION_F32:
        return NetworkPrecision::kFloat32;
      case PRECISION_BF16:
        return NetworkPrecision::kBfloat16;
      case PRECISION_INT8:
        return NetworkPrecision::kInt8;
      default:
        return NetworkPrecision::kAutomatic;
    }
  }
};

// What may change from frame to frame.
struct Settings {
  double strength = 1;
  double condition = -1;
  double h = -1;
  int threads = 0;
};

const char* name_of(NetworkPrecision precision) {
  switch (precision) {
    case NetworkPrecision::kBfloat16:
      return "bfloat16";
    case NetworkPrecision::kInt8:
      return "int8";
    default:
      return "float32";
  }
}

// ------------------------------------------------------------------------------------------------- state

// What a network is run on. Each has its size, and its own past.
enum Part { PART_FRAME, PART_TOP_FIELD, PART_BOTTOM_FIELD, PARTS };

// What the streaming thread remembers from frame to frame; it is guarded by the pad's stream lock.
struct State {
  std::string file;
  NetworkPrecision precision = NetworkPrecision::kAutomatic;
  int most_frames = 0;
  // By part; as many networks as planes are filtered one by one where the network remembers frames, else one.
  std::array<std::vector<Network>, PARTS> networks;
  bool has_past = false;          // a frame was filtered since the last reset
  bool was_interlaced = false;    // that frame
  double checked_condition = -1;  // that the user has been told of
  Settings settings;              // of this frame

  [[nodiscard]] const Network& network() const { return networks[PART_FRAME][0]; }

  // Frames that came before are forgotten; working memory stays.
  void reset() {
    for (std::vector<Network>& part : networks) {
      for (Network& network : part) {
        network.reset();
      }
    }
    has_past = false;
  }
};

}  // namespace

struct _GstSelfAttention {
  GstVideoFilter parent;

  struct Members {
    std::mutex mutex;  // guards all but `state`
    Model model;
    Settings settings;
    int channels = 0;  // of the network that was opened; 0: none was
    int frames = 0;
    State state;
  };
  Members* m;
};

// --------------------------------------------------------------------------------------------- properties

enum Property {
  PROP_MODEL = 1,
  PROP_STRENGTH,
  PROP_PRECISION,
  PROP_CONDITION,
  PROP_H,
  PROP_TEMPORAL_RADIUS,
  PROP_N_THREADS,
  PROP_FRAMES,
};

G_DEFINE_TYPE(GstSelfAttention, gst_self_attention, GST_TYPE_VIDEO_FILTER)
GST_ELEMENT_REGISTER_DEFINE(selfattention, "selfattention", GST_RANK_NONE, GST_TYPE_SELF_ATTENTION)

static GType gst_self_attention_precision_get_type() {
  static const std::array<GEnumValue, 5> values = {{
      {PRECISION_AUTO,
       "Automatic: int8 where the model's file allows it and the CPU has VNNI and no AMX, else bfloat16 "
       "where "
       "the CPU multiplies faster in it, else float32",
       "auto"},
      {PRECISION_F32, "32-bit floating point", "f32"},
      {PRECISION_BF16,
       "16-bit brain floating point: about twice as fast, but not on Intel's without AMX; CPUs with "
       "AVX512_BF16",
       "bf16"},
      {PRECISION_INT8,
       "8-bit integers where the model's file tells ranges, as the bundled restore and restore_noisy do: "
       "about "
       "three times as fast as float32; CPUs with AVX512_VNNI or AVX_VNNI",
       "int8"},
      {},
  }};
  static const GType type = g_enum_register_static("GstSelfAttentionPrecision", values.data());
  return type;
}

namespace {

using Members = _GstSelfAttention::Members;

Members& members(gpointer object) { return *GST_SELF_ATTENTION(object)->m; }

void set_property(GObject* object, guint id, const GValue* value, GParamSpec* spec) {
  Members& m = members(object);
  const std::lock_guard lock(m.mutex);
  switch (id) {
    case PROP_MODEL:
      m.model.name = nonlocal::text_of(value, kDefaultModel);
      return;
    case PROP_STRENGTH:
      m.settings.strength = g_value_get_double(value);
      return;
    case PROP_PRECISION:
      m.model.precision = static_cast<Precision>(g_value_get_enum(value));
      return;
    case PROP_CONDITION:
      m.settings.condition = g_value_get_double(value);
      return;
    case PROP_H:
      m.settings.h = g_value_get_double(value);
      return;
    case PROP_TEMPORAL_RADIUS:
      m.model.temporal_radius = g_value_get_int(value);
      return;
    case PROP_N_THREADS:
      m.settings.threads = g_value_get_int(value);
      return;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
  }
}

void get_property(GObject* object, guint id, GValue* value, GParamSpec* spec) {
  Members& m = members(object);
  const std::lock_guard lock(m.mutex);
  switch (id) {
    case PROP_MODEL:
      return g_value_set_string(value, m.model.name.c_str());
    case PROP_STRENGTH:
      return g_value_set_double(value, m.settings.strength);
    case PROP_PRECISION:
      return g_value_set_enum(value, m.model.precision);
    case PROP_CONDITION:
      return g_value_set_double(value, m.settings.condition);
    case PROP_H:
      return g_value_set_double(value, m.settings.h);
    case PROP_TEMPORAL_RADIUS:
      return g_value_set_int(value, m.model.temporal_radius);
    case PROP_N_THREADS:
      return g_value_set_int(value, m.settings.threads);
    case PROP_FRAMES:
      return g_value_set_int(value, m.frames);
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
  }
}

void install_properties(GObjectClass* object_class) {
  constexpr auto kRead = GParamFlags(G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
  using nonlocal::kPlain;
  using nonlocal::kTunable;
  using nonlocal::kWeights;
  const Settings d;
  const auto install = [&](Property id, GParamSpec* spec) {
    g_object_class_install_property(object_class, id, spec);
  };
  install(PROP_MODEL,
          g_param_spec_string(
              "model", "Model",
              "The network that frames go through, as text: the name of one of the library's (restore, the "
              "default; restore_noisy, for what noisy cameras and low rates leave; gaussian, without learned "
              "weights); or a safetensors file, with a /. One channel: luma, or R, G and B each; three: RGB "
              "formats only. Opened when the element starts",
              kDefaultModel, kWeights));
  install(PROP_STRENGTH,
          g_param_spec_double(
              "strength", "Strength",
              "How far from the frame to the network's output, as a factor without unit: 0 (leave as is) to "
              "1 (the default: the output)",
              0, 1, d.strength, kTunable));
  install(PROP_PRECISION,
          g_param_spec_enum("precision", "Precision",
                            "What the network calculates with: auto (the default), the fastest that the CPU "
                            "and the model's file have; f32; bf16 or int8, an error where they lack it",
                            gst_self_attention_precision_get_type(), PRECISION_AUTO, kWeights));
  install(
      PROP_CONDITION,
      g_param_spec_double(
          "condition", "Condition",
          "The number that a network with a condition is told, such as the noise's standard deviation, in "
          "the unit of its file: 0 to 1000000, brought into the file's range, or -1 (the default; as any "
          "negative value) for the file's default; networks without one ignore it",
          -1, kMostCondition, d.condition, kTunable));
  install(
      PROP_H,
      g_param_spec_double(
          "h", "h",
          "Width of the Gaussian that the model gaussian weighs patches with, in 8-bit code values: 0.5 to "
          "255, or -1 (the default; as any negative value) for the model's default; the condition of any "
          "network that names it h, before the property condition; others ignore it",
          -1, 255, d.h, kTunable));
  install(PROP_TEMPORAL_RADIUS,
          g_param_spec_int(
              "temporal-radius", "Temporal radius",
              "How many frames before the present one a network may look at, as a count: 0 to 63, as far as "
              "its file allows, or -1 (the default) for all that it allows",
              -1, kMostFrames - 1, -1, kWeights));
  install(PROP_N_THREADS, nonlocal::threads_property(d.threads));
  install(PROP_FRAMES,
          g_param_spec_int("frames", "Frames",
                           "How many frames the network looks at, as a count, the present one "
                           "and those before it: 1 to 64, or 0 (the default) before it is opened",
                           0, kMostFrames, 0, kRead));
}

// ------------------------------------------------------------------------------------------ the networks

// Throws InvalidArgument unless what comes out are frames as those that go in.
void check_suits_video(const Network& network, const std::string& file) {
  const int in = network.input_channels();
  const int out = network.output_channels();
  if ((in != 1 && in != 3) || out != in) {
    throw nonlocal::InvalidArgument(file + ": expected a network of 1 or of 3 channels, in and out, got " +
                                    std::to_string(in) + " in and " + std::to_string(out) + " out");
  }
  constexpr int kSide = 32768;  // the largest: every other factor than 1 shows
  if (network.output_size(kSide) != kSide) {
    throw nonlocal::InvalidArgument(file + ": expected a network whose output has the frame's size, got " +
                                    std::to_string(network.output_size(kSide)) + " columns for " +
                                    std::to_string(kSide));
  }
}

// Opens the file: the streaming thread reads it again only for fields, or for planes with a past of their
// own.
void open(State& state, const Model& model) {
  state = State();
  state.file = nonlocal::find_model(model.name);
  state.precision = model.network_precision();
  state.most_frames = model.temporal_radius + 1;  // 0: as many as the file says
  Network network(state.file, state.precision, state.most_frames);
  check_suits_video(network, state.file);
  state.networks[PART_FRAME].push_back(std::move(network));
}

// Makes ready all that frames of this kind need.
void prepare(State& state, const GstVideoInfo& info, int threads) {
  const Network& network = state.network();
  const bool is_each_plane = GST_VIDEO_INFO_IS_RGB(&info) && network.input_channels() == 1;
  const std::size_t count = is_each_plane && network.frames() > 1 ? 3 : 1;
  const GstVideoInterlaceMode mode = GST_VIDEO_INFO_INTERLACE_MODE(&info);
  const bool has_fields =
      mode == GST_VIDEO_INTERLACE_MODE_INTERLEAVED || mode == GST_VIDEO_INTERLACE_MODE_MIXED;
  const int height = GST_VIDEO_INFO_HEIGHT(&info);
  const std::array<int, PARTS> rows = {mode == GST_VIDEO_INTERLACE_MODE_INTERLEAVED ? 0 : height,
                                       has_fields ? (height + 1) / 2 : 0, has_fields ? height / 2 : 0};
  for (int part = 0; part < PARTS; ++part) {
    std::vector<Network>& networks = state.networks[part];
    while (rows[part] > 0 && networks.size() < count) {
      networks.emplace_back(state.file, state.precision, state.most_frames);
    }
    for (std::size_t i = 0; i < count && rows[part] > 0; ++i) {
      networks[i].prepare(GST_VIDEO_INFO_WIDTH(&info), rows[part], threads);
    }
  }
}

// A negative number: the user leaves it to the file.
double wanted_condition(const State& state) {
  const auto& known = state.network().condition();
  const bool is_h = known && known->name == "h" && state.settings.h >= 0;
  return is_h ? state.settings.h : state.settings.condition;
}

nonlocal::NetworkParameters parameters_of(const State& state) {
  const Settings& settings = state.settings;
  nonlocal::NetworkParameters parameters;
  parameters.threads = settings.threads;
  parameters.strength = settings.strength;
  if (const double wanted = wanted_condition(state); state.network().condition() && wanted >= 0) {
    const nonlocal::NetworkCondition& known = *state.network().condition();
    parameters.condition = std::clamp(wanted, known.minimum, known.maximum);
  }
  return parameters;
}

void run_in_place(Network& network, std::span<const nonlocal::Plane> planes,
                  const nonlocal::NetworkParameters& parameters) {
  network.run(nonlocal::ReadPlanes(planes).all(), planes, parameters);
}

void filter_part(State& state, Part part, const PlaneGroup& group) {
  const nonlocal::NetworkParameters parameters = parameters_of(state);
  std::vector<Network>& networks = state.networks[part];
  if (state.network().input_channels() == group.count) {
    return run_in_place(networks[0], group.all(), parameters);
  }
  for (int i = 0; i < group.count; ++i) {
    Network& network = networks[state.network().frames() > 1 ? i : 0];
    run_in_place(network, group.all().subspan(i, 1), parameters);
  }
}

void filter_frame(State& state, const GstVideoFrame& frame) {
  const FramePlanes planes = nonlocal::planes_of(frame);
  const bool is_interlaced = nonlocal::is_interlaced(frame);
  if (state.has_past && is_interlaced != state.was_interlaced) {
    state.reset();  // fields have a past of their own, of fields
  }
  state.has_past = true;
  state.was_interlaced = is_interlaced;
  if (!is_interlaced) {
    return filter_part(state, PART_FRAME, planes.luma);
  }
  for (const int field : {0, 1}) {
    const FramePlanes rows = nonlocal::field_of(planes, field);
    if (!rows.luma.empty()) {
      filter_part(state, field == 0 ? PART_TOP_FIELD : PART_BOTTOM_FIELD, rows.luma);
    }
  }
}

// -------------------------------------------------------------------------------------- the base classes

// Says so where a condition is not what the network is told.
void check_condition(GstBaseTransform* trans, State& state) {
  const double wanted = wanted_condition(state);
  if (wanted == state.checked_condition) {
    return;
  }
  state.checked_condition = wanted;
  const auto& known = state.network().condition();
  if (wanted >= 0 && !known) {
    GST_WARNING_OBJECT(trans, "condition: the network has none, got %g; ignoring it", wanted);
  } else if (wanted >= 0 && (wanted < known->minimum || wanted > known->maximum)) {
    GST_WARNING_OBJECT(trans, "condition: expected %s from %g to %g, got %g; using %g", known->name.c_str(),
                       known->minimum, known->maximum, wanted,
                       std::clamp(wanted, known->minimum, known->maximum));
  }
}

void before_transform(GstBaseTransform* trans, GstBuffer* buffer) {
  Members& m = members(trans);
  State& state = m.state;
  nonlocal::sync_controlled(trans, buffer);
  {
    const std::lock_guard lock(m.mutex);
    state.settings = m.settings;
  }
  check_condition(trans, state);
  const bool leaves_frame = state.settings.strength == 0;
  // What the networks saw last is not the frame before this one, or will not be the one before the next.
  if (state.has_past && (leaves_frame || GST_BUFFER_IS_DISCONT(buffer))) {
    state.reset();
  }
  gst_base_transform_set_passthrough(trans, leaves_frame);
}

GstFlowReturn transform_frame_ip(GstVideoFilter* filter, GstVideoFrame* frame) {
  try {
    filter_frame(members(filter).state, *frame);
    return GST_FLOW_OK;
  } catch (...) {
    nonlocal::post_exception(GST_ELEMENT(filter), "network", GST_VIDEO_FRAME_WIDTH(frame),
                             GST_VIDEO_FRAME_HEIGHT(frame));
  }
  return GST_FLOW_ERROR;
}

// The formats stay; a network of three channels takes RGB alone.
GstCaps* transform_caps(GstBaseTransform* trans, GstPadDirection, GstCaps* caps, GstCaps* filter) {
  Members& m = members(trans);
  int channels = 0;
  {
    const std::lock_guard lock(m.mutex);
    channels = m.channels;
  }
  GstCaps* taken = gst_caps_ref(caps);
  const auto keep_what_is_in = [&](GstCaps* others) {
    GstCaps* both = gst_caps_intersect_full(others, taken, GST_CAPS_INTERSECT_FIRST);
    gst_caps_unref(taken);
    taken = both;
  };
  if (channels == 3) {
    GstCaps* rgb = gst_caps_from_string(nonlocal::kRgbCaps);
    keep_what_is_in(rgb);
    gst_caps_unref(rgb);
  }
  if (filter != nullptr) {
    keep_what_is_in(filter);
  }
  return taken;
}

gboolean set_info(GstVideoFilter* filter, GstCaps*, GstVideoInfo* info, GstCaps*, GstVideoInfo*) {
  Members& m = members(filter);
  m.state.reset();
  int threads = 0;
  {
    const std::lock_guard lock(m.mutex);
    threads = m.settings.threads;
  }
  try {
    prepare(m.state, *info, threads);
    return TRUE;
  } catch (...) {
    nonlocal::post_exception(GST_ELEMENT(filter), "network", GST_VIDEO_INFO_WIDTH(info),
                             GST_VIDEO_INFO_HEIGHT(info));
  }
  return FALSE;
}

gboolean sink_event(GstBaseTransform* trans, GstEvent* event) {
  if (GST_EVENT_TYPE(event) == GST_EVENT_FLUSH_STOP || GST_EVENT_TYPE(event) == GST_EVENT_SEGMENT) {
    members(trans).state.reset();
  }
  return GST_BASE_TRANSFORM_CLASS(gst_self_attention_parent_class)->sink_event(trans, event);
}

gboolean start(GstBaseTransform* trans) {
  Members& m = members(trans);
  try {
    Model model;
    {
      const std::lock_guard lock(m.mutex);
      model = m.model;
    }
    open(m.state, model);
    const Network& network = m.state.network();
    GST_INFO_OBJECT(trans, "%s: %d channels, %d frames, %s", m.state.file.c_str(), network.input_channels(),
                    network.frames(), name_of(network.precision()));
    const std::lock_guard lock(m.mutex);
    m.channels = network.input_channels();
    m.frames = network.frames();
    return TRUE;
  } catch (...) {
    nonlocal::post_exception(GST_ELEMENT(trans), "network");
  }
  return FALSE;
}

gboolean stop(GstBaseTransform* trans) {
  Members& m = members(trans);
  m.state = State();
  const std::lock_guard lock(m.mutex);
  m.channels = 0;
  m.frames = 0;
  return TRUE;
}

void finalize(GObject* object) {
  delete &members(object);
  G_OBJECT_CLASS(gst_self_attention_parent_class)->finalize(object);
}

}  // namespace

static void gst_self_attention_class_init(GstSelfAttentionClass* klass) {
  GST_DEBUG_CATEGORY_INIT(self_attention_debug, "selfattention", 0, "networks with attention on video");
  auto* object_class = G_OBJECT_CLASS(klass);
  object_class->set_property = GST_DEBUG_FUNCPTR(set_property);
  object_class->get_property = GST_DEBUG_FUNCPTR(get_property);
  object_class->finalize = GST_DEBUG_FUNCPTR(finalize);
  install_properties(object_class);
  gst_type_mark_as_plugin_api(gst_self_attention_precision_get_type(), GstPluginAPIFlags(0));

  auto* element_class = GST_ELEMENT_CLASS(klass);
  gst_element_class_set_static_metadata(
      element_class, "Self-attention network", "Filter/Effect/Video",
      "Runs a trained network of convolutions, non-local blocks and attention on video",
      "The nonlocal authors");
  nonlocal::add_video_pads(element_class);

  auto* transform_class = GST_BASE_TRANSFORM_CLASS(klass);
  transform_class->transform_ip_on_passthrough = FALSE;
  transform_class->before_transform = GST_DEBUG_FUNCPTR(before_transform);
  transform_class->transform_caps = GST_DEBUG_FUNCPTR(transform_caps);
  transform_class->sink_event = GST_DEBUG_FUNCPTR(sink_event);
  transform_class->start = GST_DEBUG_FUNCPTR(start);
  transform_class->stop = GST_DEBUG_FUNCPTR(stop);
  auto* filter_class = GST_VIDEO_FILTER_CLASS(klass);
  filter_class->set_info = GST_DEBUG_FUNCPTR(set_info);
  filter_class->transform_frame_ip = GST_DEBUG_FUNCPTR(transform_frame_ip);
}

static void gst_self_attention_init(GstSelfAttention* self) {
  self->m = new Members();
  gst_base_transform_set_gap_aware(GST_BASE_TRANSFORM(self), TRUE);
}
