#include "nonlocal/cpu.h"

#include <cstdint>

#include "hwy/targets.h"
#include "nonlocal/error.h"

namespace nonlocal {
namespace {

// Read before anything is forced.
const std::vector<int64_t>& all_targets() {
  static const std::vector<int64_t> targets = hwy::SupportedAndGeneratedTargets();
  return targets;
}

}  // namespace

std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (const int64_t target : all_targets()) {
    names.emplace_back(hwy::TargetName(target));
  }
  return names;
}

std::string instruction_set() {
  static_cast<void>(all_targets());
  return hwy::TargetName(hwy::SupportedAndGeneratedTargets().front());
}

void force_instruction_set(const std::string& name) {
  std::string known;
  int64_t chosen = 0;
  for (const int64_t target : all_targets()) {
    known += (known.empty() ? "" : ", ") + std::string(hwy::TargetName(target));
    chosen = name == hwy::TargetName(target) ? target : chosen;
  }
  if (chosen == 0 && !name.empty()) {
    throw InvalidArgument("instruction set '" + name + "': expected one of " + known);
  }
  hwy::SetSupportedTargetsForTest(chosen);
}

}  // namespace nonlocal
