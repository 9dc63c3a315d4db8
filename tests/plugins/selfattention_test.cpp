// selfattention gives what nonlocal::Network gives on plain planes, in every format and layout. What all
// elements have in common: elements_test.cpp.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "lib/allocations.h"
#include "lib/network_file.h"
#include "nonlocal/network.h"
#include "plain_planes.h"
#include "support.h"

namespace nonlocal::test {
namespace {

using nlohmann::json;

constexpr int kWidths[] = {1, 2, 3, 17, 321};
constexpr int kHeight = 7;
const GstVideoInfo kInfo = video_info(GST_VIDEO_FORMAT_I420, 48, 32);
const GstVideoInfo kRgb = video_info(GST_VIDEO_FORMAT_RGB, 24, 16);

// --------------------------------------------------------------------------------------------------- files

std::string fixture(const std::string& name) { return PARITY_FOLDER "/network_" + name + ".safetensors"; }

// A folder for files that the tests write, gone with the process.
const std::filesystem::path& folder() {
  static const struct Folder {
    Folder() : path(std::filesystem::temp_directory_path() / ("selfattention." + std::to_string(getpid()))) {
      std::filesystem::create_directory(path);
    }
    ~Folder() { std::filesystem::remove_all(path); }
    std::filesystem::path path;
  } folder;
  return folder.path;
}

// Layers between two convolutions, of one channel to four and back; what comes out is small beside the frame.
std::string write_gray(const std::string& name, int frames, const json& layer,
                       std::vector<model::NamedTensor> tensors) {
  json description = {{"input", {{"channels", 1}, {"frames", frames}}}, {"residual", true}};
  description["layers"] = {testing::add_convolution("head", 1, 4, 3, tensors), layer,
                           testing::add_convolution("tail", 4, 1, 3, tensors)};
  for (float& weight : tensors[tensors.size() - 2].values) {
    weight *= 0.2F;
  }
  const std::string path = folder() / (name + ".safetensors");
  testing::write_network(path, description, tensors);
  return path;
}

// One frame by itself.
const std::string& gray() {
  static const std::string path = write_gray("gray", 1, {{"name", "relu"}, {"type", "relu"}}, {});
  return path;
}

// The present frame and two before it.
const std::string& gray_in_time() {
  static const std::string path = [] {
    std::vector<model::NamedTensor> tensors;
    for (const char* part : {"theta", "phi", "g"}) {
      testing::add_convolution(std::string("block.") + part, 4, 2, 1, tensors);
    }
    testing::add_convolution("block.z", 2, 4, 1, tensors);
    return write_gray("gray_in_time", 3, {{"name", "block"}, {"type", "non_local"}, {"reach", "temporal"}},
                      tensors);
  }();
  return path;
}

// R, G and B together, and two frames before.
const std::string& colour_in_time() {
  static const std::string path = fixture("space_time");
  return path;
}

// ------------------------------------------------------------------------------------- element and library

std::string element_of(const std::string& model, const std::string& settings = "") {
  return "selfattention model=\"" + model + "\" " + settings;
}

class Attentive : public Harness {
 public:
  Attentive(const GstVideoInfo& info, const std::string& model, const std::string& settings = "")
      : Harness(info, element_of(model, settings), "selfattention") {}

  int frames() {
    int frames = -1;
    g_object_get(element(), "frames", &frames, nullptr);
    return frames;
  }
};

// The network run by hand: on luma, on R, G and B each with a past of its own, or on all three.
class Library {
 public:
  explicit Library(const std::string& model) {
    for (int i = 0; i < 3; ++i) {
      networks_.emplace_back(model);
    }
  }
  void filter(std::vector<std::vector<int>>& samples, const GstVideoInfo& info,
              const NetworkParameters& parameters = {}) {
    const int together = networks_[0].input_channels();
    for (int first = 0; first < (GST_VIDEO_INFO_IS_RGB(&info) ? 3 : 1); first += together) {
      Components planes(samples, info, first, together);
      networks_[first].run(planes.in, planes.out, parameters);
      planes.store(samples);
    }
  }

 private:
  std::vector<Network> networks_;
};

std::vector<Bytes> filtered(const std::string& model, const GstVideoInfo& info, int first, int count,
                            const std::string& settings = "") {
  Attentive harness(info, model, settings);
  std::vector<Bytes> out;
  for (int i = first; i < first + count; ++i) {
    const Buffer frame = harness.filter(noisy_frame(info, i));
    out.push_back(frame ? bytes_of(frame.get()) : Bytes());
  }
  return out;
}

// ------------------------------------------------------------------------------------------------- formats

// Three frames, the second one in padded planes; bytes that are no samples of R, G, B or luma stay.
void expect_what_the_library_gives(const std::string& model, const GstVideoInfo& info) {
  Attentive harness(info, model);
  Library library(model);
  for (int i = 0; i < 3; ++i) {
    Buffer in = noisy_frame(info, i);
    const auto before = all_samples_of(in.get(), info);
    auto wanted = before;
    library.filter(wanted, info);
    EXPECT_NE(wanted[0], before[0]) << "frame " << i;
    if (i == 1) {
      in = padded_frame(in.get(), info);
    }
    const Bytes bytes = bytes_of(in.get());
    const std::vector<bool> belongs = sample_bytes(in.get(), info);
    const Buffer out = harness.filter(std::move(in));
    ASSERT_TRUE(out);
    ASSERT_EQ(all_samples_of(out.get(), info), wanted) << "frame " << i;
    const Bytes after = bytes_of(out.get());
    ASSERT_EQ(after.size(), bytes.size());
    for (std::size_t k = 0; k < bytes.size(); ++k) {
      ASSERT_TRUE(belongs[k] || after[k] == bytes[k]) << "byte " << k << " is no sample but was written";
    }
  }
}

class AttentionFormats : public ::testing::TestWithParam<GstVideoFormat> {};

TEST_P(AttentionFormats, GiveWhatTheLibraryGivesOnPlainPlanes) {
  for (const int width : kWidths) {
    SCOPED_TRACE(width);
    const GstVideoInfo info = video_info(GetParam(), width, kHeight);
    expect_what_the_library_gives(gray(), info);
    expect_what_the_library_gives(gray_in_time(), info);
    if (GST_VIDEO_INFO_IS_RGB(&info)) {
      expect_what_the_library_gives(colour_in_time(), info);
    }
  }
}

// Networks of three channels take R, G and B, and say so before anything flows.
TEST_P(AttentionFormats, AreNegotiatedByTheNetworksChannels) {
  const GstVideoInfo info = video_info(GetParam(), 17, kHeight);
  for (const std::string& model : {gray(), colour_in_time()}) {
    const bool fits = model == gray() || GST_VIDEO_INFO_IS_RGB(&info);
    Attentive harness(info, model);
    const Pad sink(gst_element_get_static_pad(harness.element(), "sink"));
    const Caps taken(gst_pad_query_caps(sink.get(), nullptr));
    EXPECT_EQ(gst_caps_can_intersect(caps_of(info).get(), taken.get()), fits);
    EXPECT_EQ(harness.push(noisy_frame(info)), fits ? GST_FLOW_OK : GST_FLOW_NOT_NEGOTIATED);
  }
}

INSTANTIATE_TEST_SUITE_P(All, AttentionFormats, ::testing::ValuesIn(formats()), [](const auto& format) {
  return std::string(gst_video_format_to_string(format.param));
});

TEST(AttentionCaps, UpstreamChoosesWhatTheNetworkTakes) {
  const Element pipeline = parse("videotestsrc num-buffers=2 ! " + element_of(colour_in_time()) +
                                 " ! video/x-raw,width=16,height=16" + " ! fakesink name=sink");
  EXPECT_EQ(play(pipeline.get()), "");
}

// Fields are pictures of their own, each with its own past; mixed streams tell frame by frame.
TEST(AttentionInterlaced, FieldsAreFilteredApart) {
  for (const std::string& model : {gray(), gray_in_time()}) {
    for (const int height : {1, 2, 7, 16}) {
      for (const auto mode : {GST_VIDEO_INTERLACE_MODE_INTERLEAVED, GST_VIDEO_INTERLACE_MODE_MIXED}) {
        SCOPED_TRACE(height);
        const GstVideoInfo info = video_info(GST_VIDEO_FORMAT_GRAY8, 33, height, mode);
        Attentive harness(info, model);
        std::array<Library, 2> by_field = {Library(model), Library(model)};
        for (int i = 0; i < 3; ++i) {
          Buffer in = noisy_frame(info, i);
          GST_BUFFER_FLAG_SET(in.get(), GST_VIDEO_BUFFER_FLAG_INTERLACED);
          std::vector<int> wanted = samples_of(in.get(), info, 0);
          for (int field = 0; field < std::min(2, height); ++field) {
            std::vector<std::vector<int>> rows(1);
            for (int y = field; y < height; y += 2) {
              rows[0].insert(rows[0].end(), wanted.begin() + 33 * y, wanted.begin() + 33 * (y + 1));
            }
            by_field[field].filter(rows, info);
            for (int y = field; y < height; y += 2) {
              std::copy_n(rows[0].begin() + 33 * (y / 2), 33, wanted.begin() + 33 * y);
            }
          }
          const Buffer out = harness.filter(std::move(in));
          ASSERT_TRUE(out);
          EXPECT_EQ(samples_of(out.get(), info, 0), wanted) << "frame " << i;
        }
      }
    }
  }
  const GstVideoInfo mixed = video_info(GST_VIDEO_FORMAT_GRAY8, 33, 16, GST_VIDEO_INTERLACE_MODE_MIXED);
  const GstVideoInfo progressive = video_info(GST_VIDEO_FORMAT_GRAY8, 33, 16);
  EXPECT_EQ(filtered(gray(), mixed, 0, 1), filtered(gray(), progressive, 0, 1));
}

// Whole frames are no past of fields, nor the other way round.
TEST(AttentionStream, ThePastOfFramesIsOfTheirKind) {
  const GstVideoInfo mixed = video_info(GST_VIDEO_FORMAT_GRAY8, 33, 16, GST_VIDEO_INTERLACE_MODE_MIXED);
  const auto frame = [&](int i, int flag) {
    Buffer in = noisy_frame(mixed, i);
    GST_BUFFER_FLAG_SET(in.get(), flag);
    return in;
  };
  Attentive harness(mixed, gray_in_time());
  for (const int i : {0, 1}) {
    ASSERT_TRUE(harness.filter(frame(i, 0)));
  }
  ASSERT_TRUE(harness.filter(frame(2, GST_VIDEO_BUFFER_FLAG_INTERLACED)));
  const Buffer out = harness.filter(frame(3, 0));
  ASSERT_TRUE(out);
  EXPECT_EQ(bytes_of(out.get()), filtered(gray_in_time(), mixed, 3, 1)[0]);
}

// ------------------------------------------------------------------------------------------------ settings

TEST(AttentionStrength, LeadsFromTheFrameToTheOutput) {
  Attentive harness(kInfo, gray());
  Library library(gray());
  int index = 0;
  for (const double strength : {1.0, 0.5, 0.0, 0.25, 0.0, 1.0}) {  // while playing
    harness.set("strength", std::to_string(strength));
    Buffer in = noisy_frame(kInfo, index++);
    const GstBuffer* address = in.get();
    auto wanted = all_samples_of(in.get(), kInfo);
    library.filter(wanted, kInfo, {.condition = {}, .threads = 0, .strength = strength});
    const Buffer shared(strength == 0 ? gst_buffer_ref(in.get()) : nullptr);
    const Buffer out = harness.filter(std::move(in));
    ASSERT_TRUE(out);
    EXPECT_EQ(all_samples_of(out.get(), kInfo), wanted) << strength;
    EXPECT_EQ(out.get(), address) << strength;
  }
}

// The file's range is 0 to 100, its default 25; the precision is the one asked for.
TEST(AttentionCondition, IsWhatTheNetworkIsTold) {
  const auto wanted = [](std::optional<double> condition) {
    Buffer frame = noisy_frame(kInfo);
    auto samples = all_samples_of(frame.get(), kInfo);
    Library(fixture("refiner")).filter(samples, kInfo, {.condition = condition});
    return samples;
  };
  Attentive harness(kInfo, fixture("refiner"));
  const auto told = [&](const char* condition) {
    harness.set("condition", condition);
    return all_samples_of(harness.filter(noisy_frame(kInfo)).get(), kInfo);
  };
  EXPECT_NE(wanted(25), wanted(60));
  EXPECT_EQ(told("-1"), wanted({}));
  EXPECT_EQ(told("25"), wanted({}));
  EXPECT_EQ(told("60"), wanted(60));
  EXPECT_EQ(told("0"), wanted(0));
  EXPECT_EQ(told("1000"), wanted(100));
  EXPECT_EQ(filtered(gray(), kInfo, 0, 1, "condition=3"), filtered(gray(), kInfo, 0, 1)) << "it has none";
}

TEST(AttentionH, IsWhatANetworkWithAnHIsTold) {
  const auto told = [](const std::string& settings) {
    return filtered("gaussian", kInfo, 0, 1, settings)[0];
  };
  EXPECT_EQ(told("h=20"), told("condition=20"));
  EXPECT_EQ(told("h=20 condition=5"), told("h=20"));
  EXPECT_EQ(told("h=-1"), told("h=10"));
  EXPECT_EQ(told("h=0.1"), told("h=0.5"));
  EXPECT_NE(told("h=20"), told("h=10"));
  EXPECT_EQ(filtered(fixture("refiner"), kInfo, 0, 1, "h=60"), filtered(fixture("refiner"), kInfo, 0, 1))
      << "its condition has another name";
}

TEST(AttentionTemporalRadius, LetsANetworkLookAtLess) {
  Attentive nearest(kInfo, gray_in_time(), "temporal-radius=1");
  EXPECT_EQ(nearest.frames(), 2);
  EXPECT_EQ(Attentive(kInfo, gray_in_time(), "temporal-radius=2").frames(), 3);
  EXPECT_EQ(Attentive(kInfo, gray_in_time(), "temporal-radius=9").frames(), 3) << "as the file says";
  // With none before it, a frame gives what it gives as the first one.
  const std::vector<Bytes> alone = filtered(gray_in_time(), kInfo, 0, 3, "temporal-radius=0");
  EXPECT_EQ(alone[2], filtered(gray_in_time(), kInfo, 2, 1)[0]);
  EXPECT_NE(filtered(gray_in_time(), kInfo, 0, 3, "temporal-radius=1")[2], alone[2]);
  EXPECT_NE(filtered(gray_in_time(), kInfo, 0, 3, "temporal-radius=1")[2],
            filtered(gray_in_time(), kInfo, 0, 3)[2]);
}

// Of the default model, whose h is 4: behind a flat frame of 100, of 104 there is 104 - 4 / (1 + e) left.
TEST(AttentionTemporalRadius, OfNoneLeavesOutTheMeanWithTheFrameBefore) {
  const GstVideoInfo info = video_info(GST_VIDEO_FORMAT_I420, 96, 64);
  const auto flat_behind_flat = [&](const std::string& settings, int frames) {
    Attentive harness(info, "restore", settings);
    EXPECT_EQ(harness.frames(), frames);
    int middle = 0;
    for (const int gray : {100, 104}) {
      Buffer flat = noisy_frame(info);
      gst_buffer_memset(flat.get(), 0, static_cast<guint8>(gray), gst_buffer_get_size(flat.get()));
      middle = samples_of(harness.filter(std::move(flat)).get(), info, 0)[32 * 96 + 48];
    }
    return middle;
  };
  EXPECT_EQ(flat_behind_flat("", 2), 103);
  EXPECT_EQ(flat_behind_flat("temporal-radius=0", 1), 104);
}

TEST(AttentionPrecision, IsTheOneAskedFor) {
  for (const auto& [name, precision] :
       {std::pair("f32", NetworkPrecision::kFloat32), std::pair("bf16", NetworkPrecision::kBfloat16),
        std::pair("int8", NetworkPrecision::kInt8)}) {
    if (!is_supported(precision)) {
      continue;  // bad_input.sh sees to that
    }
    Buffer frame = noisy_frame(kInfo);
    const auto in = all_samples_of(frame.get(), kInfo);
    Components luma(in, kInfo, 0, 1);
    const std::string file = precision == NetworkPrecision::kInt8 ? fixture("restorer") : gray();
    Network network(file, precision);
    network.run(luma.in, luma.out);
    auto wanted = in;
    luma.store(wanted);
    Attentive harness(kInfo, file, std::string("precision=") + name);
    EXPECT_EQ(all_samples_of(harness.filter(std::move(frame)).get(), kInfo), wanted) << name;
  }
}

TEST(AttentionFrames, AreTheFilesWhileItIsOpen) {
  Attentive harness(kInfo, gray_in_time());
  EXPECT_EQ(harness.frames(), 3);
  gst_element_set_state(harness.element(), GST_STATE_READY);
  EXPECT_EQ(harness.frames(), 0);
  EXPECT_EQ(Attentive(kInfo, gray()).frames(), 1);
}

// A frame without detail stays as it is, to within a code value; at the frame's border, where convolutions
// see mid-gray beyond it, to within 4.
TEST(AttentionModel, TheDefaultCleansUp) {
  const GstVideoInfo info = video_info(GST_VIDEO_FORMAT_I420, 96, 64);
  Harness harness(info, "selfattention", "selfattention");
  Buffer frame = noisy_frame(info);
  auto wanted = all_samples_of(frame.get(), info);
  Library(find_model("restore")).filter(wanted, info);
  EXPECT_EQ(all_samples_of(harness.filter(std::move(frame)).get(), info), wanted);
  for (const int gray : {16, 126, 235}) {
    Buffer flat = noisy_frame(info);
    gst_buffer_memset(flat.get(), 0, static_cast<guint8>(gray), gst_buffer_get_size(flat.get()));
    const std::vector<int> out = samples_of(harness.filter(std::move(flat)).get(), info, 0);
    for (int i = 0; i < 96 * 64; ++i) {
      const int x = i % 96;
      const int y = i / 96;
      const bool is_border = std::min({x, y, 95 - x, 63 - y}) < 6;
      ASSERT_NEAR(out[static_cast<std::size_t>(i)], gray, is_border ? 4 : 1) << x << ", " << y;
    }
  }
}

// Another model from the next start on.
TEST(AttentionModel, IsOpenedAtTheStart) {
  Attentive harness(kInfo, gray());
  EXPECT_EQ(bytes_of(harness.filter(noisy_frame(kInfo)).get()), filtered(gray(), kInfo, 0, 1)[0]);
  harness.set("model", fixture("refiner"));
  EXPECT_EQ(bytes_of(harness.filter(noisy_frame(kInfo)).get()), filtered(gray(), kInfo, 0, 1)[0]);
  harness.restart(kInfo);
  EXPECT_EQ(bytes_of(harness.filter(noisy_frame(kInfo)).get()), filtered(fixture("refiner"), kInfo, 0, 1)[0]);
}

// ------------------------------------------------------------------------------------------------- streams

// Frames 5 to 8 after five of something else, with `between` called in between.
template <typename Between>
std::vector<Bytes> later_frames(const GstVideoInfo& first, const Between& between, bool is_discont = false) {
  Attentive harness(first, gray_in_time());
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(harness.filter(noisy_frame(first, i, 7, 40)));
  }
  between(harness);
  std::vector<Bytes> out;
  for (int i = 5; i < 9; ++i) {
    Buffer in = noisy_frame(kInfo, i);
    if (is_discont && i == 5) {
      GST_BUFFER_FLAG_SET(in.get(), GST_BUFFER_FLAG_DISCONT);
    }
    const Buffer frame = harness.filter(std::move(in));
    out.push_back(frame ? bytes_of(frame.get()) : Bytes());
  }
  return out;
}

TEST(AttentionStream, NothingRemainsOfEarlierFramesWhereTheyDoNotBelong) {
  const auto nothing = [](Harness&) {};
  const std::vector<Bytes> fresh = filtered(gray_in_time(), kInfo, 5, 4);
  EXPECT_NE(later_frames(kInfo, nothing), fresh);
  EXPECT_EQ(later_frames(kInfo, nothing, true), fresh);
  EXPECT_EQ(later_frames(kInfo, [](Harness& harness) { harness.flush(); }), fresh);
  EXPECT_EQ(later_frames(kInfo, [](Harness& harness) { harness.send_segment(); }), fresh);
  EXPECT_EQ(later_frames(kInfo, [](Harness& harness) { harness.restart(kInfo); }), fresh);
  EXPECT_EQ(later_frames(kInfo,
                         [](Harness& harness) {
                           harness.set("strength", "0");
                           EXPECT_TRUE(harness.filter(noisy_frame(kInfo, 20)));
                           harness.set("strength", "1");
                         }),
            fresh);
  // New caps alone, of planes of the same size, without the segment that follows them elsewhere.
  EXPECT_EQ(later_frames(video_info(GST_VIDEO_FORMAT_NV12, 48, 32),
                         [](Harness& harness) {
                           gst_harness_push_event(harness.get(), gst_event_new_caps(caps_of(kInfo).get()));
                         }),
            fresh);
  for (const GstVideoInfo& other :
       {video_info(GST_VIDEO_FORMAT_NV12, 31, 17), kRgb, video_info(GST_VIDEO_FORMAT_NV12, 48, 32)}) {
    EXPECT_EQ(later_frames(other, [](Harness& harness) { harness.set_format(kInfo); }), fresh);
  }
}

TEST(AttentionStream, AddsNoLatencyAndDropsNothingAtTheEnd) {
  Attentive harness(kInfo, gray_in_time());
  gst_harness_set_upstream_latency(harness.get(), 123 * GST_MSECOND);
  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ(harness.push(noisy_frame(kInfo, i)), GST_FLOW_OK);
  }
  EXPECT_TRUE(gst_harness_push_event(harness.get(), gst_event_new_eos()));
  EXPECT_EQ(gst_harness_query_latency(harness.get()), 123 * GST_MSECOND);
  EXPECT_EQ(harness.count_ready(), 7);
}

#ifndef NONLOCAL_SANITIZED
// After the first frame the element allocates nothing beside what the library's run does (oneDNN's own).
TEST(AttentionRuns, FramesAllocateNothing) {
  constexpr int kFrames = 5;
  Network network(gray_in_time());
  Buffer frame = noisy_frame(kInfo);
  Components luma(all_samples_of(frame.get(), kInfo), kInfo, 0, 1);
  const auto allocated = [](const auto& filter) {
    filter();
    const int before = testing::allocations();
    for (int i = 0; i < kFrames; ++i) {
      filter();
    }
    return testing::allocations() - before;
  };
  const int by_hand = allocated([&] { network.run(luma.in, luma.out, {.condition = {}, .threads = 1}); });
  Attentive harness(kInfo, gray_in_time(), "n-threads=1");
  EXPECT_EQ(allocated([&] { frame = harness.filter(std::move(frame)); }), by_hand);
}
#endif

// -------------------------------------------------------------------------------------------------- errors

ErrorReport error_with(const std::string& model, const std::string& caps = "video/x-raw,width=16,height=16") {
  return play_to_error(
      parse("videotestsrc num-buffers=2 ! " + caps + " ! " + element_of(model) + " ! fakesink").get());
}

void expect_refused(const std::string& model, GQuark domain, int code, const std::string& words) {
  const ErrorReport error = error_with(model);
  EXPECT_EQ(error.domain, domain) << model;
  EXPECT_EQ(error.code, code) << model;
  EXPECT_GT(error.text.size(), 20u);
  EXPECT_NE(error.text.find(words), std::string::npos) << error.text;
  EXPECT_NE(error.text.find(std::filesystem::path(model).filename()), std::string::npos) << error.text;
}

TEST(AttentionErrors, AFileThatIsNoNetworkIsNamed) {
  const auto expect_unusable = [](const std::string& model, const std::string& words) {
    expect_refused(model, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND, words);
  };
  expect_unusable("no_such_model", "expected in one of these folders");
  expect_unusable(folder() / "none.safetensors", "");
  expect_unusable(PARITY_FOLDER "/refinement_r2.safetensors", "nonlocal.network");
  std::ifstream whole(gray(), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(whole), {}};
  for (const std::size_t size : {std::size_t{0}, std::size_t{7}, std::size_t{100}, bytes.size() - 1}) {
    const std::string cut = folder() / "cut.safetensors";
    std::ofstream(cut, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(size));
    expect_unusable(cut, "");
  }
}

TEST(AttentionErrors, ANetworkThatIsNoneForVideoIsNamed) {
  const auto expect_unsuitable = [](const std::string& model, const std::string& words) {
    expect_refused(model, GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_SETTINGS, words);
  };
  expect_unsuitable(fixture("pools"), "1 or of 3 channels");
  expect_unsuitable(fixture("resnet"), "1 or of 3 channels");
  std::vector<model::NamedTensor> tensors;
  json description = {{"input", {{"channels", 1}}}};
  description["layers"] = {testing::add_convolution("head", 1, 1, 3, tensors),
                           {{"name", "up"}, {"type", "up_sample"}, {"factor", 2}}};
  const std::string twice = folder() / "twice.safetensors";
  testing::write_network(twice, description, tensors);
  expect_unsuitable(twice, "65536 columns for 32768");
}

// Each position with each other: refused when the size is known, not at a frame.
TEST(AttentionErrors, FramesThatAreTooLargeAreRefused) {
  const ErrorReport error =
      error_with(fixture("embedded_gaussian"), "video/x-raw,format=RGB,width=4096,height=4096");
  EXPECT_EQ(error.domain, GST_LIBRARY_ERROR);
  EXPECT_EQ(error.code, GST_LIBRARY_ERROR_SETTINGS);
  EXPECT_NE(error.text.find("4096"), std::string::npos) << error.text;
}

}  // namespace
}  // namespace nonlocal::test
