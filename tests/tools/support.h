// Helps to run the real program in a folder of the test's own, and to look at the files that it makes.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

struct Outcome {
  int status = 0;  // 128 + the signal's number for a program that a signal ended
  std::string out;
  std::string err;
};

// Each test runs in an empty folder, which is the current one and is removed at the end.
class ToolTest : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // Through bash, where $TOOL is the program.
  static Outcome run(const std::string& command);

  // The same; the test fails if the command does.
  static std::string must(const std::string& command);

  // A video of `frames` noisy frames; `more` are further ffmpeg arguments.
  static void make_video(const std::string& path, int frames, const std::string& more = "-c:v ffv1");

  // A second of it, with sound.
  static void make_video_with_sound(const std::string& path, const std::string& more);

  static nlohmann::json filter(
      const std::string& arguments);  // $TOOL filter ARGUMENTS --json: the last event
  static std::vector<nlohmann::json> events(const std::string& out);  // of --json; at least one
  static int count_frames(const std::string& path);
  static std::string frames_md5(const std::string& path);  // of the decoded video
  static std::vector<uint8_t> decoded(const std::string& path);
  // Of a stream's packets that have one, in seconds, sorted.
  static std::vector<double> timestamps(const std::string& path, const std::string& stream = "v:0");
  static std::vector<std::string> audio_packets(const std::string& path);       // hashes
  static std::string probe(const std::string& path, const std::string& entry);  // of the video stream
  static std::set<std::string> files();

 private:
  std::filesystem::path folder_;
};
