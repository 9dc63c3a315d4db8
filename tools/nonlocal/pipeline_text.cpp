#include "pipeline_text.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include "gst.h"

namespace nonlocal::tools {
namespace {

// Nothing in it means anything to a shell, nor to gst_parse_launch within a value.
bool is_plain(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return c < 128 && (std::isalnum(c) ||
                       std::string_view("/._-+,:=@%").find(static_cast<char>(c)) != std::string_view::npos);
  });
}

std::string quoted_value(std::string_view value) {
  std::string quoted = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::string for_shell(const std::string& word) {
  if (word == "!" || is_plain(word)) return word;
  return StringPtr{g_shell_quote(word.c_str())}.get();
}

}  // namespace

PipelineText& PipelineText::add(std::string_view words) {
  std::istringstream in{std::string(words)};
  for (std::string word; in >> word;) words_.push_back(word);
  return *this;
}

PipelineText& PipelineText::property(std::string_view name, std::string_view value) {
  words_.push_back(std::string(name) + "=" + (is_plain(value) ? std::string(value) : quoted_value(value)));
  return *this;
}

std::string PipelineText::description() const {
  std::string text;
  for (const std::string& word : words_) text.append(text.empty() ? "" : " ").append(word);
  return text;
}

std::string PipelineText::command(const std::string& plugin_folder) const {
  std::string line;
  if (!plugin_folder.empty()) line.append("GST_PLUGIN_PATH=").append(for_shell(plugin_folder)).append(" ");
  line.append("gst-launch-1.0 -e");
  for (const std::string& word : words_) line.append(" ").append(for_shell(word));
  return line;
}

}  // namespace nonlocal::tools
