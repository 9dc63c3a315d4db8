// What both encoders ask of their parameters.
#pragma once

#include <string>

#include "nonlocal/error.h"
#include "nonlocal/text_encoder.h"

namespace nonlocal::text {

inline bool calculates_in_bfloat16(const EncoderParameters& parameters) {
  return parameters.precision != AttentionPrecision::kFloat32 && is_supported(AttentionPrecision::kBfloat16);
}

inline AttentionPrecision precision_of(bool is_bfloat16) {
  return is_bfloat16 ? AttentionPrecision::kBfloat16 : AttentionPrecision::kFloat32;
}

inline void check_parameters(const std::string& who, const EncoderParameters& parameters) {
  if (!is_supported(parameters.precision)) {
    throw InvalidArgument(who + ": expected a CPU and an instruction set with AVX512_BF16 for kBfloat16");
  }
  if (parameters.threads < 0) {
    throw InvalidArgument(who + ": expected 0 (all) or more threads, got " +
                          std::to_string(parameters.threads));
  }
}

}  // namespace nonlocal::text
