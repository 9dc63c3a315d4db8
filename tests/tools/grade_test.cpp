// nonlocal grade: pictures through a filter, and what it refuses.
#include <opencv2/imgcodecs.hpp>

#include "nonlocal/cross_attention_filter.h"
#include "support.h"

namespace {

const std::string kParity = PARITY_FOLDER "/cross_attention_filter";
const std::string kModel =
    " --weights " + kParity + ".safetensors --embeddings " + kParity + "_case.safetensors ";

class GradeTest : public ToolTest {
 protected:
  void SetUp() override {
    ToolTest::SetUp();
    must("ffmpeg -v error -f lavfi -i testsrc2=size=70x40 -frames:v 1 in.png");
  }
};

// The pixels that come out are the filter's.
TEST_F(GradeTest, PicturesAreGraded) {
  const std::string text = must("$TOOL grade in.png out.png --strength 0.5" + kModel);
  EXPECT_EQ(text, "out.png: 70x40, 6 tokens, strength 0.5\n");
  must("$TOOL grade in.png baked.png --baked --strength 0.5" + kModel);
  const cv::Mat in = cv::imread("in.png");
  const cv::Mat out = cv::imread("out.png");
  const cv::Mat baked = cv::imread("baked.png");
  ASSERT_EQ(out.size(), in.size());
  const nonlocal::CrossAttentionFilter filter(
      nonlocal::CrossAttentionModel(kParity + ".safetensors"),
      nonlocal::read_token_embeddings(kParity + "_case.safetensors").tokens());
  double squares = 0;
  for (int y = 0; y < in.rows; ++y) {
    for (int x = 0; x < in.cols; ++x) {
      const cv::Vec3b bgr = in.at<cv::Vec3b>(y, x);
      const auto graded = filter.apply({bgr[2] / 255.0, bgr[1] / 255.0, bgr[0] / 255.0},
                                       (2 * x + 1) / 70.0 - 1, (2 * y + 1) / 40.0 - 1, 0.5);
      for (int c = 0; c < 3; ++c) {
        const double expected = std::clamp(graded[2 - c] * 255, 0.0, 255.0);
        ASSERT_NEAR(out.at<cv::Vec3b>(y, x)[c], expected, 0.51) << x << ", " << y;
        squares += std::pow(baked.at<cv::Vec3b>(y, x)[c] - expected, 2);
      }
    }
  }
  EXPECT_LT(std::sqrt(squares / (70 * 40 * 3)), 3);
  EXPECT_GT(cv::norm(in, out, cv::NORM_INF), 5);
}

TEST_F(GradeTest, DeepPicturesStayDeep) {
  must("ffmpeg -v error -i in.png -pix_fmt rgb48be deep.png");
  must("$TOOL grade deep.png out.png --strength 0" + kModel);
  const cv::Mat in = cv::imread("deep.png", cv::IMREAD_UNCHANGED);
  const cv::Mat out = cv::imread("out.png", cv::IMREAD_UNCHANGED);
  EXPECT_EQ(out.depth(), CV_16U);
  EXPECT_EQ(cv::norm(in, out, cv::NORM_INF), 0);
}

TEST_F(GradeTest, SaysWhatIsWrong) {
  must("echo nonsense > bad.safetensors; echo nonsense > bad.png");
  const auto refused = [](const std::string& arguments, const std::string& message, int status = 1) {
    const auto before = files();
    const Outcome outcome = run("$TOOL grade " + arguments);
    EXPECT_EQ(outcome.status, status) << arguments;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_EQ(outcome.err.find("nonlocal: "), 0U) << outcome.err;
    EXPECT_NE(outcome.err.find(message), std::string::npos) << outcome.err;
    EXPECT_EQ(files(), before);
  };
  refused("none.png out.png" + kModel, "none.png: no such file");
  refused("bad.png out.png" + kModel, "bad.png: no picture");
  refused("in.png out.xyz" + kModel, "out.xyz: expected a name that ends in");
  refused("in.png none/out.png" + kModel, "none/out.png: no such folder");
  refused("in.png out.png --weights bad.safetensors --embeddings bad.safetensors", "bad.safetensors: ");
  refused("in.png out.png --weights " + kParity + ".safetensors --embeddings " + kParity + ".safetensors",
          "expected a tensor \"tokens\"");
  refused("in.png out.png --strength 5" + kModel, "--strength", 2);
  refused("in.png out.png", "--weights", 2);
}

}  // namespace
