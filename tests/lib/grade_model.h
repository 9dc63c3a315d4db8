// Cross-attention models for tests: random ones, and one that does what trained ones are meant to do.
#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "nonlocal/cross_attention_filter.h"
#include "random_matrix.h"

namespace nonlocal::testing {

// A model's weights and a prompt's tokens, as matrices of their own.
struct OwnWeights {
  struct Linear {
    OwnMatrix weight;
    std::vector<float> bias;
    [[nodiscard]] LinearLayer view() const { return {weight.view(), bias}; }
  };
  struct Layer {
    Linear query, key, value, output;
  };

  GradeFeatures features;
  int heads = 1;
  std::vector<Layer> layers;
  OwnMatrix tokens{1, 1};

  [[nodiscard]] std::vector<MultiHeadWeights> views() const {
    std::vector<MultiHeadWeights> all;
    for (const Layer& l : layers) {
      all.push_back({l.query.view(), l.key.view(), l.value.view(), l.output.view()});
    }
    return all;
  }
  [[nodiscard]] CrossAttentionModel model() const {
    const std::vector<MultiHeadWeights> all = views();
    return CrossAttentionModel(CrossAttentionWeights{features, heads, all});
  }
  [[nodiscard]] CrossAttentionFilter filter() const { return {model(), tokens.view()}; }
};

struct RandomShape {
  GradeFeatures features = {};
  int layers = 1;
  int heads = 1;
  int dim = 4;
  int value_dim = 3;
  int tokens = 5;
  int embedding = 7;
  bool has_bias = false;
  double sharpness = 1;  // standard deviation of W_Q
};

inline OwnWeights random_weights(const RandomShape& s, unsigned seed = 1) {
  OwnWeights w{s.features, s.heads, {}, OwnMatrix::random(s.tokens, s.embedding, 1, seed, 3)};
  const auto linear = [&](int outputs, int inputs, double sigma) {
    seed += 17;
    std::vector<float> bias;
    if (s.has_bias) {
      bias = OwnMatrix::random(1, outputs, sigma / 2, seed + 5).values();
    }
    return OwnWeights::Linear{OwnMatrix::random(outputs, inputs, sigma, seed, 2), bias};
  };
  for (int i = 0; i < s.layers; ++i) {
    w.layers.push_back({linear(s.heads * s.dim, s.features.count(), s.sharpness),
                        linear(s.heads * s.dim, s.embedding, 1 / std::sqrt(s.embedding)),
                        linear(s.heads * s.value_dim, s.embedding, 1 / std::sqrt(s.embedding)),
                        linear(3, s.heads * s.value_dim, 0.1)});
  }
  return w;
}

// A token that is asked for around a colour, a luma and a place, and what it changes.
struct Wish {
  double colour[3];
  double colour_width;  // standard deviation in 0 .. 1; 0: any colour
  double luma;
  double luma_width;  // the same
  // Added to the score: of sin(πx/2), cos(πx/2), sin(πy/2), cos(πy/2).
  double place[4];
  double score;
  double change[3];
};

// Heads of as many wishes each. Token t of the prompt is wish t of every head; queries are the features
// themselves and keys the coefficients of -|colour - c|² / 2 w² and so on.
inline OwnWeights wishes(const std::vector<std::vector<Wish>>& heads, int frequencies) {
  const std::vector<std::string> colour = {"r", "g", "b", "r*r", "g*g", "b*b", "luma", "luma*luma"};
  const GradeFeatures features{colour, frequencies};
  const int n = features.count();
  const int dim = n + 1;  // and 1, by W_Q's bias
  const int count = static_cast<int>(heads.size());
  const int tokens = static_cast<int>(heads[0].size());
  const auto zeros = [](int rows, int columns) {
    OwnMatrix m(rows, columns);
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < columns; ++j) {
        m.at(i, j) = 0;
      }
    }
    return m;
  };
  OwnWeights w{features, count, {}, zeros(tokens, tokens)};
  OwnWeights::Layer l{{zeros(count * dim, n), std::vector<float>(static_cast<std::size_t>(count) * dim)},
                      {zeros(count * dim, tokens), {}},
                      {zeros(count * 3, tokens), {}},
                      {zeros(3, count * 3), {}}};
  for (int t = 0; t < tokens; ++t) {
    w.tokens.at(t, t) = 1;
  }
  for (int h = 0; h < count; ++h) {
    for (int f = 0; f < n; ++f) {
      l.query.weight.at(h * dim + f, f) = 1;
    }
    l.query.bias[static_cast<std::size_t>(h) * dim + n] = 1;
    for (int c = 0; c < 3; ++c) {
      l.output.weight.at(c, h * 3 + c) = 1;
    }
    for (int t = 0; t < tokens; ++t) {
      const Wish& wish = heads[h][t];
      const double by = std::sqrt(dim);
      const auto add = [&](int f, double value) {
        l.key.weight.at(h * dim + f, t) += static_cast<float>(value * by);
      };
      double constant = wish.score;
      for (int c = 0; c < 3 && wish.colour_width > 0; ++c) {
        const double k = 1 / (wish.colour_width * wish.colour_width);
        add(c, k * wish.colour[c]);
        add(3 + c, -k / 2);
        constant -= k / 2 * wish.colour[c] * wish.colour[c];
      }
      if (wish.luma_width > 0) {
        const double k = 1 / (wish.luma_width * wish.luma_width);
        add(6, k * wish.luma);
        add(7, -k / 2);
        constant -= k / 2 * wish.luma * wish.luma;
      }
      for (int i = 0; i < 4 && frequencies > 0; ++i) {
        add(8 + (i < 2 ? i : i - 2 + 2 * frequencies), wish.place[i]);
      }
      add(n, constant);
      for (int c = 0; c < 3; ++c) {
        l.value.weight.at(h * 3 + c, t) = static_cast<float>(wish.change[c]);
      }
    }
  }
  w.layers.push_back(std::move(l));
  return w;
}

// What a look is made of: split toning, greens towards teal and skin left alone, and with places a vignette
// and a sky that cools towards the top.
inline OwnWeights like_trained(bool has_places) {
  const Wish none = {{}, 0, 0, 0, {}, -1e3, {}};
  const std::vector<Wish> tone = {{{}, 0, 0.1, 0.15, {}, 0, {-0.03, 0.01, 0.05}},   // shadows
                                  {{}, 0, 0.5, 0.25, {}, 0.5, {0.02, 0.0, -0.02}},  // middle
                                  {{}, 0, 0.9, 0.15, {}, 0, {0.06, 0.03, -0.07}},   // lights
                                  none};
  const std::vector<Wish> hue = {{{0.25, 0.45, 0.2}, 0.18, 0, 0, {}, 2.5, {-0.08, 0.02, 0.09}},  // greens
                                 {{0.8, 0.6, 0.5}, 0.15, 0, 0, {}, 2.5, {0.03, 0.0, -0.01}},     // skin
                                 {{0.7, 0.2, 0.15}, 0.18, 0, 0, {}, 2.5, {0.08, -0.05, -0.05}},  // reds
                                 {{}, 0, 0, 0, {}, 0, {}}};
  const std::vector<Wish> place = {
      {{}, 0, 0, 0, {0, -4, 0, -4}, 1.5, {-0.25, -0.25, -0.25}},           // the corners
      {{0.55, 0.7, 0.9}, 0.3, 0, 0, {0, 0, -4, 0}, 1, {-0.08, 0.0, 0.1}},  // the sky
      {{}, 0, 0.4, 0.4, {3, 0, 0, 0}, -1, {0.07, 0.02, -0.06}},            // light from the right
      {{}, 0, 0, 0, {}, 0, {}}};
  if (has_places) {
    return wishes({tone, hue, place}, 1);
  }
  return wishes({tone, hue}, 0);
}

}  // namespace nonlocal::testing
