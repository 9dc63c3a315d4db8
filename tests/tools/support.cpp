#include "support.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>

namespace fs = std::filesystem;

namespace {

std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> result;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (!line.empty()) result.push_back(line);
  return result;
}

constexpr const char* kNoisyPicture =
    "-f lavfi -i testsrc2=size=96x64:rate=25,noise=alls=20:all_seed=7:allf=t";

}  // namespace

void ToolTest::SetUp() {
  std::istringstream environment(TOOL_ENVIRONMENT);
  for (std::string setting; std::getline(environment, setting, '|');) {
    const size_t equals = setting.find('=');
    setenv(setting.substr(0, equals).c_str(), setting.substr(equals + 1).c_str(), 1);
  }
  std::string name = (fs::temp_directory_path() / "nonlocal-tool-XXXXXX").string();
  ASSERT_NE(mkdtemp(name.data()), nullptr);
  folder_ = name;
  fs::create_directory(folder_ / "work");
  fs::current_path(folder_ / "work");
}

void ToolTest::TearDown() {
  fs::current_path(fs::temp_directory_path());
  fs::remove_all(folder_);
}

Outcome ToolTest::run(const std::string& command) {
  std::ofstream("../command") << command << '\n';
  const int status = std::system("bash ../command >../out 2>../err </dev/null");
  const int exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return {exit, contents("../out"), contents("../err")};
}

std::string ToolTest::must(const std::string& command) {
  const Outcome outcome = run(command);
  EXPECT_EQ(outcome.status, 0) << command << "\n" << outcome.err;
  return outcome.out;
}

void ToolTest::make_video(const std::string& path, int frames, const std::string& more) {
  must(std::string("ffmpeg -v error ") + kNoisyPicture + " -frames:v " + std::to_string(frames) +
       " -pix_fmt yuv420p " + more + " \"" + path + "\"");
}

void ToolTest::make_video_with_sound(const std::string& path, const std::string& more) {
  must(std::string("ffmpeg -v error ") + kNoisyPicture +
       " -f lavfi -i anoisesrc=seed=3 -t 1 -pix_fmt yuv420p " + "-c:v ffv1 " + more + " \"" + path + "\"");
}

nlohmann::json ToolTest::filter(const std::string& arguments) {
  return events(must("$TOOL filter --preset fast --json " + arguments)).back();
}

std::vector<nlohmann::json> ToolTest::events(const std::string& out) {
  std::vector<nlohmann::json> events;
  for (const std::string& line : lines(out)) events.push_back(nlohmann::json::parse(line, nullptr, false));
  if (events.empty()) events.emplace_back();
  return events;
}

std::string ToolTest::probe(const std::string& path, const std::string& entry) {
  const std::string out =
      must("ffprobe -v error -select_streams v:0 -count_frames -of csv=p=0 -show_entries stream=" + entry +
           " \"" + path + "\"");
  const auto found = lines(out);
  return found.empty() ? "" : found.front();
}

int ToolTest::count_frames(const std::string& path) {
  return std::atoi(probe(path, "nb_read_frames").c_str());
}

std::string ToolTest::frames_md5(const std::string& path) {
  return must("ffmpeg -v error -i \"" + path + "\" -map 0:v -f md5 -");
}

std::vector<uint8_t> ToolTest::decoded(const std::string& path) {
  const std::string bytes = must("ffmpeg -v error -i \"" + path + "\" -map 0:v -f rawvideo -");
  return {bytes.begin(), bytes.end()};
}

std::vector<double> ToolTest::timestamps(const std::string& path, const std::string& stream) {
  std::vector<double> times;
  for (const std::string& line : lines(must("ffprobe -v error -select_streams " + stream +
                                            " -of csv=p=0 -show_entries packet=pts_time \"" + path + "\"")))
    if (!line.starts_with("N/A")) times.push_back(std::stod(line));
  std::ranges::sort(times);
  return times;
}

std::vector<std::string> ToolTest::audio_packets(const std::string& path) {
  std::vector<std::string> hashes;
  const std::string out = must(
      "ffprobe -v error -select_streams a -show_packets -show_data_hash md5 -of compact \"" + path + "\"");
  const std::string joined = std::regex_replace(out, std::regex("\n\\|"), "|");  // side data ends its line
  for (const std::string& line : lines(joined)) {
    const size_t hash = line.find("data_hash=");
    if (hash != std::string::npos) hashes.push_back(line.substr(hash, line.find('|', hash) - hash));
  }
  return hashes;
}

std::set<std::string> ToolTest::files() {
  std::set<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(".")) names.insert(entry.path().string());
  return names;
}
