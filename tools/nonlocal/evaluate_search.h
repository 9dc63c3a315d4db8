// Finds the setting at which a peer does best on a small part of the material.
#pragma once

#include <vector>

#include "evaluate_peers.h"

namespace nonlocal::tools {

// Climbs from the middle of the peer's settings to where no neighbour has a higher mean PSNR: for luma, and
// for both chroma planes together where they can have a setting of their own. Of a clip it looks at the
// frames around the middle of those from `measure_from` on, of pictures at four that are spread over all.
// Throws Failure.
PeerChoice best_choice(EvaluatedPeer& peer, const Material& material, const std::vector<Sequence>& noisy,
                       double sigma, int64_t measure_from, const Tick& tick);

// About how many frames that takes to filter.
int64_t expected_frames_tried(const EvaluatedPeer& peer, const Material& material);

}  // namespace nonlocal::tools
