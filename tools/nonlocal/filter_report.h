// What a filter's user gets to see: progress on stderr and a report on stdout, or JSON for programs.
#pragma once

#include <memory>
#include <string>

#include "filter_run.h"

namespace nonlocal::tools {

enum class Report {
  kText,   // a bar on a terminal, else a line now and then; the result as text
  kQuiet,  // the result as text
  kJson,   // an object a line on stdout: events "begin", "progress" (about one a second), "warning", and for
          // each file, the last, "end", or "error" where further files follow
};

class FilterReport : public FilterListener {
 public:
  virtual void warn(const std::string& text) = 0;
  virtual void fail(const std::string& text) = 0;  // where further files follow
  virtual void end(const FilterRequest& request, const FilterResult& result) = 0;
};

std::unique_ptr<FilterReport> make_report(Report kind, const FilterRequest& request);

}  // namespace nonlocal::tools
