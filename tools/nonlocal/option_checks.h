// Checks of what options are given.
#pragma once

#include <CLI/CLI.hpp>

namespace nonlocal::tools {

// As CLI::Range, which lets NaN pass.
CLI::Validator number_within(double least, double most);

}  // namespace nonlocal::tools
