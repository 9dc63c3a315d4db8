#include "filter_files.h"

#include <filesystem>
#include <map>
#include <optional>

#include "failure.h"
#include "filter_stream.h"
#include "picture_names.h"

namespace nonlocal::tools {
namespace {

namespace fs = std::filesystem;

// The same for all names of a file, whether it is there or not.
std::string identity(const std::string& path) {
  std::error_code error;
  const fs::path whole = fs::weakly_canonical(fs::absolute(path), error);
  return error ? path : whole.string();
}

bool is_folder(const std::string& path) {
  std::error_code error;
  return path.ends_with('/') || fs::is_directory(path, error);
}

void make_folder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw Failure(path + ": cannot be made: " + error.message());
}

void check_apart(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) {
  std::map<std::string, std::string> taken;
  for (const std::string& input : inputs) taken[identity(input)] = input;
  for (const std::string& output : outputs)
    if (taken.contains(identity(output))) throw Failure(output + ": the output is the input itself");
  taken.clear();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto [other, is_new] = taken.emplace(identity(outputs[i]), inputs[i]);
    if (!is_new)
      throw Failure(outputs[i] + ": both " + other->second + " and " + inputs[i] + " would go there");
  }
}

// A file of just that name is no pattern.
std::optional<NumberedName> numbered_input(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error) ? std::nullopt : NumberedName::of(path);
}

}  // namespace

std::vector<FilePair> pairs_of(const std::vector<std::string>& files) {
  std::vector<std::string> inputs(files.begin(), files.end() - 1);
  const std::string& out = files.back();
  if (!is_folder(out)) {
    if (inputs.size() == 1) return {{inputs[0], out}};
    throw Failure(out +
                  ": several files go to a folder, expected one that is there or a name that ends with /");
  }
  std::vector<std::string> outputs;
  for (const std::string& input : inputs) {
    if (input == kStandardStream) throw Failure("-: a stream goes alone, to a file or another stream");
    outputs.push_back((fs::path(out) / fs::path(input).filename()).string());
  }
  check_apart(inputs, outputs);
  make_folder(out);
  std::vector<FilePair> pairs;
  for (size_t i = 0; i < inputs.size(); ++i) pairs.push_back({inputs[i], outputs[i]});
  return pairs;
}

bool is_of_pictures(const FilePair& pair) { return is_picture_name(pair.input); }

PictureClip clip_of(const FilePair& pair) {
  if (!is_picture_name(pair.output))
    throw Failure(pair.output +
                  ": pictures go to pictures, expected a name that ends in .png, .jpg, .tif or .webp");
  const auto in = numbered_input(pair.input);
  const auto out = in ? NumberedName::of(pair.output) : std::nullopt;
  if (in && !out)
    throw Failure(pair.output + ": expected a folder, or a name with a number in it as " + pair.input +
                  " has");
  PictureClip clip{{pair.input}, {pair.output}};
  if (in) {
    clip = {};
    for (const int number : in->find()) {
      clip.inputs.push_back(in->at(number));
      clip.outputs.push_back(out->at(number));
    }
  }
  check_apart(clip.inputs, clip.outputs);
  return clip;
}

}  // namespace nonlocal::tools
