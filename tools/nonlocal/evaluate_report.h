// An evaluation as a page to look at.
#pragma once

#include <filesystem>
#include <string>

#include "evaluation.h"

namespace nonlocal::tools {

// Throws Failure where `folder` can neither be made nor written in, or is the input's: before the work
// begins.
void check_report_folder(const std::filesystem::path& folder, const std::filesystem::path& input);

// Writes FOLDER/index.html, and beside it the pictures that it shows, in the place of older ones. It needs
// nothing else. Throws Failure.
void write_report(const std::filesystem::path& folder, const EvaluationOptions& options,
                  const Evaluation& evaluation);

}  // namespace nonlocal::tools
