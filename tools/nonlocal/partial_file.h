// A file that appears under its name only when it is whole.
#pragma once

#include <filesystem>
#include <string>

namespace nonlocal::tools {

// Of what there is of an output that could not be finished: "film.mkv" has "film.partial.mkv".
std::string name_of_partial(const std::filesystem::path& output);

// What a name stands for after a power cut is what was on the disk before it got the name. An errno: 0, or
// why it could not be brought there.
int to_disk(const std::filesystem::path& path);

class PartialFile {
 public:
  // Creates an empty file beside `target`, which proves that it can be written there. Throws Failure if not.
  explicit PartialFile(std::filesystem::path target);

  // The same where `path`, on the same disk, is written by others.
  PartialFile(std::filesystem::path target, std::filesystem::path path);

  // Throws Failure where `target` cannot be a file: it is a folder, or a device or a pipe, or its folder is
  // not there.
  static void check(const std::filesystem::path& target);

  // Throws Failure where `target` is the file `read`, by whatever name: `what` of the work that is.
  static void check_is_not(const std::filesystem::path& target, const std::filesystem::path& read,
                           const std::string& what);

  // Removes what commit() has not renamed.
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  // Where to write.
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  // Gives the file its name, in the place of an older one, once it is on the disk. Throws Failure.
  void commit();

 private:
  std::filesystem::path target_;
  std::filesystem::path path_;
};

}  // namespace nonlocal::tools
