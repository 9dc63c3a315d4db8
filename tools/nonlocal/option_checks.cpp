#include "option_checks.h"

#include "text.h"

namespace nonlocal::tools {

CLI::Validator number_within(double least, double most) {
  const auto problem = [=](const std::string& text) {
    double number = 0;
    const bool fits = CLI::detail::lexical_cast(text, number) && number >= least && number <= most;
    return fits ? "" : text + formatted(" is not from %.10g to %.10g", least, most);
  };
  return CLI::Validator(problem, formatted("FLOAT in [%.10g - %.10g]", least, most));
}

}  // namespace nonlocal::tools
