#include "textcross.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "colour_of_video.h"
#include "element_error.h"
#include "element_parts.h"
#include "look_maker.h"
#include "nonlocal/error.h"
#include "nonlocal/map_tracker.h"
#include "nonlocal/refinement.h"
#include "own_planes.h"
#include "region_seeker.h"
#include "relevance_view.h"
#include "video_caps.h"
#include "video_planes.h"

GST_DEBUG_CATEGORY_STATIC(text_cross_debug);
#define GST_CAT_DEFAULT text_cross_debug

namespace {

using nonlocal::ConstMatrix;
using nonlocal::ConstPlane;
using nonlocal::FramePlanes;
using nonlocal::Look;
using nonlocal::LookMaker;
using nonlocal::LookRequest;
using nonlocal::Plane;
using nonlocal::PlaneGroup;

// ---------------------------------------------------------------------------------------------- settings

enum Mode { MODE_AUTO, MODE_EXACT, MODE_BAKED };
enum Output { OUTPUT_BLEND, OUTPUT_HEATMAP, OUTPUT_MASK, OUTPUT_NONE };

constexpr const char* kMetaName = "NonlocalTextMeta";
constexpr const char* kRegionType = "textcross";

constexpr const char* kDefaultModel = "grade";
constexpr double kMostStrength = 4;
constexpr int kMostTransition = 60'000;
constexpr int kMostInterval = 1000;

// What is opened when the element starts.
struct Files {
  std::string model = kDefaultModel;  // a name, a file, or a folder of CLIP's or CLIPSeg's
  std::string embeddings;             // a file; "": prompts are read
};

// What may change from frame to frame.
struct Settings {
  std::uint64_t texts = 0;  // counts how often prompt or region were set
  Mode mode = MODE_AUTO;
  double strength = 1;
  Output output = OUTPUT_BLEND;
  int transition = 300;  // milliseconds
  int region_interval = 0;
  int threads = 0;
  bool message = true;
};

// ------------------------------------------------------------------------------------------------- state

using LookPointer = std::shared_ptr<const Look>;

// What frames look like: one look, or two while one fades into the other.
struct Fade {
  LookPointer from;  // null: nothing fades
  LookPointer to;
  GstClockTime begin = GST_CLOCK_TIME_NONE;  // running time
  double share = 1;                          // of the transition, that it takes
  GstClockTime waited_for_since = GST_CLOCK_TIME_NONE;
};

// What the model of a folder finds, and where it has come since.
struct Regions {
  std::shared_ptr<nonlocal::RegionSeeker> seeker;  // null: there is no such model
  std::string sought;
  const char* property = "region";  // that this text is of
  bool is_told = false;             // what is to be said of that text
  nonlocal::FoundRegions found;
  nonlocal::MapTracker tracker;
  int interval = 0;            // Settings::region_interval
  int age = 0;                 // frames since the one that waited; 0: this one does
  nonlocal::OwnPlanes graded;  // where a region limits the grade

  [[nodiscard]] bool are_sought() const { return seeker != nullptr && !sought.empty(); }
};

// What the streaming thread remembers from frame to frame; it is guarded by the pad's stream lock.
struct State {
  std::unique_ptr<LookMaker> maker;
  std::array<nonlocal::FrameGrader, 3> graders;  // of a frame, and of both fields
  nonlocal::RelevanceView view;
  Regions regions;
  bool is_new = false;  // the map of the view: of no frame before
  Fade fade;
  double weight = 1;        // of fade.to, in this frame
  LookRequest asked;        // last
  std::uint64_t texts = 0;  // Settings::texts of that
  bool posts = true;        // messages
  bool is_due = false;      // the newest look's
  double strength = 1;      // of this frame
  int threads = 0;
  Output output = OUTPUT_BLEND;
};

}  // namespace

struct _GstTextCross {
  GstVideoFilter parent;

  struct Members {
    std::mutex mutex;  // guards all but `state`
    Files files;
    std::string prompt;
    std::string region;
    Settings settings;
    std::shared_ptr<nonlocal::RegionSeeker> seeker;  // that a frame may wait for
    State state;
  };
  Members* m;
};

// --------------------------------------------------------------------------------------------- properties

enum Property {
  PROP_PROMPT = 1,
  PROP_REGION,
  PROP_MODEL,
  PROP_EMBEDDINGS,
  PROP_STRENGTH,
  PROP_OUTPUT,
  PROP_MODE,
  PROP_TRANSITION,
  PROP_REGION_INTERVAL,
  PROP_N_THREADS,
  PROP_MESSAGE,
};

G_DEFINE_TYPE(GstTextCross, gst_text_cross, GST_TYPE_VIDEO_FILTER)
GST_ELEMENT_REGISTER_DEFINE(textcross, "textcross", GST_RANK_NONE, GST_TYPE_TEXT_CROSS)

static GType gst_text_cross_mode_get_type() {
  static const std::array<GEnumValue, 4> values = {{
      {MODE_AUTO, "Automatic: baked", "auto"},
      {MODE_EXACT, "Every pixel asks every token: slow; prompts change at once", "exact"},
      {MODE_BAKED, "Colours and places are looked up in what was made of the prompt", "baked"},
      {},
  }};
  static const GType type = g_enum_register_static("GstTextCrossMode", values.data());
  return type;
}

static GType gst_text_cross_output_get_type() {
  static const std::array<GEnumValue, 5> values = {{
      {OUTPUT_BLEND, "The graded picture", "blend"},
      {OUTPUT_HEATMAP, "Where the prompt acts, in colours over the picture", "heatmap"},
      {OUTPUT_MASK, "Where the prompt acts, in the alpha channel or, without one, in gray", "mask"},
      {OUTPUT_NONE, "The picture as it is: messages and metadata alone", "none"},
      {},
  }};
  static const GType type = g_enum_register_static("GstTextCrossOutput", values.data());
  return type;
}

namespace {

using Members = _GstTextCross::Members;

Members& members(gpointer object) { return *GST_TEXT_CROSS(object)->m; }

void set_property(GObject* object, guint id, const GValue* value, GParamSpec* spec) {
  Members& m = members(object);
  const std::lock_guard lock(m.mutex);
  Settings& settings = m.settings;
  switch (id) {
    case PROP_PROMPT:
      m.prompt = nonlocal::text_of(value);
      ++settings.texts;
      return;
    case PROP_REGION:
      m.region = nonlocal::text_of(value);
      ++settings.texts;
      return;
    case PROP_MODEL:
      m.files.model = nonlocal::text_of(value, kDefaultModel);
      return;
    case PROP_EMBEDDINGS:
      m.files.embeddings = nonlocal::text_of(value);
      return;
    case PROP_STRENGTH:
      settings.strength = g_value_get_double(value);
      return;
    case PROP_OUTPUT:
      settings.output = static_cast<Output>(g_value_get_enum(value));
      return;
    case PROP_MODE:
      settings.mode = static_cast<Mode>(g_value_get_enum(value));
      return;
    case PROP_TRANSITION:
      settings.transition = g_value_get_int(value);
      return;
    case PROP_REGION_INTERVAL:
      settings.region_interval = g_value_get_int(value);
      return;
    case PROP_N_THREADS:
      settings.threads = g_value_get_int(value);
      return;
    case PROP_MESSAGE:
      settings.message = g_value_get_boolean(value);
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
    case PROP_PROMPT:
      return g_value_set_string(value, m.prompt.c_str());
    case PROP_REGION:
      return g_value_set_string(value, m.region.c_str());
    case PROP_MODEL:
      return g_value_set_string(value, m.files.model.c_str());
    case PROP_EMBEDDINGS:
      return g_value_set_string(value, m.files.embeddings.c_str());
    case PROP_STRENGTH:
      return g_value_set_double(value, settings.strength);
    case PROP_OUTPUT:
      return g_value_set_enum(value, settings.output);
    case PROP_MODE:
      return g_value_set_enum(value, settings.mode);
    case PROP_TRANSITION:
      return g_value_set_int(value, settings.transition);
    case PROP_REGION_INTERVAL:
      return g_value_set_int(value, settings.region_interval);
    case PROP_N_THREADS:
      return g_value_set_int(value, settings.threads);
    case PROP_MESSAGE:
      return g_value_set_boolean(value, settings.message);
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
  }
}

void install_properties(GObjectClass* object_class) {
  using nonlocal::kPlain;
  using nonlocal::kTunable;
  using nonlocal::kWeights;
  const Settings d;
  const auto install = [&](Property id, GParamSpec* spec) {
    g_object_class_install_property(object_class, id, spec);
  };
  install(PROP_PROMPT,
          g_param_spec_string(
              "prompt", "Prompt",
              "What the picture shall look like, as text: \"warm sunset, darker edges\"; \"\" (the "
              "default) leaves it as it is. Read beside the stream when it changes",
              "", kPlain));
  install(PROP_REGION,
          g_param_spec_string(
              "region", "Region",
              "What the change is limited to, as text: \"the car\"; \"\" (the default) is the whole picture. "
              "Found beside the stream, if model is a folder",
              "", kPlain));
  install(PROP_MODEL,
          g_param_spec_string(
              "model", "Model",
              "The filter's weights and the encoder of prompts, as text: the name of one of the library's "
              "(grade, the default); a safetensors file, with a /; or a folder of CLIP's or CLIPSeg's files, "
              "which finds regions, on half of n-threads or, where frames wait, all, while grade does the "
              "grading. Opened when the element starts",
              kDefaultModel, kWeights));
  install(PROP_EMBEDDINGS,
          g_param_spec_string(
              "embeddings", "Embeddings",
              "A safetensors file of a prompt's token embeddings, as text, in place of prompt; \"\" "
              "(the default): prompt is read. Opened when the element starts",
              "", kWeights));
  install(PROP_STRENGTH, g_param_spec_double(
                             "strength", "Strength",
                             "How much of the change, as a factor without unit: 0 (leave as is) to 4; 1 (the "
                             "default) as trained",
                             0, kMostStrength, d.strength, kTunable));
  install(
      PROP_OUTPUT,
      g_param_spec_enum(
          "output", "Output",
          "What frames become: blend (the default), the graded picture; heatmap, where the "
          "prompt acts or, if model is a folder, what answers region or prompt lies, over the picture; "
          "mask, the same as alpha or gray; or none, as they are. All but blend carry a vector and a region "
          "as metadata",
          gst_text_cross_output_get_type(), d.output, kPlain));
  install(PROP_MODE,
          g_param_spec_enum(
              "mode", "Mode",
              "How it is calculated: auto (the default), baked; exact, pixel by pixel; or baked, by "
              "looking up what was made of the prompt",
              gst_text_cross_mode_get_type(), d.mode, kPlain));
  install(PROP_TRANSITION,
          g_param_spec_int(
              "transition", "Transition",
              "How long a look takes to become the next one when the prompt changes, in milliseconds: "
              "0 (at once) to 60000; baked looks alone fade",
              0, kMostTransition, d.transition, kPlain));
  install(
      PROP_REGION_INTERVAL,
      g_param_spec_int(
          "region-interval", "Region interval",
          "For files: every how many frames regions are found, as a count of frames up to 1000; the frame "
          "waits for them. 0 (the default): beside the stream, as often as the model can, and no frame "
          "waits",
          0, kMostInterval, d.region_interval, kPlain));
  install(PROP_N_THREADS, nonlocal::threads_property(d.threads));
  install(PROP_MESSAGE, g_param_spec_boolean(
                            "message", "Message",
                            "Post an element message when a prompt takes effect: true (the default) or false",
                            d.message, kPlain));
}

// ---------------------------------------------------------------------------------------------- messages

void take_list(GstStructure* structure, const char* name, std::span<GValue> values) {
  GValue list = G_VALUE_INIT;
  gst_value_list_init(&list, static_cast<guint>(values.size()));
  for (GValue& value : values) {
    gst_value_list_append_and_take_value(&list, &value);
  }
  gst_structure_take_value(structure, name, &list);
}

// Whatever bytes the text has: messages hold UTF-8 alone.
void set_text(GstStructure* structure, const char* name, const std::string& text) {
  gst_structure_set(structure, name, G_TYPE_STRING, nonlocal::as_utf8(text.c_str()).get(), nullptr);
}

void take_texts(GstStructure* structure, const char* name, const std::vector<std::string>& texts) {
  std::vector<GValue> values(texts.size(), GValue(G_VALUE_INIT));
  for (std::size_t i = 0; i < texts.size(); ++i) {
    g_value_init(&values[i], G_TYPE_STRING);
    g_value_set_string(&values[i], texts[i].c_str());
  }
  take_list(structure, name, values);
}

void take_numbers(GstStructure* structure, const char* name, const std::vector<double>& numbers) {
  std::vector<GValue> values(numbers.size(), GValue(G_VALUE_INIT));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    g_value_init(&values[i], G_TYPE_DOUBLE);
    g_value_set_double(&values[i], numbers[i]);
  }
  take_list(structure, name, values);
}

void warn_of_text(GstElement* element, const char* property, std::size_t cut, std::size_t invalid) {
  if (invalid > 0) {
    GST_ELEMENT_WARNING(element, STREAM, FORMAT,
                        ("%s: %zu places are not UTF-8, and were read as U+FFFD", property, invalid),
                        (nullptr));
  }
  if (cut > 0) {
    GST_ELEMENT_WARNING(
        element, STREAM, FORMAT,
        ("%s: its last %zu tokens are more than the model has room for, and were left out", property, cut),
        (nullptr));
  }
}

void post(GstBaseTransform* trans, GstStructure* structure) {
  gst_element_post_message(GST_ELEMENT(trans), gst_message_new_element(GST_OBJECT(trans), structure));
}

// `relevance`: of each token; none where nothing was looked at.
void report(GstBaseTransform* trans, GstBuffer* buffer, const Look& look,
            const std::vector<double>& relevance) {
  GstStructure* structure = nonlocal::structure_about("textcross", trans, buffer);
  set_text(structure, "prompt", look.request.prompt);
  take_texts(structure, "tokens", look.tokens);
  take_numbers(structure, "relevance", relevance);
  take_texts(structure, "unknown-words", look.unknown_words);
  post(trans, structure);
}

// Each time that a model has found regions.
void report_regions(GstBaseTransform* trans, const GstVideoFrame& frame) {
  const State& state = members(trans).state;
  const nonlocal::SoughtText& text = *state.regions.found.text;
  GstStructure* structure = nonlocal::structure_about("textcross", trans, frame.buffer);
  set_text(structure, "region", text.text);
  gst_structure_set(structure, "mean-relevance", G_TYPE_DOUBLE, state.view.mean(), nullptr);
  take_texts(structure, "tokens", text.tokens);
  if (const auto box = state.view.box(GST_VIDEO_FRAME_WIDTH(&frame), GST_VIDEO_FRAME_HEIGHT(&frame))) {
    gst_structure_set(structure, "x", G_TYPE_INT, box->x, "y", G_TYPE_INT, box->y, "width", G_TYPE_INT,
                      box->w, "height", G_TYPE_INT, box->h, nullptr);
  }
  post(trans, structure);
}

// ------------------------------------------------------------------------------------------------- looks

bool is_baked(const Settings& settings) { return settings.mode != MODE_EXACT; }

bool changes_frames(const LookPointer& look) { return look != nullptr && look->filter.has_value(); }

void grade(nonlocal::FrameGrader& grader, std::span<const ConstPlane> in, std::span<const Plane> out,
           const Look& look, const nonlocal::GradeParameters& parameters) {
  look.baked ? grader.run(in, out, look.request.format, *look.baked, parameters)
             : grader.run(in, out, look.request.format, *look.filter, parameters);
}

// Where only one of the looks changes frames, fading is a matter of its strength.
void grade_part(const State& state, nonlocal::FrameGrader& grader, std::span<const Plane> planes) {
  const nonlocal::ReadPlanes read(planes);
  const std::span<const ConstPlane> in = read.all();
  nonlocal::GradeParameters parameters{state.strength, state.threads};
  const LookPointer& from = state.fade.from;
  const LookPointer& to = state.fade.to;
  if (state.weight == 0) {  // the first frame of a fade, which a message may be due with: not two looks
    return changes_frames(from) ? grade(grader, in, planes, *from, parameters) : void();
  }
  if (changes_frames(from) && changes_frames(to) && from->baked && to->baked && state.weight < 1) {
    return grader.run(in, planes, to->request.format, *from->baked, *to->baked, state.weight, parameters);
  }
  if (changes_frames(to)) {
    parameters.strength *= changes_frames(from) ? 1 : state.weight;
    return grade(grader, in, planes, *to, parameters);
  }
  if (changes_frames(from)) {
    parameters.strength *= 1 - state.weight;
    grade(grader, in, planes, *from, parameters);
  }
}

// 4:2:0 of 4 n + 2 rows has an odd number of rows of chroma, so that the second field lacks one.
bool has_whole_fields(const FramePlanes& planes) {
  if (planes.chroma.empty()) {
    return true;
  }
  const int luma = planes.luma.planes[0].height;
  const int chroma = planes.chroma.planes[0].height;
  return luma == chroma || chroma % 2 == 0;
}

void grade_frame(const State& state, std::array<nonlocal::FrameGrader, 3>& graders, const FramePlanes& planes,
                 bool is_interlaced) {
  if (!is_interlaced || !has_whole_fields(planes)) {
    return grade_part(state, graders[0], nonlocal::all_planes(planes).all());
  }
  for (const int field : {0, 1}) {
    const PlaneGroup rows = nonlocal::all_planes(nonlocal::field_of(planes, field));
    if (!rows.empty()) {
      grade_part(state, graders[1 + field], rows.all());
    }
  }
}

// Only where the region is.
void grade_region(State& state, const FramePlanes& frame, bool is_interlaced) {
  Regions& regions = state.regions;
  const ConstMatrix map = regions.tracker.map();
  if (map.rows == 0) {
    return;
  }
  regions.graded.copy(frame);
  grade_frame(state, state.graders, regions.graded.planes(), is_interlaced);
  const PlaneGroup graded = nonlocal::all_planes(regions.graded.planes());
  nonlocal::mix_by_map(map, nonlocal::ReadPlanes(graded.all()).all(), nonlocal::all_planes(frame).all(),
                       state.asked.format, state.threads);
}

// Puts in what was found since. Whether there was something.
bool take_found(GstBaseTransform* trans, const nonlocal::MapTrackerParameters& parameters) {
  Regions& regions = members(trans).state.regions;
  try {
    if (!regions.seeker->take(regions.found)) {
      return false;
    }
  } catch (const std::exception& error) {
    GST_ELEMENT_WARNING(trans, LIBRARY, FAILED,
                        ("Regions cannot be found: %s", nonlocal::as_utf8(error.what()).get()), (nullptr));
    return false;
  }
  regions.tracker.found(regions.found.map(), parameters);
  const nonlocal::SoughtText& text = *regions.found.text;
  if (!std::exchange(regions.is_told, true)) {
    warn_of_text(GST_ELEMENT(trans), regions.property, text.cut, text.invalid);
  }
  return true;
}

// The model gets this frame, if it has none.
void offer(State& state, const FramePlanes& planes) {
  if (state.regions.seeker->offer(planes, state.asked.format)) {
    state.regions.tracker.begin();
  }
}

// Whether this is a frame that waits.
bool is_waited_for(Regions& regions) {
  const bool is_due = regions.interval > 0 && regions.age == 0;
  regions.age = regions.interval > 0 ? (regions.age + 1) % regions.interval : 0;
  return is_due;
}

// The map is moved along with the frame; what was found is put in, and the model gets the next frame.
void follow_regions(GstBaseTransform* trans, const GstVideoFrame& frame) {
  State& state = members(trans).state;
  Regions& regions = state.regions;
  const FramePlanes planes = nonlocal::planes_of(frame);
  const PlaneGroup all = nonlocal::all_planes(planes);
  nonlocal::MapTrackerParameters parameters;
  parameters.threads = state.threads;
  regions.tracker.follow(nonlocal::ReadPlanes(all.all()).all(), state.asked.format, parameters);
  const bool waits = is_waited_for(regions);
  if (waits) {
    regions.seeker->wait();  // where frames did not wait before, it may have one of those
  }
  bool is_new = take_found(trans, parameters);
  if (waits || regions.interval == 0) {
    offer(state, planes);
  }
  if (waits) {
    regions.seeker->wait();
    is_new = take_found(trans, parameters) || is_new;
  }
  // What is blended asks the tracker itself.
  if (is_new || state.output != OUTPUT_BLEND) {
    state.view.take(regions.tracker.map());
  }
  if (is_new && state.posts) {
    report_regions(trans, frame);
  }
}

// Where the prompt acts on the frame.
void look_at_frame(State& state, const GstVideoFrame& frame, bool is_new) {
  const Look& look = *state.fade.to;
  const PlaneGroup planes = nonlocal::all_planes(nonlocal::planes_of(frame));
  state.view.look(nonlocal::ReadPlanes(planes.all()).all(), look.request.format, *look.filter, state.threads,
                  is_new);
}

void show_view(State& state, const GstVideoFrame& frame) {
  if (state.view.empty()) {
    return;
  }
  const PlaneGroup planes = nonlocal::all_planes(nonlocal::planes_of(frame));
  if (state.output == OUTPUT_HEATMAP) {
    state.view.paint_heat(planes.all(), state.asked.format, state.threads);
  } else if (state.output == OUTPUT_MASK) {
    const std::optional<Plane> alpha = nonlocal::alpha_of(frame);
    state.view.paint_mask(planes.all(), state.asked.format, alpha ? &*alpha : nullptr, state.threads);
  }
}

void add_metadata(const State& state, const GstVideoFrame& frame) {
  const std::shared_ptr<GBytes>& pooled =
      state.regions.are_sought() ? state.regions.found.pooled_bytes : state.fade.to->pooled_bytes;
  if (const auto box = state.view.box(GST_VIDEO_FRAME_WIDTH(&frame), GST_VIDEO_FRAME_HEIGHT(&frame))) {
    gst_buffer_add_video_region_of_interest_meta(frame.buffer, kRegionType, box->x, box->y, box->w, box->h);
  }
  GstCustomMeta* meta = gst_buffer_add_custom_meta(frame.buffer, kMetaName);
  if (meta != nullptr && pooled != nullptr) {
    gst_structure_set(gst_custom_meta_get_structure(meta), "pooled", G_TYPE_BYTES, pooled.get(), nullptr);
  }
}

// -------------------------------------------------------------------------------------- the base classes

// How far the fade is at this frame. One that no time tells, or that time went back behind, is over.
double weight_at(const Fade& fade, GstClockTime now, int transition) {
  const bool has_times = GST_CLOCK_TIME_IS_VALID(now) && GST_CLOCK_TIME_IS_VALID(fade.begin);
  if (fade.from == nullptr || transition == 0 || !has_times || now < fade.begin) {
    return 1;
  }
  return std::min(1.0, static_cast<double>(now - fade.begin) / (fade.share * GST_MSECOND * transition));
}

// For a look that waits: the fade goes on twice as fast from here.
void hurry(Fade& fade, GstClockTime now, double weight, int transition) {
  if (GST_CLOCK_TIME_IS_VALID(fade.waited_for_since)) {
    return;
  }
  fade.waited_for_since = now;
  fade.share /= 2;
  const auto gone = static_cast<GstClockTime>(weight * fade.share * GST_MSECOND * transition);
  fade.begin = now - std::min(now, gone);
}

// What is left of the transition for the look that waited, so that it has come when it would have without.
double share_left(const Fade& fade, GstClockTime now, int transition) {
  if (!GST_CLOCK_TIME_IS_VALID(fade.waited_for_since) || now <= fade.waited_for_since || transition == 0) {
    return 1;
  }
  const double waited = static_cast<double>(now - fade.waited_for_since) / (GST_MSECOND * transition);
  return std::max(0.5, 1 - waited);
}

// Baked looks alone fade.
bool changes_at_once(const Look& from, const Look& to) {
  return !from.request.is_baked || !to.request.is_baked;
}

// The look that is newest begins to come in once the one before has.
void advance(GstBaseTransform* trans, GstBuffer* buffer, const Settings& settings) {
  State& state = members(trans).state;
  Fade& fade = state.fade;
  const GstClockTime now = nonlocal::running_time_of(trans, buffer);
  state.weight = weight_at(fade, now, settings.transition);
  if (state.weight >= 1) {
    fade.from.reset();
  }
  LookPointer newest = state.maker->newest();
  if (newest == fade.to) {
    return;
  }
  if (fade.from != nullptr) {
    hurry(fade, now, state.weight, settings.transition);
    return;
  }
  warn_of_text(GST_ELEMENT(trans), "prompt", newest->cut, newest->invalid);
  state.is_due = settings.message;
  fade = {std::exchange(fade.to, nullptr), std::move(newest), now,
          share_left(fade, now, settings.transition)};
  if (fade.from != nullptr && changes_at_once(*fade.from, *fade.to)) {
    fade.from.reset();
  }
  state.is_new = true;
  state.weight = weight_at(fade, now, settings.transition);
}

// What the model of a folder seeks.
void seek(Members& m, Output output, const std::string& prompt, const std::string& region) {
  Regions& regions = m.state.regions;
  const bool is_prompt = region.empty() && output != OUTPUT_BLEND;
  const std::string& sought = is_prompt ? prompt : region;
  regions.property = is_prompt ? "prompt" : "region";
  if (regions.seeker == nullptr || sought == regions.sought) {
    return;
  }
  regions.sought = sought;
  regions.is_told = false;
  regions.found.pooled_bytes.reset();
  regions.tracker.reset();
  regions.age = 0;
  regions.seeker->seek(sought);
}

// Texts are copied where they have changed, not in every frame.
void ask_where_changed(GstBaseTransform* trans, const Settings& settings) {
  Members& m = members(trans);
  State& state = m.state;
  if (settings.texts == state.texts && is_baked(settings) == state.asked.is_baked &&
      settings.output == state.output) {
    return;
  }
  std::string region;
  LookRequest wanted = state.asked;
  wanted.is_baked = is_baked(settings);
  {
    const std::lock_guard lock(m.mutex);
    wanted.prompt = m.prompt;
    region = m.region;
  }
  state.maker->use_threads(settings.threads);
  if (settings.texts != state.texts && state.regions.seeker == nullptr && !region.empty()) {
    GST_ELEMENT_WARNING(
        trans, LIBRARY, SETTINGS,
        ("region: only a model of CLIP or CLIPSeg, given as a folder, finds \"%s\"; the whole "
         "picture is changed",
         nonlocal::as_utf8(region.c_str()).get()),
        (nullptr));
  }
  state.texts = settings.texts;
  seek(m, settings.output, wanted.prompt, region);
  if (wanted != state.asked) {
    state.asked = wanted;
    state.maker->ask(wanted);
  }
}

// What the frame is mapped for.
bool changes_frame(const State& state, const Settings& settings) {
  const bool are_sought = state.regions.are_sought();
  if (settings.output != OUTPUT_BLEND) {
    return are_sought || (state.regions.seeker == nullptr && changes_frames(state.fade.to));
  }
  const bool fades = state.fade.from != nullptr && state.weight < 1;
  return settings.strength > 0 &&
         (changes_frames(state.fade.to) || (fades && changes_frames(state.fade.from)));
}

void before_transform(GstBaseTransform* trans, GstBuffer* buffer) {
  Members& m = members(trans);
  State& state = m.state;
  nonlocal::sync_controlled(trans, buffer);
  Settings settings;
  {
    const std::lock_guard lock(m.mutex);
    settings = m.settings;
  }
  try {
    ask_where_changed(trans, settings);
    advance(trans, buffer, settings);
  } catch (const std::exception& error) {
    GST_ELEMENT_WARNING(trans, LIBRARY, FAILED,
                        ("The prompt cannot be read: %s", nonlocal::as_utf8(error.what()).get()), (nullptr));
  }
  state.strength = settings.strength;
  state.threads = settings.threads;
  state.regions.interval = settings.region_interval;
  state.output = settings.output;
  state.is_new = state.is_new || state.output == OUTPUT_BLEND;  // the view misses this frame
  state.posts = settings.message;
  const bool is_passed = !changes_frame(state, settings);
  if (is_passed && std::exchange(state.is_due, false)) {
    report(trans, buffer, *state.fade.to, {});
  }
  gst_base_transform_set_passthrough(trans, is_passed);
}

void blend(State& state, const GstVideoFrame& frame) {
  const FramePlanes planes = nonlocal::planes_of(frame);
  const bool is_interlaced = nonlocal::is_interlaced(frame);
  if (state.regions.are_sought()) {
    grade_region(state, planes, is_interlaced);
  } else {
    grade_frame(state, state.graders, planes, is_interlaced);
  }
}

// A message that is due says how much each token matters on its first frame.
void report_where_due(GstBaseTransform* trans, const GstVideoFrame& frame) {
  State& state = members(trans).state;
  const bool is_shown = state.output == OUTPUT_BLEND || !state.regions.are_sought();
  if (!std::exchange(state.is_due, false) || !is_shown) {
    return;
  }
  std::vector<double> relevance;
  if (changes_frames(state.fade.to)) {
    look_at_frame(state, frame, true);
    relevance = state.view.token_means();
  }
  report(trans, frame.buffer, *state.fade.to, relevance);
}

GstFlowReturn transform_frame_ip(GstVideoFilter* filter, GstVideoFrame* frame) {
  auto* trans = GST_BASE_TRANSFORM(filter);
  try {
    State& state = members(filter).state;
    report_where_due(trans, *frame);
    if (state.regions.are_sought()) {
      follow_regions(trans, *frame);
    } else if (state.output != OUTPUT_BLEND) {
      look_at_frame(state, *frame, std::exchange(state.is_new, false));
    }
    if (state.output == OUTPUT_BLEND) {
      blend(state, *frame);
    } else {
      add_metadata(state, *frame);
      show_view(state, *frame);
    }
    return GST_FLOW_OK;
  } catch (...) {
    nonlocal::post_exception(GST_ELEMENT(filter), "filter", GST_VIDEO_FRAME_WIDTH(frame),
                             GST_VIDEO_FRAME_HEIGHT(frame));
  }
  return GST_FLOW_ERROR;
}

// What comes after a flush or a seek, or in another format, has nothing to do with what was before.
void forget_frames(State& state) {
  state.is_new = true;
  state.fade.from.reset();
  Regions& regions = state.regions;
  regions.tracker.reset();
  regions.found.pooled_bytes.reset();
  regions.age = 0;
  if (regions.are_sought()) {
    regions.seeker->seek_anew();
  }
}

// The first frame has its look.
gboolean set_info(GstVideoFilter* filter, GstCaps*, GstVideoInfo* info, GstCaps*, GstVideoInfo*) {
  Members& m = members(filter);
  State& state = m.state;
  LookRequest wanted;
  wanted.format = nonlocal::colour_format_of(*info);
  {
    const std::lock_guard lock(m.mutex);
    wanted.prompt = m.prompt;
    wanted.is_baked = is_baked(m.settings);
    state.maker->use_threads(m.settings.threads);
  }
  forget_frames(state);
  try {
    if (state.fade.to == nullptr || wanted != state.asked) {
      state.maker->make_now(wanted);
      state.asked = wanted;  // it may throw
      state.fade = Fade();
      state.is_due = false;  // the look that it was about is no more
    }
    return TRUE;
  } catch (...) {
    nonlocal::post_exception(GST_ELEMENT(filter), "filter", GST_VIDEO_INFO_WIDTH(info),
                             GST_VIDEO_INFO_HEIGHT(info));
  }
  return FALSE;
}

// A frame that waits for its regions would hold up a seek, and the end.
void stop_waiting(Members& m) {
  std::shared_ptr<nonlocal::RegionSeeker> seeker;
  {
    const std::lock_guard lock(m.mutex);
    seeker = m.seeker;
  }
  if (seeker != nullptr) {
    seeker->stop_waiting();
  }
}

gboolean sink_event(GstBaseTransform* trans, GstEvent* event) {
  if (GST_EVENT_TYPE(event) == GST_EVENT_FLUSH_START) {
    stop_waiting(members(trans));
  }
  if (GST_EVENT_TYPE(event) == GST_EVENT_FLUSH_STOP || GST_EVENT_TYPE(event) == GST_EVENT_SEGMENT) {
    forget_frames(members(trans).state);
  }
  return GST_BASE_TRANSFORM_CLASS(gst_text_cross_parent_class)->sink_event(trans, event);
}

// Whether it is the folder of a model that finds regions. A name without a / is the library's model of that
// name, where there is one, whatever lies in the current folder.
bool is_folder(const std::string& model) {
  std::error_code error;
  if (!std::filesystem::is_directory(model, error)) {
    return false;
  }
  try {
    return std::filesystem::is_directory(nonlocal::find_model(model), error);
  } catch (const nonlocal::ModelError&) {
    return true;
  }
}

gboolean start(GstBaseTransform* trans) {
  Members& m = members(trans);
  try {
    nonlocal::LookSource source;
    bool waits = false;
    {
      const std::lock_guard lock(m.mutex);
      source = {m.files.model, m.files.embeddings, m.settings.threads};
      waits = m.settings.region_interval > 0;
    }
    m.state = State();
    if (is_folder(source.model)) {
      m.state.regions.seeker = std::make_shared<nonlocal::RegionSeeker>(source.model, source.threads, waits);
      source.model = kDefaultModel;
    }
    {
      const std::lock_guard lock(m.mutex);
      m.seeker = m.state.regions.seeker;
    }
    source.model = nonlocal::find_model(source.model);
    m.state.maker = std::make_unique<LookMaker>(source);
    return TRUE;
  } catch (...) {
    nonlocal::post_exception(GST_ELEMENT(trans), "model");
  }
  return FALSE;
}

gboolean stop(GstBaseTransform* trans) {
  Members& m = members(trans);
  {
    const std::lock_guard lock(m.mutex);
    m.seeker.reset();
  }
  m.state = State();
  return TRUE;
}

GstStateChangeReturn change_state(GstElement* element, GstStateChange transition) {
  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY) {
    stop_waiting(members(element));
  }
  return GST_ELEMENT_CLASS(gst_text_cross_parent_class)->change_state(element, transition);
}

void finalize(GObject* object) {
  delete &members(object);
  G_OBJECT_CLASS(gst_text_cross_parent_class)->finalize(object);
}

}  // namespace

static void gst_text_cross_class_init(GstTextCrossClass* klass) {
  GST_DEBUG_CATEGORY_INIT(text_cross_debug, "textcross", 0, "prompts that grade video");
  auto* object_class = G_OBJECT_CLASS(klass);
  object_class->set_property = GST_DEBUG_FUNCPTR(set_property);
  object_class->get_property = GST_DEBUG_FUNCPTR(get_property);
  object_class->finalize = GST_DEBUG_FUNCPTR(finalize);
  install_properties(object_class);
  if (gst_meta_get_info(kMetaName) == nullptr) {
    static const gchar* no_tags[] = {nullptr};  // holds for any transformation of the frame
    gst_meta_register_custom(kMetaName, no_tags, nullptr, nullptr, nullptr);
  }
  gst_type_mark_as_plugin_api(gst_text_cross_mode_get_type(), GstPluginAPIFlags(0));
  gst_type_mark_as_plugin_api(gst_text_cross_output_get_type(), GstPluginAPIFlags(0));

  auto* element_class = GST_ELEMENT_CLASS(klass);
  element_class->change_state = GST_DEBUG_FUNCPTR(change_state);
  gst_element_class_set_static_metadata(
      element_class, "Text cross-attention", "Filter/Effect/Video",
      "Grades video as a prompt says, by cross-attention of pixels and words", "The nonlocal authors");
  nonlocal::add_video_pads(element_class);

  auto* transform_class = GST_BASE_TRANSFORM_CLASS(klass);
  transform_class->transform_ip_on_passthrough = FALSE;
  transform_class->before_transform = GST_DEBUG_FUNCPTR(before_transform);
  transform_class->sink_event = GST_DEBUG_FUNCPTR(sink_event);
  transform_class->start = GST_DEBUG_FUNCPTR(start);
  transform_class->stop = GST_DEBUG_FUNCPTR(stop);
  auto* filter_class = GST_VIDEO_FILTER_CLASS(klass);
  filter_class->set_info = GST_DEBUG_FUNCPTR(set_info);
  filter_class->transform_frame_ip = GST_DEBUG_FUNCPTR(transform_frame_ip);
}

static void gst_text_cross_init(GstTextCross* self) {
  self->m = new Members();
  gst_base_transform_set_gap_aware(GST_BASE_TRANSFORM(self), TRUE);
}
