// The largest values between the layers, which 8 bits are spread over.
#pragma once

#include "network/refinement_model.h"

namespace nonlocal::network {

// Gives the layers the maxima that their file does not have: the largest that a synthetic picture leads to,
// of edges, waves and texture, with no noise to much, and a quarter more.
void complete_maxima(RefinementModel& model);

}  // namespace nonlocal::network
