// nonlocal grade: still pictures as a prompt asks for them, one by one or as a contact sheet.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <opencv2/imgproc.hpp>
#include <optional>
#include <string>
#include <vector>

#include "commands.h"
#include "contact_sheet.h"
#include "failure.h"
#include "model_file.h"
#include "nonlocal/frame_grader.h"
#include "nonlocal/opencv.h"
#include "nonlocal/prompt_reader.h"
#include "option_checks.h"
#include "partial_file.h"
#include "picture_file.h"
#include "progress.h"
#include "prompt.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

struct GradeOptions {
  std::vector<std::string> files;
  std::vector<std::string> prompts;
  std::string embeddings;
  std::string model = kPromptModel;
  double strength = 1;
  bool is_baked = false;
  std::string sheet;
  std::string cell = "240x160";
};

// A prompt, and what it does.
struct Grade {
  std::string label;
  std::optional<CrossAttentionFilter> filter;  // none: nothing
  std::shared_ptr<const GradeLook> baked;      // where asked for
};

// ----------------------------------------------------------------------------------------------- the words

Grade read_embeddings(const std::string& file, const std::string& model_path) {
  const CrossAttentionModel model(model_path);
  const TokenEmbeddings prompt = read_token_embeddings(file);
  if (prompt.dim != model.embedding_dim())
    throw Failure(file + ": expected tokens of " + std::to_string(model.embedding_dim()) +
                  " dimensions, as " + model_path + " has them, found " + std::to_string(prompt.dim));
  return {file, CrossAttentionFilter(model, prompt.tokens()), nullptr};
}

std::vector<Grade> read_prompts(const std::vector<std::string>& prompts, const std::string& model) {
  PromptReader reader(model);
  std::vector<Grade> grades;
  for (const std::string& prompt : prompts) {
    PromptReading read = reader.read(prompt);
    warn_of(read);
    grades.push_back({prompt, std::move(read.filter), nullptr});
  }
  return grades;
}

std::vector<Grade> read_grades(const GradeOptions& options) {
  const std::string model = model_file(options.model);
  std::vector<Grade> grades = options.embeddings.empty()
                                  ? read_prompts(options.prompts, model)
                                  : std::vector{read_embeddings(options.embeddings, model)};
  for (Grade& grade : grades)
    if (options.is_baked && grade.filter) grade.baked = GradeLook::bake(*grade.filter, {});
  return grades;
}

// -------------------------------------------------------------------------------------------- the pictures

// Channels lie blue first; alpha, behind them, is left alone.
template <typename View>
std::vector<View> red_first(const Channels<View>& channels) {
  return {channels[2], channels[1], channels[0]};
}

void apply(const Grade& grade, cv::Mat& picture, double strength) {
  if (!grade.filter) return;
  const auto in = red_first(const_view(picture));
  const auto out = red_first(view(picture));
  const GradeParameters parameters{.strength = strength, .threads = 0};
  if (grade.baked) {
    FrameGrader().run(in, out, {}, *grade.baked, parameters);
  } else {
    FrameGrader().run(in, out, {}, *grade.filter, parameters);
  }
}

void grade_one(const GradeOptions& options, const std::string& in, const std::string& out) {
  check_picture_name(out);
  PartialFile::check_is_not(out, in, "input");
  const Grade grade = read_grades(options).at(0);
  cv::Mat picture = read_picture(in);
  apply(grade, picture, options.strength);
  write_picture(out, picture);
  std::printf("%s: %dx%d, %d tokens, strength %g\n", out.c_str(), picture.cols, picture.rows,
              grade.filter ? grade.filter->tokens() : 0, options.strength);
}

// ----------------------------------------------------------------------------------------------- the sheet

// A picture as a cell shows it. The filter sees colours and relative places alone, so that it may come after.
cv::Mat miniature(const std::string& path, cv::Size cell) {
  cv::Mat picture = read_picture(path);
  if (picture.depth() == CV_16U) picture.convertTo(picture, CV_8U, 1 / 257.0);
  if (picture.channels() == 4) cv::cvtColor(picture, picture, cv::COLOR_BGRA2BGR);
  cv::Mat small;
  cv::resize(picture, small, fitted(picture.size(), cell), 0, 0, cv::INTER_AREA);
  return small;
}

cv::Size read_cell(const std::string& text) {
  constexpr int kLeast = 16;
  constexpr int kMost = 4096;
  cv::Size cell;
  const bool is_size = read_size(text, cell.width, cell.height);
  if (!is_size || std::min(cell.width, cell.height) < kLeast || std::max(cell.width, cell.height) > kMost)
    throw Failure(
        formatted("--cell: expected WIDTHxHEIGHT, each %d to %d, came %s", kLeast, kMost, text.c_str()));
  return cell;
}

void grade_sheet(const GradeOptions& options) {
  check_picture_name(options.sheet);
  for (const std::string& file : options.files) PartialFile::check_is_not(options.sheet, file, "input");
  const cv::Size cell = read_cell(options.cell);
  std::vector<Grade> grades = read_grades(options);
  grades.insert(grades.begin(), {"as it is", {}, nullptr});
  const int rows = static_cast<int>(grades.size());
  const int columns = static_cast<int>(options.files.size());
  ContactSheet sheet(rows, columns, cell);
  for (int row = 0; row < rows; ++row) sheet.label(row, grades[row].label);
  Progress progress(columns, false, "picture");
  for (int column = 0; column < columns; ++column) {
    const cv::Mat small = miniature(options.files[column], cell);
    for (int row = 0; row < rows; ++row) {
      cv::Mat graded = small.clone();
      apply(grades[row], graded, options.strength);
      sheet.place(row, column, graded);
    }
    progress.show(column + 1, "");
  }
  write_picture(options.sheet, sheet.picture());
  std::printf("%s: %dx%d, %d prompts, %d pictures\n", options.sheet.c_str(), sheet.picture().cols,
              sheet.picture().rows, rows - 1, columns);
}

// --------------------------------------------------------------------------------------------- the command

void run(const GradeOptions& options) {
  if (options.prompts.empty() && options.embeddings.empty()) throw CLI::RequiredError("--prompt");
  if (!options.sheet.empty()) return grade_sheet(options);
  if (options.files.size() != 2)
    throw CLI::ValidationError("expected IN and OUT, came " + std::to_string(options.files.size()) +
                               " names; several pictures go onto a --sheet");
  if (options.prompts.size() > 1)
    throw CLI::ValidationError("expected one --prompt; several are for a --sheet");
  grade_one(options, options.files[0], options.files[1]);
}

}  // namespace

void add_grade(CLI::App& app) {
  auto* command = app.add_subcommand("grade", "Change pictures as a prompt asks for");
  command->footer(
      "nonlocal grade IN OUT --prompt \"warm sunset, darker edges\"\n"
      "nonlocal grade --sheet OUT --prompt \"much warmer\" --prompt \"noir\" PICTURE...");
  const auto options = std::make_shared<GradeOptions>();
  command
      ->add_option("FILES", options->files,
                   "The picture, any that OpenCV reads, and the one to write, replaced if it exists; with "
                   "--sheet, pictures alone. 16 bits and alpha are kept where OUT can hold them")
      ->required();
  auto* prompt = command
                     ->add_option("--prompt", options->prompts,
                                  "What the picture shall look like; for a sheet any number of times")
                     ->allow_extra_args(false);
  command
      ->add_option("--embeddings", options->embeddings,
                   "In place of a prompt its tokens: a .safetensors file, as nonlocal embed writes it")
      ->excludes(prompt);
  command
      ->add_option(
          "--model", options->model,
          "The filter and its text encoder: the name of one of the library's, or a .safetensors file")
      ->capture_default_str();
  command->add_option("--strength", options->strength, "How much of the change: 0 none, 1 as trained")
      ->check(number_within(0, 4))
      ->capture_default_str();
  command->add_flag("--baked", options->is_baked,
                    "By way of lattices, as video is graded: faster, less exact");
  command->add_option("--sheet", options->sheet,
                      "Write a contact sheet: a row for each prompt below one of the pictures as they are");
  command->add_option("--cell", options->cell, "Room for a picture on the sheet")->capture_default_str();
  command->callback([options] { run(*options); });
}

}  // namespace nonlocal::tools
