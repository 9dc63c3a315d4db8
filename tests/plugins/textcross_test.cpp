// textcross gives what nonlocal::FrameGrader gives on plain planes, in every format and layout.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <random>

#include "model/safetensors.h"
#include "nonlocal/frame_grader.h"
#include "nonlocal/refinement.h"
#include "nonlocal/relevance.h"
#include "nonlocal/text_encoder.h"
#include "plain_planes.h"
#include "support.h"

namespace nonlocal::test {
namespace {

constexpr int kHeight = 7;
constexpr int kWidths[] = {1, 2, 3, 17, 321};
const GstVideoInfo kInfo = video_info(GST_VIDEO_FORMAT_I420, 48, 32);

// --------------------------------------------------------------------------------------------------- files

// A folder for files that the tests write, gone with the process.
const std::filesystem::path& folder() {
  static const struct Folder {
    Folder() : path(std::filesystem::temp_directory_path() / ("textcross." + std::to_string(getpid()))) {
      std::filesystem::create_directory(path);
    }
    ~Folder() { std::filesystem::remove_all(path); }
    std::filesystem::path path;
  } folder;
  return folder.path;
}

constexpr std::uint64_t kTokens = 5;
constexpr std::uint64_t kWidth = 6;

model::NamedTensor random_tensor(const std::string& name, const model::Shape& shape, float size) {
  std::mt19937 random(static_cast<unsigned>(std::hash<std::string>()(name)));
  std::normal_distribution<float> normal(0, size);
  model::NamedTensor tensor{name, shape, {}};
  for (std::uint64_t i = 0; i < shape[0] * shape[1]; ++i) {
    tensor.values.push_back(normal(random));
  }
  return tensor;
}

// Two heads of four channels that look at R, G, B, luma and the place.
std::string write_model(const std::string& name, std::uint64_t width = kWidth) {
  const std::string path = folder() / (name + ".safetensors");
  model::write_safetensors(path,
                           {{"format", "nonlocal.cross_attention_filter"},
                            {"version", "1"},
                            {"layers", "1"},
                            {"heads", "2"},
                            {"colour_features", "r g b luma*luma"},
                            {"frequencies", "1"}},
                           {random_tensor("layers.0.query.weight", {8, 8}, 0.7F),
                            random_tensor("layers.0.key.weight", {8, width}, 0.7F),
                            random_tensor("layers.0.value.weight", {8, width}, 0.4F),
                            random_tensor("layers.0.output.weight", {3, 8}, 0.1F)});
  return path;
}

const std::string& model_file() {
  static const std::string path = write_model("model");
  return path;
}

const std::string& embeddings_file() {
  static const std::string path = [] {
    const std::string file = folder() / "tokens.safetensors";
    model::NamedTensor pooled = random_tensor("pooled", {kWidth, 1}, 1);
    pooled.shape = {kWidth};
    model::write_safetensors(file, {}, {random_tensor("tokens", {kTokens, kWidth}, 1), pooled});
    return file;
  }();
  return path;
}

// ------------------------------------------------------------------------------------- element and library

std::string element_of(const std::string& settings) {
  return "textcross model=\"" + model_file() + "\" embeddings=\"" + embeddings_file() + "\" " + settings;
}

class Grading : public Harness {
 public:
  explicit Grading(const GstVideoInfo& info, const std::string& settings = "")
      : Harness(info, element_of(settings), "textcross") {}
};

CrossAttentionFilter some_filter() {
  return {CrossAttentionModel(model_file()), read_token_embeddings(embeddings_file()).tokens()};
}

ColourFormat colours_of(const GstVideoInfo& info) {
  if (GST_VIDEO_INFO_IS_RGB(&info)) {
    return {};
  }
  const bool is_full = info.colorimetry.range == GST_VIDEO_COLOR_RANGE_0_255;
  return {GST_VIDEO_INFO_IS_GRAY(&info) ? ColourModel::kGray : ColourModel::kYCbCr, ColourMatrix::kBt601,
          is_full ? ColourRange::kFull : ColourRange::kLimited,
          info.chroma_site == GST_VIDEO_CHROMA_SITE_JPEG ? ChromaSite::kCentre : ChromaSite::kLeft};
}

using Samples = std::vector<std::vector<int>>;

Samples graded_by_library(Samples samples, const GstVideoInfo& info, bool is_baked, double strength = 1) {
  Components planes(samples, info, 0, GST_VIDEO_INFO_IS_GRAY(&info) ? 1 : 3);
  FrameGrader grader;
  const GradeParameters parameters{strength, 1};
  if (is_baked) {
    grader.run(planes.in, planes.out, colours_of(info), *GradeLook::bake(some_filter(), colours_of(info)),
               parameters);
  } else {
    grader.run(planes.in, planes.out, colours_of(info), some_filter(), parameters);
  }
  planes.store(samples);
  return samples;
}

// ------------------------------------------------------------------------------------------------- formats

class TextFormats : public ::testing::TestWithParam<GstVideoFormat> {};

// The second frame lies in padded planes; bytes that are no samples stay.
TEST_P(TextFormats, GiveWhatTheLibraryGivesOnPlainPlanes) {
  for (const int width : kWidths) {
    const GstVideoInfo info = video_info(GetParam(), width, kHeight);
    Grading harness(info);
    for (int i = 0; i < 2; ++i) {
      Buffer in = noisy_frame(info, i);
      const Samples before = all_samples_of(in.get(), info);
      const Samples wanted = graded_by_library(before, info, true);
      EXPECT_NE(wanted, before);
      if (i == 1) {
        in = padded_frame(in.get(), info);
      }
      const Bytes bytes = bytes_of(in.get());
      const std::vector<bool> belongs = sample_bytes(in.get(), info);
      const Buffer out = harness.filter(std::move(in));
      ASSERT_TRUE(out);
      ASSERT_EQ(all_samples_of(out.get(), info), wanted) << width << ", frame " << i;
      const Bytes after = bytes_of(out.get());
      for (std::size_t k = 0; k < bytes.size(); ++k) {
        ASSERT_TRUE(belongs[k] || after[k] == bytes[k]) << "byte " << k << " is no sample but was written";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, TextFormats, ::testing::ValuesIn(formats()), [](const auto& info) {
  return std::string(gst_video_format_to_string(info.param));
});

TEST(TextMode, ExactAsksEveryToken) {
  const Buffer frame = noisy_frame(kInfo);
  const Samples before = all_samples_of(frame.get(), kInfo);
  const auto graded = [&](const char* mode) {
    return all_samples_of(Grading(kInfo, mode).filter(noisy_frame(kInfo)).get(), kInfo);
  };
  EXPECT_EQ(graded("mode=exact"), graded_by_library(before, kInfo, false));
  EXPECT_EQ(graded("mode=baked"), graded_by_library(before, kInfo, true));
  EXPECT_EQ(graded("mode=auto"), graded("mode=baked"));
  EXPECT_NE(graded("mode=exact"), graded("mode=baked"));
}

TEST(TextStrength, MultipliesTheChange) {
  for (const double strength : {0.25, 2.0}) {
    Grading harness(kInfo, "strength=" + std::to_string(strength));
    Buffer frame = noisy_frame(kInfo);
    const Samples before = all_samples_of(frame.get(), kInfo);
    EXPECT_EQ(all_samples_of(harness.filter(std::move(frame)).get(), kInfo),
              graded_by_library(before, kInfo, true, strength));
  }
}

// The frame stays; it carries where the prompt acts, and the prompt's vector.
TEST(TextOutput, NoneCarriesMetadataAlone) {
  Grading harness(kInfo, "output=none");
  Buffer in = noisy_frame(kInfo);
  const Bytes before = bytes_of(in.get());
  const Buffer out = harness.filter(std::move(in));
  EXPECT_EQ(bytes_of(out.get()), before);
  const auto* region = gst_buffer_get_video_region_of_interest_meta_id(out.get(), 0);
  ASSERT_NE(region, nullptr);
  EXPECT_STREQ(g_quark_to_string(region->roi_type), "textcross");
  EXPECT_TRUE(region->w > 0 && region->h > 0 && region->x + region->w <= 48 && region->y + region->h <= 32);
  GstCustomMeta* meta = gst_buffer_get_custom_meta(out.get(), "NonlocalTextMeta");
  ASSERT_NE(meta, nullptr);
  GBytes* pooled = nullptr;
  ASSERT_TRUE(
      gst_structure_get(gst_custom_meta_get_structure(meta), "pooled", G_TYPE_BYTES, &pooled, nullptr));
  const std::vector<float> wanted = read_token_embeddings(embeddings_file()).pooled;
  ASSERT_EQ(g_bytes_get_size(pooled), wanted.size() * sizeof(float));
  EXPECT_EQ(std::memcmp(g_bytes_get_data(pooled, nullptr), wanted.data(), g_bytes_get_size(pooled)), 0);
  g_bytes_unref(pooled);
}

TEST(TextOutput, TheMaskIsAlphaOrGray) {
  const GstVideoInfo rgba = video_info(GST_VIDEO_FORMAT_RGBA, 48, 32);
  Buffer in = noisy_frame(rgba);
  const Samples before = all_samples_of(in.get(), rgba);
  const Buffer out = Grading(rgba, "output=mask").filter(std::move(in));
  EXPECT_EQ(all_samples_of(out.get(), rgba), before) << "colours stay where there is alpha";
  const std::vector<int> alpha = samples_of(out.get(), rgba, 3);
  EXPECT_EQ(*std::ranges::max_element(alpha), 255);
  EXPECT_LT(*std::ranges::min_element(alpha), 250);

  for (const GstVideoFormat format : {GST_VIDEO_FORMAT_I420, GST_VIDEO_FORMAT_P010_10LE}) {
    const GstVideoInfo info = video_info(format, 48, 32);
    const int unit = GST_VIDEO_INFO_COMP_DEPTH(&info, 0) == 10 ? 4 : 1;
    const Samples mask = all_samples_of(Grading(info, "output=mask").filter(noisy_frame(info)).get(), info);
    EXPECT_EQ(*std::ranges::max_element(mask[0]), 235 * unit);
    EXPECT_GE(*std::ranges::min_element(mask[0]), 16 * unit);
    EXPECT_EQ(mask[1], std::vector<int>(mask[1].size(), 128 * unit)) << "no colour";
  }
}

// What differs from the frame is what the library's map over the same frame is.
TEST(TextOutput, TheHeatMapIsTheLibrarys) {
  Buffer in = noisy_frame(kInfo);
  Samples samples = all_samples_of(in.get(), kInfo);
  Components planes(samples, kInfo, 0, 3);
  TokenMaps maps;
  maps.run(planes.in, colours_of(kInfo), some_filter(), {48, 32, 1});
  std::vector<float> sum(48 * 32);
  for (int token = 0; token < maps.tokens(); ++token) {
    for (int i = 0; i < 48 * 32; ++i) {
      sum[static_cast<std::size_t>(i)] += maps.map(token).row(i / 48)[i % 48];
    }
  }
  HeatMapParameters parameters;
  parameters.most = *std::ranges::max_element(sum);
  blend_heat_map({sum.data(), 32, 48, 48}, planes.in, planes.out, colours_of(kInfo), parameters);
  planes.store(samples);
  EXPECT_EQ(all_samples_of(Grading(kInfo, "output=heatmap").filter(std::move(in)).get(), kInfo), samples);
}

// ------------------------------------------------------------------------------------------------- prompts

// The bundled model, with what a prompt gives.
std::string prompting(const std::string& settings) { return "textcross " + settings; }

TEST(TextPrompt, AnEmptyOneLeavesTheBuffer) {
  for (const char* prompt : {"prompt=\"\"", "prompt=\"  \""}) {
    Harness harness(kInfo, prompting(prompt), "textcross");
    Buffer in = noisy_frame(kInfo);
    const GstBuffer* const before = in.get();
    EXPECT_EQ(harness.filter(std::move(in)).get(), before) << prompt;
  }
}

TEST(TextPrompt, ItsLookIsTheLibrarys) {
  Harness harness(kInfo, prompting("prompt=\"much darker\" transition=0"), "textcross");
  Buffer in = noisy_frame(kInfo);
  Samples samples = all_samples_of(in.get(), kInfo);
  const std::string file = find_model("grade");
  TextEncoder encoder(file);
  const TextEmbedding read = encoder.encode("much darker");
  const int count = static_cast<int>(read.ids.size());
  const CrossAttentionFilter filter(CrossAttentionModel(file),
                                    {read.tokens.data(), count, read.width, read.width});
  Components planes(samples, kInfo, 0, 3);
  FrameGrader().run(planes.in, planes.out, colours_of(kInfo), *GradeLook::bake(filter, colours_of(kInfo)));
  planes.store(samples);
  EXPECT_EQ(all_samples_of(harness.filter(std::move(in)).get(), kInfo), samples);
}

double mean_luma(GstBuffer* buffer) {
  const std::vector<int> luma = samples_of(buffer, kInfo, 0);
  return std::accumulate(luma.begin(), luma.end(), 0.0) / static_cast<double>(luma.size());
}

// From the picture as it is to the look, in steps of the frames' time, then it stays. Frames never wait.
TEST(TextPrompt, ALookFadesInWhilePlaying) {
  Harness harness(kInfo, prompting("transition=200"), "textcross");
  const auto luma_at = [&](int i) {  // of one picture, at the time of frame i
    Buffer frame = noisy_frame(kInfo, 0);
    GST_BUFFER_PTS(frame.get()) = i * kFrameDuration;
    const Buffer out = harness.filter(std::move(frame));
    return out ? mean_luma(out.get()) : -1;
  };
  const double plain = luma_at(0);
  harness.set("prompt", "much darker");
  std::vector<double> luma;
  const auto looks = [&] { return luma.empty() || luma.back() > plain - 1e-9; };
  for (int i = 1; i < 400 && looks(); ++i) {  // until the look has come
    luma.push_back(luma_at(i));
    g_usleep(5000);
  }
  const int begun = static_cast<int>(luma.size());
  ASSERT_LT(begun, 399) << "it never came";
  for (int i = begun + 1; i <= begun + 10; ++i) {
    luma.push_back(luma_at(i));
  }
  for (std::size_t i = luma.size() - 10; i + 5 < luma.size(); ++i) {
    EXPECT_LE(luma[i], luma[i - 1] + 1e-9) << i;
  }
  EXPECT_EQ(luma[luma.size() - 1], luma[luma.size() - 4]) << "200 ms are 5 frames";
  EXPECT_LT(luma.back(), plain - 3);
}

// Exact looks come whole, and do not wait for one another.
TEST(TextPrompt, ExactLooksChangeAtOnce) {
  Harness harness(kInfo, prompting("mode=exact transition=60000"), "textcross");
  int next = 0;
  const auto luma_after = [&](const char* prompt, double before) {
    harness.set("prompt", prompt);
    double luma = before;
    for (int i = 0; i < 400 && luma == before; ++i) {
      Buffer frame = noisy_frame(kInfo, 0);
      GST_BUFFER_PTS(frame.get()) = next++ * kFrameDuration;
      luma = mean_luma(harness.filter(std::move(frame)).get());
      g_usleep(5000);
    }
    return luma;
  };
  const double plain = mean_luma(noisy_frame(kInfo, 0).get());
  const double dark = luma_after("much darker", plain);
  EXPECT_LT(dark, plain - 3);
  const double bright = luma_after("much brighter", dark);
  EXPECT_GT(bright, plain + 3);
  EXPECT_EQ(luma_after("", bright), plain);
}

// Where another fades in, a look has come a transition after it was ready all the same, and without a jump.
TEST(TextPrompt, ALookThatWaitsForAFadeComesInTime) {
  constexpr int kFrames = 25;  // of a transition
  Harness harness(kInfo, prompting("transition=1000"), "textcross");
  const auto luma_at = [&](double frame_number) {
    Buffer frame = noisy_frame(kInfo, 0);
    GST_BUFFER_PTS(frame.get()) = static_cast<GstClockTime>(frame_number * kFrameDuration);
    const Buffer out = harness.filter(std::move(frame));
    return out ? mean_luma(out.get()) : -1;
  };
  const double plain = luma_at(0);
  harness.set("prompt", "much darker");
  int at = 1;
  for (; at < 400 && luma_at(at) > plain - 1e-9; ++at) {
    g_usleep(5000);
  }
  ASSERT_LT(at, 400) << "it never came";
  const double dark = luma_at(at + 4);
  EXPECT_LT(dark, plain);
  harness.set("prompt", "much brighter");
  for (int i = 0; i < 300; ++i) {  // time stands still until it is there
    EXPECT_NEAR(luma_at(at + 4 + 1e-4 * i), dark, 0.2);
    g_usleep(10000);
  }
  std::vector<double> luma = {dark};
  for (int i = 1; i <= kFrames + 4; ++i) {
    luma.push_back(luma_at(at + 4 + i));
  }
  const double bright = luma.back();
  EXPECT_GT(bright, plain + 3);
  EXPECT_EQ(luma[kFrames + 1], bright);
  for (std::size_t i = 1; i < luma.size(); ++i) {
    EXPECT_LT(std::abs(luma[i] - luma[i - 1]), (bright - dark) / 4) << i;
  }
}

// Without times, and where they go back as after a seek, no fade hangs.
TEST(TextPrompt, ALookComesWhateverTheTimesAre) {
  for (const bool has_times : {false, true}) {
    Harness harness(kInfo, prompting("transition=60000"), "textcross");
    const auto luma_at = [&](GstClockTime time) {
      Buffer frame = noisy_frame(kInfo, 0);
      GST_BUFFER_PTS(frame.get()) = has_times ? time : GST_CLOCK_TIME_NONE;
      const Buffer out = harness.filter(std::move(frame));
      return out ? mean_luma(out.get()) : -1;
    };
    const double plain = luma_at(10 * GST_SECOND);
    harness.set("prompt", "much darker");
    double luma = plain;
    for (int i = 1; i < 400 && luma > plain - 3; ++i) {
      luma = luma_at(i < 200 ? 10 * GST_SECOND + i : i);  // a moment on, then back at the start
      g_usleep(5000);
    }
    EXPECT_LT(luma, plain - 3) << has_times;
  }
}

TEST(TextPrompt, AMessageSaysWhatWasRead) {
  Harness harness(kInfo, prompting("prompt=\"darker qzxv\""), "textcross");
  harness.filter(noisy_frame(kInfo));
  const std::vector<Message> reports = harness.reports();
  ASSERT_EQ(reports.size(), 1U);
  const GstStructure* said = gst_message_get_structure(reports[0].get());
  EXPECT_TRUE(gst_structure_has_name(said, "textcross"));
  EXPECT_STREQ(gst_structure_get_string(said, "prompt"), "darker qzxv");
  const GValue* unknown = gst_structure_get_value(said, "unknown-words");
  ASSERT_EQ(gst_value_list_get_size(unknown), 1U);
  EXPECT_STREQ(g_value_get_string(gst_value_list_get_value(unknown, 0)), "qzxv");
  EXPECT_GE(gst_value_list_get_size(gst_structure_get_value(said, "tokens")), 4U);
  EXPECT_TRUE(harness.reports().empty());
  Harness quiet(kInfo, prompting("prompt=darker message=false"), "textcross");
  quiet.filter(noisy_frame(kInfo));
  EXPECT_TRUE(quiet.reports().empty());
}

TEST(TextErrors, AFileThatDoesNotFitIsNamed) {
  const auto error = [](const std::string& element) {
    const Element pipeline = parse("videotestsrc num-buffers=1 ! " + element + " ! fakesink");
    return play_to_error(pipeline.get()).text;
  };
  EXPECT_NE(error("textcross model=none").find("none.safetensors"), std::string::npos);
  EXPECT_NE(error("textcross model=/no/such.safetensors").find("/no/such.safetensors"), std::string::npos);
  const std::string wide = write_model("wide", 7);
  const std::string text = error("textcross model=" + wide + " embeddings=" + embeddings_file());
  EXPECT_NE(text.find("expected tokens of 7 values"), std::string::npos) << text;
  EXPECT_NE(error("textcross model=" + model_file() + " embeddings=" + model_file()).find("\"tokens\""),
            std::string::npos);
}

}  // namespace
}  // namespace nonlocal::test
