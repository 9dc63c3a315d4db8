// What the bench commands have in common.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace nonlocal::tools {

inline constexpr int kFewestTimes = 3;  // that are measured, however short the time

struct CommonBenchOptions {
  int threads = 0;
  std::string isa;
  double seconds = 3;  // without peers
  bool peers = false;
  bool as_json = false;
  bool quiet = false;

  [[nodiscard]] bool shows_no_progress() const { return quiet || as_json; }
};

// Those that other options need or exclude.
struct CommonBenchFlags {
  CLI::Option* seconds;
  CLI::Option* peers;
};

// Declares all of them; `peers_help` says which peers there are.
CommonBenchFlags add_common(CLI::App& command, CommonBenchOptions& options, const std::string& peers_help);

// Takes the instruction set into use, and counts the cores where `threads` is 0. Throws what
// force_instruction_set() does.
void take_up(CommonBenchOptions& options);

// What `action` failed with, in one line; empty where it did not. Interrupted passes: it is no peer's
// failure.
std::string problem_of(const std::function<void()>& action);

// Whether /usr/bin/python3 has it.
bool has_pytorch();

}  // namespace nonlocal::tools
