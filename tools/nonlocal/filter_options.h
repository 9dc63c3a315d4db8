// The options that say what becomes of a video: its filters, in the order given, codec and quality.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "filter_pipeline.h"

namespace nonlocal::tools {

// Declared for one subcommand; must be there as long as that.
class JobOptions {
 public:
  explicit JobOptions(CLI::App& command);
  ~JobOptions();
  JobOptions(const JobOptions&) = delete;
  JobOptions& operator=(const JobOptions&) = delete;

  // As given; denoises where no filter is named.
  [[nodiscard]] FilterJob job(const std::string& input, const std::string& output) const;

 private:
  class ChainOptions;
  std::unique_ptr<ChainOptions> filters_;
  FilterJob job_;
};

}  // namespace nonlocal::tools
