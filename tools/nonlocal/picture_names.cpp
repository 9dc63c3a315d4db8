#include "picture_names.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <regex>
#include <string_view>

#include "failure.h"

namespace nonlocal::tools {
namespace {

namespace fs = std::filesystem;

// The number that stands in `name` between its two ends; -1: none.
int number_between(const std::string& name, const std::string& before, const std::string& after) {
  if (name.size() <= before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after))
    return -1;
  const char* begin = name.data() + before.size();
  const char* end = name.data() + name.size() - after.size();
  begin = std::find_if(begin, end, [](char c) { return c != ' '; });
  int number = -1;
  const auto [behind, error] = std::from_chars(begin, end, number);
  return error == std::errc() && behind == end ? number : -1;
}

}  // namespace

bool is_picture_name(const std::string& path) {
  constexpr std::array<std::string_view, 6> kEndings = {".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp"};
  std::string ending = fs::path(path).extension().string();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return std::ranges::find(kEndings, ending) != kEndings.end();
}

std::optional<NumberedName> NumberedName::of(const std::string& path) {
  static const std::regex kNumber("([^%]*)(%0?[1-9]?d)([^%/]*)");
  std::smatch parts;
  if (!std::regex_match(path, parts, kNumber)) return std::nullopt;
  NumberedName name;
  name.before_ = parts[1];
  name.number_ = parts[2];
  name.after_ = parts[3];
  return name;
}

std::string NumberedName::at(int number) const {
  std::array<char, 32> digits = {};
  std::snprintf(digits.data(), digits.size(), number_.c_str(), number);
  return before_ + digits.data() + after_;
}

std::vector<int> NumberedName::find() const {
  const fs::path first(before_ + "0" + after_);
  const fs::path folder = first.has_parent_path() ? first.parent_path() : fs::path(".");
  const std::string before = fs::path(before_ + "0").filename().string();
  std::vector<int> numbers;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const int number = number_between(name, before.substr(0, before.size() - 1), after_);
    if (number >= 0 && fs::path(at(number)).filename() == name) numbers.push_back(number);
  }
  if (numbers.empty()) throw Failure(before_ + number_ + after_ + ": no file of such a name");
  std::ranges::sort(numbers);
  for (size_t i = 0; i < numbers.size(); ++i)
    if (numbers[i] != numbers[0] + static_cast<int>(i))
      throw Failure(at(numbers[0] + static_cast<int>(i)) + ": is missing between " + at(numbers.front()) +
                    " and " + at(numbers.back()));
  return numbers;
}

}  // namespace nonlocal::tools
