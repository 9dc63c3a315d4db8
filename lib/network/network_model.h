// A network as its file describes it.
#pragma once

#include <string>
#include <vector>

#include "network/graph.h"
#include "nonlocal/network.h"

namespace nonlocal::network {

struct NetworkModel {
  // Of `most_frames` frames at most; 0: as many as the file says. Throws ModelError.
  explicit NetworkModel(const std::string& path, int most_frames = 0);

  // What the network is told for this condition.
  [[nodiscard]] float told(double condition) const;

  ModelSummary summary;
  std::vector<Op> ops;   // fused; the first is the input
  int output = 0;        // that one writes the output
  bool is_local = true;  // no operation is global
  float condition_scale = 1;
  float condition_power = 1;
  bool is_wide = false;  // asks for float32

  [[nodiscard]] const Op& output_op() const { return ops[static_cast<std::size_t>(output)]; }
};

// A large whole number, for messages.
std::string whole(double n);

}  // namespace nonlocal::network
