// nonlocal filter on pictures, numbered pictures and several files: what a file holds is kept, a clip is a
// clip, and one bad file is no harm to the others.
#include <cmath>
#include <iterator>
#include <opencv2/imgcodecs.hpp>
#include <utility>

#include "support.h"

namespace {

namespace fs = std::filesystem;

cv::Mat stored(const std::string& path) { return cv::imread(path, cv::IMREAD_UNCHANGED); }

// Waves of each channel's own, within the range, so that noise is not clipped.
cv::Mat waves(int type, double most) {
  cv::Mat picture(48, 64, CV_MAKETYPE(CV_64F, CV_MAT_CN(type)));
  for (int y = 0; y < picture.rows; ++y)
    for (int x = 0; x < picture.cols * picture.channels(); ++x) {
      const int channel = x % picture.channels();
      picture.ptr<double>(y)[x] = most * (0.5 + 0.25 * std::sin(0.07 * x + 0.13 * y * (channel + 1)));
    }
  cv::Mat result;
  picture.convertTo(result, type);
  return result;
}

cv::Mat noisy(const cv::Mat& clean, double sigma, uint64_t seed) {
  cv::Mat noise(clean.size(), CV_MAKETYPE(CV_64F, clean.channels()));
  cv::RNG(seed).fill(noise, cv::RNG::NORMAL, 0, sigma);
  cv::Mat exact;
  clean.convertTo(exact, CV_64F);
  cv::Mat result;
  cv::Mat(exact + noise).convertTo(result, clean.type());
  return result;
}

double mean_square(const cv::Mat& a, const cv::Mat& b) {
  const double norm = cv::norm(a, b, cv::NORM_L2);
  return norm * norm / static_cast<double>(a.total() * a.channels());
}

struct Kind {
  const char* name;
  int type;
  double most;
  double tolerance;
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

class FilterPicturesTest : public ToolTest {
 protected:
  static void make_noisy(const std::string& path, int type = CV_8UC3, double most = 255, uint64_t seed = 1) {
    ASSERT_TRUE(cv::imwrite(path, noisy(waves(type, most), most * 12 / 255, seed)));
  }

  static void expect_refusal(const std::string& command, const std::string& words) {
    const std::set<std::string> before = files();
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.status, 1) << command;
    EXPECT_NE(outcome.err.find(words), std::string::npos) << command << "\n" << outcome.err;
    EXPECT_EQ(files(), before) << command;
  }
};

class FilterPictureKindsTest : public FilterPicturesTest, public testing::WithParamInterface<Kind> {};

TEST_P(FilterPictureKindsTest, WithoutStrengthNothingChanges) {
  const Kind& kind = GetParam();
  make_noisy("in.png", kind.type, kind.most);
  must("$TOOL filter in.png out.png --strength 0 --chroma-strength 0");
  const cv::Mat in = stored("in.png");
  const cv::Mat out = stored("out.png");
  ASSERT_EQ(in.type(), kind.type);
  ASSERT_EQ(out.type(), kind.type);
  EXPECT_LE(cv::norm(in, out, cv::NORM_INF), kind.tolerance);
}

TEST_P(FilterPictureKindsTest, ComesNearerToTheCleanOne) {
  const Kind& kind = GetParam();
  make_noisy("in.png", kind.type, kind.most);
  const std::string report = must("$TOOL filter in.png out.png");
  EXPECT_NE(report.find("out.png: 64x48"), std::string::npos) << report;
  const cv::Mat clean = waves(kind.type, kind.most);
  const cv::Mat in = stored("in.png");
  const cv::Mat out = stored("out.png");
  ASSERT_EQ(out.type(), kind.type);
  // Alpha passes by: it counts as not denoised.
  EXPECT_LT(mean_square(out, clean), mean_square(in, clean) * (in.channels() == 4 ? 0.6 : 0.4));
}

// 16-bit is filtered with 10 bits: half a step up to two roundings, and those of the matrix.
INSTANTIATE_TEST_SUITE_P(Kinds, FilterPictureKindsTest,
                         testing::Values(Kind{"gray", CV_8UC1, 255, 0}, Kind{"colour", CV_8UC3, 255, 0},
                                         Kind{"alpha", CV_8UC4, 255, 0},
                                         Kind{"deep_gray", CV_16UC1, 65535, 0},
                                         Kind{"deep_colour", CV_16UC3, 65535, 65535 * 1.4 / 1023}),
                         [](const auto& info) { return info.param.name; });

TEST_F(FilterPicturesTest, AlphaPassesBy) {
  make_noisy("in.png", CV_8UC4);
  make_noisy("deep.png", CV_16UC4, 65535);
  for (const std::string name : {"in.png", "deep.png"}) {
    must("$TOOL filter " + name + " out.png --denoise fast --prompt \"much warmer\"");
    const cv::Mat in = stored(name);
    const cv::Mat out = stored("out.png");
    ASSERT_EQ(out.type(), in.type());
    EXPECT_GT(cv::norm(in, out, cv::NORM_INF), 0);
    std::vector<cv::Mat> before;
    std::vector<cv::Mat> after;
    cv::split(in, before);
    cv::split(out, after);
    EXPECT_EQ(cv::norm(before[3], after[3], cv::NORM_INF), 0);
  }
}

TEST_F(FilterPicturesTest, SaysWhatIsLost) {
  make_noisy("deep.png", CV_16UC3, 65535);
  make_noisy("gray.png", CV_16UC1, 65535);
  make_noisy("alpha.png", CV_8UC4);
  const auto warnings = [](const std::string& names) { return run("$TOOL filter " + names).err; };
  EXPECT_NE(warnings("deep.png out.png").find("is filtered with 10"), std::string::npos);
  EXPECT_NE(warnings("deep.png out.jpg").find("out.jpg: holds 8 bits a channel"), std::string::npos);
  EXPECT_NE(warnings("alpha.png out.jpg").find("out.jpg: holds no alpha"), std::string::npos);
  EXPECT_NE(warnings("deep.png out.png --attention " PARITY_FOLDER "/network_convolutions.safetensors")
                .find("is filtered with 8"),
            std::string::npos);
  EXPECT_EQ(warnings("gray.png out.tif"), "");
  EXPECT_EQ(warnings("alpha.png out.webp"), "");
}

TEST_F(FilterPicturesTest, PromptColoursGray) {
  make_noisy("in.png", CV_8UC1);
  must("$TOOL filter in.png out.png --prompt \"much warmer\"");
  const cv::Mat out = stored("out.png");
  ASSERT_EQ(out.type(), CV_8UC3);
  const cv::Scalar mean = cv::mean(out);
  EXPECT_GT(mean[2], mean[0] + 5) << mean;
}

TEST_F(FilterPicturesTest, FiltersWorkInTheOrderGiven) {
  make_noisy("in.png");
  must("$TOOL filter in.png first.png --denoise fast");
  must("$TOOL filter first.png second.png --prompt \"much warmer\"");
  must("$TOOL filter in.png both.png --denoise fast --prompt \"much warmer\"");
  EXPECT_EQ(cv::norm(stored("both.png"), stored("second.png"), cv::NORM_INF), 0);
  EXPECT_GT(cv::norm(stored("both.png"), stored("first.png"), cv::NORM_INF), 0);
}

// Nothing moves: what the last picture has learned of those before takes noise away that it could not alone.
TEST_F(FilterPicturesTest, NumberedPicturesAreOneClip) {
  for (int i = 8; i < 20; ++i) make_noisy("in_" + std::to_string(i) + ".png", CV_8UC3, 255, i);
  const auto result = filter("in_%d.png out/ --denoise balanced --sigma 12");
  EXPECT_EQ(result.value("frames_in", 0), 12);
  EXPECT_EQ(result.value("frames_out", 0), 12);
  EXPECT_EQ(std::distance(fs::directory_iterator("out"), fs::directory_iterator()), 12);
  must("$TOOL filter in_19.png alone.png --denoise balanced --sigma 12");
  const cv::Mat clean = waves(CV_8UC3, 255);
  EXPECT_LT(mean_square(stored("out/in_19.png"), clean), 0.8 * mean_square(stored("alone.png"), clean));
}

// Filtered alone, each is itself: in order, and under its number.
TEST_F(FilterPicturesTest, NumberedPicturesKeepTheirNumbers) {
  for (const char* number : {"098", "099", "100"})
    make_noisy("in" + std::string(number) + ".png", CV_8UC3, 255, number[2]);
  must("$TOOL filter in%03d.png 'out %d.tif' --denoise fast");
  for (const auto& [in, out] :
       {std::pair{"in098.png", "out 98.tif"}, {"in099.png", "out 99.tif"}, {"in100.png", "out 100.tif"}}) {
    const cv::Mat filtered = stored(out);
    ASSERT_FALSE(filtered.empty()) << out;
    EXPECT_LT(mean_square(stored(in), filtered), 200) << out;
    EXPECT_GT(mean_square(stored("in098.png"), filtered) + (in == std::string("in098.png") ? 1e9 : 0),
              mean_square(stored(in), filtered))
        << out;
  }
}

TEST_F(FilterPicturesTest, NamesTheNumberThatIsMissing) {
  for (const int i : {1, 2, 4}) make_noisy("in" + std::to_string(i) + ".png");
  expect_refusal("$TOOL filter in%d.png out_%d.png", "in3.png: is missing between in1.png and in4.png");
  expect_refusal("$TOOL filter none%d.png out_%d.png", "none%d.png: no file of such a name");
  expect_refusal("$TOOL filter in%d.png out.png", "out.png: expected a folder, or a name with a number");
}

TEST_F(FilterPicturesTest, NumberedPicturesAreOfOneKind) {
  make_noisy("in0.png");
  ASSERT_TRUE(cv::imwrite("in1.png", cv::Mat(20, 20, CV_8UC3, cv::Scalar::all(9))));
  const Outcome outcome = run("$TOOL filter in%d.png out%d.png");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("in1.png: expected the same size"), std::string::npos) << outcome.err;
}

TEST_F(FilterPicturesTest, OneThatFailsIsNamedAndTheOthersGoOn) {
  make_noisy("a.png");
  make_noisy("b.jpg");
  make_video("film.mkv", 3);
  must("echo no picture > bad.png");
  const Outcome outcome = run("$TOOL filter a.png bad.png film.mkv none.png b.jpg new/out/ --preset fast");
  EXPECT_EQ(outcome.status, 1);
  for (const char* words :
       {"nonlocal: bad.png: no picture", "nonlocal: none.png: no such file", "2 of 5 files failed"})
    EXPECT_NE(outcome.err.find(words), std::string::npos) << outcome.err;
  EXPECT_EQ(stored("new/out/a.png").size(), cv::Size(64, 48));
  EXPECT_EQ(stored("new/out/b.jpg").size(), cv::Size(64, 48));
  EXPECT_EQ(count_frames("new/out/film.mkv"), 3);
  EXPECT_EQ(std::distance(fs::directory_iterator("new/out"), fs::directory_iterator()), 3);
}

TEST_F(FilterPicturesTest, NeverReplacesAnInput) {
  fs::create_directory("sub");
  make_noisy("a.png");
  make_noisy("b.png");
  make_noisy("sub/a.png");
  make_noisy("n1.png");
  for (const char* names : {"a.png a.png", "a.png ./a.png", "a.png .", "a.png b.png sub/..",
                            "sub/a.png a.png .", "n%d.png ./n%d.png", "n%d.png ."})
    expect_refusal(std::string("$TOOL filter ") + names, "the output is the input itself");
  expect_refusal("$TOOL filter a.png sub/a.png out/", "both a.png and sub/a.png would go there");
  expect_refusal("$TOOL filter a.png b.png n1.jpg", "several files go to a folder");
}

TEST_F(FilterPicturesTest, RefusesWhatPicturesAreNot) {
  make_noisy("a.png");
  make_video("film.mkv", 2);
  expect_refusal("$TOOL filter a.png out.mkv", "out.mkv: pictures go to pictures");
  expect_refusal("$TOOL filter film.mkv out.png", "out.png: the output's name must end in");
  expect_refusal("$TOOL filter a.png out.png --resume", "pictures go without --resume");
  fs::create_directory("out");
  expect_refusal("$TOOL filter a.png film.mkv out/ --reference film.mkv",
                 "go without --picture and --reference");
  expect_refusal("$TOOL filter a.png none/out.png", "no such folder: none");
  expect_refusal("$TOOL filter a.png out.png --sigma 500", "takes for sigma from -1 to 100, not 500");
}

TEST_F(FilterPicturesTest, JsonEndsAsForVideos) {
  make_noisy("a.png");
  make_video("film.mkv", 3);
  const auto of_picture = filter("a.png out.png");
  const auto of_video = filter("film.mkv out.mkv");
  EXPECT_EQ(of_picture.value("event", ""), "end");
  for (const auto& item : of_video.items()) EXPECT_TRUE(of_picture.contains(item.key())) << item.key();
  EXPECT_EQ(of_picture["width"], 64);
  EXPECT_TRUE(of_picture["codec"].is_null());
  const Outcome several = run("$TOOL filter a.png none.png film.mkv out/ --json --preset fast");
  std::vector<std::string> ends;
  for (const auto& event : events(several.out))
    if (event.value("event", "") == "end" || event.value("event", "") == "error")
      ends.push_back(event.value("event", "") + " " + event.value("input", ""));
  EXPECT_EQ(ends, (std::vector<std::string>{"end a.png", "error none.png", "end film.mkv"}));
}

}  // namespace
