// Pixels: every format, odd sizes and any layout in memory give what the library gives on plain planes.
#include <gtest/gtest.h>

#include "nonlocal/non_local_means.h"
#include "nonlocal/video_denoiser.h"
#include "plain_planes.h"
#include "support.h"

namespace nonlocal::test {
namespace {

constexpr int kWidths[] = {1, 2, 3, 17, 321};
constexpr int kHeight = 7;
constexpr double kSigma = 20;

struct Strengths {
  double luma;
  double chroma;
};

// Each frame is filtered by itself unless `temporal` says otherwise, and not refined.
void configure(Harness& harness, const Strengths& strengths, const char* temporal = "off") {
  harness.set("sigma", std::to_string(kSigma)).set("patch-size", "3").set("search-size", "5");
  harness.set("temporal", temporal).set("refinement", "off");
  harness.set("strength", std::to_string(strengths.luma))
      .set("chroma-strength", std::to_string(strengths.chroma));
}

NonLocalMeansParameters parameters_of(double strength) {
  return {.patch_size = 3, .search_size = 5, .sigma = kSigma, .strength = strength};
}

// Components first .. first + count - 1, filtered together.
void filter_components(std::vector<std::vector<int>>& samples, const GstVideoInfo& info, int first, int count,
                       const NonLocalMeansParameters& parameters) {
  if (parameters.strength == 0) {
    return;
  }
  Components components(samples, info, first, count);
  NonLocalMeans().filter(components.in, components.out, parameters);
  components.store(samples);
}

std::vector<std::vector<int>> expected(GstBuffer* buffer, const GstVideoInfo& info,
                                       const Strengths& strengths) {
  auto samples = all_samples_of(buffer, info);
  const bool rgb = GST_VIDEO_INFO_IS_RGB(&info);
  filter_components(samples, info, 0, rgb ? 3 : 1, parameters_of(strengths.luma));
  if (GST_VIDEO_INFO_IS_YUV(&info)) {
    // As the library sees it: a single column or row is not told from a whole one.
    const bool is_subsampled = GST_VIDEO_FORMAT_INFO_W_SUB(info.finfo, 1) > 0 &&
                               GST_VIDEO_FORMAT_INFO_H_SUB(info.finfo, 1) > 0 &&
                               GST_VIDEO_INFO_WIDTH(&info) > 1 && GST_VIDEO_INFO_HEIGHT(&info) > 1;
    filter_components(samples, info, 1, 2, chroma_parameters(parameters_of(strengths.chroma), is_subsampled));
  }
  return samples;
}

class Formats : public testing::TestWithParam<GstVideoFormat> {};

TEST_P(Formats, GiveWhatTheLibraryGivesOnPlainPlanes) {
  for (const int width : kWidths) {
    SCOPED_TRACE(width);
    const GstVideoInfo info = video_info(GetParam(), width, kHeight);
    const Strengths strengths{1.5, 0.7};
    Harness harness(info);
    configure(harness, strengths);
    Buffer in = noisy_frame(info);
    const auto wanted = expected(in.get(), info, strengths);
    const Buffer out = harness.filter(std::move(in));
    ASSERT_TRUE(out);
    EXPECT_EQ(all_samples_of(out.get(), info), wanted);
  }
}

TEST_P(Formats, JointChromaIsWhatTheLibraryGives) {
  for (const int width : kWidths) {
    SCOPED_TRACE(width);
    const GstVideoInfo info = video_info(GetParam(), width, kHeight);
    Harness harness(info);
    configure(harness, {1.5, 0.7});
    harness.set("chroma", "joint");
    Buffer in = noisy_frame(info);
    auto wanted = all_samples_of(in.get(), info);
    if (GST_VIDEO_INFO_IS_YUV(&info)) {
      Components luma(wanted, info, 0, 1);
      Components chroma(wanted, info, 1, 2);
      NonLocalMeans().filter({luma.in, luma.out, chroma.in, chroma.out, {}}, parameters_of(1.5));
      luma.store(wanted);
      chroma.store(wanted);
    } else {
      wanted = expected(in.get(), info, {1.5, 0.7});
    }
    const Buffer out = harness.filter(std::move(in));
    ASSERT_TRUE(out);
    EXPECT_EQ(all_samples_of(out.get(), info), wanted);
  }
}

// A frame's components as the denoiser's planes.
void denoise_components(VideoDenoiser& denoiser, std::vector<std::vector<int>>& samples,
                        const GstVideoInfo& info, const VideoDenoiserParameters& parameters) {
  Components luma(samples, info, 0, GST_VIDEO_INFO_IS_RGB(&info) ? 3 : 1);
  Components chroma(samples, info, 1, GST_VIDEO_INFO_IS_YUV(&info) ? 2 : 0);
  denoiser.filter(luma.out, chroma.out, parameters);
  luma.store(samples);
  chroma.store(samples);
}

// Frame after frame, in any layout.
TEST_P(Formats, FusedFramesAreWhatTheLibraryGives) {
  VideoDenoiserParameters parameters;
  parameters.sigma = parameters.chroma_sigma = kSigma;
  parameters.strength = 1.5;
  parameters.chroma_strength = 0.7;
  parameters.patch_size = 3;
  parameters.search_size = 5;
  for (const int width : kWidths) {
    SCOPED_TRACE(width);
    const GstVideoInfo info = video_info(GetParam(), width, kHeight);
    Harness harness(info);
    configure(harness, {1.5, 0.7}, "recursive");
    VideoDenoiser denoiser;
    for (int i = 0; i < 4; ++i) {
      Buffer in = noisy_frame(info, i);
      auto wanted = all_samples_of(in.get(), info);
      denoise_components(denoiser, wanted, info, parameters);
      const Buffer out = harness.filter(i % 2 == 0 ? std::move(in) : padded_frame(in.get(), info));
      ASSERT_TRUE(out);
      EXPECT_EQ(all_samples_of(out.get(), info), wanted) << "frame " << i;
    }
  }
}

// Luma, or R, G and B, whether fused or not.
TEST_P(Formats, RefinedFramesAreWhatTheLibraryGives) {
  VideoDenoiserParameters parameters;
  parameters.sigma = parameters.chroma_sigma = kSigma;
  parameters.patch_size = 3;
  parameters.search_size = 5;
  const GstVideoInfo info = video_info(GetParam(), 17, kHeight);
  for (const bool temporal : {false, true}) {
    Harness harness(info);
    configure(harness, {1, 1}, temporal ? "recursive" : "off");
    harness.set("refinement", "refine_quality");
    VideoDenoiser denoiser;
    denoiser.refine_with(find_model("refine_quality"),
                         is_supported(NetworkPrecision::kInt8)
                             ? NetworkPrecision::kInt8  // of the preset balanced
                             : NetworkPrecision::kAutomatic);
    parameters.temporal = temporal;
    for (int i = 0; i < 2; ++i) {
      Buffer in = noisy_frame(info, i);
      auto wanted = all_samples_of(in.get(), info);
      denoise_components(denoiser, wanted, info, parameters);
      const Buffer out = harness.filter(std::move(in));
      ASSERT_TRUE(out);
      EXPECT_EQ(all_samples_of(out.get(), info), wanted) << "frame " << i << ", temporal " << temporal;
    }
  }
}

TEST_P(Formats, PaddedAndOffsetPlanesGiveTheSamePixelsAndNothingElseIsWritten) {
  for (const int width : kWidths) {
    SCOPED_TRACE(width);
    const GstVideoInfo info = video_info(GetParam(), width, kHeight);
    Harness harness(info);
    configure(harness, {1, 1});
    Buffer packed = noisy_frame(info);
    Buffer padded = padded_frame(packed.get(), info);
    const Bytes before = bytes_of(padded.get());
    const std::vector<bool> belongs = sample_bytes(padded.get(), info);
    const Buffer from_packed = harness.filter(std::move(packed));
    const Buffer from_padded = harness.filter(std::move(padded));
    ASSERT_TRUE(from_packed && from_padded);
    EXPECT_EQ(all_samples_of(from_padded.get(), info), all_samples_of(from_packed.get(), info));
    const Bytes after = bytes_of(from_padded.get());
    ASSERT_EQ(after.size(), before.size());
    for (std::size_t i = 0; i < before.size(); ++i) {
      ASSERT_TRUE(belongs[i] || after[i] == before[i]) << "byte " << i << " is no sample but was written";
    }
  }
}

TEST_P(Formats, LumaOrChromaAloneIsFilteredWhereTheOthersStrengthIsZero) {
  const GstVideoInfo info = video_info(GetParam(), 33, 16);
  const bool yuv = GST_VIDEO_INFO_IS_YUV(&info);
  for (const char* chroma : {"separate", "joint"}) {
    for (const Strengths strengths : {Strengths{0, 1}, Strengths{1, 0}}) {
      Harness harness(info);
      configure(harness, strengths);
      harness.set("chroma", chroma);
      Buffer in = noisy_frame(info);
      const auto before = all_samples_of(in.get(), info);
      const Buffer out = harness.filter(std::move(in));
      ASSERT_TRUE(out);
      const auto after = all_samples_of(out.get(), info);
      for (std::size_t i = 0; i < before.size(); ++i) {
        const bool filtered = (yuv && i > 0 ? strengths.chroma : strengths.luma) > 0;
        EXPECT_EQ(after[i] != before[i], filtered) << "component " << i << ", chroma " << chroma;
      }
    }
  }
}

// Alpha and padding bytes of the packed frame, too.
TEST_P(Formats, KeepWhatIsNoColour) {
  const GstVideoInfo info = video_info(GetParam(), 17, kHeight);
  Harness harness(info);
  configure(harness, {1, 1});
  Buffer in = noisy_frame(info);
  const Bytes before = bytes_of(in.get());
  const std::vector<bool> belongs = sample_bytes(in.get(), info);
  const Buffer out = harness.filter(std::move(in));
  ASSERT_TRUE(out);
  const Bytes after = bytes_of(out.get());
  EXPECT_NE(after, before);
  for (std::size_t i = 0; i < before.size(); ++i) {
    ASSERT_TRUE(belongs[i] || after[i] == before[i]) << "byte " << i << " is no sample but was written";
  }
}

INSTANTIATE_TEST_SUITE_P(All, Formats, testing::ValuesIn(formats()), [](const auto& format) {
  return std::string(gst_video_format_to_string(format.param));
});

// GStreamer's own converter agrees where the samples lie: filtering P010 is filtering I420_10LE.
TEST(DeepFormats, P010IsI420InAnotherOrder) {
  const auto filter_as = [](const std::string& format) {
    const GstVideoInfo info = video_info(GST_VIDEO_FORMAT_I420_10LE, 32, 16);
    Harness harness(info, "videoconvert dither=none ! video/x-raw,format=" + format +
                              " ! nonlocaldenoise sigma=20 search-size=5 ! videoconvert dither=none ! "
                              "capsfilter caps=video/x-raw,format=I420_10LE");
    const Buffer out = harness.filter(noisy_frame(info));
    return out ? all_samples_of(out.get(), info) : std::vector<std::vector<int>>();
  };
  const auto direct = filter_as("I420_10LE");
  EXPECT_FALSE(direct.empty());
  EXPECT_EQ(filter_as("P010_10LE"), direct);
}

// Each field of an interlaced frame is a picture of its own: filtering it must not mix in the other.
TEST(Interlaced, FieldsAreFilteredApart) {
  for (const int height : {1, 2, 7, 16}) {
    SCOPED_TRACE(height);
    const GstVideoInfo frame =
        video_info(GST_VIDEO_FORMAT_GRAY8, 33, height, GST_VIDEO_INTERLACE_MODE_INTERLEAVED);
    Harness interlaced(frame);
    configure(interlaced, {1, 1});
    Buffer in = noisy_frame(frame);
    const std::vector<int> before = samples_of(in.get(), frame, 0);
    const Buffer out = interlaced.filter(std::move(in));
    ASSERT_TRUE(out);
    const std::vector<int> after = samples_of(out.get(), frame, 0);
    for (int field = 0; field < 2; ++field) {
      std::vector<int> rows;
      std::vector<int> got;
      for (int y = field; y < height; y += 2) {
        rows.insert(rows.end(), before.begin() + 33 * y, before.begin() + 33 * (y + 1));
        got.insert(got.end(), after.begin() + 33 * y, after.begin() + 33 * (y + 1));
      }
      if (rows.empty()) {
        continue;
      }
      std::vector<std::vector<int>> wanted{rows};
      filter_components(wanted, frame, 0, 1, parameters_of(1));
      EXPECT_EQ(got, wanted[0]) << "field " << field;
    }
  }
}

// Fields of 4:2:0 may have a row of chroma less than half their rows of luma, or none.
TEST(Interlaced, JointChromaOfAnyHeightIsFiltered) {
  for (const int height : {1, 2, 3, 5, 6, 7, 16}) {
    SCOPED_TRACE(height);
    const GstVideoInfo frame =
        video_info(GST_VIDEO_FORMAT_I420, 33, height, GST_VIDEO_INTERLACE_MODE_INTERLEAVED);
    Harness interlaced(frame);
    configure(interlaced, {1, 1});
    interlaced.set("chroma", "joint");
    Buffer in = noisy_frame(frame);
    const auto before = all_samples_of(in.get(), frame);
    const Buffer out = interlaced.filter(std::move(in));
    ASSERT_TRUE(out);
    const auto after = all_samples_of(out.get(), frame);
    EXPECT_NE(after[0], before[0]);
    if (height > 4) {  // below, no neighbour of chroma is within reach
      EXPECT_NE(after[1], before[1]);
    }
  }
}

TEST(Interlaced, FieldsAreFusedWithThoseOfTheirOwn) {
  for (const char* chroma : {"separate", "joint"}) {
    for (const int height : {1, 2, 3, 5, 6, 7, 16}) {
      SCOPED_TRACE(height);
      const GstVideoInfo frame =
          video_info(GST_VIDEO_FORMAT_I420, 33, height, GST_VIDEO_INTERLACE_MODE_INTERLEAVED);
      Harness interlaced(frame);
      configure(interlaced, {1, 1}, "recursive");
      interlaced.set("chroma", chroma);
      for (int i = 0; i < 3; ++i) {
        const Buffer out = interlaced.filter(noisy_frame(frame, i));
        ASSERT_TRUE(out);
        EXPECT_NE(bytes_of(out.get()), bytes_of(noisy_frame(frame, i).get()));
      }
    }
  }
}

// A mixed stream says of each frame what it is.
TEST(Interlaced, MixedStreamsTellFrameByFrame) {
  const GstVideoInfo mixed = video_info(GST_VIDEO_FORMAT_I420, 33, 16, GST_VIDEO_INTERLACE_MODE_MIXED);
  const auto filter_as = [](const GstVideoInfo& info, bool flagged) {
    Harness harness(info);
    configure(harness, {1, 1});
    Buffer in = noisy_frame(info);
    if (flagged) {
      GST_BUFFER_FLAG_SET(in.get(), GST_VIDEO_BUFFER_FLAG_INTERLACED);
    }
    return bytes_of(harness.filter(std::move(in)).get());
  };
  const GstVideoInfo interleaved =
      video_info(GST_VIDEO_FORMAT_I420, 33, 16, GST_VIDEO_INTERLACE_MODE_INTERLEAVED);
  const GstVideoInfo progressive = video_info(GST_VIDEO_FORMAT_I420, 33, 16);
  EXPECT_EQ(filter_as(mixed, true), filter_as(interleaved, true));
  EXPECT_EQ(filter_as(mixed, false), filter_as(progressive, false));
  EXPECT_NE(filter_as(mixed, true), filter_as(mixed, false));
}

}  // namespace
}  // namespace nonlocal::test
