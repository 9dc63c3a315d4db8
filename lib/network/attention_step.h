// Attention as the networks' layers ask for it, by the core (lib/attention).
#pragma once

#include <memory>
#include <vector>

#include "network/step.h"

namespace nonlocal::attention {
class LaneBias;
}

namespace nonlocal::network {

// Inputs are queries, keys and values, where the heads of each lie one after another.

// What a layer's `position_bias` becomes, once for all of its steps; null if it has none.
using AttentionBias = std::shared_ptr<const attention::LaneBias>;

AttentionBias attention_bias(const Op& op);

// kFrame: of the whole plane's queries to the keys and values of all frames of theirs.
std::vector<Stage> frame_attention_stages(const Op& op, const StepPlace& place);

// Else: of the queries of `place.part` to the keys and values of their own window, or of their own position
// in all frames: see Op. Values that share a position with a query lie in its part.
Step attention_step(const Op& op, const StepPlace& place, const AttentionBias& bias);

// How many pairs of positions are compared, of each head.
double attention_pairs(const Op& op, const TensorView& queries, const TensorView& keys);

}  // namespace nonlocal::network
