// Attention as the networks' layers ask for it.
#pragma once

#include "network/step.h"

namespace nonlocal::network {

// Of the queries of `place.part` to the keys and values of the whole plane and all frames of theirs, or of
// their own window, or of their own position in all frames: see Op. Inputs are queries, keys and values,
// where the heads of each lie one after another. Values that share a position with a query lie in its part.
Step attention_step(const Op& op, const StepPlace& place);

// How many pairs of positions are compared, of each head.
double attention_pairs(const Op& op, const TensorView& queries, const TensorView& keys);

}  // namespace nonlocal::network
