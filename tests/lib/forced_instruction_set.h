// An instruction set that is forced while this lives.
#pragma once

#include <string>

#include "nonlocal/cpu.h"

namespace nonlocal::testing {

class ForcedInstructionSet {
 public:
  explicit ForcedInstructionSet(const std::string& name) { force_instruction_set(name); }
  ~ForcedInstructionSet() { force_instruction_set(""); }
  ForcedInstructionSet(const ForcedInstructionSet&) = delete;
  ForcedInstructionSet& operator=(const ForcedInstructionSet&) = delete;
};

}  // namespace nonlocal::testing
