#include "work_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <regex>

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

// Of this process, on this machine: others may be at work in the folder, on others.
std::string partial_suffix() {
  return formatted(".%s.%d.part", g_get_host_name(), getpid());
}

// Was it written by a process of this machine that is no more? Other people's files have other names.
bool is_left_over(const std::string& file) {
  const std::regex form(
      "(segment-[0-9]+\\.gdp|segment-[0-9]+\\.json|plan\\.json)\\.(.+)\\.([0-9]{1,9})\\.part");
  std::smatch parts;
  if (!std::regex_match(file, parts, form) || parts[2] != g_get_host_name()) return false;
  return kill(std::stoi(parts[3]), 0) != 0 && errno == ESRCH;
}

void rename_safely(const fs::path& from, const fs::path& to) {
  if (const int error = to_disk(from); error != 0) fail(to, error);
  if (std::rename(from.c_str(), to.c_str()) != 0) fail(to, errno);
}

void write_json(const fs::path& path, const json& value) {
  const fs::path partial = path.string() + partial_suffix();
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

// What `make` makes of a file's JSON. `cure`: what a person can do where it is damaged.
template <typename Make>
auto from_json(const fs::path& path, const char* cure, Make make) {
  try {
    std::ifstream file(path);
    return make(json::parse(file));
  } catch (const json::exception&) {
    throw Failure(path.string() + ": cannot be read: " + cure);
  }
}

constexpr const char* kBeginAnew = "remove its folder to begin anew";

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
  const bool is_hidden = path_ == beside(plan.job.output);  // its user named the output alone
  const std::string named = is_hidden ? plan.job.output : path_.string();
  if (error) throw Failure(named + ": cannot be written: " + error.message());
  lock();
  const fs::path file = path_ / kPlan;
  const json recipe = recipe_of(plan);
  if (fs::exists(file)) {
    if (!resume)
      throw Failure(plan.job.output + ": a run that did not end left work in " + path_.string() +
                    ": --resume goes on with it, without the folder it begins anew");
    if (from_json(file, kBeginAnew, [](json value) { return value; }) != recipe)
      throw Failure(path_.string() +
                    ": is of another input or of other settings: without it the work begins anew");
  }
  for (const auto& entry : fs::directory_iterator(path_))
    if (is_left_over(entry.path().filename())) fs::remove(entry.path());
  write_json(file, recipe);
}

// Held as long as this process lives, however it ends.
void WorkFolder::lock() {
  const fs::path file = path_ / "lock";
  lock_ = open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, kAsUmaskAllows);
  if (lock_ < 0) fail(file, errno);
  if (flock(lock_, LOCK_EX | LOCK_NB) != 0) throw Failure(path_.string() + ": another run is at work in it");
}

Plan WorkFolder::plan() const { return from_json(path_ / kPlan, kBeginAnew, plan_of); }

bool WorkFolder::has(const Segment& segment) const { return fs::exists(path_ / file_of(segment, "json")); }

fs::path WorkFolder::coded(const Segment& segment) const { return path_ / file_of(segment, "gdp"); }

fs::path WorkFolder::partial(const Segment& segment) const {
  return path_ / (file_of(segment, "gdp") + partial_suffix());
}

SegmentReport WorkFolder::report(const Segment& segment) const {
  return from_json(path_ / file_of(segment, "json"), "remove it, and this segment is filtered again",
                   report_of);
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
