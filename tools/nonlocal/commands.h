// The subcommands, one file each. add_*() declares the options; the command runs as the parser's callback.
#pragma once

#include <CLI/CLI.hpp>

namespace nonlocal::tools {

void add_filter(CLI::App& app);
void add_clip(CLI::App& app);
void add_bench(CLI::App& app);
void add_evaluate(CLI::App& app);
void add_inspect(CLI::App& app);
void add_tokenize(CLI::App& app);
void add_embed(CLI::App& app);
void add_grade(CLI::App& app);
void add_find(CLI::App& app);
void add_live(CLI::App& app);

}  // namespace nonlocal::tools
