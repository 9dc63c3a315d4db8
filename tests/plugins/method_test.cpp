// The property method: averages by the attention core are those of the kernel.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "support.h"

namespace nonlocal::test {
namespace {

using Lines = std::vector<std::string>;

const GstVideoInfo kInfo = video_info(GST_VIDEO_FORMAT_I420, 48, 32);

Lines with(Lines settings, const Lines& more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

// A frame from a fresh element, each by itself and not refined.
std::vector<std::vector<int>> filtered(const GstVideoInfo& info, const char* method, const char* strength) {
  Harness harness(info);
  harness.set("sigma", "15").set("temporal", "off").set("refinement", "off").set("search-size", "9");
  harness.set("strength", strength).set("method", method);
  const Buffer out = harness.filter(noisy_frame(info, 0, 1, 15));
  return out ? all_samples_of(out.get(), info) : std::vector<std::vector<int>>();
}

double largest_difference(const std::vector<int>& a, const std::vector<int>& b) {
  int largest = a.size() == b.size() ? 0 : 1 << 30;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    largest = std::max(largest, std::abs(a[i] - b[i]));
  }
  return largest;
}

class Method : public testing::TestWithParam<GstVideoFormat> {};

TEST_P(Method, AttentionGivesWhatDirectGivesWithinACodeValue) {
  for (const GstVideoInterlaceMode mode :
       {GST_VIDEO_INTERLACE_MODE_PROGRESSIVE, GST_VIDEO_INTERLACE_MODE_INTERLEAVED}) {
    for (const int width : {1, 17, 50}) {
      const GstVideoInfo info = video_info(GetParam(), width, 23, mode);
      for (const char* strength : {"1", "0"}) {
        const auto direct = filtered(info, "direct", strength);
        const auto attention = filtered(info, "attention", strength);
        const auto noisy = all_samples_of(noisy_frame(info, 0, 1, 15).get(), info);
        ASSERT_FALSE(direct.empty());
        ASSERT_EQ(direct.size(), attention.size());
        for (std::size_t c = 0; c < direct.size(); ++c) {
          const int depth = GST_VIDEO_INFO_COMP_DEPTH(&info, static_cast<int>(c));
          EXPECT_LE(std::ldexp(largest_difference(attention[c], direct[c]), 8 - depth), 1)
              << "component " << c << ", width " << width << ", strength " << strength;
        }
        EXPECT_EQ(attention[0] == noisy[0], *strength == '0');
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Method, testing::ValuesIn(formats()), [](const auto& format) {
  return std::string(gst_video_format_to_string(format.param));
});

TEST(Method, DirectIsTheDefault) {
  EXPECT_EQ(filter_all(kInfo, {"sigma=15"}, 2), filter_all(kInfo, {"sigma=15", "method=direct"}, 2));
  EXPECT_NE(filter_all(kInfo, {"sigma=15"}, 2), filter_all(kInfo, {"sigma=15", "method=attention"}, 2));
}

// Every frame by itself with weights of its own, whatever is set.
TEST(Method, AttentionTakesFramesByThemselves) {
  const Lines attention = {"sigma=15", "method=attention"};
  const std::vector<Bytes> plain = filter_all(kInfo, attention, 3);
  EXPECT_EQ(filter_all(kInfo, with(attention, {"temporal=off", "refinement=off"}), 3), plain);
  EXPECT_EQ(filter_all(kInfo, with(attention, {"temporal=recursive", "look-ahead=2"}), 3), plain);
  EXPECT_EQ(filter_all(kInfo, with(attention, {"chroma=joint"}), 3), plain);
  EXPECT_EQ(filter_all(kInfo, attention, 1, 2)[0], plain[2]);
  EXPECT_NE(filter_all(kInfo, with(attention, {"refinement=refine_balanced"}), 3), plain);
}

TEST(Method, AttentionFiltersWithTheLevelEstimated) {
  const GstVideoInfo info = video_info(GST_VIDEO_FORMAT_GRAY8, 160, 120);
  Harness harness(info);
  harness.set("method", "attention");
  const Buffer out = harness.filter(noisy_frame(info));
  ASSERT_TRUE(out);
  const double level = harness.number("noise-level");
  EXPECT_GT(level, 10);
  Harness told(info);
  g_object_set(told.element(), "sigma", level, nullptr);
  told.set("method", "attention");
  EXPECT_EQ(bytes_of(out.get()), bytes_of(told.filter(noisy_frame(info)).get()));
}

// From one frame to the next, and what waited for frames ahead comes out.
TEST(Method, MayChangeInTheMidstOfAStream) {
  constexpr int kFrames = 9;
  Harness harness(kInfo);
  harness.set("sigma", "15").set("temporal", "recursive").set("look-ahead", "2");
  std::vector<Buffer> out;
  for (int i = 0; i < kFrames; ++i) {
    harness.set("method", i / 3 == 1 ? "attention" : "direct");
    ASSERT_EQ(harness.push(noisy_frame(kInfo, i)), GST_FLOW_OK);
  }
  gst_harness_push_event(harness.get(), gst_event_new_eos());
  while (harness.count_ready() > 0) {
    out.push_back(harness.pull());
  }
  ASSERT_EQ(out.size(), static_cast<std::size_t>(kFrames));
  for (int i = 0; i < kFrames; ++i) {
    EXPECT_EQ(GST_BUFFER_PTS(out[i].get()), i * kFrameDuration);
  }
  const Bytes alone = filter_all(kInfo, {"sigma=15", "method=attention"}, 1, 5)[0];
  EXPECT_EQ(bytes_of(out[5].get()), alone);
}

TEST(Method, AttentionRunsInAPipeline) {
  for (const std::string format : {"I420", "I420_10LE", "RGB"}) {
    const Element pipeline =
        parse("videotestsrc pattern=snow num-buffers=10 ! video/x-raw,format=" + format +
              ",width=320,height=180 ! nonlocaldenoise method=attention ! videoconvert ! fakesink");
    EXPECT_EQ(play(pipeline.get()), "") << format;
  }
}

}  // namespace
}  // namespace nonlocal::test
