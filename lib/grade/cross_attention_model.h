// The weights of a cross-attention filter as a model keeps them.
#pragma once

#include <array>
#include <vector>

#include "nonlocal/cross_attention_filter.h"

namespace nonlocal {

namespace grade {

struct ModelWeights {
  struct Linear {
    int outputs = 0;
    int inputs = 0;
    std::vector<float> weight;
    std::vector<float> bias;  // one an output: 0 where there is none

    // Output o of x.
    [[nodiscard]] double at(int o, const float* x) const {
      double sum = bias[static_cast<std::size_t>(o)];
      for (int i = 0; i < inputs; ++i) {
        sum += static_cast<double>(weight[static_cast<std::size_t>(o) * inputs + i]) * x[i];
      }
      return sum;
    }
  };
  struct Layer {
    Linear query, key, value, output;
  };

  GradeFeatures features;
  int heads = 1;
  std::vector<Layer> layers;
};

}  // namespace grade

struct CrossAttentionModel::State {
  grade::ModelWeights weights;
};

}  // namespace nonlocal
