// Whether the bundled model does what prompts ask for:
//
//   grade_prompts MODEL SUITE DIRECTED PARAPHRASES NOTHING [FOLDER]
//
// SUITE has a prompt a line, as JSON: its "kind", "prompt" and what is expected, such as "b+" (the mean of
// CIELAB's b* rises), "green.C-" (of pixels that are green to begin with, chroma falls) and "edges-centre.L-"
// (edges become darker than the centre). With "against", another prompt, it is expected of the difference to
// what that one does. The pictures of FOLDER are graded, or, without one, some that are made here.
//
// A prompt is right if each of what it expects is so in the mean over the pictures, by a unit of CIELAB at
// least (half a unit of a spread), and in three of four pictures. A prompt of the kind "nothing" is right if
// the pictures' colours move by less than 1 on average (CIE 1976 colour difference). Fails if fewer per cent
// than told are right of the prompts with a direction, of paraphrases (which the grammar that the model
// learned from does not make) and of "nothing"; or if a baked look is below 45 dB.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <random>
#include <string>
#include <vector>

#include "nonlocal/frame_grader.h"
#include "nonlocal/prompt_reader.h"

namespace {

using namespace nonlocal;
using nlohmann::json;

constexpr double kLeastChange = 1;
constexpr double kLeastSpread = 0.5;
constexpr double kMostOfNothing = 1;
constexpr double kLeastPsnr = 45;
constexpr int kSide = 128;  // pictures are made smaller: means are as good

// ------------------------------------------------------------------------------------------------ pictures

// 8 bits, R, G, B.
using Picture = std::vector<cv::Mat>;

Picture planes_of(const cv::Mat& bgr) {
  Picture p(3);
  for (int c = 0; c < 3; ++c) {
    cv::extractChannel(bgr, p[c], 2 - c);
  }
  return p;
}

std::vector<Picture> read(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  std::vector<Picture> pictures;
  for (const std::string& file : files) {
    if (const cv::Mat bgr = cv::imread(file); !bgr.empty()) {
      cv::Mat small;
      cv::resize(bgr, small, {kSide, kSide * bgr.rows / bgr.cols}, 0, 0, cv::INTER_AREA);
      pictures.push_back(planes_of(small));
    }
  }
  return pictures;
}

// Blobs of random colours over a gradient, as many pale ones as strong ones; and a sky over a meadow.
std::vector<Picture> make() {
  std::vector<Picture> pictures;
  for (int number = 0; number < 4; ++number) {
    std::mt19937 random(static_cast<unsigned>(number) + 1);
    const auto uniform = [&random] { return static_cast<double>(random()) / 4294967296.0; };
    cv::Mat bgr(72, kSide, CV_8UC3);
    for (int y = 0; y < bgr.rows; ++y) {
      const double down = static_cast<double>(y) / bgr.rows;
      const double grey = 60 + 140 * (number % 2 == 0 ? down : 1 - down);
      const cv::Vec3d sky(230 - 60 * down, 180 - 20 * down, 120 + 40 * down);
      const cv::Vec3d meadow(50 + 30 * down, 140 - 50 * down, 70 + 20 * down);
      const cv::Vec3d colour = number < 2 ? cv::Vec3d(grey, grey, grey) : down < 0.5 ? sky : meadow;
      bgr.row(y).setTo(cv::Scalar(colour[0], colour[1], colour[2]));
    }
    for (int i = 0; i < 60; ++i) {
      const double pale = uniform();
      const double light = 255 * std::sqrt(uniform());
      cv::Scalar colour;
      for (int c = 0; c < 3; ++c) {
        colour[c] = light * (pale + (1 - pale) * uniform());
      }
      const cv::Point at(static_cast<int>(uniform() * bgr.cols), static_cast<int>(uniform() * bgr.rows));
      cv::circle(bgr, at, 4 + static_cast<int>(8 * uniform()), colour, cv::FILLED);
    }
    cv::Mat smooth;
    cv::GaussianBlur(bgr, smooth, {}, 1.5);
    pictures.push_back(planes_of(smooth));
  }
  return pictures;
}

template <typename View>
std::vector<View> views(Picture& planes) {
  std::vector<View> all;
  for (cv::Mat& m : planes) {
    all.push_back(
        {reinterpret_cast<std::byte*>(m.data), m.cols, m.rows, static_cast<std::ptrdiff_t>(m.step[0]), 8});
  }
  return all;
}

Picture like(const Picture& p) {
  Picture planes;
  for (const cv::Mat& m : p) {
    planes.emplace_back(m.size(), m.type());
  }
  return planes;
}

double psnr(const Picture& a, const Picture& b) {
  double squares = 0;
  for (int c = 0; c < 3; ++c) {
    squares += cv::norm(a[c], b[c], cv::NORM_L2SQR) / (3.0 * static_cast<double>(a[c].total()));
  }
  return 10 * std::log10(255.0 * 255.0 / std::max(squares, 1e-4));
}

// L*, a*, b*, C* of each pixel.
using Lab = std::vector<std::array<double, 4>>;

Lab lab_of(const Picture& p) {
  cv::Mat rgb;
  cv::merge(p, rgb);
  rgb.convertTo(rgb, CV_32F, 1 / 255.0);
  cv::cvtColor(rgb, rgb, cv::COLOR_RGB2Lab);
  Lab lab;
  for (int y = 0; y < rgb.rows; ++y) {
    for (int x = 0; x < rgb.cols; ++x) {
      const auto& v = rgb.at<cv::Vec3f>(y, x);
      lab.push_back({v[0], v[1], v[2], std::hypot(v[1], v[2])});
    }
  }
  return lab;
}

// ---------------------------------------------------------------------------------------------- measuring

struct Pixel {
  double x, y;  // -1 .. 1
  std::array<double, 4> lab;
  double rank;  // of its lightness: 0 the darkest of the picture, 1 the lightest
};

bool has_hue(const Pixel& p, double degrees) {
  const double off = std::remainder(std::atan2(p.lab[2], p.lab[1]) * 180 / M_PI - degrees, 360.0);
  return p.lab[3] > 12 && std::abs(off) < 30;
}

const std::map<std::string, std::function<bool(const Pixel&)>>& selections() {
  static const std::map<std::string, std::function<bool(const Pixel&)>> all = {
      {"all", [](const Pixel&) { return true; }},
      {"edges", [](const Pixel& p) { return std::max(std::abs(p.x), std::abs(p.y)) > 0.8; }},
      {"centre", [](const Pixel& p) { return std::max(std::abs(p.x), std::abs(p.y)) < 0.4; }},
      {"corners", [](const Pixel& p) { return std::min(std::abs(p.x), std::abs(p.y)) > 0.7; }},
      {"top", [](const Pixel& p) { return p.y < -1.0 / 3; }},
      {"bottom", [](const Pixel& p) { return p.y > 1.0 / 3; }},
      {"left", [](const Pixel& p) { return p.x < -1.0 / 3; }},
      {"right", [](const Pixel& p) { return p.x > 1.0 / 3; }},
      {"dark", [](const Pixel& p) { return p.rank < 0.25; }},
      {"light", [](const Pixel& p) { return p.rank > 0.75; }},
      {"red", [](const Pixel& p) { return has_hue(p, 35); }},
      {"yellow", [](const Pixel& p) { return has_hue(p, 95); }},
      {"green", [](const Pixel& p) { return has_hue(p, 140); }},
      {"blue", [](const Pixel& p) { return has_hue(p, 275); }},
  };
  return all;
}

// A picture before grading.
struct Subject {
  explicit Subject(Picture picture) : planes(std::move(picture)) {
    const Lab lab = lab_of(planes);
    const int width = planes[0].cols;
    const int height = planes[0].rows;
    std::vector<double> sorted;
    for (const auto& v : lab) {
      sorted.push_back(v[0]);
    }
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 0; i < lab.size(); ++i) {
      const auto x = static_cast<double>(i % static_cast<std::size_t>(width));
      const auto y = static_cast<double>(i / static_cast<std::size_t>(width));
      const auto below = std::lower_bound(sorted.begin(), sorted.end(), lab[i][0]) - sorted.begin();
      pixels.push_back({(2 * x + 1) / width - 1, (2 * y + 1) / height - 1, lab[i],
                        static_cast<double>(below) / static_cast<double>(lab.size())});
    }
  }

  Picture planes;
  std::vector<Pixel> pixels;
};

// Mean of what is there of a selection, or nothing where there is too little of it.
struct Mean {
  double value = 0;
  bool is_there = false;
};

constexpr double kLeastShare = 0.005;  // of a picture

Mean mean_of(const Subject& s, const Lab& lab, const std::string& selection, char channel) {
  const auto& is_in = selections().at(selection);
  const auto c = std::string("LabC").find(channel);
  double sum = 0;
  double count = 0;
  for (std::size_t i = 0; i < lab.size(); ++i) {
    if (is_in(s.pixels[i])) {
      sum += lab[i][c];
      ++count;
    }
  }
  return {count == 0 ? 0 : sum / count, count > kLeastShare * static_cast<double>(lab.size())};
}

double spread_of(const Lab& lab) {
  double sum = 0;
  double squares = 0;
  for (const auto& v : lab) {
    sum += v[0];
    squares += v[0] * v[0];
  }
  const auto n = static_cast<double>(lab.size());
  return std::sqrt(std::max(0.0, squares / n - sum / n * (sum / n)));
}

// "edges-centre.L-": a selection, perhaps less another, a channel, a direction.
struct Expectation {
  explicit Expectation(const std::string& text) {
    sign = text.back() == '+' ? 1 : -1;
    const std::string rest = text.substr(0, text.size() - 1);
    const std::size_t dot = rest.find('.');
    if (rest == "spread") {
      is_spread = true;
      return;
    }
    channel = rest.back();
    const std::string where = dot == std::string::npos ? "all" : rest.substr(0, dot);
    const std::size_t less = where.find('-');
    selection = where.substr(0, less);
    other = less == std::string::npos ? "" : where.substr(less + 1);
  }

  [[nodiscard]] Mean of(const Subject& s, const Lab& lab) const {
    if (is_spread) {
      return {spread_of(lab), true};
    }
    const Mean mean = mean_of(s, lab, selection, channel);
    const Mean subtracted = other.empty() ? Mean{0, true} : mean_of(s, lab, other, channel);
    return {mean.value - subtracted.value, mean.is_there && subtracted.is_there};
  }

  bool is_spread = false;
  std::string selection, other;
  char channel = 'L';
  int sign = 1;
};

std::vector<Lab> labs_of(const std::vector<Subject>& subjects) {
  std::vector<Lab> labs;
  for (const Subject& s : subjects) {
    Lab& lab = labs.emplace_back();
    for (const Pixel& p : s.pixels) {
      lab.push_back(p.lab);
    }
  }
  return labs;
}

// ---------------------------------------------------------------------------------------------- the model

struct Graded {
  std::vector<Lab> labs;
  double least_psnr = 1e9;  // of the baked look
};

class Model {
 public:
  explicit Model(const std::string& path) : reader_(path) {}

  Graded grade(const std::string& prompt, std::vector<Subject>& subjects) {
    const PromptReading read = reader_.read(prompt);
    if (!read.filter) {
      return {.labs = labs_of(subjects)};
    }
    const CrossAttentionFilter& filter = *read.filter;
    const auto look = GradeLook::bake(filter, ColourFormat{});
    Graded graded;
    for (Subject& s : subjects) {
      Picture exact = like(s.planes);
      Picture baked = like(s.planes);
      grader_.run(views<ConstPlane>(s.planes), views<Plane>(exact), ColourFormat{}, filter);
      baker_.run(views<ConstPlane>(s.planes), views<Plane>(baked), ColourFormat{}, *look);
      graded.least_psnr = std::min(graded.least_psnr, psnr(exact, baked));
      graded.labs.push_back(lab_of(exact));
    }
    return graded;
  }

 private:
  PromptReader reader_;
  FrameGrader grader_, baker_;
};

// CIE 1976, mean over all pixels.
double difference(const std::vector<Lab>& a, const std::vector<Lab>& b) {
  double sum = 0;
  double count = 0;
  for (std::size_t n = 0; n < a.size(); ++n) {
    for (std::size_t i = 0; i < a[n].size(); ++i) {
      sum += std::hypot(a[n][i][0] - b[n][i][0], a[n][i][1] - b[n][i][1], a[n][i][2] - b[n][i][2]);
      ++count;
    }
  }
  return sum / count;
}

struct Answer {
  bool is_right = true;
  std::string found;  // "b* +3.2 (24 of 24)"
};

Answer judge(const std::vector<Subject>& subjects, const std::vector<Lab>& before,
             const std::vector<Lab>& after, const std::string& expected) {
  const Expectation e(expected);
  double sum = 0;
  int agreeing = 0;
  int count = 0;
  for (std::size_t n = 0; n < subjects.size(); ++n) {
    const Mean was = e.of(subjects[n], before[n]);
    if (was.is_there) {
      const double change = e.of(subjects[n], after[n]).value - was.value;
      sum += change;
      agreeing += change * e.sign > 0 ? 1 : 0;
      ++count;
    }
  }
  const double mean = count == 0 ? 0 : sum / count;
  const double least = e.is_spread ? kLeastSpread : kLeastChange;
  char text[100];
  std::snprintf(text, sizeof text, "%s %+.1f (%d of %d)  ", expected.c_str(), mean, agreeing, count);
  return {mean * e.sign >= least && 4 * agreeing >= 3 * count, text};
}

// --------------------------------------------------------------------------------------------- the suite

struct Score {
  int right = 0;
  int count = 0;
  void add(bool is_right) {
    right += is_right ? 1 : 0;
    ++count;
  }
  [[nodiscard]] double share() const { return count == 0 ? 0 : static_cast<double>(right) / count; }
};

// Per cent that are to be right.
struct Least {
  double directed, paraphrases, nothing;
};

int run(const std::string& model_path, const std::string& suite, const Least& least,
        const std::string& folder) {
  Model model(model_path);
  std::vector<Subject> subjects;
  for (Picture& p : folder.empty() ? make() : read(folder)) {
    subjects.emplace_back(std::move(p));
  }
  const std::vector<Lab> before = labs_of(subjects);
  std::map<std::string, Score> scores;
  Score directed;
  double least_psnr = 1e9;
  std::string worst_baked;
  std::ifstream file(suite);
  for (std::string line; std::getline(file, line);) {
    const json entry = json::parse(line);
    const auto kind = entry["kind"].get<std::string>();
    const auto prompt = entry["prompt"].get<std::string>();
    const Graded graded = model.grade(prompt, subjects);
    if (graded.least_psnr < least_psnr) {
      least_psnr = graded.least_psnr;
      worst_baked = prompt;
    }
    Answer answer;
    if (kind == "nothing") {
      const double moved = difference(before, graded.labs);
      answer = {moved < kMostOfNothing, "mean difference " + std::to_string(moved).substr(0, 5)};
    } else {
      const std::vector<Lab> from =
          entry.contains("against") ? model.grade(entry["against"], subjects).labs : before;
      for (const json& expected : entry["expect"]) {
        const Answer one = judge(subjects, from, graded.labs, expected);
        answer.is_right = answer.is_right && one.is_right;
        answer.found += one.found;
      }
      if (kind != "paraphrase") {
        directed.add(answer.is_right);
      }
    }
    scores[kind].add(answer.is_right);
    std::printf("%-6s %-10s %-62s %s\n", answer.is_right ? "right" : "WRONG", kind.c_str(), prompt.c_str(),
                answer.found.c_str());
    std::fflush(stdout);
  }
  std::printf("\n%zu pictures\n", subjects.size());
  for (const auto& [kind, score] : scores) {
    std::printf("%-12s %3d of %3d\n", kind.c_str(), score.right, score.count);
  }
  std::printf("directed: %d of %d (%.1f %%); baked looks: %.1f dB at least (\"%s\")\n", directed.right,
              directed.count, 100 * directed.share(), least_psnr, worst_baked.c_str());
  const bool is_good = !subjects.empty() && !scores.empty() && 100 * directed.share() >= least.directed &&
                       100 * scores["paraphrase"].share() >= least.paraphrases &&
                       100 * scores["nothing"].share() >= least.nothing && least_psnr >= kLeastPsnr;
  return is_good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6 && argc != 7) {
    std::fprintf(stderr, "usage: grade_prompts MODEL SUITE DIRECTED PARAPHRASES NOTHING [FOLDER]\n");
    return 2;
  }
  try {
    constexpr int kSkipped = 77;
    const std::string folder = argc == 7 ? argv[6] : "";
    if (!folder.empty() && !std::filesystem::is_directory(folder)) {
      std::fprintf(stderr, "grade_prompts: no pictures in %s\n", folder.c_str());
      return kSkipped;
    }
    return run(argv[1], argv[2], {std::stod(argv[3]), std::stod(argv[4]), std::stod(argv[5])}, folder);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "grade_prompts: %s\n", e.what());
    return 1;
  }
}
