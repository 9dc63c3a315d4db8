// nonlocal find: where in a picture a prompt's answer lies.
#include <nonlocal/opencv.h>
#include <nonlocal/region_finder.h>
#include <nonlocal/relevance.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <opencv2/imgproc.hpp>
#include <string>
#include <vector>

#include "commands.h"
#include "option_checks.h"
#include "partial_file.h"
#include "picture_file.h"
#include "progress.h"
#include "prompt.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

struct FindOptions {
  std::string input;
  std::string text;
  std::string model;
  std::string output;
  std::string precision = "f32";
  std::string features = "gem";
  int side = 0;
  double opacity = HeatMapParameters{}.opacity;
  bool is_mask = false;
};

RegionFinderParameters parameters_of(const FindOptions& options) {
  RegionFinderParameters p;
  p.precision = options.precision == "bf16" ? AttentionPrecision::kBfloat16 : AttentionPrecision::kFloat32;
  p.features = options.features == "gem" ? RegionFeatures::kGem : RegionFeatures::kMaskClip;
  p.side = options.side;
  return p;
}

// Channels lie blue first.
template <typename View>
std::vector<View> red_first(const Channels<View>& bgr) {
  return {bgr[2], bgr[1], bgr[0]};
}

cv::Mat as_mat(const ConstMatrix& map) {
  cv::Mat mat(map.rows, map.columns, CV_32F);
  for (int y = 0; y < map.rows; ++y) std::copy_n(map.row(y), map.columns, mat.ptr<float>(y));
  return mat;
}

// The map as gray of 8 bits, between the middles of its cells linearly.
cv::Mat mask_of(const cv::Mat& map, cv::Size size) {
  cv::Mat mask;
  cv::resize(map, mask, size, 0, 0, cv::INTER_LINEAR);
  mask.convertTo(mask, CV_8U, 255);
  return mask;
}

// What the map says in a line: how large it is, its range, and the box around the half of it that is
// relevant.
std::string summary_of(const cv::Mat& map, cv::Size size) {
  double least = 0;
  double most = 0;
  cv::minMaxLoc(map, &least, &most);
  std::string text = formatted("%dx%d cells, relevance %.3f to %.3f", map.cols, map.rows, least, most);
  const cv::Mat is_relevant = map > 0.5;
  const cv::Rect box = cv::boundingRect(is_relevant);
  if (box.empty()) return text + ", nowhere above 0.5";
  const double across = static_cast<double>(size.width) / map.cols;
  const double down = static_cast<double>(size.height) / map.rows;
  const auto pixels = [](double at) { return static_cast<int>(std::lround(at)); };
  return text + formatted(", above 0.5 in %.1f %% of the picture, within %dx%d at (%d, %d)",
                          100.0 * cv::countNonZero(is_relevant) / static_cast<double>(map.total()),
                          pixels(box.width * across), pixels(box.height * down), pixels(box.x * across),
                          pixels(box.y * down));
}

void run(const FindOptions& options) {
  check_picture_name(options.output);
  PartialFile::check_is_not(options.output, options.input, "input");
  cv::Mat picture = read_picture(options.input);
  Progress progress(2, false, "step");
  progress.show(0, "reading the model");
  RegionFinder finder(options.model, parameters_of(options));
  progress.show(1, "looking at the picture");
  finder.set_text(options.text);
  finder.find(red_first(const_view(picture)), {});
  progress.show(2, "");
  const cv::Mat map = as_mat(finder.map());
  if (options.is_mask) {
    write_picture(options.output, mask_of(map, picture.size()));
  } else {
    blend_heat_map(finder.map(), red_first(const_view(picture)), red_first(view(picture)), {},
                   {.opacity = options.opacity});
    write_picture(options.output, picture);
  }
  std::printf("%s: %s\n", options.output.c_str(), summary_of(map, picture.size()).c_str());
  warn_of(finder.text().cut, finder.text().invalid);
}

}  // namespace

void add_find(CLI::App& app) {
  auto* command = app.add_subcommand("find", "Paint where in a picture lies what a prompt asks for");
  command->footer(
      "Relevance is from 0 to 1. By CLIP, 0.5 is as much like the prompt as like anything; by CLIPSeg, its "
      "decoder's\nprobability.");
  const auto options = std::make_shared<FindOptions>();
  command->add_option("IN", options->input, "Any picture that OpenCV reads")->required();
  command->add_option("TEXT", options->text, "What is sought")->required();
  command
      ->add_option("--model", options->model,
                   "CLIP or CLIPSeg: a folder as Hugging Face's, or a .safetensors file")
      ->required();
  command->add_option("-o,--output", options->output, "The picture to write; replaced if it exists")
      ->required();
  command->add_flag("--mask", options->is_mask,
                    "The relevance as gray, in place of a heat map on the picture");
  command->add_option("--opacity", options->opacity, "Of the heat map")
      ->check(number_within(0, 1))
      ->capture_default_str();
  command
      ->add_option("--features", options->features,
                   "What a patch's embedding is by CLIP: by self-self attention, or without attention")
      ->check(CLI::IsMember({"gem", "maskclip"}))
      ->capture_default_str();
  command->add_option(
      "--side", options->side,
      "Samples on the short side that the model sees, a multiple of its patch's; 0: as trained");
  command->add_option("--precision", options->precision, "What is multiplied; bf16 where the CPU has it")
      ->check(CLI::IsMember({"f32", "bf16"}))
      ->capture_default_str();
  command->callback([options] { run(*options); });
}

}  // namespace nonlocal::tools
