// nonlocal bench text: how fast the encoders of prompts and pictures are, and how PyTorch does.
#pragma once

#include <CLI/CLI.hpp>

namespace nonlocal::tools {

void add_bench_text(CLI::App& bench);

}  // namespace nonlocal::tools
