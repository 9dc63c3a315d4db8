// GEM's path beside a vision tower's last blocks: see nonlocal/vision_encoder.h.
#pragma once

#include <vector>

#include "text/tower.h"

namespace nonlocal::text {

class SelfSelfPath {
 public:
  // `memory`: of the tower that the path runs beside.
  SelfSelfPath(const TowerShape& shape, TowerMemory& memory);
  SelfSelfPath(const SelfSelfPath&) = delete;
  SelfSelfPath& operator=(const SelfSelfPath&) = delete;

  // The path begins with memory.x.
  void add_start(StageBuilder& stages);
  // Between a block's parts, of which memory.normal and memory.parts are read, and the rest of it.
  // memory.average is written.
  void add_block(StageBuilder& stages, const Dense& output);

  [[nodiscard]] Matrix tokens() { return tokens_.view(); }

 private:
  void add_lengths(StageBuilder& stages);
  void add_units(StageBuilder& stages, const ConstMatrix& from);
  void add_averages(StageBuilder& stages, bool is_of_values);
  void make_units(const float* from, float* to) const;

  TowerShape shape_;
  TowerMemory& memory_;
  OwnRows tokens_;
  OwnRows units_;     // query, key and value side by side, each head's of one length
  OwnRows averages_;  // what each of the three gives
  std::vector<double> lengths_;
  // The length of units. Attention has the factor 1 / sqrt(channels of a head) of its own: the rest of τ lies
  // in both sides of the product.
  float unit_ = 1;
};

}  // namespace nonlocal::text
