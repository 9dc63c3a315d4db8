// What the library throws becomes an error message, whatever it is. This program has a VideoDenoiser::filter
// of its own, which the dynamic linker prefers to the library's.
#include <gtest/gtest.h>

#include <functional>
#include <new>

#include "nonlocal/error.h"
#include "nonlocal/video_denoiser.h"
#include "support.h"

static std::function<void()> fail;

namespace nonlocal {

__attribute__((visibility("default"))) void VideoDenoiser::filter(std::span<const Plane>,
                                                                  std::span<const Plane>,
                                                                  const VideoDenoiserParameters&,
                                                                  std::span<const VideoFrame>) {
  fail();
}

}  // namespace nonlocal

namespace nonlocal::test {
namespace {

struct Outcome {
  GstFlowReturn flow;
  ErrorReport error;
};

Outcome outcome_of(const std::function<void()>& failure) {
  fail = failure;
  const GstVideoInfo info = video_info(GST_VIDEO_FORMAT_GRAY8, 16, 16);
  Harness harness(info);
  harness.set("sigma", "20");
  Outcome outcome{harness.push(noisy_frame(info)), {}};
  EXPECT_FALSE(harness.pull());
  const std::vector<Message> errors = harness.messages(GST_MESSAGE_ERROR);
  EXPECT_EQ(errors.size(), 1u);
  if (!errors.empty()) {
    outcome.error = error_of(errors[0].get());
    EXPECT_GT(outcome.error.text.size(), 20u);
  }
  return outcome;
}

TEST(Errors, AnInvalidArgumentIsOneOfSettings) {
  const Outcome outcome = outcome_of([] { throw InvalidArgument("expected a cat, got a dog"); });
  EXPECT_EQ(outcome.flow, GST_FLOW_ERROR);
  EXPECT_EQ(outcome.error.domain, GST_LIBRARY_ERROR);
  EXPECT_EQ(outcome.error.code, GST_LIBRARY_ERROR_SETTINGS);
  EXPECT_NE(outcome.error.text.find("expected a cat, got a dog"), std::string::npos) << outcome.error.text;
}

TEST(Errors, NoMemoryIsOneOfResources) {
  const Outcome outcome = outcome_of([] { throw std::bad_alloc(); });
  EXPECT_EQ(outcome.flow, GST_FLOW_ERROR);
  EXPECT_EQ(outcome.error.domain, GST_RESOURCE_ERROR);
  EXPECT_EQ(outcome.error.code, GST_RESOURCE_ERROR_NO_SPACE_LEFT);
  EXPECT_NE(outcome.error.text.find("16x16"), std::string::npos) << outcome.error.text;
}

TEST(Errors, AnyOtherIsOneOfTheLibrary) {
  const Outcome outcome = outcome_of([] { throw std::logic_error("the sky fell"); });
  EXPECT_EQ(outcome.flow, GST_FLOW_ERROR);
  EXPECT_EQ(outcome.error.domain, GST_LIBRARY_ERROR);
  EXPECT_EQ(outcome.error.code, GST_LIBRARY_ERROR_FAILED);
  EXPECT_NE(outcome.error.text.find("the sky fell"), std::string::npos) << outcome.error.text;
}

}  // namespace
}  // namespace nonlocal::test
