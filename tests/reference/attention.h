// Attention as its formula says it, in double precision: what lib/attention is compared with.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <vector>

#include "nonlocal/attention.h"

namespace nonlocal::reference {

inline bool is_exponential(Relevance r) {
  return r != Relevance::kDotProduct && r != Relevance::kConcatenation;
}

inline bool mask_leaves(const AttentionParameters& p, int query, int key) {
  if (p.mask == AttentionMask::kCausal) {
    return key <= query;
  }
  if (p.mask == AttentionMask::kWindow) {
    const int w = p.grid.width;
    const int h = p.grid.height;
    return std::abs(query % w - key % w) <= p.radius && std::abs(query / w % h - key / w % h) <= p.radius &&
           std::abs(query / w / h - key / w / h) <= p.frame_radius;
  }
  return true;
}

// The exponent of f, or f itself where it is no exponential.
inline double attention_score(const AttentionParameters& p, const float* q, const float* k) {
  double product = 0;
  double concatenation = p.relevance_bias;
  double additive = 0;
  for (int c = 0; c < p.dim; ++c) {
    product += static_cast<double>(q[c]) * k[c];
    if (p.relevance == Relevance::kConcatenation) {
      concatenation += static_cast<double>(p.relevance_weight[c]) * q[c] +
                       static_cast<double>(p.relevance_weight[p.dim + c]) * k[c];
    }
    if (p.relevance == Relevance::kAdditive) {
      additive += p.relevance_weight[c] * std::tanh(static_cast<double>(q[c]) + k[c]);
    }
  }
  switch (p.relevance) {
    case Relevance::kScaledDotProduct:
      return p.scale.value_or(1 / std::sqrt(p.dim)) * product;
    case Relevance::kConcatenation:
      return std::max(0.0, concatenation);
    case Relevance::kAdditive:
      return additive;
    default:
      return p.scale.value_or(1) * product;
  }
}

// queries x heads * value_dim, without gaps.
inline std::vector<double> attention(const AttentionParameters& p, const AttentionInput& in) {
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  const int value_dim = p.value_dim == 0 ? p.dim : p.value_dim;
  std::vector<double> out;
  for (int i = 0; i < p.queries; ++i) {
    for (int head = 0; head < p.heads; ++head) {
      std::vector<double> score(static_cast<std::size_t>(p.keys), kNever);
      double keys = 0;
      for (int j = 0; j < p.keys; ++j) {
        const bool is_padding = !in.padding.empty() && in.padding[j] != 0;
        if (!mask_leaves(p, i, j) || is_padding) {
          continue;
        }
        keys += 1;
        score[j] = attention_score(p, in.query.row(i) + head * p.dim, in.key.row(j) + head * p.dim);
        if (in.bias.data != nullptr) {
          score[j] += in.bias.row(in.bias.rows == p.queries ? i : head * p.queries + i)[j];
        }
        score[j] = std::min(score[j], p.ceiling.value_or(std::numeric_limits<double>::infinity()));
      }
      // The largest exponent is taken out of numerator and denominator: doubles end at e^709.
      const double most = *std::max_element(score.begin(), score.end());
      double sum = 0;
      for (double& s : score) {
        if (is_exponential(p.relevance)) {
          s = s == kNever ? 0 : std::exp(s - most);
          sum += s;
        } else {
          s = s == kNever ? 0 : s;
          sum = keys;
        }
      }
      for (int c = 0; c < value_dim; ++c) {
        double y = 0;
        for (int j = 0; j < p.keys; ++j) {
          y += score[j] * in.value.row(j)[head * value_dim + c];
        }
        out.push_back(sum == 0 ? 0 : y / sum);
      }
    }
  }
  return out;
}

}  // namespace nonlocal::reference
