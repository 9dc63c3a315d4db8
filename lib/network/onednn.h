// What all that uses oneDNN shares.
#pragma once

#include <dnnl.hpp>

namespace nonlocal::network {

const dnnl::engine& cpu();

}  // namespace nonlocal::network
