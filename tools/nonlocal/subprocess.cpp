#include "subprocess.h"

#include <glib.h>

#include <chrono>
#include <cstdlib>
#include <future>

#include "failure.h"
#include "frame_times.h"
#include "gst.h"
#include "text.h"

namespace nonlocal::tools {
namespace {

namespace fs = std::filesystem;

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

bool is_installed(const char* command) { return StringPtr{g_find_program_in_path(command)} != nullptr; }

double run_command(const Arguments& arguments) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  check_interrupted();
  const Stopwatch watch;
  char* raw_output = nullptr;
  GError* raw_error = nullptr;
  int status = 0;
  g_spawn_sync(nullptr, argv.data(), nullptr, GSpawnFlags(G_SPAWN_SEARCH_PATH | G_SPAWN_STDOUT_TO_DEV_NULL),
               nullptr, nullptr, nullptr, &raw_output, &status, &raw_error);
  const double ms = watch.ms();
  const StringPtr output{raw_output};
  const ErrorPtr not_started{raw_error};
  check_interrupted();
  if (not_started) throw Failure(arguments[0] + ": " + one_line(not_started->message));
  if (!g_spawn_check_wait_status(status, nullptr))
    throw Failure(arguments[0] + " failed: " + last_line(output ? output.get() : ""));
  return ms;
}

double run_command(const Arguments& arguments, const std::function<void()>& alive) {
  std::future<double> result = std::async(std::launch::async, [&] { return run_command(arguments); });
  while (result.wait_for(std::chrono::milliseconds(100)) != std::future_status::ready) alive();
  return result.get();
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (fs::temp_directory_path() / "nonlocal-XXXXXX").string();
  if (!mkdtemp(name.data())) throw Failure(name + ": cannot be made");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace nonlocal::tools
