#include "nonlocal/cpu.h"

#include <atomic>
#include <cstdint>
#include <dnnl.hpp>

#include "core/cpu_features.h"
#include "hwy/targets.h"
#include "nonlocal/error.h"

namespace nonlocal {
namespace {

constexpr const char* kWithTiles = "_AMX";

// Read before anything is forced.
const std::vector<int64_t>& all_targets() {
  static const std::vector<int64_t> targets = hwy::SupportedAndGeneratedTargets();
  return targets;
}

bool cpu_has_tiles() {
  static const bool has = [] {
    const auto bits = [](dnnl::cpu_isa isa) { return static_cast<unsigned>(isa); };
    const unsigned wanted = bits(dnnl::cpu_isa::avx512_core_amx);
    return !all_targets().empty() &&
           all_targets().front() <= HWY_AVX3 &&  // what its kernels are compiled for
           (bits(dnnl::get_effective_cpu_isa()) & wanted) == wanted;
  }();
  return has;
}

std::atomic<bool> tiles_are_off{false};

struct InstructionSet {
  std::string name;
  int64_t target;
  bool has_tiles;
};

// Best first.
std::vector<InstructionSet> all_sets() {
  std::vector<InstructionSet> sets;
  for (const int64_t target : all_targets()) {
    sets.push_back({hwy::TargetName(target), target, false});
  }
  if (cpu_has_tiles() && !sets.empty()) {
    sets.insert(sets.begin(), {sets.front().name + kWithTiles, sets.front().target, true});
  }
  return sets;
}

}  // namespace

bool has_tiles() { return cpu_has_tiles() && !tiles_are_off; }

bool is_bfloat16_faster() {
#if HWY_ARCH_X86
  return has_tiles() || __builtin_cpu_is("intel") == 0;
#else
  return true;
#endif
}

std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (const InstructionSet& set : all_sets()) {
    names.push_back(set.name);
  }
  return names;
}

std::string instruction_set() {
  static_cast<void>(all_targets());
  return std::string(hwy::TargetName(hwy::SupportedAndGeneratedTargets().front())) +
         (has_tiles() ? kWithTiles : "");
}

void force_instruction_set(const std::string& name) {
  std::string known;
  InstructionSet chosen{"", 0, true};
  for (const InstructionSet& set : all_sets()) {
    known += (known.empty() ? "" : ", ") + set.name;
    chosen = name == set.name ? set : chosen;
  }
  if (chosen.target == 0 && !name.empty()) {
    throw InvalidArgument("instruction set '" + name + "': expected one of " + known);
  }
  hwy::SetSupportedTargetsForTest(chosen.target);
  tiles_are_off = !chosen.has_tiles;
}

}  // namespace nonlocal
