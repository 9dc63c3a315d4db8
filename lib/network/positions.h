// What is calculated for each position of a plane without oneDNN, with the CPU's vectors.
#pragma once

#include <vector>

#include "network/step.h"

namespace nonlocal::network {

// The part of the output of an operation from kPrelu to kLayerNorm that is no pooling; see simple_step().
void calculate_positions(const Op& op, const StepPlace& place, const float* condition);

// Each channel's sum over `part`, and then each channel's sum of squares.
void sum_channels(const TensorView& in, const Rect& part, double* sums);

// x factor + offset, for each channel.
struct ChannelMaps {
  std::vector<float> factor, offset;
};

void map_channels(const StepPlace& place, const ChannelMaps& maps);

// What a byte is made of: for each channel, those that fill up included, a factor for each term and what is
// added.
struct ByteMaps {
  // Terms of bytes, one or two.
  ByteMaps(const std::vector<const Quantisation*>& in, const Quantisation& out, int pitch);
  // One of floats.
  ByteMaps(const Quantisation& out, int pitch);

  std::vector<float> factor[2], offset;
};

// The sum of both inputs, bytes all.
void add_bytes(const StepPlace& place, const ByteMaps& maps);

// Bytes of `positions` positions, one after another, of as many floats each.
void round_to_bytes(const float* in, int positions, int pitch, const ByteMaps& maps, std::byte* out);

// Between floats and what a tensor has: reads and writes `count` values `step` apart. Bytes are the frame's,
// whose channels have one scale, and are only written.
void store_values(const float* in, int count, const TensorView& like, std::byte* out, int step);
void load_values(const TensorView& like, const std::byte* in, int step, int count, float* out);

}  // namespace nonlocal::network
