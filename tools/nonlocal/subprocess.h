// Other programs, run to their end, and a place for their files.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace nonlocal::tools {

using Arguments = std::vector<std::string>;

bool is_installed(const char* command);

// How long the command took, in milliseconds. Throws Failure where it failed, with the last line that it
// wrote to stderr.
double run_command(const Arguments& arguments);

// The same, and calls `alive` now and then until it has ended.
double run_command(const Arguments& arguments, const std::function<void()>& alive);

// Goes with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace nonlocal::tools
