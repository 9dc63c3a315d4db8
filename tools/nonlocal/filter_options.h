// The options that say what becomes of a video: its filters, in the order given, codec and quality.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "filter_pipeline.h"

namespace nonlocal::tools {

// Declared for one subcommand; must be there as long as that.
class JobOptions {
 public:
  explicit JobOptions(CLI::App& command);
  JobOptions(const JobOptions&) = delete;
  JobOptions& operator=(const JobOptions&) = delete;

  // As given; denoises where no filter is named.
  [[nodiscard]] FilterJob job(const std::string& input, const std::string& output) const;

 private:
  void declare_filters(CLI::App& command);
  void declare_properties(CLI::App& command);
  void add_filter(const std::string& element, const std::string& property, const std::string& value);
  void add_property(const std::string& name, const std::string& value);

  FilterJob job_;
  Properties before_first_;  // options before the first filter are the first's
  std::string threads_;      // of all filters
};

}  // namespace nonlocal::tools
