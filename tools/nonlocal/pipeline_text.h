// The text of a pipeline, once for gst_parse_launch and once for a shell.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nonlocal::tools {

class PipelineText {
 public:
  // Words as gst_parse_launch reads them, parted by spaces: "queue ! videoconvert !".
  PipelineText& add(std::string_view words);

  // NAME=VALUE, where the value may hold anything: it is quoted as needed.
  PipelineText& property(std::string_view name, std::string_view value);

  // What gst_parse_launch takes.
  [[nodiscard]] std::string description() const;

  // The same as a command line to paste into a shell. `plugin_folder` may be empty.
  [[nodiscard]] std::string command(const std::string& plugin_folder) const;

 private:
  std::vector<std::string> words_;
};

}  // namespace nonlocal::tools
