// Views of cv::Mat: they show and change the right samples, and what cannot be viewed is refused.
#include "nonlocal/opencv.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <opencv2/core.hpp>
#include <string>
#include <vector>

#include "nonlocal/non_local_means.h"

namespace {

using nonlocal::const_view;
using nonlocal::InvalidArgument;
using nonlocal::view;

template <typename View>
int sample(const View& plane, int x, int y) {
  const auto* at = plane.row(y) + x * plane.step * plane.bytes_per_sample();
  if (plane.bytes_per_sample() == 1) return std::to_integer<int>(*at);
  std::uint16_t value;
  std::memcpy(&value, at, sizeof value);
  return value >> plane.shift;
}

cv::Mat random_picture(int width, int height, int type) {
  cv::Mat picture(height, width, type);
  cv::RNG random(11);
  random.fill(picture, cv::RNG::UNIFORM, 0, CV_MAT_DEPTH(type) == CV_8U ? 256 : 1024);
  return picture;
}

std::string refusal(const cv::Mat& mat, int bit_depth = 0) {
  try {
    (void)const_view(mat, bit_depth);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "taken";
}

class OpenCvTypes : public testing::TestWithParam<int> {};

TEST_P(OpenCvTypes, EveryChannelShowsTheMatsSamples) {
  const cv::Mat whole = random_picture(13, 9, GetParam());
  const cv::Mat part = whole(cv::Rect(3, 2, 7, 5));  // its rows have a gap between them
  for (const cv::Mat& picture : {whole, part}) {
    const auto channels = const_view(picture);
    ASSERT_EQ(channels.size(), static_cast<std::size_t>(picture.channels()));
    std::vector<cv::Mat> expected;
    cv::split(picture, expected);
    for (std::size_t c = 0; c < channels.size(); ++c) {
      ASSERT_EQ(channels[c].width, picture.cols);
      ASSERT_EQ(channels[c].height, picture.rows);
      EXPECT_EQ(channels[c].bit_depth, picture.depth() == CV_8U ? 8 : 16);
      for (int y = 0; y < picture.rows; ++y)
        for (int x = 0; x < picture.cols; ++x) {
          const int value = picture.depth() == CV_8U ? expected[c].at<std::uint8_t>(y, x)
                                                     : expected[c].at<std::uint16_t>(y, x);
          ASSERT_EQ(sample(channels[c], x, y), value) << "channel " << c << " at " << x << ", " << y;
        }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, OpenCvTypes,
                         testing::Values(CV_8UC1, CV_8UC2, CV_8UC3, CV_8UC4, CV_16UC1, CV_16UC2, CV_16UC3,
                                         CV_16UC4));

TEST(OpenCv, WritingGoesIntoTheMat) {
  cv::Mat picture = cv::Mat::zeros(4, 6, CV_8UC3);
  const auto channels = view(picture);
  channels[2].row(3)[5 * channels[2].step] = std::byte{77};
  EXPECT_EQ(picture.at<cv::Vec3b>(3, 5), cv::Vec3b(0, 0, 77));
  EXPECT_EQ(cv::sum(picture), cv::Scalar(0, 0, 77));
}

TEST(OpenCv, FiltersARegionInPlaceAndNothingElse) {
  cv::Mat picture = random_picture(40, 32, CV_8UC3);
  const cv::Mat before = picture.clone();
  const cv::Rect inside(8, 6, 20, 16);
  cv::Mat region = picture(inside);
  nonlocal::NonLocalMeans().filter(const_view(region), view(region), {.sigma = 60, .threads = 1});
  EXPECT_GT(cv::norm(picture(inside), before(inside), cv::NORM_INF), 10);
  picture(inside).setTo(0);
  before(inside).setTo(0);
  EXPECT_EQ(cv::norm(picture, before, cv::NORM_INF), 0);
}

TEST(OpenCv, BitDepthIsTheMatsOrTheOneGiven) {
  const cv::Mat deep = random_picture(5, 5, CV_16UC1);
  EXPECT_EQ(const_view(deep, 10)[0].bit_depth, 10);
  EXPECT_EQ(const_view(deep)[0].bit_depth, 16);
  EXPECT_EQ(refusal(deep, 8), "cv::Mat: expected a bit depth of 9 to 16 for CV_16UC1, came 8");
  EXPECT_EQ(refusal(deep, 17), "cv::Mat: expected a bit depth of 9 to 16 for CV_16UC1, came 17");
  EXPECT_EQ(refusal(cv::Mat(2, 2, CV_8UC3), 10), "cv::Mat: expected a bit depth of 8 for CV_8UC3, came 10");
}

TEST(OpenCv, RefusesWhatHasNoViews) {
  const std::string types = "cv::Mat: expected CV_8U or CV_16U with 1 to 4 channels, came ";
  EXPECT_EQ(refusal(cv::Mat(3, 3, CV_32FC3)), types + "CV_32FC3");
  EXPECT_EQ(refusal(cv::Mat(3, 3, CV_8SC1)), types + "CV_8SC1");
  EXPECT_EQ(refusal(cv::Mat(3, 3, CV_16SC1)), types + "CV_16SC1");
  EXPECT_EQ(refusal(cv::Mat(3, 3, CV_8UC(5))), types + "CV_8UC5");
  const std::string shape = "cv::Mat: expected a picture of two dimensions, came ";
  EXPECT_EQ(refusal(cv::Mat()), shape + "an empty one");
  const int sizes[] = {2, 3, 4};
  EXPECT_EQ(refusal(cv::Mat(3, sizes, CV_8UC1)), shape + "3 dimensions");
}

}  // namespace
