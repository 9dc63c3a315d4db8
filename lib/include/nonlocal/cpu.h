// The instruction sets that the kernels were compiled for, chosen at run time.
#pragma once

#include <string>
#include <vector>

#include "nonlocal/export.h"

namespace nonlocal {

// Those that this CPU can run, best first, in Highway's names: AVX3_DL, AVX3, AVX2, SSE4, SSSE3, ... With
// Intel's AMX, which attention and networks in bfloat16 use, the best one comes twice: as AVX3_DL_AMX first.
NONLOCAL_API std::vector<std::string> instruction_sets();

// The one in use.
NONLOCAL_API std::string instruction_set();

// Use only this one from now on, in the whole process ("" for the best): for tests and benchmarks, not while
// a filter runs. Throws InvalidArgument for a name that instruction_sets() does not have.
NONLOCAL_API void force_instruction_set(const std::string& name);

}  // namespace nonlocal
