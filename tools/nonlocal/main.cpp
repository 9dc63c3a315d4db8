// nonlocal: denoises video files, filters cameras, grades pictures, makes the noisy clip to try it on,
// measures the library's speed and quality, shows what model files hold, turns prompts into tokens and
// embeddings, and finds what they ask for.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>

#include "commands.h"
#include "failure.h"

namespace {

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;
constexpr int kInterrupted = 130;

int fail(const std::string& message, int status) {
  std::cerr << "nonlocal: " << message << std::endl;
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Video filters by non-local averaging.", "nonlocal"};
  app.set_version_flag("--version", "nonlocal " NONLOCAL_VERSION);
  app.require_subcommand(1);
  nonlocal::tools::add_filter(app);
  nonlocal::tools::add_plan(app);
  nonlocal::tools::add_join(app);
  nonlocal::tools::add_clip(app);
  nonlocal::tools::add_bench(app);
  nonlocal::tools::add_evaluate(app);
  nonlocal::tools::add_inspect(app);
  nonlocal::tools::add_tokenize(app);
  nonlocal::tools::add_embed(app);
  nonlocal::tools::add_grade(app);
  nonlocal::tools::add_find(app);
  nonlocal::tools::add_live(app);
  try {
    // CLI11 would say that one is missing.
    if (argc > 1 && argv[1][0] != '-' &&
        app.get_subcommands([&](CLI::App* command) { return command->check_name(argv[1]); }).empty())
      throw CLI::ParseError(std::string(argv[1]) + " is no subcommand", kWrongUsage);
    app.parse(argc, argv);
    // A full disk is told when it is written to.
    if (!std::cout.flush() || std::fflush(stdout) != 0) {
      return fail("standard output: cannot be written", kFailed);
    }
    return 0;
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return fail(std::string(error.what()) + " (see nonlocal --help)", kWrongUsage);
  } catch (const nonlocal::tools::Interrupted& error) {
    return fail(error.what(), kInterrupted);
  } catch (const std::exception& error) {
    return fail(error.what(), kFailed);
  }
}
