// How much memory a part of the run takes at most.
#pragma once

#include <optional>

namespace nonlocal::tools {

class PeakMemory {
 public:
  // From here on; what the heap keeps from before is given back first.
  PeakMemory();

  // The most that the process has had resident since, less what it had then. Nothing where the system does
  // not tell.
  [[nodiscard]] std::optional<double> mib() const;

 private:
  std::optional<double> before_;
};

}  // namespace nonlocal::tools
