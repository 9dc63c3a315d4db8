// nonlocal grade: pictures through a filter, and what it refuses.
#include <opencv2/imgcodecs.hpp>

#include "nonlocal/cross_attention_filter.h"
#include "support.h"

namespace {

const std::string kParity = PARITY_FOLDER "/cross_attention_filter";
const std::string kModel =
    " --model " + kParity + ".safetensors --embeddings " + kParity + "_case.safetensors ";

class GradeTest : public ToolTest {
 protected:
  void SetUp() override {
    ToolTest::SetUp();
    must("ffmpeg -v error -f lavfi -i testsrc2=size=70x40 -frames:v 1 in.png");
  }
};

std::vector<cv::Mat> channels_of(const std::string& path) {
  std::vector<cv::Mat> channels;
  cv::split(cv::imread(path, cv::IMREAD_UNCHANGED), channels);
  return channels;
}

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

// What the picture holds beside colours is what it held before.
TEST_F(GradeTest, AlphaStays) {
  std::vector<cv::Mat> channels = channels_of("in.png");
  channels.emplace_back(channels[0].size(), CV_8U);
  for (int x = 0; x < channels[3].cols; ++x) {
    channels[3].col(x).setTo(3 * x);
  }
  cv::Mat rgba;
  cv::merge(channels, rgba);
  cv::imwrite("rgba.png", rgba);
  must("$TOOL grade rgba.png out.png" + kModel + "&& $TOOL grade in.png opaque.png" + kModel);
  const std::vector<cv::Mat> out = channels_of("out.png");
  const std::vector<cv::Mat> opaque = channels_of("opaque.png");
  ASSERT_EQ(out.size(), 4U);
  EXPECT_EQ(cv::norm(out[3], channels[3], cv::NORM_INF), 0);
  for (int c = 0; c < 3; ++c) {
    EXPECT_EQ(cv::norm(out[c], opaque[c], cv::NORM_INF), 0) << c;
  }
}

// A format of 8 bits gets the upper ones of 16.
TEST_F(GradeTest, DeepPicturesFitShallowFiles) {
  must("ffmpeg -v error -i in.png -pix_fmt rgb48be deep.png");
  must("$TOOL grade deep.png out.bmp --strength 0" + kModel);
  EXPECT_LE(cv::norm(cv::imread("in.png"), cv::imread("out.bmp"), cv::NORM_INF), 1);
}

double mean_of(const std::string& path) {
  const cv::Scalar mean = cv::mean(cv::imread(path));
  return (mean[0] + mean[1] + mean[2]) / 3;
}

TEST_F(GradeTest, APromptIsRead) {
  const Outcome dark = run("$TOOL grade in.png dark.png --prompt 'much darker'");
  EXPECT_EQ(dark.status, 0) << dark.err;
  EXPECT_EQ(dark.err, "");
  must("$TOOL grade in.png more.png --prompt 'much darker' --strength 2");
  must("$TOOL grade in.png baked.png --prompt 'much darker' --baked");
  EXPECT_LT(mean_of("dark.png"), mean_of("in.png") - 10);
  EXPECT_LT(mean_of("more.png"), mean_of("dark.png") - 5);
  EXPECT_NEAR(mean_of("baked.png"), mean_of("dark.png"), 1);
  must("$TOOL grade in.png out.png --prompt ' '");
  EXPECT_EQ(cv::norm(cv::imread("in.png"), cv::imread("out.png"), cv::NORM_INF), 0);
}

TEST_F(GradeTest, WhatOfAPromptDoesNotCountIsTold) {
  const Outcome unknown = run("$TOOL grade in.png out.png --prompt 'darker qzxv, Plonk'");
  EXPECT_EQ(unknown.status, 0);
  EXPECT_EQ(unknown.err, "nonlocal: the model has not learned: qzxv, plonk\n");
  const Outcome invalid = run("$TOOL grade in.png out.png --prompt $'darker \\xff'");
  EXPECT_EQ(invalid.status, 0);
  EXPECT_NE(invalid.err.find("not UTF-8 in 1 place"), std::string::npos) << invalid.err;
  const Outcome cut = run("$TOOL grade in.png out.png --prompt \"$(printf 'darker %.0s' {1..500})\"");
  EXPECT_EQ(cut.status, 0);
  EXPECT_NE(cut.err.find("no room for the prompt's last"), std::string::npos) << cut.err;
}

// A row of the pictures as they are, then one of what each prompt makes of them: the same as by themselves.
TEST_F(GradeTest, ASheetShowsPromptsAgainstPictures) {
  must("ffmpeg -v error -f lavfi -i smptebars=size=40x80 -frames:v 1 tall.png");
  const Outcome made =
      run("$TOOL grade --sheet sheet.png --cell 70x40 --prompt 'much darker' --prompt qzxv in.png tall.png");
  EXPECT_EQ(made.status, 0) << made.err;
  EXPECT_EQ(made.err, "nonlocal: the model has not learned: qzxv\n");
  EXPECT_EQ(made.out, "sheet.png: 152x202, 2 prompts, 2 pictures\n");
  const cv::Mat sheet = cv::imread("sheet.png");
  must("$TOOL grade in.png dark.png --prompt 'much darker'");
  const auto cell = [&](int row, int column) { return sheet({4 + 74 * column, 26 + 66 * row, 70, 40}); };
  EXPECT_EQ(cv::norm(cell(0, 0), cv::imread("in.png"), cv::NORM_INF), 0);
  EXPECT_EQ(cv::norm(cell(1, 0), cv::imread("dark.png"), cv::NORM_INF), 0);
  EXPECT_LT(cv::mean(cell(1, 1))[0], cv::mean(cell(0, 1))[0]);
  EXPECT_EQ(cell(0, 1).at<cv::Vec3b>(20, 5), cv::Vec3b(255, 255, 255)) << "a tall picture leaves room";
  EXPECT_NE(cell(0, 1).at<cv::Vec3b>(1, 35), cv::Vec3b(255, 255, 255));
  for (int row = 0; row < 3; ++row) {
    cv::Mat ink;
    cv::extractChannel(sheet({4, 4 + 66 * row, 144, 22}), ink, 0);
    EXPECT_GT(cv::countNonZero(ink < 128), 20) << "label " << row;
  }
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
  refused("in.png ./in.png" + kModel, "./in.png: the output is the input itself");
  refused("--sheet in.png --prompt noir ./in.png", "in.png: the output is the input itself");
  refused("in.png out.xyz" + kModel, "out.xyz: expected a name that ends in");
  refused("in.png none/out.png" + kModel, "none/out.png: no such folder");
  refused("in.png out.png --model ./bad.safetensors --embeddings bad.safetensors", "bad.safetensors: ");
  refused("in.png out.png --model " + kParity + ".safetensors --embeddings " + kParity + ".safetensors",
          "expected a tensor \"tokens\"");
  refused("in.png out.png --strength 5" + kModel, "--strength", 2);
  refused("in.png out.png", "--prompt", 2);
  refused("in.png out.png --prompt a --prompt b", "one --prompt", 2);
  refused("in.png out.png other.png --prompt a", "IN and OUT", 2);
  refused("in.png out.png --prompt a" + kModel, "excludes", 2);
  refused("in.png out.png --prompt a --model none", "none.safetensors: expected in one of these folders");
  refused("in.png out.png --prompt a --model " + kParity + ".safetensors",
          "cross_attention_filter.safetensors: ");
  refused("--sheet s.png --cell 5x5 --prompt a in.png", "--cell: expected WIDTHxHEIGHT");
  refused("--sheet s.png --prompt a in.png none.png", "none.png: no such file");
}

}  // namespace
