#include "nonlocaldenoise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "adaptive_search.h"
#include "element_error.h"
#include "element_parts.h"
#include "frames_ahead.h"
#include "nonlocal/video_denoiser.h"
#include "nonlocal/video_noise.h"
#include "video_caps.h"
#include "video_planes.h"

GST_DEBUG_CATEGORY_STATIC(nonlocal_denoise_debug);
#define GST_CAT_DEFAULT nonlocal_denoise_debug

namespace {

using nonlocal::AdaptiveSearch;
using nonlocal::FramePlanes;
using nonlocal::FramesAhead;
using nonlocal::kMostAhead;
using nonlocal::Plane;
using nonlocal::VideoDenoiser;
using nonlocal::VideoNoise;
using nonlocal::WaitingFrames;

// ---------------------------------------------------------------------------------------------- settings

enum Preset { PRESET_FAST, PRESET_BALANCED, PRESET_QUALITY };

struct PresetSizes {
  const char* name;
  const char* label;
  int patch;
  int search;
  bool temporal;
  int look_ahead;  // frames
  const char*
      network;  // of the library's, or none; without it where the CPU lacks its precision, to stay fast
  nonlocal::NetworkPrecision precision;
};

// By Preset.
constexpr std::array<PresetSizes, 3> kPresets = {{
    {"fast", "Fast", 3, 11, false, 0, nullptr, nonlocal::NetworkPrecision::kAutomatic},
    {"balanced", "Balanced", 5, 11, true, 0, "refine_balanced", nonlocal::NetworkPrecision::kInt8},
    {"quality", "Quality", 5, 21, true, 2, "refine_quality", nonlocal::NetworkPrecision::kAutomatic},
}};

// Values of the property refinement beside names and files.
constexpr const char* kPresetsNetwork = "preset";
constexpr const char* kNoNetwork = "off";

enum Chroma { CHROMA_SEPARATE, CHROMA_JOINT };

enum Method { METHOD_DIRECT, METHOD_ATTENTION };

enum Temporal { TEMPORAL_PRESET, TEMPORAL_OFF, TEMPORAL_RECURSIVE };

constexpr double kMostSigma = 100;
constexpr double kMostStrength = 10;
constexpr int kMostPatch = 15;
constexpr int kLeastSearch = 3;
constexpr int kMostSearch = 63;

// What the user asks for.
struct Settings {
  double sigma = -1;
  double strength = 1;
  double chroma_strength = 1;
  Chroma chroma = CHROMA_SEPARATE;
  Method method = METHOD_DIRECT;
  Temporal temporal = TEMPORAL_PRESET;
  int look_ahead = -1;
  std::string refinement = kPresetsNetwork;
  int patch_size = 0;
  int search_size = 0;
  Preset preset = PRESET_BALANCED;
  int threads = 0;
  bool message = true;
  bool adaptive = false;

  [[nodiscard]] bool estimates() const { return sigma < 0; }
  [[nodiscard]] int patch() const { return patch_size > 0 ? patch_size : kPresets[preset].patch; }
  [[nodiscard]] int search() const { return search_size > 0 ? search_size : kPresets[preset].search; }
  [[nodiscard]] bool leaves_luma() const { return sigma == 0 || strength == 0; }
  [[nodiscard]] bool leaves_chroma() const { return sigma == 0 || chroma_strength == 0; }
  // By the attention core: each frame by itself, of one sigma, chroma by weights of its own.
  [[nodiscard]] bool attends() const { return method == METHOD_ATTENTION; }
  [[nodiscard]] bool fuses() const {
    const bool is_wanted =
        temporal == TEMPORAL_PRESET ? kPresets[preset].temporal : temporal == TEMPORAL_RECURSIVE;
    return is_wanted && !attends();
  }
  // Frames that wait for later ones.
  [[nodiscard]] int ahead() const {
    if (!fuses() || leaves_luma()) {
      return 0;
    }
    return look_ahead < 0 ? kPresets[preset].look_ahead : look_ahead;
  }
  // A name, or a file; empty for none.
  [[nodiscard]] std::string_view network() const {
    if (refinement != kPresetsNetwork) {
      return refinement == kNoNetwork ? std::string_view() : refinement;
    }
    const PresetSizes& p = kPresets[preset];
    return attends() || p.network == nullptr || !nonlocal::is_supported(p.precision) ? "" : p.network;
  }
  [[nodiscard]] nonlocal::NetworkPrecision precision() const {
    const nonlocal::NetworkPrecision wanted = kPresets[preset].precision;
    return nonlocal::is_supported(wanted) ? wanted : nonlocal::NetworkPrecision::kAutomatic;
  }
  [[nodiscard]] bool joins_chroma() const { return chroma == CHROMA_JOINT && !attends(); }
  [[nodiscard]] bool is_joint() const { return joins_chroma() && !leaves_luma() && !leaves_chroma(); }
};

// ------------------------------------------------------------------------------------------------- state

// What has been posted in the last message.
struct Posted {
  GstClockTime running_time = GST_CLOCK_TIME_NONE;
  double noise_level = -1;
  int search_size = 0;
};

// The denoiser of a frame's one field, or of whole frames.
struct FieldDenoiser {
  VideoDenoiser denoiser;
  std::string network;  // that it refines with
  nonlocal::NetworkPrecision precision = nonlocal::NetworkPrecision::kAutomatic;

  // Opens a file where the settings ask for another network than before, and only then.
  void use_network_of(const Settings& settings) {
    const std::string_view wanted = settings.network();
    if (wanted == network && (wanted.empty() || settings.precision() == precision)) {
      return;
    }
    if (wanted.empty()) {
      denoiser.do_not_refine();
    } else {
      denoiser.refine_with(nonlocal::find_model(std::string(wanted)), settings.precision());
    }
    network = wanted;
    precision = settings.precision();
  }
};

// What the streaming thread remembers from frame to frame; it is guarded by the pad's stream lock.
struct State {
  std::array<FieldDenoiser, 2> denoisers;  // by field of interlaced frames
  nonlocal::VideoNoiseEstimator noise;
  WaitingFrames waiting;
  bool drains = false;  // what waits is to come out, whatever is ahead of it
  GstClockTime last_pts = GST_CLOCK_TIME_NONE;
  GstClockTime longest_step = 0;  // from a frame to the next
  AdaptiveSearch adaptive;
  std::optional<bool> live;  // asked at the first frame that needs it
  Posted posted;
  Settings settings;  // of this frame

  // Pauses between frames are no rate.
  void note_step(GstBuffer* buffer) {
    constexpr GstClockTime kPause = GST_SECOND / 2;
    const GstClockTime pts = GST_BUFFER_PTS(buffer);
    const bool is_step = GST_CLOCK_TIME_IS_VALID(pts) && GST_CLOCK_TIME_IS_VALID(last_pts) && pts > last_pts;
    if (is_step && pts - last_pts < kPause) {
      longest_step = std::max(longest_step, pts - last_pts);
    }
    last_pts = pts;
  }

  // Forgets the frames that came before; working memory stays.
  void reset() {
    noise.reset();
    for (FieldDenoiser& field : denoisers) {
      field.denoiser.reset();
    }
    waiting.clear();
    last_pts = GST_CLOCK_TIME_NONE;
    longest_step = 0;
    adaptive.reset();
    live.reset();
    posted = Posted();
  }
};

}  // namespace

struct _GstNonlocalDenoise {
  GstVideoFilter parent;

  struct Members {
    std::mutex mutex;  // guards all but `state`
    Settings settings;
    double noise_level = 0;
    bool late = false;       // a QoS event said so since the last frame
    bool drops_late = true;  // the base class, which drops frames, hears of QoS events
    GstClockTime latency = 0;
    int room = kMostAhead;  // for how many waiting frames buffers were asked for; all: nobody asked how many
    State state;
  };
  Members* m;
};

// --------------------------------------------------------------------------------------------- properties

enum Property {
  PROP_SIGMA = 1,
  PROP_STRENGTH,
  PROP_CHROMA_STRENGTH,
  PROP_CHROMA,
  PROP_TEMPORAL,
  PROP_LOOK_AHEAD,
  PROP_REFINEMENT,
  PROP_PATCH_SIZE,
  PROP_SEARCH_SIZE,
  PROP_PRESET,
  PROP_N_THREADS,
  PROP_NOISE_LEVEL,
  PROP_MESSAGE,
  PROP_ADAPTIVE,
  PROP_METHOD,
};

G_DEFINE_TYPE(GstNonlocalDenoise, gst_nonlocal_denoise, GST_TYPE_VIDEO_FILTER)
GST_ELEMENT_REGISTER_DEFINE(nonlocaldenoise, "nonlocaldenoise", GST_RANK_NONE, GST_TYPE_NONLOCAL_DENOISE)

// GObject keeps a pointer to the values: they live as long as the process.
static GType register_presets() {
  static std::array<GEnumValue, kPresets.size() + 1> values{};
  static std::array<std::string, kPresets.size()> labels;
  for (std::size_t i = 0; i < kPresets.size(); ++i) {
    const PresetSizes& preset = kPresets[i];
    labels[i] = std::string(preset.label) + ": patch-size " + std::to_string(preset.patch) +
                ", search-size " + std::to_string(preset.search) + (preset.temporal ? ", recursive" : "") +
                (preset.look_ahead > 0 ? ", look-ahead " + std::to_string(preset.look_ahead) : "") +
                (preset.network != nullptr ? std::string(", refinement ") + preset.network : "");
    values[i] = {static_cast<gint>(i), labels[i].c_str(), preset.name};
  }
  return g_enum_register_static("GstNonlocalDenoisePreset", values.data());
}

static GType gst_nonlocal_denoise_preset_get_type() {
  static const GType type = register_presets();
  return type;
}

static GType gst_nonlocal_denoise_chroma_get_type() {
  static const std::array<GEnumValue, 3> values = {{
      {CHROMA_SEPARATE, "Separate: by weights of the chroma planes' own", "separate"},
      {CHROMA_JOINT, "Joint: by those of luma; faster, and weaker on noise", "joint"},
      {},
  }};
  static const GType type = g_enum_register_static("GstNonlocalDenoiseChroma", values.data());
  return type;
}

static GType gst_nonlocal_denoise_method_get_type() {
  static const std::array<GEnumValue, 3> values = {{
      {METHOD_DIRECT, "Direct: patches are compared offset by offset", "direct"},
      {METHOD_ATTENTION, "Attention: patches as queries and keys of the attention core; slower", "attention"},
      {},
  }};
  static const GType type = g_enum_register_static("GstNonlocalDenoiseMethod", values.data());
  return type;
}

static GType gst_nonlocal_denoise_temporal_get_type() {
  static const std::array<GEnumValue, 4> values = {{
      {TEMPORAL_PRESET, "As the preset says", "preset"},
      {TEMPORAL_OFF, "Each frame by itself", "off"},
      {TEMPORAL_RECURSIVE, "Each frame fused with those before it, along their motion", "recursive"},
      {},
  }};
  static const GType type = g_enum_register_static("GstNonlocalDenoiseTemporal", values.data());
  return type;
}

namespace {

using Members = _GstNonlocalDenoise::Members;

Members& members(gpointer object) { return *GST_NONLOCAL_DENOISE(object)->m; }

// 0, which leaves the choice to the preset, or an odd size of at least `least`.
void set_size(GObject* object, const GParamSpec* spec, const GValue* value, int least, int& setting) {
  const int size = g_value_get_int(value);
  const int usable = size == 0 ? 0 : std::max(least, size | 1);
  if (usable != size && usable != setting) {
    GST_WARNING_OBJECT(object, "%s: expected 0 or an odd number from %d on, got %d; using %d", spec->name,
                       least, size, usable);
  }
  setting = usable;
}

void set_property(GObject* object, guint id, const GValue* value, GParamSpec* spec) {
  Members& m = members(object);
  const std::lock_guard lock(m.mutex);
  Settings& settings = m.settings;
  switch (id) {
    case PROP_SIGMA:
      settings.sigma = g_value_get_double(value);
      return;
    case PROP_STRENGTH:
      settings.strength = g_value_get_double(value);
      return;
    case PROP_CHROMA_STRENGTH:
      settings.chroma_strength = g_value_get_double(value);
      return;
    case PROP_CHROMA:
      settings.chroma = static_cast<Chroma>(g_value_get_enum(value));
      return;
    case PROP_TEMPORAL:
      settings.temporal = static_cast<Temporal>(g_value_get_enum(value));
      return;
    case PROP_LOOK_AHEAD:
      settings.look_ahead = g_value_get_int(value);
      return;
    case PROP_REFINEMENT:
      settings.refinement = nonlocal::text_of(value, kPresetsNetwork);
      return;
    case PROP_PATCH_SIZE:
      return set_size(object, spec, value, 1, settings.patch_size);
    case PROP_SEARCH_SIZE:
      return set_size(object, spec, value, kLeastSearch, settings.search_size);
    case PROP_PRESET:
      settings.preset = static_cast<Preset>(g_value_get_enum(value));
      return;
    case PROP_N_THREADS:
      settings.threads = g_value_get_int(value);
      return;
    case PROP_MESSAGE:
      settings.message = g_value_get_boolean(value);
      return;
    case PROP_ADAPTIVE:
      settings.adaptive = g_value_get_boolean(value);
      return;
    case PROP_METHOD:
      settings.method = static_cast<Method>(g_value_get_enum(value));
      return;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
  }
}

void get_property(GObject* object, guint id, GValue* value, GParamSpec* spec) {
  Members& m = members(object);
  const std::lock_guard lock(m.mutex);
  const Settings& settings = m.settings;
  switch (id) {
    case PROP_SIGMA:
      return g_value_set_double(value, settings.sigma);
    case PROP_STRENGTH:
      return g_value_set_double(value, settings.strength);
    case PROP_CHROMA_STRENGTH:
      return g_value_set_double(value, settings.chroma_strength);
    case PROP_CHROMA:
      return g_value_set_enum(value, settings.chroma);
    case PROP_TEMPORAL:
      return g_value_set_enum(value, settings.temporal);
    case PROP_LOOK_AHEAD:
      return g_value_set_int(value, settings.look_ahead);
    case PROP_REFINEMENT:
      return g_value_set_string(value, settings.refinement.c_str());
    case PROP_PATCH_SIZE:
      return g_value_set_int(value, settings.patch_size);
    case PROP_SEARCH_SIZE:
      return g_value_set_int(value, settings.search_size);
    case PROP_PRESET:
      return g_value_set_enum(value, settings.preset);
    case PROP_N_THREADS:
      return g_value_set_int(value, settings.threads);
    case PROP_NOISE_LEVEL:
      return g_value_set_double(value, m.noise_level);
    case PROP_MESSAGE:
      return g_value_set_boolean(value, settings.message);
    case PROP_ADAPTIVE:
      return g_value_set_boolean(value, settings.adaptive);
    case PROP_METHOD:
      return g_value_set_enum(value, settings.method);
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
  install(PROP_SIGMA,
          g_param_spec_double(
              "sigma", "Sigma",
              "Standard deviation of the noise, in 8-bit code values at any bit depth: 0 (no noise) to "
              "100, or -1 (the default; as any negative value) to estimate it from the frames",
              -1, kMostSigma, d.sigma, kTunable));
  install(PROP_STRENGTH,
          g_param_spec_double(
              "strength", "Strength",
              "Strength of the filter on luma, or on RGB, as a factor without unit: 0 (leave as is) to "
              "10, default 1 (what suits the noise)",
              0, kMostStrength, d.strength, kTunable));
  install(PROP_CHROMA_STRENGTH, g_param_spec_double("chroma-strength", "Chroma strength",
                                                    "Strength of the filter on the chroma planes, by weights "
                                                    "of their own, as a factor without unit: 0 (leave as is) "
                                                    "to 10, default 1 (what suits the noise)",
                                                    0, kMostStrength, d.chroma_strength, kTunable));
  install(
      PROP_CHROMA,
      g_param_spec_enum(
          "chroma", "Chroma",
          "Weights that the chroma planes are averaged with: separate (the default), their own; or joint, "
          "those of luma, which costs less, removes less noise, and does so whatever chroma-strength is, "
          "unless it is 0",
          gst_nonlocal_denoise_chroma_get_type(), d.chroma, kTunable));
  install(PROP_TEMPORAL,
          g_param_spec_enum(
              "temporal", "Temporal",
              "What frames before tell of a frame: preset (the default), what the preset says; off, "
              "nothing; or recursive, each is fused with those before it, along their motion, "
              "without delay",
              gst_nonlocal_denoise_temporal_get_type(), d.temporal, kTunable));
  install(PROP_LOOK_AHEAD,
          g_param_spec_int(
              "look-ahead", "Look-ahead",
              "How many later frames a frame waits for, to be fused with them too, where frames are "
              "fused: 0 to 8 frames, or -1 (the default) for the preset's; each is a frame of latency",
              -1, kMostAhead, d.look_ahead, kPlain));
  install(
      PROP_REFINEMENT,
      g_param_spec_string("refinement", "Refinement",
                          "The network that gives back what averaging took from luma, or from R, G and B, as "
                          "text: preset (the default), the preset's; off, none; the name of one of the "
                          "library's (refine_balanced, refine_quality); or a safetensors file, with a /",
                          kPresetsNetwork, kWeights));
  install(PROP_PATCH_SIZE,
          g_param_spec_int(
              "patch-size", "Patch size",
              "Width and height of the patches compared, in samples: odd, 1 to 15 (an even number is "
              "raised by one), or 0 (the default) for the preset's",
              0, kMostPatch, d.patch_size, kTunable));
  install(PROP_SEARCH_SIZE,
          g_param_spec_int(
              "search-size", "Search size",
              "Width and height of the window searched for similar patches, in samples: odd, 3 to 63 (an "
              "even number is raised by one), or 0 (the default) for the preset's",
              0, kMostSearch, d.search_size, kTunable));
  install(PROP_PRESET,
          g_param_spec_enum(
              "preset", "Preset",
              "Patch and search size together, in samples, where they are 0, whether frames are fused over "
              "time, the network and the look-ahead: fast, balanced (the default) or quality",
              gst_nonlocal_denoise_preset_get_type(), d.preset, kTunable));
  install(PROP_N_THREADS, nonlocal::threads_property(d.threads));
  install(
      PROP_NOISE_LEVEL,
      g_param_spec_double("noise-level", "Noise level",
                          "Standard deviation of the noise of luma, or of RGB, that is in use, in 8-bit code "
                          "values: 0 (the default, before the first frame) to 100",
                          0, kMostSigma, 0, kRead));
  install(PROP_MESSAGE,
          g_param_spec_boolean(
              "message", "Message",
              "Post an element message once a second and when the noise level or the adaptive search "
              "size changes: true (the default) or false",
              d.message, kPlain));
  install(PROP_ADAPTIVE,
          g_param_spec_boolean(
              "adaptive", "Adaptive",
              "Search a smaller window, step by step, while frames come too late, instead of dropping "
              "frames: true or false (the default)",
              d.adaptive, kPlain));
  install(
      PROP_METHOD,
      g_param_spec_enum(
          "method", "Method",
          "How the averages are computed: direct (the default), or attention, by the attention core: the "
          "same but for rounding (1, seldom 2, in 8-bit code values), and slower; each frame by itself "
          "with one sigma, chroma by weights of its own, whatever temporal, look-ahead and chroma say, and "
          "with a network only where refinement names one",
          gst_nonlocal_denoise_method_get_type(), d.method, kTunable));
}

// ---------------------------------------------------------------------------------------------- filtering

// What the frame is filtered with. Luma is estimated even where it is left alone: noise-level stays true.
VideoNoise noise_of(State& state, const FramePlanes& planes) {
  const Settings& settings = state.settings;
  if (!settings.estimates()) {
    return settings.sigma;
  }
  const bool with_chroma = !settings.leaves_chroma() && (!settings.is_joint() || settings.fuses());
  return state.noise.update(planes.luma.all(), with_chroma ? planes.chroma.all() : std::span<const Plane>(),
                            settings.threads);
}

nonlocal::VideoDenoiserParameters denoiser_parameters(const Settings& settings, int search_size,
                                                      const VideoNoise& noise) {
  nonlocal::VideoDenoiserParameters p;
  p.strength = settings.strength;
  p.chroma_strength = settings.chroma_strength;
  p.patch_size = settings.patch();
  p.search_size = search_size;
  p.joint_chroma = settings.joins_chroma();
  p.temporal = settings.fuses();
  p.method =
      settings.attends() ? nonlocal::NonLocalMeansMethod::kAttention : nonlocal::NonLocalMeansMethod::kDirect;
  p.threads = settings.threads;
  set_noise(p, noise);
  return p;
}

// ------------------------------------------------------------------------------------------------ messages

bool differs_visibly(double level, double posted) {
  return std::abs(level - posted) > std::max(0.5, 0.1 * posted);
}

bool is_due(const Posted& last, const Posted& now) {
  if (now.search_size != last.search_size || differs_visibly(now.noise_level, last.noise_level)) {
    return true;
  }
  if (!GST_CLOCK_TIME_IS_VALID(now.running_time)) {
    return false;
  }
  return !GST_CLOCK_TIME_IS_VALID(last.running_time) || now.running_time >= last.running_time + GST_SECOND;
}

void post_message(GstBaseTransform* trans, GstBuffer* buffer, const Posted& now) {
  GstStructure* structure = nonlocal::structure_about("nonlocaldenoise", trans, buffer);
  gst_structure_set(structure, "noise-level", G_TYPE_DOUBLE, now.noise_level, "search-size", G_TYPE_INT,
                    now.search_size, nullptr);
  gst_element_post_message(GST_ELEMENT(trans), gst_message_new_element(GST_OBJECT(trans), structure));
}

void report(GstBaseTransform* trans, GstBuffer* buffer, double noise_level, int search_size) {
  Members& m = members(trans);
  {
    const std::lock_guard lock(m.mutex);
    m.noise_level = noise_level;
  }
  const Posted now{nonlocal::running_time_of(trans, buffer), noise_level, search_size};
  if (m.state.settings.message && is_due(m.state.posted, now)) {
    post_message(trans, buffer, now);
    m.state.posted = now;
  }
}

// ------------------------------------------------------------------------------------------- keeping up

bool upstream_is_live(GstBaseTransform* trans) {
  GstQuery* query = gst_query_new_latency();
  gboolean live = FALSE;
  if (gst_pad_peer_query(GST_BASE_TRANSFORM_SINK_PAD(trans), query)) {
    gst_query_parse_latency(query, &live, nullptr, nullptr);
  }
  gst_query_unref(query);
  return live;
}

GstClockTime frame_duration(GstBuffer* buffer, const GstVideoInfo& info) {
  if (GST_BUFFER_DURATION_IS_VALID(buffer)) {
    return GST_BUFFER_DURATION(buffer);
  }
  return info.fps_n > 0 ? gst_util_uint64_scale_int(GST_SECOND, info.fps_d, info.fps_n) : 0;
}

// How much of its time a live frame took; a recorded one has all the time unless somebody complains.
double load_of(GstBaseTransform* trans, GstBuffer* buffer, GstClockTime spent) {
  State& state = members(trans).state;
  if (!state.live) {
    state.live = upstream_is_live(trans);
  }
  const GstClockTime duration = frame_duration(buffer, GST_VIDEO_FILTER(trans)->in_info);
  return *state.live && duration > 0 ? static_cast<double>(spent) / static_cast<double>(duration) : 0;
}

void adapt(GstBaseTransform* trans, GstBuffer* buffer, GstClockTime spent) {
  Members& m = members(trans);
  AdaptiveSearch::Frame frame;
  frame.load = load_of(trans, buffer, spent);
  {
    const std::lock_guard lock(m.mutex);
    frame.late = m.late;
    m.late = false;
  }
  m.state.adaptive.update(m.state.settings.search(), frame);
}

// -------------------------------------------------------------------------------------- the base classes

// This frame's settings, and whether its lateness is a matter for the base class: with `adaptive` it is only
// once the window cannot get smaller, as a stream that falls behind for good would be worse than one with
// gaps.
void copy_settings(Members& m) {
  const std::lock_guard lock(m.mutex);
  Settings& settings = m.state.settings;
  settings = m.settings;
  if (!settings.adaptive) {
    m.state.adaptive.reset();
    m.late = false;
  }
  m.drops_late = !settings.adaptive || !m.state.adaptive.can_lower(settings.search());
}

void before_transform(GstBaseTransform* trans, GstBuffer* buffer) {
  Members& m = members(trans);
  nonlocal::sync_controlled(trans, buffer);
  copy_settings(m);
  const GstVideoFilter* filter = GST_VIDEO_FILTER(trans);
  const bool chroma = filter->negotiated && nonlocal::has_chroma(filter->in_info.finfo);
  const Settings& settings = m.state.settings;
  gst_base_transform_set_passthrough(trans, settings.leaves_luma() && (!chroma || settings.leaves_chroma()));
}

void denoise(GstBaseTransform* trans, const GstVideoFrame& frame) {
  State& state = members(trans).state;
  const Settings& settings = state.settings;
  const FramePlanes planes = nonlocal::planes_of(frame);
  const bool interlaced = nonlocal::is_interlaced(frame);
  const int search_size = state.adaptive.search_size(settings.search());
  const GstClockTime start = gst_util_get_timestamp();
  // Motion makes the fields differ, which would pass for noise: one is enough.
  const VideoNoise noise = noise_of(state, interlaced ? nonlocal::field_of(planes, 0) : planes);
  if (!gst_base_transform_is_passthrough(trans)) {
    // Not by frame.info, which has this buffer's strides: those that wait may have others.
    FramesAhead ahead(state.waiting, settings.ahead(), GST_VIDEO_FILTER(trans)->in_info);
    for (int field = 0; field < (interlaced ? 2 : 1); ++field) {
      const FramePlanes part = interlaced ? nonlocal::field_of(planes, field) : planes;
      if (!part.luma.empty()) {
        state.denoisers[field].use_network_of(settings);
        state.denoisers[field].denoiser.filter(part.luma.all(), part.chroma.all(),
                                               denoiser_parameters(settings, search_size, noise),
                                               ahead.views(interlaced ? std::optional(field) : std::nullopt));
      }
    }
  } else {
    for (FieldDenoiser& field : state.denoisers) {
      field.denoiser.reset();  // the next frame that is filtered does not follow the last one that was
    }
  }
  report(trans, frame.buffer, noise.level, search_size);
  if (settings.adaptive) {
    adapt(trans, frame.buffer, gst_util_get_timestamp() - start);
  }
}

// Called in passthrough, too, with a frame that must only be read.
GstFlowReturn transform_frame_ip(GstVideoFilter* filter, GstVideoFrame* frame) {
  auto* trans = GST_BASE_TRANSFORM(filter);
  try {
    denoise(trans, *frame);
    return GST_FLOW_OK;
  } catch (...) {
    nonlocal::post_exception(GST_ELEMENT(filter), "refinement network", GST_VIDEO_FRAME_WIDTH(frame),
                             GST_VIDEO_FRAME_HEIGHT(frame));
  }
  return GST_FLOW_ERROR;
}

// What comes next has nothing to do with what was.
void forget_frames(Members& m) {
  m.state.reset();
  const std::lock_guard lock(m.mutex);
  m.late = false;
  m.drops_late = true;
}

// How long a frame waits for those ahead of it. Where caps do not tell a rate it is kUntoldRate, until frames
// show that they come more slowly.
GstClockTime latency_of(const State& state, const GstVideoInfo& info, int ahead) {
  constexpr int kUntoldRate = 25;
  const GstClockTime all = ahead * GST_SECOND;
  return info.fps_n > 0 ? gst_util_uint64_scale_int(all, info.fps_d, info.fps_n)
                        : std::max(all / kUntoldRate, ahead * state.longest_step);
}

// Tells the pipeline when frames begin to wait for longer or shorter.
void update_latency(GstBaseTransform* trans, const GstVideoInfo& info, int ahead) {
  Members& m = members(trans);
  const GstClockTime latency = latency_of(m.state, info, ahead);
  {
    const std::lock_guard lock(m.mutex);
    if (m.latency == latency) {
      return;
    }
    m.latency = latency;
  }
  gst_element_post_message(GST_ELEMENT(trans), gst_message_new_latency(GST_OBJECT(trans)));
}

// A pool that upstream made for fewer waiting frames would run out for ever.
void ask_for_room(GstBaseTransform* trans, int ahead) {
  Members& m = members(trans);
  {
    const std::lock_guard lock(m.mutex);
    if (m.room >= ahead) {
      return;
    }
    m.room = ahead;
  }
  gst_base_transform_reconfigure_sink(trans);
}

// One frame comes out for each that goes in, once as many wait as are to be ahead of it.
GstFlowReturn generate_output(GstBaseTransform* trans, GstBuffer** out) {
  const auto generate = GST_BASE_TRANSFORM_CLASS(gst_nonlocal_denoise_parent_class)->generate_output;
  State& state = members(trans).state;
  const int ahead = state.settings.ahead();
  update_latency(trans, GST_VIDEO_FILTER(trans)->in_info, ahead);
  ask_for_room(trans, ahead);
  if (ahead == 0 && state.waiting.count() == 0) {
    return generate(trans, out);
  }
  if (trans->queued_buf != nullptr) {
    state.note_step(trans->queued_buf);
    state.waiting.push(std::exchange(trans->queued_buf, nullptr));
  }
  *out = nullptr;
  if (state.waiting.count() == 0 || (!state.drains && state.waiting.count() <= ahead)) {
    return GST_FLOW_OK;
  }
  trans->queued_buf = state.waiting.pop();
  before_transform(trans, trans->queued_buf);
  return generate(trans, out);
}

// What waits comes out.
void drain(GstBaseTransform* trans) {
  State& state = members(trans).state;
  state.drains = true;
  GstFlowReturn flow = GST_FLOW_OK;
  while (flow == GST_FLOW_OK && state.waiting.count() > 0) {
    GstBuffer* out = nullptr;
    flow = generate_output(trans, &out);
    if (out != nullptr) {
      flow = gst_pad_push(GST_BASE_TRANSFORM_SRC_PAD(trans), out);
    }
  }
  state.drains = false;
}

// What follows a gap is not ahead of what was before it.
GstFlowReturn submit_input_buffer(GstBaseTransform* trans, gboolean is_discont, GstBuffer* buffer) {
  if (GST_BUFFER_IS_DISCONT(buffer)) {
    drain(trans);
  }
  return GST_BASE_TRANSFORM_CLASS(gst_nonlocal_denoise_parent_class)
      ->submit_input_buffer(trans, is_discont, buffer);
}

// Those that wait are missing from the pool that they come from.
gboolean propose_allocation(GstBaseTransform* trans, GstQuery* decided, GstQuery* query) {
  if (!GST_BASE_TRANSFORM_CLASS(gst_nonlocal_denoise_parent_class)
           ->propose_allocation(trans, decided, query)) {
    return FALSE;
  }
  Members& m = members(trans);
  guint ahead = 0;
  {
    const std::lock_guard lock(m.mutex);
    m.room = m.settings.ahead();
    ahead = static_cast<guint>(m.room);
  }
  const guint pools = gst_query_get_n_allocation_pools(query);
  for (guint i = 0; ahead > 0 && i < pools; ++i) {
    GstBufferPool* pool = nullptr;
    guint size = 0;
    guint least = 0;
    guint most = 0;
    gst_query_parse_nth_allocation_pool(query, i, &pool, &size, &least, &most);
    gst_query_set_nth_allocation_pool(query, i, pool, size, least + ahead, most > 0 ? most + ahead : 0);
    gst_clear_object(&pool);
  }
  if (ahead > 0 && pools == 0) {
    const auto size = static_cast<guint>(GST_VIDEO_INFO_SIZE(&GST_VIDEO_FILTER(trans)->in_info));
    gst_query_add_allocation_pool(query, nullptr, size, ahead + 1, 0);
  }
  return TRUE;
}

gboolean answer_query(GstBaseTransform* trans, GstPadDirection direction, GstQuery* query) {
  if (direction == GST_PAD_SINK && GST_QUERY_TYPE(query) == GST_QUERY_DRAIN) {
    drain(trans);  // it is serialised: no frame is on its way
  }
  if (!GST_BASE_TRANSFORM_CLASS(gst_nonlocal_denoise_parent_class)->query(trans, direction, query)) {
    return FALSE;
  }
  if (direction == GST_PAD_SRC && GST_QUERY_TYPE(query) == GST_QUERY_LATENCY) {
    gboolean live = FALSE;
    GstClockTime least = 0;
    GstClockTime most = 0;
    gst_query_parse_latency(query, &live, &least, &most);
    Members& m = members(trans);
    const std::lock_guard lock(m.mutex);
    gst_query_set_latency(query, live, least + m.latency,
                          GST_CLOCK_TIME_IS_VALID(most) ? most + m.latency : GST_CLOCK_TIME_NONE);
  }
  return TRUE;
}

gboolean set_info(GstVideoFilter* filter, GstCaps*, GstVideoInfo* info, GstCaps*, GstVideoInfo*) {
  Members& m = members(filter);
  forget_frames(m);
  int ahead = 0;
  {
    const std::lock_guard lock(m.mutex);
    ahead = m.settings.ahead();
  }
  update_latency(GST_BASE_TRANSFORM(filter), *info, ahead);
  return TRUE;
}

gboolean sink_event(GstBaseTransform* trans, GstEvent* event) {
  // Nothing overtakes frames.
  const bool is_serialized =
      (gst_event_type_get_flags(GST_EVENT_TYPE(event)) & GST_EVENT_TYPE_SERIALIZED) != 0;
  if (is_serialized && GST_EVENT_TYPE(event) != GST_EVENT_FLUSH_STOP) {
    drain(trans);
  }
  if (GST_EVENT_TYPE(event) == GST_EVENT_FLUSH_STOP || GST_EVENT_TYPE(event) == GST_EVENT_SEGMENT) {
    forget_frames(members(trans));
  }
  return GST_BASE_TRANSFORM_CLASS(gst_nonlocal_denoise_parent_class)->sink_event(trans, event);
}

// Notes whether frames come late. The base class, which would drop frames, hears of it only where it should.
bool takes_qos(GstBaseTransform* trans, GstEvent* event) {
  GstClockTimeDiff lateness = 0;
  gst_event_parse_qos(event, nullptr, nullptr, &lateness, nullptr);
  Members& m = members(trans);
  const std::lock_guard lock(m.mutex);
  if (!m.settings.adaptive) {
    return false;
  }
  m.late = m.late || lateness > 0;
  return !m.drops_late;
}

gboolean src_event(GstBaseTransform* trans, GstEvent* event) {
  if (GST_EVENT_TYPE(event) == GST_EVENT_QOS && takes_qos(trans, event)) {
    return gst_pad_push_event(GST_BASE_TRANSFORM_SINK_PAD(trans), event);
  }
  return GST_BASE_TRANSFORM_CLASS(gst_nonlocal_denoise_parent_class)->src_event(trans, event);
}

// A model that is not there is found out before the first frame.
gboolean start(GstBaseTransform* trans) {
  Members& m = members(trans);
  Settings settings;
  {
    const std::lock_guard lock(m.mutex);
    settings = m.settings;
  }
  try {
    m.state.denoisers[0].use_network_of(settings);
    return TRUE;
  } catch (...) {
    nonlocal::post_exception(GST_ELEMENT(trans), "refinement network");
  }
  return FALSE;
}

gboolean stop(GstBaseTransform* trans) {
  Members& m = members(trans);
  m.state = State();
  forget_frames(m);
  const std::lock_guard lock(m.mutex);
  m.noise_level = 0;
  m.latency = 0;
  m.room = kMostAhead;
  return TRUE;
}

void finalize(GObject* object) {
  delete &members(object);
  G_OBJECT_CLASS(gst_nonlocal_denoise_parent_class)->finalize(object);
}

}  // namespace

static void gst_nonlocal_denoise_class_init(GstNonlocalDenoiseClass* klass) {
  GST_DEBUG_CATEGORY_INIT(nonlocal_denoise_debug, "nonlocaldenoise", 0, "denoising by non-local means");
  auto* object_class = G_OBJECT_CLASS(klass);
  object_class->set_property = GST_DEBUG_FUNCPTR(set_property);
  object_class->get_property = GST_DEBUG_FUNCPTR(get_property);
  object_class->finalize = GST_DEBUG_FUNCPTR(finalize);
  install_properties(object_class);
  gst_type_mark_as_plugin_api(gst_nonlocal_denoise_preset_get_type(), GstPluginAPIFlags(0));
  gst_type_mark_as_plugin_api(gst_nonlocal_denoise_chroma_get_type(), GstPluginAPIFlags(0));
  gst_type_mark_as_plugin_api(gst_nonlocal_denoise_method_get_type(), GstPluginAPIFlags(0));
  gst_type_mark_as_plugin_api(gst_nonlocal_denoise_temporal_get_type(), GstPluginAPIFlags(0));

  auto* element_class = GST_ELEMENT_CLASS(klass);
  gst_element_class_set_static_metadata(
      element_class, "Non-local means denoiser", "Filter/Effect/Video",
      "Removes noise from video by averaging pixels whose surroundings look alike", "The nonlocal authors");
  nonlocal::add_video_pads(element_class);

  auto* transform_class = GST_BASE_TRANSFORM_CLASS(klass);
  transform_class->before_transform = GST_DEBUG_FUNCPTR(before_transform);
  transform_class->submit_input_buffer = GST_DEBUG_FUNCPTR(submit_input_buffer);
  transform_class->propose_allocation = GST_DEBUG_FUNCPTR(propose_allocation);
  transform_class->generate_output = GST_DEBUG_FUNCPTR(generate_output);
  transform_class->query = GST_DEBUG_FUNCPTR(answer_query);
  transform_class->sink_event = GST_DEBUG_FUNCPTR(sink_event);
  transform_class->src_event = GST_DEBUG_FUNCPTR(src_event);
  transform_class->start = GST_DEBUG_FUNCPTR(start);
  transform_class->stop = GST_DEBUG_FUNCPTR(stop);
  auto* filter_class = GST_VIDEO_FILTER_CLASS(klass);
  filter_class->set_info = GST_DEBUG_FUNCPTR(set_info);
  filter_class->transform_frame_ip = GST_DEBUG_FUNCPTR(transform_frame_ip);
}

static void gst_nonlocal_denoise_init(GstNonlocalDenoise* self) {
  self->m = new Members();
  gst_base_transform_set_gap_aware(GST_BASE_TRANSFORM(self), TRUE);
}
