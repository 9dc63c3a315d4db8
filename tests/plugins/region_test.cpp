// textcross with a model that finds regions: one of CLIP's shape, and one of CLIPSeg's, in which relevance is
// planted (tests/parity/planted.py). The model works beside the stream, so that frames are pushed until it
// has answered.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "region_model.h"
#include "support.h"

namespace nonlocal::test {
namespace {

constexpr int kWidth = 320;
constexpr int kHeight = 192;
constexpr int kMostFrames = 600;
const GstVideoInfo kRgba = video_info(GST_VIDEO_FORMAT_RGBA, kWidth, kHeight);

struct Box {
  int x, y, width, height;
};
constexpr Box kRed = {60, 40, 100, 80};
constexpr Box kBlue = {210, 90, 90, 90};

std::string element_of(const std::string& settings, const std::string& model = "planted_clip") {
  return "textcross model=\"" + folder_of(model) + "\" transition=0 " + settings;
}

bool is_in(const Box& box, int x, int y, int margin = 0) {
  return x >= box.x - margin && x < box.x + box.width + margin && y >= box.y - margin &&
         y < box.y + box.height + margin;
}

// Gray, with a red box and a blue one; alpha is 255.
Buffer picture(int index, int shift = 0) {
  Buffer buffer(gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&kRgba), nullptr));
  GstMapInfo map;
  gst_buffer_map(buffer.get(), &map, GST_MAP_WRITE);
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      std::uint8_t* pixel = map.data + static_cast<std::size_t>(y) * kRgba.stride[0] + 4 * x;
      const bool is_red = is_in(kRed, x - shift, y);
      const bool is_blue = is_in(kBlue, x, y);
      pixel[0] = is_red ? 220 : is_blue ? 20 : 120;
      pixel[1] = is_red || is_blue ? 20 : 120;
      pixel[2] = is_blue ? 220 : is_red ? 20 : 120;
      pixel[3] = 255;
    }
  }
  gst_buffer_unmap(buffer.get(), &map);
  GST_BUFFER_PTS(buffer.get()) = static_cast<GstClockTime>(index) * kFrameDuration;
  GST_BUFFER_DURATION(buffer.get()) = kFrameDuration;
  return buffer;
}

// Pushes frames until one comes out as wanted, which it returns; null after very many.
Buffer push_until(Harness& harness, int& index, const std::function<bool(GstBuffer*)>& is_wanted) {
  for (int i = 0; i < kMostFrames; ++i) {
    Buffer out = harness.filter(picture(index++));
    if (out == nullptr || is_wanted(out.get())) {
      return out;
    }
    g_usleep(2000);
  }
  return nullptr;
}

int at(const std::vector<int>& samples, int x, int y) {
  return samples[static_cast<std::size_t>(y) * kWidth + x];
}

int alpha_at(GstBuffer* buffer, int x, int y) { return at(samples_of(buffer, kRgba, 3), x, y); }

// Its middle is marked, and what is further away than a patch is not.
void expect_mask(GstBuffer* out, const Box& box, const Box& other) {
  const std::vector<int> alpha = samples_of(out, kRgba, 3);
  EXPECT_GT(at(alpha, box.x + box.width / 2, box.y + box.height / 2), 200);
  EXPECT_LT(at(alpha, other.x + other.width / 2, other.y + other.height / 2), 30);
  EXPECT_LT(at(alpha, 5, 5), 30);
}

class RegionModels : public ::testing::TestWithParam<const char*> {};

TEST_P(RegionModels, FindWhatThePromptSays) {
  int index = 0;
  Harness harness(kRgba, element_of("output=mask prompt=red", GetParam()), "textcross");
  const Buffer out = push_until(harness, index, [](GstBuffer* b) { return alpha_at(b, 5, 5) < 255; });
  ASSERT_NE(out, nullptr);
  expect_mask(out.get(), kRed, kBlue);

  const auto* roi = gst_buffer_get_video_region_of_interest_meta_id(out.get(), 0);
  ASSERT_NE(roi, nullptr);
  const int patch = 8 * kHeight / 64;
  EXPECT_NEAR(static_cast<int>(roi->x), kRed.x, patch);
  EXPECT_NEAR(static_cast<int>(roi->y), kRed.y, patch);
  EXPECT_NEAR(static_cast<int>(roi->w), kRed.width, 2 * patch);
  EXPECT_NEAR(static_cast<int>(roi->h), kRed.height, 2 * patch);
  EXPECT_NE(gst_buffer_get_custom_meta(out.get(), "NonlocalTextMeta"), nullptr);

  bool is_said = false;
  for (const Message& message : harness.reports()) {
    const GstStructure* said = gst_message_get_structure(message.get());
    if (gst_structure_has_field(said, "region")) {
      is_said = true;
      EXPECT_STREQ(gst_structure_get_string(said, "region"), "red");
      EXPECT_EQ(gst_value_list_get_size(gst_structure_get_value(said, "tokens")), 3U);
      int x = 0;
      EXPECT_TRUE(gst_structure_get_int(said, "x", &x));
      EXPECT_NEAR(x, kRed.x, patch);
      double relevance = 0;
      EXPECT_TRUE(gst_structure_get_double(said, "mean-relevance", &relevance));
      EXPECT_GT(relevance, 0.02);
      EXPECT_LT(relevance, 0.5);
    }
  }
  EXPECT_TRUE(is_said);
}

INSTANTIATE_TEST_SUITE_P(Planted, RegionModels, ::testing::Values("planted_clip", "planted_clipseg"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Region, AnotherTextIsSoughtWhilePlaying) {
  int index = 0;
  Harness harness(kRgba, element_of("output=mask region=red prompt=darker"), "textcross");
  ASSERT_NE(push_until(harness, index, [](GstBuffer* b) { return alpha_at(b, 5, 5) < 255; }), nullptr);
  harness.set("region", "blue");
  const Buffer out = push_until(harness, index, [](GstBuffer* b) {
    return alpha_at(b, 5, 5) < 30 && alpha_at(b, kBlue.x + 40, kBlue.y + 40) > 200;
  });
  ASSERT_NE(out, nullptr);
  expect_mask(out.get(), kBlue, kRed);
}

// The grade is bundled, the region is the folder's.
TEST(Region, LimitsTheGrade) {
  int index = 0;
  Harness harness(kRgba, element_of("prompt=\"much darker\" region=red"), "textcross");
  const Buffer in = picture(0);
  const Bytes before = bytes_of(in.get());
  EXPECT_EQ(bytes_of(harness.filter(picture(index++)).get()), before) << "nothing is found yet";
  const int red_x = kRed.x + kRed.width / 2;
  const int red_y = kRed.y + kRed.height / 2;
  const Buffer out = push_until(
      harness, index, [&](GstBuffer* b) { return at(samples_of(b, kRgba, 0), red_x, red_y) < 210; });
  ASSERT_NE(out, nullptr);
  for (const int c : {0, 1, 2}) {
    const std::vector<int> was = samples_of(in.get(), kRgba, c);
    const std::vector<int> is = samples_of(out.get(), kRgba, c);
    for (int y = 0; y < kHeight; y += 3) {
      for (int x = 0; x < kWidth; x += 3) {
        if (!is_in(kRed, x, y, 40)) {
          ASSERT_NEAR(at(is, x, y), at(was, x, y), 3) << x << "," << y;
        }
      }
    }
  }
}

TEST(Region, FramesComeOutOneForOneInEveryFormat) {
  for (const GstVideoFormat format : formats()) {
    for (const auto mode : {GST_VIDEO_INTERLACE_MODE_PROGRESSIVE, GST_VIDEO_INTERLACE_MODE_INTERLEAVED}) {
      const GstVideoInfo info = video_info(format, 33, 18, mode);
      Harness harness(info, element_of("prompt=\"much darker\" region=red"), "textcross");
      for (int i = 0; i < 5; ++i) {
        ASSERT_NE(harness.filter(noisy_frame(info, i)), nullptr) << gst_video_format_to_string(format);
        g_usleep(1000);
      }
    }
  }
}

// What was found in frames before a flush or a seek says nothing of those behind it.
TEST(Region, WhatWasFoundIsForgottenAtAFlushOrASeek) {
  const auto has_vector = [](GstBuffer* buffer) {
    GstCustomMeta* meta = gst_buffer_get_custom_meta(buffer, "NonlocalTextMeta");
    return meta != nullptr && gst_structure_has_field(gst_custom_meta_get_structure(meta), "pooled");
  };
  const std::vector<std::function<void(Harness&)>> ends = {[](Harness& h) { h.flush(); },
                                                           [](Harness& h) { h.send_segment(); }};
  for (const auto& end : ends) {
    int index = 0;
    Harness harness(kRgba, element_of("output=none prompt=red"), "textcross");
    ASSERT_NE(push_until(harness, index, has_vector), nullptr);
    for (const int pause : {0, 1000, 20000, 100000}) {  // the model waits, works, or has found something
      ASSERT_NE(harness.filter(picture(index++)), nullptr);
      g_usleep(pause);
      static_cast<void>(harness.reports());
      end(harness);
      const Buffer out = harness.filter(picture(index++));
      ASSERT_NE(out, nullptr);
      EXPECT_FALSE(has_vector(out.get())) << pause;
      EXPECT_TRUE(harness.reports().empty()) << pause;
    }
    ASSERT_NE(push_until(harness, index, has_vector), nullptr) << "it is sought again";
    for (const Message& message : harness.reports()) {
      double relevance = 0;
      EXPECT_TRUE(
          gst_structure_get_double(gst_message_get_structure(message.get()), "mean-relevance", &relevance));
      EXPECT_GT(relevance, 0.02);
    }
  }
}

// What moves is followed while the model is at work, and lost by no frame.
TEST(Region, FollowsWhatMoves) {
  Harness harness(kRgba, element_of("output=mask prompt=red"), "textcross");
  int index = 0;
  ASSERT_NE(push_until(harness, index, [](GstBuffer* b) { return alpha_at(b, 5, 5) < 255; }), nullptr);
  Buffer out;
  int shift = 0;
  for (; shift < 40; shift += 2) {
    out = harness.filter(picture(index++, shift));
    ASSERT_NE(out, nullptr);
    g_usleep(2000);
  }
  EXPECT_GT(alpha_at(out.get(), kRed.x + shift + 60, kRed.y + 40), 200);
  EXPECT_LT(alpha_at(out.get(), kRed.x - 20, kRed.y + 40), 60);
}

// The PTS of frames in which regions were found.
std::vector<GstClockTime> found_at(Harness& harness) {
  std::vector<GstClockTime> times;
  for (const Message& message : harness.reports()) {
    const GstStructure* said = gst_message_get_structure(message.get());
    if (GstClockTime time = 0;
        gst_structure_has_field(said, "region") && gst_structure_get_clock_time(said, "timestamp", &time)) {
      times.push_back(time);
    }
  }
  return times;
}

// In files each run changes each frame alike, from the first on.
TEST_P(RegionModels, AreFoundInEveryThirdFrameThatWaits) {
  std::vector<Bytes> before;
  for (const char* threads : {"1", "2"}) {
    Harness harness(
        kRgba,
        element_of(std::string("prompt=\"much darker\" region=red region-interval=3 n-threads=") + threads,
                   GetParam()),
        "textcross");
    std::vector<Bytes> frames;
    for (int i = 0; i < 8; ++i) {
      const Buffer out = harness.filter(picture(i, 3 * i));
      ASSERT_NE(out, nullptr);
      const std::vector<int> red = samples_of(out.get(), kRgba, 0);
      EXPECT_LT(at(red, kRed.x + 3 * i + kRed.width / 2, kRed.y + kRed.height / 2), 210) << i;
      EXPECT_NEAR(at(red, 5, 5), 120, 3) << i;
      frames.push_back(bytes_of(out.get()));
    }
    EXPECT_EQ(found_at(harness), (std::vector<GstClockTime>{0, 3 * kFrameDuration, 6 * kFrameDuration}));
    EXPECT_TRUE(before.empty() || before == frames);
    before = frames;
  }
}

TEST(Region, WhatIsWaitedForBeginsAnewAtASeekAndWithAnotherText) {
  Harness harness(kRgba, element_of("output=mask region=red prompt=darker region-interval=5"), "textcross");
  expect_mask(harness.filter(picture(0)).get(), kRed, kBlue);
  expect_mask(harness.filter(picture(1)).get(), kRed, kBlue);
  harness.set("region", "blue");
  expect_mask(harness.filter(picture(2)).get(), kBlue, kRed);
  EXPECT_EQ(found_at(harness), (std::vector<GstClockTime>{0, 2 * kFrameDuration}));
  harness.flush();
  expect_mask(harness.filter(picture(3)).get(), kBlue, kRed);
  EXPECT_EQ(found_at(harness), (std::vector<GstClockTime>{3 * kFrameDuration}));
}

TEST(Region, WaitingCanBeTurnedOnAndOffWhilePlaying) {
  Harness harness(kRgba, element_of("output=mask prompt=red"), "textcross");
  int index = 0;
  for (int i = 0; i < 20; ++i) {
    harness.set("region-interval", "0");
    ASSERT_NE(harness.filter(picture(index++)), nullptr);
    g_usleep(500 * (i % 5));
    harness.set("region-interval", "1");
    expect_mask(harness.filter(picture(index++)).get(), kRed, kBlue);
  }
}

TEST(Region, WithoutAModelThatFindsItThePictureIsChangedWhole) {
  Harness harness(kRgba, "textcross prompt=\"much darker\" region=red transition=0", "textcross");
  const Buffer out = harness.filter(picture(0));
  EXPECT_LT(at(samples_of(out.get(), kRgba, 0), 5, 5), 110);
  const std::vector<Message> warnings = harness.messages(GST_MESSAGE_WARNING);
  ASSERT_EQ(warnings.size(), 1U);
  GError* error = nullptr;
  gst_message_parse_warning(warnings[0].get(), &error, nullptr);
  EXPECT_NE(std::string(error->message).find("\"red\""), std::string::npos) << error->message;
  g_error_free(error);
}

TEST(Region, AFolderWithoutAModelIsNamed) {
  const std::string empty =
      std::filesystem::temp_directory_path() / ("region_test.empty." + std::to_string(getpid()));
  std::filesystem::create_directory(empty);
  const Element pipeline =
      parse("videotestsrc num-buffers=1 ! textcross prompt=red output=mask model=" + empty + " ! fakesink");
  const std::string text = play_to_error(pipeline.get()).text;
  EXPECT_NE(text.find(empty), std::string::npos) << text;
  std::filesystem::remove(empty);
}

TEST(Region, FiftyCyclesOfTheModelsThread) {
  Harness harness(kRgba, element_of("output=mask prompt=red"), "textcross");
  for (int i = 0; i < 50; ++i) {
    gst_element_set_state(harness.element(), GST_STATE_NULL);
    harness.set("region-interval", i % 2 == 0 ? "0" : "1");
    gst_element_set_state(harness.element(), GST_STATE_PLAYING);
    harness.set_format(kRgba);
    ASSERT_NE(harness.filter(picture(i)), nullptr);
  }
}

}  // namespace
}  // namespace nonlocal::test
