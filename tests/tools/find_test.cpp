// nonlocal find: what is planted in a model is found in pictures; what it refuses.
#include <algorithm>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>

#include "support.h"

namespace {

const std::string kParity = PARITY_FOLDER;
const std::string kClip = " --model " + kParity + "/planted_clip.safetensors ";
const std::string kClipSeg = " --model " + kParity + "/planted_clipseg.safetensors ";
const cv::Rect kRed(64, 96, 96, 64);

class FindTest : public ToolTest {
 protected:
  void SetUp() override {
    ToolTest::SetUp();
    cv::Mat picture(240, 320, CV_8UC3, cv::Scalar(120, 120, 120));
    picture(kRed) = cv::Scalar(40, 40, 200);
    picture(cv::Rect(224, 0, 96, 64)) = cv::Scalar(40, 190, 40);
    cv::imwrite("in.png", picture);
  }
};

TEST_F(FindTest, MasksAreWhereThePromptsAnswerLies) {
  for (const std::string& model :
       {kClip + "--side 120", kClip + "--side 120 --features maskclip", kClipSeg}) {
    const std::string text = must("$TOOL find in.png 'a red thing' -o out.png --mask " + model);
    EXPECT_TRUE(text.starts_with("out.png: ")) << text;
    EXPECT_NE(text.find(" % of the picture, within "), std::string::npos) << text;
    const cv::Mat mask = cv::imread("out.png", cv::IMREAD_UNCHANGED);
    ASSERT_EQ(mask.type(), CV_8UC1);
    ASSERT_EQ(mask.size(), cv::Size(320, 240));
    EXPECT_GT(cv::mean(mask(kRed))[0], 200) << model;
    EXPECT_GT(cv::sum(mask(kRed))[0], 0.7 * cv::sum(mask)[0]) << model;
  }
}

TEST_F(FindTest, HeatMapsAreLaidOverThePicture) {
  must("$TOOL find in.png red -o out.png" + kClip);
  const cv::Mat in = cv::imread("in.png");
  const cv::Mat out = cv::imread("out.png");
  ASSERT_EQ(out.size(), in.size());
  // Yellow where it is, dark blue elsewhere: 0.6 of it by default.
  const cv::Vec3b inside = out.at<cv::Vec3b>(128, 112);
  const cv::Vec3b outside = out.at<cv::Vec3b>(200, 20);
  EXPECT_GT(inside[1], 110);
  EXPECT_LT(outside[1], 90);
  must("$TOOL find in.png red -o same.png --opacity 0" + kClip);
  EXPECT_LE(cv::norm(in, cv::imread("same.png"), cv::NORM_INF), 0);
}

TEST_F(FindTest, WhatIsNotThereIsSaid) {
  const std::string text = must("$TOOL find in.png blue -o out.png" + kClip);
  EXPECT_NE(text.find("nowhere above 0.5"), std::string::npos) << text;
}

TEST_F(FindTest, PromptsThatAreCutAreWarnedOf) {
  const Outcome cut = run("$TOOL find in.png \"red $(seq 1 20)\" -o out.png" + kClip);
  EXPECT_EQ(cut.status, 0);
  EXPECT_NE(cut.err.find("has no room"), std::string::npos) << cut.err;
}

TEST_F(FindTest, SaysWhatIsWrong) {
  const auto expect = [](const std::string& arguments, const std::string& words) {
    const Outcome outcome = run("$TOOL find " + arguments);
    EXPECT_NE(outcome.status, 0) << arguments;
    EXPECT_NE(outcome.err.find(words), std::string::npos) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  };
  expect("none.png red -o out.png" + kClip, "none.png: no such file");
  must("cp in.png kept; ln -s in.png link.png");
  expect("in.png red -o ./in.png" + kClip, "the output is the input itself");
  expect("link.png red -o in.png" + kClip, "the output is the input itself");
  must("cmp in.png kept");
  expect("in.png red -o out.xyz" + kClip, "expected a name that ends in .png");
  expect("in.png red -o out.png --model none", "none: expected a folder or a safetensors file");
  expect("in.png red -o out.png --model .", "expected model.safetensors");
  must("cp " + kParity + "/regions_clip.safetensors model.safetensors");
  expect("in.png red -o out.png --model .", "expected a tokenizer");
  expect("in.png red -o out.png --side 12" + kClip, "multiple of 8");
  expect("in.png red -o out.png", "--model");
  EXPECT_FALSE(files().contains("out.png"));
}

// What filter changes in a region: a clip of the picture, with the region in it from the first frame on.
TEST_F(FindTest, FilterChangesWhatARegionsTextSays) {
  must("mkdir clip; cp " + kParity + "/planted_clip.safetensors clip/model.safetensors");
  must("ffmpeg -v error -loop 1 -i in.png -frames:v 14 -pix_fmt bgr0 -c:v ffv1 in.mkv");
  const std::string asked = "in.mkv out.mkv --prompt 'much darker' --region red --model clip --codec ffv1";
  must("$TOOL filter --quiet " + asked);
  must("ffmpeg -v error -i out.mkv out%02d.png");
  for (const char* frame : {"out01.png", "out14.png"}) {
    const cv::Mat out = cv::imread(frame);
    ASSERT_EQ(out.size(), cv::Size(320, 240));
    EXPECT_LT(out.at<cv::Vec3b>(128, 112)[2], 180) << frame;
    EXPECT_NEAR(out.at<cv::Vec3b>(220, 300)[2], 120, 3) << frame;
  }
  const std::string first = frames_md5("out.mkv");
  must("$TOOL filter --quiet " + asked + " --region-interval 10 --threads 1");
  EXPECT_EQ(frames_md5("out.mkv"), first) << "10 is what it is by default; threads do not matter";
}

TEST_F(FindTest, FilterSaysWhatARegionNeeds) {
  make_video("in.mkv", 2);
  for (const std::string& model :
       {std::string(), std::string(" --model grade"), std::string(" --model none")}) {
    const Outcome outcome = run("$TOOL filter in.mkv out.mkv --prompt darker --region red" + model);
    EXPECT_NE(outcome.status, 0);
    EXPECT_NE(outcome.err.find("--region: expected --model with the folder"), std::string::npos)
        << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
  must("mkdir grade");  // the library's model of that name comes first, and finds nothing
  const Outcome named = run("$TOOL filter in.mkv out.mkv --prompt darker --region red --model grade");
  EXPECT_NE(named.err.find("--region: expected --model with the folder"), std::string::npos) << named.err;
  const Outcome outcome = run("$TOOL filter in.mkv out.mkv --denoise --region red");
  EXPECT_NE(outcome.err.find("nonlocaldenoise has no property region"), std::string::npos) << outcome.err;
  EXPECT_FALSE(files().contains("out.mkv"));
}

}  // namespace
