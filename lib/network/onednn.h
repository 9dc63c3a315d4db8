// What all that uses oneDNN shares.
#pragma once

#include <dnnl.hpp>
#include <new>
#include <string>
#include <string_view>

#include "network/convolution.h"
#include "nonlocal/error.h"

namespace nonlocal::network {

const dnnl::engine& cpu();

// Whether oneDNN may use that instruction set: the CPU has it, and ONEDNN_MAX_CPU_ISA allows it.
bool has(dnnl::cpu_isa wanted);

// work() on this thread alone; what oneDNN throws becomes what this library throws, naming `who`, and
// std::bad_alloc where memory runs out.
template <typename Work>
auto with_onednn(std::string_view who, const Work& work) {
  try {
    const OneThread one_thread;
    return work();
  } catch (const dnnl::error& e) {
    if (e.status == dnnl_out_of_memory) {
      throw std::bad_alloc();
    }
    throw Error(std::string(who) + ": oneDNN: " + e.what());
  }
}

}  // namespace nonlocal::network
