// nonlocal grade: a still picture through a cross-attention filter.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <opencv2/imgcodecs.hpp>
#include <string>
#include <vector>

#include "commands.h"
#include "failure.h"
#include "nonlocal/frame_grader.h"
#include "nonlocal/opencv.h"
#include "partial_file.h"

namespace nonlocal::tools {
namespace {

struct GradeOptions {
  std::string input;
  std::string output;
  std::string weights;
  std::string embeddings;
  double strength = 1;
  bool is_baked = false;
};

cv::Mat read_picture(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) throw Failure(path + ": no such file");
  cv::Mat picture = cv::imread(path, cv::IMREAD_COLOR | cv::IMREAD_ANYDEPTH);
  if (picture.empty()) throw Failure(path + ": no picture that OpenCV reads");
  if (picture.depth() != CV_8U && picture.depth() != CV_16U)
    throw Failure(path + ": expected a picture of 8 or 16 bits a channel, found floating point");
  return picture;
}

void write_picture(const std::string& path, const cv::Mat& picture) {
  PartialFile file(path);
  bool is_written = false;
  try {
    is_written = cv::imwrite(file.path().string(), picture);
  } catch (const cv::Exception&) {  // its message is of many lines
  }
  if (!is_written) throw Failure(path + ": could not be written");
  file.commit();
}

// Channels lie blue first.
template <typename View>
std::vector<View> red_first(const Channels<View>& channels) {
  const std::span<const View> bgr = channels;
  return {bgr[2], bgr[1], bgr[0]};
}

void run(const GradeOptions& options) {
  if (!cv::haveImageWriter(options.output))
    throw Failure(options.output + ": expected a name that ends in .png, .jpg or another that OpenCV writes");
  const CrossAttentionModel model(options.weights);
  const TokenEmbeddings prompt = read_token_embeddings(options.embeddings);
  if (prompt.dim != model.embedding_dim())
    throw Failure(options.embeddings + ": expected tokens of " + std::to_string(model.embedding_dim()) +
                  " dimensions, as " + options.weights + " has them, found " + std::to_string(prompt.dim));
  const CrossAttentionFilter filter(model, prompt.tokens());
  cv::Mat picture = read_picture(options.input);
  const auto in = red_first(const_view(picture));
  const auto out = red_first(view(picture));
  FrameGrader grader;
  if (options.is_baked) {
    grader.run(in, out, {}, *GradeLook::bake(filter, {}), {.strength = options.strength});
  } else {
    grader.run(in, out, {}, filter, {.strength = options.strength});
  }
  write_picture(options.output, picture);
  std::printf("%s: %dx%d, %d tokens, strength %g\n", options.output.c_str(), picture.cols, picture.rows,
              prompt.count, options.strength);
}

}  // namespace

void add_grade(CLI::App& app) {
  auto* command = app.add_subcommand("grade", "Change a picture's colours as a prompt's tokens ask for");
  const auto options = std::make_shared<GradeOptions>();
  command->add_option("IN", options->input, "Any picture that OpenCV reads; alpha is dropped")->required();
  command->add_option("OUT", options->output, "The picture to write, .png or .jpg; replaced if it exists")
      ->required();
  command->add_option("--weights", options->weights, "The model: a .safetensors file")->required();
  command->add_option("--embeddings", options->embeddings, "The prompt: a .safetensors file with \"tokens\"")
      ->required();
  command->add_option("--strength", options->strength, "How much of the change: 0 none, 1 as trained")
      ->check(CLI::Range(0.0, 4.0))
      ->capture_default_str();
  command->add_flag("--baked", options->is_baked,
                    "By way of lattices, as video is graded: faster, less exact");
  command->callback([options] { run(*options); });
}

}  // namespace nonlocal::tools
