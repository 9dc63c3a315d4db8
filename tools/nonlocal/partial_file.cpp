#include "partial_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "failure.h"

namespace nonlocal::tools {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kAsUmaskAllows = 0666;

// Hidden, and with the extension that players and muxers go by.
fs::path partial_name(const fs::path& target) {
  const std::string stem = target.stem().string();
  return target.parent_path() /
         ("." + stem + "." + std::to_string(getpid()) + ".part" + target.extension().string());
}

}  // namespace

int to_disk(const fs::path& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return errno;
  const int error = fsync(file) == 0 ? 0 : errno;
  close(file);
  return error;
}

std::string name_of_partial(const fs::path& output) {
  return (output.parent_path() / (output.stem().string() + ".partial" + output.extension().string()))
      .string();
}

void PartialFile::check(const fs::path& target) {
  std::error_code error;
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  if (!fs::exists(folder, error)) throw Failure(target.string() + ": no such folder: " + folder.string());
  if (fs::is_directory(target, error)) throw Failure(target.string() + ": is a folder, not a file");
  if (fs::exists(target, error) && !fs::is_regular_file(target, error))
    throw Failure(target.string() + ": is no regular file, and would be replaced by one");
}

void PartialFile::check_is_not(const fs::path& target, const fs::path& read, const std::string& what) {
  std::error_code error;
  if (fs::equivalent(read, target, error))
    throw Failure(target.string() + ": the output is the " + what + " itself");
}

PartialFile::PartialFile(fs::path target, fs::path path)
    : target_(std::move(target)), path_(std::move(path)) {
  check(target_);
}

PartialFile::PartialFile(fs::path target) : target_(std::move(target)), path_(partial_name(target_)) {
  check(target_);
  const int file = open(path_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, kAsUmaskAllows);
  if (file < 0) throw Failure(target_.string() + ": cannot be written: " + std::strerror(errno));
  close(file);
}

PartialFile::~PartialFile() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove(path_, ignored);
}

void PartialFile::commit() {
  if (const int error = to_disk(path_); error != 0)
    throw Failure(target_.string() + ": cannot be written: " + std::strerror(error));
  std::error_code error;
  fs::rename(path_, target_, error);
  if (error) throw Failure(target_.string() + ": cannot be written: " + error.message());
  path_.clear();
  to_disk(target_.has_parent_path() ? target_.parent_path() : ".");  // not every file system can
}

}  // namespace nonlocal::tools
