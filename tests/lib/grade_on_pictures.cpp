// How near baked looks come to the exact filter on real pictures: grade_on_pictures FOLDER [WEIGHTS
// EMBEDDINGS]
//
// Without a model: the tests' look, which is like trained ones, without places and with them. For RGB and
// 4:2:0, each at the coarsest sampling and at what `bake` chooses: the least and the mean PSNR of all
// pictures in dB, of outputs of 16 bits (what the sampling costs) and of 8 (rounded alike, mostly), and of
// the picture itself, to see how much the look does.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <string>
#include <vector>

#include "grade_model.h"
#include "nonlocal/frame_grader.h"

namespace {

using namespace nonlocal;

struct Picture {
  std::vector<cv::Mat> planes;  // of 8 bits
};

std::vector<Picture> read(const std::string& folder, bool is_rgb) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  std::vector<Picture> pictures;
  for (const std::string& file : files) {
    const cv::Mat bgr = cv::imread(file);
    if (bgr.empty()) {
      continue;
    }
    Picture& p = pictures.emplace_back();
    cv::Mat channels[3];
    if (is_rgb) {
      cv::split(bgr, channels);
      p.planes = {channels[2], channels[1], channels[0]};
    } else {
      // BT.709, limited.
      cv::Mat f;
      bgr.convertTo(f, CV_32F);
      cv::split(f, channels);
      const cv::Mat luma = 0.0722 * channels[0] + 0.7152 * channels[1] + 0.2126 * channels[2];
      cv::Mat y = luma * (219 / 255.0) + 16;
      cv::Mat cb = (channels[0] - luma) * (224 / 255.0 / 1.8556) + 128;
      cv::Mat cr = (channels[2] - luma) * (224 / 255.0 / 1.5748) + 128;
      cv::resize(cb, cb, {(bgr.cols + 1) / 2, (bgr.rows + 1) / 2}, 0, 0, cv::INTER_AREA);
      cv::resize(cr, cr, cb.size(), 0, 0, cv::INTER_AREA);
      for (const cv::Mat* m : {&y, &cb, &cr}) {
        m->convertTo(p.planes.emplace_back(), CV_8U);
      }
    }
  }
  return pictures;
}

template <typename View>
std::vector<View> views(std::vector<cv::Mat>& planes) {
  std::vector<View> all;
  for (cv::Mat& m : planes) {
    all.push_back({reinterpret_cast<std::byte*>(m.data), m.cols, m.rows,
                   static_cast<std::ptrdiff_t>(m.step[0]), m.depth() == CV_16U ? 16 : 8});
  }
  return all;
}

std::vector<cv::Mat> like(const Picture& p, int depth) {
  std::vector<cv::Mat> planes;
  for (const cv::Mat& m : p.planes) {
    planes.emplace_back(m.size(), depth);
  }
  return planes;
}

double psnr(const std::vector<cv::Mat>& a, const std::vector<cv::Mat>& b) {
  double squares = 0;
  double count = 0;
  for (std::size_t c = 0; c < a.size(); ++c) {
    const double unit = a[c].depth() == CV_16U ? 256 : 1;
    squares += cv::norm(a[c], b[c], cv::NORM_L2SQR) / (unit * unit);
    count += static_cast<double>(a[c].total());
  }
  return 10 * std::log10(255.0 * 255.0 * count / std::max(squares, 1e-9));
}

struct Figures {
  double least = 1e9;
  double sum = 0;
  int count = 0;
  void add(double value) {
    least = std::min(least, value);
    sum += value;
    ++count;
  }
};

void measure(const std::string& name, const CrossAttentionFilter& filter, std::vector<Picture>& pictures,
             const ColourFormat& format) {
  for (const double tolerance : {10.0, GradeLookParameters().tolerance, 0.02}) {
    const auto look = GradeLook::bake(filter, format, {.tolerance = tolerance});
    FrameGrader grader;
    Figures deep;
    Figures bytes;
    Figures change;
    for (Picture& p : pictures) {
      const auto in = views<ConstPlane>(p.planes);
      for (const int depth : {CV_16U, CV_8U}) {
        std::vector<cv::Mat> exact = like(p, depth);
        std::vector<cv::Mat> baked = like(p, depth);
        grader.run(in, views<Plane>(exact), format, filter);
        grader.run(in, views<Plane>(baked), format, *look);
        (depth == CV_16U ? deep : bytes).add(psnr(exact, baked));
        if (depth == CV_8U) {
          change.add(psnr(exact, p.planes));
        }
      }
    }
    std::printf(
        "%-24s %2d^3 x %2dx%d  at random %5.2f codes  16 bits %5.1f least %5.1f mean  8 bits %5.1f %5.1f"
        "  (the picture %4.1f)\n",
        name.c_str(), look->lattice_size(), look->columns(), look->rows(), look->error(), deep.least,
        deep.sum / deep.count, bytes.least, bytes.sum / bytes.count, change.sum / change.count);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 4) {
    std::fprintf(stderr, "usage: grade_on_pictures FOLDER [WEIGHTS EMBEDDINGS]\n");
    return 2;
  }
  try {
    for (const bool is_rgb : {true, false}) {
      const ColourFormat format =
          is_rgb ? ColourFormat{}
                 : ColourFormat{ColourModel::kYCbCr, ColourMatrix::kBt709, ColourRange::kLimited};
      const std::string kind = is_rgb ? "RGB" : "4:2:0";
      std::vector<Picture> pictures = read(argv[1], is_rgb);
      if (argc == 4) {
        measure(kind, {CrossAttentionModel(argv[2]), read_token_embeddings(argv[3]).tokens()}, pictures,
                format);
      } else {
        measure(kind + ", no places", testing::like_trained(false).filter(), pictures, format);
        measure(kind + ", places", testing::like_trained(true).filter(), pictures, format);
      }
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "grade_on_pictures: %s\n", e.what());
    return 1;
  }
}
