// A network as its file describes it.
#pragma once

#include <string>
#include <vector>

#include "network/graph.h"
#include "nonlocal/network.h"

namespace nonlocal::network {

struct NetworkModel {
  // Throws ModelError.
  explicit NetworkModel(const std::string& path);

  ModelSummary summary;
  std::vector<Op> ops;   // fused; the first is the input
  int output = 0;        // that one writes the output
  bool is_local = true;  // no operation is global
  float condition_scale = 1;

  [[nodiscard]] const Op& output_op() const { return ops[static_cast<std::size_t>(output)]; }
};

// A large whole number, for messages.
std::string whole(double n);

}  // namespace nonlocal::network
