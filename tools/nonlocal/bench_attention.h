// nonlocal bench attention: how fast attention is, how exact, and how its peers do.
#pragma once

#include <CLI/CLI.hpp>

namespace nonlocal::tools {

void add_bench_attention(CLI::App& bench);

}  // namespace nonlocal::tools
