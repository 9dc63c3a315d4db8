#include "peak_memory.h"

#include <malloc.h>

#include <fstream>
#include <string>

namespace nonlocal::tools {
namespace {

// Linux's "high water mark".
std::optional<double> most_resident_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
  return std::nullopt;
}

// proc(5): the mark becomes what is resident now.
bool reset_most_resident() {
  std::ofstream clear("/proc/self/clear_refs");
  return static_cast<bool>(clear << "5" << std::flush);
}

}  // namespace

PeakMemory::PeakMemory() {
  malloc_trim(0);
  if (reset_most_resident()) before_ = most_resident_mib();
}

std::optional<double> PeakMemory::mib() const {
  const std::optional<double> now = most_resident_mib();
  if (!before_ || !now) return std::nullopt;
  return *now - *before_;
}

}  // namespace nonlocal::tools
