#include "work_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "failure.h"
#include "partial_file.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr mode_t kAsUmaskAllows = 0666;
constexpr const char* kPlan = "plan.json";

[[noreturn]] void fail(const fs::path& path, int error) {
  throw Failure(path.string() + ": cannot be written: " + std::strerror(error));
}

void rename_safely(const fs::path& from, const fs::path& to) {
  if (const int error = to_disk(from); error != 0) fail(to, error);
  if (std::rename(from.c_str(), to.c_str()) != 0) fail(to, errno);
}

void write_json(const fs::path& path, const json& value) {
  const fs::path partial = path.string() + "." + g_get_host_name() + "." + std::to_string(getpid()) + ".part";
  std::ofstream file(partial);
  file << value.dump() << '\n';
  file.close();
  if (!file) {
    const int error = errno != 0 ? errno : EIO;
    std::error_code ignored;
    fs::remove(partial, ignored);
    fail(path, error);
  }
  rename_safely(partial, path);
}

json read_json(const fs::path& path) {
  std::ifstream file(path);
  json value = json::parse(file, nullptr, false);
  if (value.is_discarded())
    throw Failure(path.string() + ": cannot be read: remove its folder to begin anew");
  return value;
}

std::string file_of(const Segment& segment, const char* extension) {
  return formatted("segment-%05d.%s", segment.index, extension);
}

}  // namespace

fs::path WorkFolder::beside(const fs::path& output) {
  return output.parent_path() / formatted(".%s.nonlocal", output.filename().c_str());
}

WorkFolder::WorkFolder(fs::path path) : path_(std::move(path)) {
  if (!fs::exists(path_ / kPlan)) throw Failure(path_.string() + ": no folder that plan made");
}

WorkFolder::WorkFolder(fs::path path, const Plan& plan, bool resume) : path_(std::move(path)) {
  begin(plan, resume);
}

WorkFolder::~WorkFolder() {
  if (lock_ >= 0) close(lock_);
}

void WorkFolder::begin(const Plan& plan, bool resume) {
  std::error_code error;
  fs::create_directory(path_, error);
  if (error) throw Failure(plan.job.output + ": cannot be written: " + error.message());
  lock();
  const fs::path file = path_ / kPlan;
  const json recipe = recipe_of(plan);
  if (fs::exists(file)) {
    if (!resume)
      throw Failure(plan.job.output + ": a run that did not end left work in " + path_.string() +
                    ": --resume goes on with it, without the folder it begins anew");
    if (read_json(file) != recipe)
      throw Failure(path_.string() +
                    ": is of another input or of other settings: without it the work begins anew");
  }
  for (const auto& entry : fs::directory_iterator(path_))
    if (entry.path().extension() == ".part") fs::remove(entry.path());
  write_json(file, recipe);
}

// Held as long as this process lives, however it ends.
void WorkFolder::lock() {
  const fs::path file = path_ / "lock";
  lock_ = open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, kAsUmaskAllows);
  if (lock_ < 0) fail(file, errno);
  if (flock(lock_, LOCK_EX | LOCK_NB) != 0) throw Failure(path_.string() + ": another run is at work in it");
}

Plan WorkFolder::plan() const { return plan_of(read_json(path_ / kPlan)); }

bool WorkFolder::has(const Segment& segment) const { return fs::exists(path_ / file_of(segment, "json")); }

fs::path WorkFolder::coded(const Segment& segment) const { return path_ / file_of(segment, "gdp"); }

fs::path WorkFolder::partial(const Segment& segment) const {
  return path_ /
         (file_of(segment, "gdp") + "." + g_get_host_name() + "." + std::to_string(getpid()) + ".part");
}

SegmentReport WorkFolder::report(const Segment& segment) const {
  return report_of(read_json(path_ / file_of(segment, "json")));
}

void WorkFolder::finish(const Segment& segment, const SegmentReport& report) {
  rename_safely(partial(segment), coded(segment));
  write_json(path_ / file_of(segment, "json"), to_json(report));
}

void WorkFolder::remove() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void WorkFolder::remove_if_empty(const Plan& plan) {
  for (const Segment& segment : plan.segments)
    if (has(segment)) return;
  remove();
}

}  // namespace nonlocal::tools
