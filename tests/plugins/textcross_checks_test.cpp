// textcross as an element: what it forgets, prompts and models that are not as they should be, what frames
// cost. What all elements have in common: elements_test.cpp; what it makes of pixels: textcross_test.cpp.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include "lib/allocations.h"
#include "model/safetensors.h"
#include "nonlocal/frame_grader.h"
#include "nonlocal/prompt_reader.h"
#include "nonlocal/refinement.h"
#include "plain_planes.h"
#include "support.h"

namespace nonlocal::test {
namespace {

const GstVideoInfo kInfo = video_info(GST_VIDEO_FORMAT_I420, 48, 32);
const char* const kPrompt = "prompt=\"much darker, redder edges\"";

class Prompting : public Harness {
 public:
  explicit Prompting(const std::string& settings, const GstVideoInfo& info = kInfo)
      : Harness(info, "textcross " + settings, "textcross") {}

  // As an application does, which may send any bytes. Reports of what was before are dropped.
  void say(const std::string& prompt) {
    reports();
    g_object_set(element(), "prompt", prompt.c_str(), nullptr);
  }

  // Sends the same frame, at the times of frames `from` and on, until a prompt has taken effect: the number
  // of the next one, 0 if none has.
  int wait_for_look(int from) {
    constexpr int kMostFrames = 20'000;  // with sanitizers a look of many tokens takes half a minute
    for (int i = from; i < from + kMostFrames; ++i) {
      send(i);
      if (!reports().empty()) {
        return i + 1;
      }
      g_usleep(2000);
    }
    return 0;
  }

  Bytes send(int time) {
    Buffer frame = noisy_frame(kInfo);
    GST_BUFFER_PTS(frame.get()) = time * kFrameDuration;
    const Buffer out = filter(std::move(frame));
    return out ? bytes_of(out.get()) : Bytes();
  }
};

std::string text_of(GstMessage* message) {
  GError* error = nullptr;
  gst_message_parse_warning(message, &error, nullptr);
  const std::string text = error->message;
  g_error_free(error);
  return text;
}

// ------------------------------------------------------------------------------------------ what it forgets

std::vector<Bytes> later_frames(const std::string& settings, const GstVideoInfo& first,
                                const std::function<void(Harness&)>& between) {
  Prompting harness(settings, first);
  return test::later_frames(harness, first, kInfo, between);
}

// The maps of where prompts act are smoothed over frames.
TEST(TextStream, MapsOfEarlierFramesAreForgottenWhereTheyDoNotBelong) {
  const auto nothing = [](Harness&) {};
  const GstVideoInfo smaller = video_info(GST_VIDEO_FORMAT_I420, 96, 64);  // with as many cells in its map
  for (const char* output : {"heatmap", "mask"}) {
    const std::string settings = std::string(kPrompt) + " transition=0 output=" + output;
    const std::vector<Bytes> moved = later_frames(settings, kInfo, nothing);
    Prompting harness(settings);
    std::vector<Bytes> fresh;
    for (int i = 5; i < 9; ++i) {
      fresh.push_back(bytes_of(harness.filter(noisy_frame(kInfo, i)).get()));
    }
    EXPECT_NE(moved, fresh) << "they are not smoothed";
    EXPECT_EQ(later_frames(settings, kInfo, [](Harness& h) { h.flush(); }), fresh) << output;
    EXPECT_EQ(later_frames(settings, kInfo, [](Harness& h) { h.send_segment(); }), fresh) << output;
    EXPECT_EQ(later_frames(settings, smaller, [](Harness& h) { h.set_format(kInfo); }), fresh) << output;
    const auto blended = [&](Harness& h) {
      h.set("output", "blend");
      EXPECT_TRUE(h.filter(noisy_frame(kInfo, 4)));
      h.set("output", output);
    };
    EXPECT_EQ(later_frames(settings, kInfo, blended), fresh) << output;
  }
}

// A fade began at a time that is no more.
TEST(TextStream, AFadeEndsAtAFlushASeekOrNewCaps) {
  const Bytes looked = Prompting(kPrompt).send(0);
  const std::vector<std::function<void(Harness&)>> ends = {
      [](Harness& h) { h.flush(); }, [](Harness& h) { h.send_segment(); },
      [](Harness& h) {
        h.set_format(video_info(GST_VIDEO_FORMAT_I420, 64, 48));
        h.set_format(kInfo);
      }};
  for (const auto& end : ends) {
    Prompting harness("transition=60000");
    harness.send(0);
    harness.say("much darker, redder edges");
    const int next = harness.wait_for_look(1);
    ASSERT_GT(next, 0);
    EXPECT_NE(harness.send(next), looked) << "it fades";
    end(harness);
    EXPECT_EQ(harness.send(next + 1), looked);
  }
}

// There the message has no stream time, and a look comes at once; GStreamer has nothing to complain of.
TEST(TextStream, SegmentsThatAreNotOfTimesServe) {
  const Bytes bright = Prompting("prompt=brighter").send(0);
  for (const GstFormat format : {GST_FORMAT_BYTES, GST_FORMAT_DEFAULT}) {
    Prompting harness(std::string(kPrompt) + " transition=60000");
    GstSegment segment;
    gst_segment_init(&segment, format);
    EXPECT_TRUE(gst_harness_push_event(harness.get(), gst_event_new_segment(&segment)));
    harness.send(0);
    const std::vector<Message> reports = harness.reports();
    ASSERT_EQ(reports.size(), 1U);
    for (const char* name : {"stream-time", "running-time"}) {
      guint64 time = 0;
      EXPECT_TRUE(gst_structure_get_uint64(gst_message_get_structure(reports[0].get()), name, &time));
      EXPECT_EQ(time, GST_CLOCK_TIME_NONE) << name;
    }
    harness.say("brighter");
    const int next = harness.wait_for_look(1);
    ASSERT_GT(next, 0);
    EXPECT_EQ(harness.send(next), bright);
  }
}

// A prompt that is set once more is no new one.
TEST(TextStream, TheSamePromptAgainChangesNothing) {
  Prompting harness("prompt=darker");
  harness.send(0);
  EXPECT_EQ(harness.reports().size(), 1U);
  for (int i = 1; i < 30; ++i) {
    harness.say("darker");
    harness.send(i);
    g_usleep(2000);
  }
  EXPECT_TRUE(harness.reports().empty());
}

// -------------------------------------------------------------------------------------------------
// interlaced

// Each field is a picture of its own, of the places that its rows have in it.
TEST(TextInterlaced, FieldsAreGradedApart) {
  PromptReader reader(find_model("grade"));
  const CrossAttentionFilter filter = *reader.read("much darker, redder edges").filter;
  const ColourFormat gray{ColourModel::kGray, ColourMatrix::kBt601, ColourRange::kFull};
  const auto look = GradeLook::bake(filter, gray);
  for (const int height : {1, 2, 7, 16}) {
    for (const auto mode : {GST_VIDEO_INTERLACE_MODE_INTERLEAVED, GST_VIDEO_INTERLACE_MODE_MIXED}) {
      const GstVideoInfo info = video_info(GST_VIDEO_FORMAT_GRAY8, 33, height, mode);
      Prompting harness(kPrompt, info);
      Buffer in = noisy_frame(info);
      GST_BUFFER_FLAG_SET(in.get(), GST_VIDEO_BUFFER_FLAG_INTERLACED);
      std::vector<int> wanted = samples_of(in.get(), info, 0);
      for (int field = 0; field < std::min(2, height); ++field) {
        std::vector<int> rows;
        for (int y = field; y < height; y += 2) {
          rows.insert(rows.end(), wanted.begin() + 33 * y, wanted.begin() + 33 * (y + 1));
        }
        PlainPlane plane(rows, 33, 8);
        const Plane view = plane.view();
        const ConstPlane read = view;
        FrameGrader().run({&read, 1}, {&view, 1}, gray, *look);
        rows = plane.samples();
        for (int y = field; y < height; y += 2) {
          std::copy_n(rows.begin() + 33 * (y / 2), 33, wanted.begin() + 33 * y);
        }
      }
      EXPECT_EQ(samples_of(harness.filter(std::move(in)).get(), info, 0), wanted) << height;
    }
  }
}

// Fields of 4:2:0 may have a row of chroma less than half their rows of luma, or none.
TEST(TextInterlaced, FieldsOfAnyHeightServe) {
  for (const char* output : {"blend", "heatmap", "mask", "none"}) {
    Prompting harness(std::string(kPrompt) + " output=" + output);
    for (const GstVideoFormat format : formats()) {
      for (const int height : {1, 2, 3, 5, 6, 7, 16}) {
        const GstVideoInfo info = video_info(format, 33, height, GST_VIDEO_INTERLACE_MODE_INTERLEAVED);
        harness.set_format(info);
        Buffer in = noisy_frame(info);
        const Bytes before = bytes_of(in.get());
        const Buffer out = harness.filter(std::move(in));
        ASSERT_TRUE(out) << gst_video_format_to_string(format) << ", " << height << ", " << output;
        EXPECT_EQ(bytes_of(out.get()) == before, output == std::string("none"))
            << gst_video_format_to_string(format) << ", " << height << ", " << output;
      }
    }
  }
}

// ------------------------------------------------------------------------------------------------- messages

TEST(TextMessages, SayWhen) {
  Prompting harness(kPrompt);
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  segment.start = 10 * GST_SECOND;
  segment.time = 3 * GST_SECOND;
  segment.base = 1 * GST_SECOND;
  gst_harness_push_event(harness.get(), gst_event_new_segment(&segment));
  Buffer in = noisy_frame(kInfo);
  GST_BUFFER_PTS(in.get()) = 12 * GST_SECOND;
  EXPECT_TRUE(harness.filter(std::move(in)));
  const std::vector<Message> reports = harness.reports();
  ASSERT_EQ(reports.size(), 1u);
  guint64 timestamp = 0;
  guint64 stream_time = 0;
  guint64 running_time = 0;
  guint64 duration = 0;
  EXPECT_TRUE(gst_structure_get(gst_message_get_structure(reports[0].get()), "timestamp", G_TYPE_UINT64,
                                &timestamp, "stream-time", G_TYPE_UINT64, &stream_time, "running-time",
                                G_TYPE_UINT64, &running_time, "duration", G_TYPE_UINT64, &duration, nullptr));
  EXPECT_EQ(timestamp, 12 * GST_SECOND);
  EXPECT_EQ(stream_time, 5 * GST_SECOND);
  EXPECT_EQ(running_time, 3 * GST_SECOND);
  EXPECT_EQ(duration, kFrameDuration);
}

// -------------------------------------------------------------------------------------------------- prompts

// A prompt that is not as it should be: a warning in words, before the start and while playing. What its look
// makes of a frame.
Bytes frame_with_warning(const std::string& prompt, const std::string& words) {
  const auto expect_one = [&](Harness& harness) {
    const std::vector<Message> warnings = harness.messages(GST_MESSAGE_WARNING);
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_NE(text_of(warnings[0].get()).find(words), std::string::npos) << text_of(warnings[0].get());
    EXPECT_TRUE(harness.messages(GST_MESSAGE_ERROR).empty());
  };
  Harness early(kInfo, "textcross transition=0", "textcross");
  gst_element_set_state(early.element(), GST_STATE_READY);
  g_object_set(early.element(), "prompt", prompt.c_str(), nullptr);
  early.restart(kInfo);
  const Buffer frame = early.filter(noisy_frame(kInfo));
  expect_one(early);
  for (const Message& report : early.reports()) {
    const char* said = gst_structure_get_string(gst_message_get_structure(report.get()), "prompt");
    EXPECT_TRUE(said != nullptr && *said != 0 && g_utf8_validate(said, -1, nullptr));
  }

  Prompting late("transition=0");
  late.send(0);
  late.say(prompt);
  const int next = late.wait_for_look(1);
  EXPECT_GT(next, 0);
  EXPECT_EQ(late.send(next), bytes_of(frame.get()));
  expect_one(late);
  return bytes_of(frame.get());
}

TEST(TextPrompts, OneThatIsTooLongIsCut) {
  std::string prompt = "much darker";
  for (int i = 0; i < 300; ++i) {
    prompt += ", redder";
  }
  EXPECT_NE(frame_with_warning(prompt, "tokens are more than the model has room for"),
            bytes_of(noisy_frame(kInfo).get()));
}

TEST(TextPrompts, WhatIsNotUtf8IsReplaced) {
  frame_with_warning(
      "much \xff\xfe"
      "darker",
      "2 places are not UTF-8");
  frame_with_warning("much darker \xed\xa0\x80", "not UTF-8");
  frame_with_warning("much darker \xe2\x82", "not UTF-8");
}

// Messages hold UTF-8 alone: programs in other languages fail on anything else.
TEST(TextPrompts, WhatIsSaidOfAnyBytesIsUtf8) {
  Harness harness(kInfo, "textcross transition=0 prompt=darker", "textcross");
  g_object_set(harness.element(), "region", "the \xff car", nullptr);
  harness.filter(noisy_frame(kInfo));
  const std::vector<Message> warnings = harness.messages(GST_MESSAGE_WARNING);
  ASSERT_EQ(warnings.size(), 1U);
  const std::string warning = text_of(warnings[0].get());
  EXPECT_TRUE(g_utf8_validate(warning.c_str(), -1, nullptr));
  EXPECT_NE(warning.find("the \uFFFD car"), std::string::npos) << warning;

  const Element pipeline = parse("videotestsrc num-buffers=1 ! textcross name=t prompt=darker ! fakesink");
  const Element element(gst_bin_get_by_name(GST_BIN(pipeline.get()), "t"));
  g_object_set(element.get(), "model", "/none/\xff.safetensors", nullptr);
  const ErrorReport error = play_to_error(pipeline.get());
  EXPECT_TRUE(g_utf8_validate(error.text.c_str(), -1, nullptr));
  EXPECT_NE(error.text.find("/none/\uFFFD.safetensors"), std::string::npos) << error.text;
}

// A megabyte, control characters, the tokens that begin and end a prompt: the stream goes on.
TEST(TextPrompts, AnyTextDoesNoHarm) {
  Prompting harness("transition=0");
  harness.send(0);
  int time = 1;
  for (const std::string& prompt :
       {std::string(1 << 20, 'a'), std::string("\x01\x02\x7f"), std::string("<|endoftext|> <|startoftext|>"),
        std::string("\"\\; ! $(x) %s %n"), std::string("\u202e\U0001f600\u0301\u0301"),
        std::string("darker")}) {
    harness.say(prompt);
    time = harness.wait_for_look(time);
    ASSERT_GT(time, 0);
    EXPECT_TRUE(harness.messages(GST_MESSAGE_ERROR).empty());
  }
  EXPECT_EQ(harness.send(time), Prompting("prompt=darker").send(0));
}

TEST(TextPrompts, TheThreadThatReadsThemEndsWithTheElement) {
  const auto threads = [] {
    const auto tasks = std::filesystem::directory_iterator("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  Prompting(kPrompt).send(0);  // helpers, which stay
  const auto before = threads();
  for (int i = 0; i < 10; ++i) {
    Prompting harness(kPrompt);
    harness.send(0);
    harness.say("brighter");  // perhaps not read before the end
  }
  EXPECT_LE(threads(), before);
}

// ---------------------------------------------------------------------------------------------------- models

// A folder for files that the tests write, gone with the process.
const std::filesystem::path& folder() {
  static const struct Folder {
    Folder() : path(std::filesystem::temp_directory_path() / ("textcheck." + std::to_string(getpid()))) {
      std::filesystem::create_directory(path);
    }
    ~Folder() { std::filesystem::remove_all(path); }
    std::filesystem::path path;
  } folder;
  return folder.path;
}

using Tensors = std::vector<model::NamedTensor>;

// The bundled model with a change.
std::string changed_model(const std::function<void(Tensors&)>& change) {
  const model::Safetensors file(find_model("grade"));
  Tensors tensors;
  for (const std::string& name : file.names()) {
    tensors.push_back({name, file.shape(name), file.floats(name, file.shape(name))});
  }
  change(tensors);
  const std::string path = folder() / "changed.safetensors";
  model::write_safetensors(path, file.metadata(), tensors);
  return path;
}

model::NamedTensor& named(Tensors& tensors, const std::string& name) {
  return *std::ranges::find(tensors, name, &model::NamedTensor::name);
}

void expect_refused(const std::string& model, const std::vector<std::string>& words) {
  const Element pipeline =
      parse("videotestsrc num-buffers=1 ! textcross prompt=darker model=" + model + " ! fakesink");
  const ErrorReport error = play_to_error(pipeline.get());
  EXPECT_EQ(error.domain, GST_RESOURCE_ERROR) << error.text;
  EXPECT_EQ(error.code, GST_RESOURCE_ERROR_NOT_FOUND) << error.text;
  for (const std::string& word : words) {
    EXPECT_NE(error.text.find(word), std::string::npos) << word << ": " << error.text;
  }
  EXPECT_NE(error.text.find(std::filesystem::path(model).filename()), std::string::npos) << error.text;
}

TEST(TextModels, OneThatIsUnchangedWorks) {
  const Element pipeline =
      parse("videotestsrc num-buffers=2 ! textcross prompt=darker model=" + changed_model([](Tensors&) {}) +
            " ! fakesink");
  EXPECT_EQ(play(pipeline.get()), "");
}

// It overflows at prompts of more than 40 tokens.
std::string model_of_short_prompts() {
  return changed_model([](Tensors& tensors) {
    model::NamedTensor& positions = named(tensors, "text_model.embeddings.position_embedding.weight");
    const auto begin = positions.values.begin() + 40 * static_cast<std::ptrdiff_t>(positions.shape[1]);
    std::fill(begin, positions.values.end(), 3e38F);
  });
}

std::string repeated(const std::string& word, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) {
    text += word + " ";
  }
  return text;
}

// What could not be read before new caps is not said behind them. Frames that are too small to be mapped
// leave the message of the look before them due.
TEST(TextModels, AFailureBeforeNewCapsIsForgotten) {
  const std::string settings = "prompt=darker model=" + model_of_short_prompts();
  const GstVideoInfo larger = video_info(GST_VIDEO_FORMAT_I420, 64, 48);
  const auto push_too_small = [](Harness& harness) {
    harness.push(Buffer(gst_buffer_new_allocate(nullptr, 1, nullptr)));
  };
  for (const int pause : {0, 300, 1000, 3000, 300'000}) {  // it waits, it is being read, or has failed
    Prompting harness(settings);
    push_too_small(harness);
    harness.say(repeated("redder", 60));
    push_too_small(harness);
    g_usleep(pause);
    harness.say("much brighter");
    harness.messages();
    harness.set_format(larger);
    EXPECT_TRUE(harness.filter(noisy_frame(larger)));
    EXPECT_TRUE(harness.messages(GST_MESSAGE_WARNING).empty()) << pause;
    EXPECT_EQ(harness.reports().size(), 1U) << pause;
  }
}

TEST(TextModels, AFailureIsSaidOnce) {
  Prompting harness("prompt=darker model=" + model_of_short_prompts());
  const Bytes dark = harness.send(0);
  harness.say(repeated("redder", 60));
  std::vector<Message> warnings;
  int i = 0;
  while (++i < 5000 && warnings.empty()) {
    EXPECT_EQ(harness.send(i), dark);
    warnings = harness.messages(GST_MESSAGE_WARNING);
    g_usleep(2000);
  }
  ASSERT_EQ(warnings.size(), 1U);
  for (const int end = i + 20; i < end; ++i) {
    EXPECT_EQ(harness.send(i), dark);
  }
  EXPECT_TRUE(harness.messages(GST_MESSAGE_WARNING).empty());
  EXPECT_NE(text_of(warnings[0].get()).find("The prompt cannot be read"), std::string::npos);
}

// A folder's model seeks the prompt where there is no region. This one has room for 16 tokens, the one that
// grades for 64.
TEST(TextModels, ATextThatIsCutIsCalledByItsProperty) {
  const std::filesystem::path parity = PARITY_FOLDER;
  std::filesystem::create_directory(folder() / "clip");
  std::filesystem::copy_file(parity / "planted_clip.safetensors", folder() / "clip" / "model.safetensors");
  const std::string settings = "output=none model=" + (folder() / "clip").string();
  for (const std::string property : {"prompt", "region"}) {
    Prompting harness(settings + " " + property + "=\"" + repeated("red", 40) + "\"");
    std::vector<Message> warnings;
    for (int i = 0; i < 1000 && warnings.empty(); ++i) {
      harness.send(i);
      warnings = harness.messages(GST_MESSAGE_WARNING);
      g_usleep(2000);
    }
    ASSERT_EQ(warnings.size(), 1U);
    const std::string text = text_of(warnings[0].get());
    EXPECT_TRUE(text.starts_with(property + ": its last ")) << text;
  }
}

TEST(TextModels, ANameIsTheLibrarysWhateverLiesInTheCurrentFolder) {
  const std::filesystem::path was = std::filesystem::current_path();
  std::filesystem::create_directories(folder() / "here" / "grade");
  std::filesystem::current_path(folder() / "here");
  const Element pipeline = parse("videotestsrc num-buffers=2 ! textcross prompt=darker ! fakesink");
  EXPECT_EQ(play(pipeline.get()), "");
  std::filesystem::current_path(was);
}

TEST(TextModels, OneThatIsMissingOrTruncatedIsNamed) {
  expect_refused("./" + std::string(300, 'x'), {"./xxx"});  // longer than a file's name may be
  expect_refused("no_such_model", {"expected in one of these folders"});
  expect_refused(folder() / "none.safetensors", {});
  std::ifstream whole(find_model("grade"), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(whole), {}};
  for (const std::size_t size : {std::size_t{0}, std::size_t{7}, std::size_t{1000}, bytes.size() - 1}) {
    const std::string cut = folder() / "cut.safetensors";
    std::ofstream(cut, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(size));
    expect_refused(cut, {});
  }
}

TEST(TextModels, AVocabularyOfAnotherSizeIsNamed) {
  const std::string name = "text_model.embeddings.token_embedding.weight";
  const std::uint64_t tokens = model::Safetensors(find_model("grade")).shape(name)[0];
  expect_refused(changed_model([&](Tensors& tensors) {
                   model::NamedTensor& embedding = named(tensors, name);
                   embedding.shape[0] -= 48;
                   embedding.values.resize(embedding.shape[0] * embedding.shape[1]);
                 }),
                 {std::to_string(tokens), std::to_string(tokens - 48)});
}

TEST(TextModels, ATensorOfAnotherShapeIsNamed) {
  const std::string name = "layers.0.key.weight";
  expect_refused(changed_model([&](Tensors& tensors) {
                   model::NamedTensor& key = named(tensors, name);
                   key.shape[1] /= 2;
                   key.values.resize(key.shape[0] * key.shape[1]);
                 }),
                 {"expected", "found"});
}

TEST(TextModels, AWeightThatIsNoNumberIsNamed) {
  for (const char* name : {"layers.0.output.weight", "text_model.final_layer_norm.weight"}) {
    expect_refused(changed_model([&](Tensors& tensors) { named(tensors, name).values[0] = NAN; }), {name});
  }
}

TEST(TextModels, OneWithoutAnEncoderIsNamed) {
  expect_refused(changed_model([](Tensors& tensors) {
                   std::erase_if(tensors, [](const auto& t) { return t.name.starts_with("text_model."); });
                 }),
                 {"text_model"});
}

// ------------------------------------------------------------------------------------------------ what it
// costs

#ifndef NONLOCAL_SANITIZED
// What five frames allocate once the first has come.
int allocated_by(Prompting& harness, int time) {
  Buffer frame = noisy_frame(kInfo);
  const auto filter = [&] {
    GST_BUFFER_PTS(frame.get()) = time++ * kFrameDuration;
    frame = harness.filter(std::move(frame));
  };
  filter();
  const int before = testing::allocations();
  for (int i = 0; i < 5; ++i) {
    filter();
  }
  return testing::allocations() - before;
}

TEST(TextRuns, FramesAllocateNothing) {
  for (const char* settings : {"mode=baked", "mode=exact", "output=heatmap", "output=mask", "output=none"}) {
    Prompting harness(std::string(kPrompt) + " n-threads=1 " + settings);
    EXPECT_EQ(allocated_by(harness, 0), 0) << settings;
  }
}

TEST(TextRuns, FramesBetweenTwoLooksAllocateNothing) {
  Prompting harness("prompt=brighter transition=60000 n-threads=1");
  harness.send(0);
  harness.say("much darker");
  const int next = harness.wait_for_look(1);
  ASSERT_GT(next, 0);
  EXPECT_EQ(allocated_by(harness, next), 0);
}
#endif

}  // namespace
}  // namespace nonlocal::test
