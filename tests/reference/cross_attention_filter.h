// The cross-attention filter as its formula says it, in double precision: what lib/grade is compared with.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <numbers>
#include <sstream>
#include <string>
#include <vector>

#include "nonlocal/colour_format.h"
#include "nonlocal/cross_attention_filter.h"

namespace nonlocal::reference {

using Vector = std::vector<double>;

inline Vector linear(const LinearLayer& layer, const Vector& x) {
  Vector y;
  for (int o = 0; o < layer.weight.rows; ++o) {
    double sum = layer.bias.empty() ? 0 : static_cast<double>(layer.bias[o]);
    for (int i = 0; i < layer.weight.columns; ++i) {
      sum += static_cast<double>(layer.weight.row(o)[i]) * x[i];
    }
    y.push_back(sum);
  }
  return y;
}

inline double colour_feature(const std::string& name, const Vector& colour) {
  const double luma = 0.2126 * colour[0] + 0.7152 * colour[1] + 0.0722 * colour[2];
  const double cb = (colour[2] - luma) / 1.8556;
  const double cr = (colour[0] - luma) / 1.5748;
  double product = 1;
  std::istringstream factors(name);
  for (std::string factor; std::getline(factors, factor, '*');) {
    product *= factor == "r"      ? colour[0]
               : factor == "g"    ? colour[1]
               : factor == "b"    ? colour[2]
               : factor == "luma" ? luma
               : factor == "cb"   ? cb
               : factor == "cr"   ? cr
                                  : std::sqrt(cb * cb + cr * cr + 0.01 * 0.01);
  }
  return product;
}

inline Vector features(const GradeFeatures& features, const Vector& colour, double x, double y) {
  Vector all;
  for (const std::string& name : features.colour) {
    all.push_back(colour_feature(name, colour));
  }
  for (const double at : {x, y}) {
    for (int i = 0; i < features.frequencies; ++i) {
      all.push_back(std::sin(std::ldexp(std::numbers::pi / 2, i) * at));
      all.push_back(std::cos(std::ldexp(std::numbers::pi / 2, i) * at));
    }
  }
  return all;
}

// Attention of one query to all tokens, head by head: heads x T.
inline std::vector<Vector> attention_weights(const Vector& query, const std::vector<Vector>& keys,
                                             int heads) {
  std::vector<Vector> all;
  const std::size_t dim = query.size() / heads;
  for (int h = 0; h < heads; ++h) {
    Vector weights;
    for (const Vector& key : keys) {
      double product = 0;
      for (std::size_t i = h * dim; i < (h + 1) * dim; ++i) {
        product += query[i] * key[i];
      }
      weights.push_back(product / std::sqrt(static_cast<double>(dim)));
    }
    const double most = *std::max_element(weights.begin(), weights.end());
    double sum = 0;
    for (double& w : weights) {
      w = std::exp(w - most);
      sum += w;
    }
    for (double& w : weights) {
      w /= sum;
    }
    all.push_back(weights);
  }
  return all;
}

// One layer's change of a colour.
inline Vector layer_change(const MultiHeadWeights& layer, int heads, const ConstMatrix& tokens,
                           const Vector& query_features) {
  const Vector query = linear(layer.query, query_features);
  std::vector<Vector> keys;
  std::vector<Vector> values;
  for (int t = 0; t < tokens.rows; ++t) {
    const Vector token(tokens.row(t), tokens.row(t) + tokens.columns);
    keys.push_back(linear(layer.key, token));
    values.push_back(linear(layer.value, token));
  }
  const std::vector<Vector> weights = attention_weights(query, keys, heads);
  const std::size_t dim = values[0].size() / heads;
  Vector average(values[0].size(), 0.0);
  for (std::size_t i = 0; i < average.size(); ++i) {
    for (int t = 0; t < tokens.rows; ++t) {
      average[i] += weights[i / dim][t] * values[t][i];
    }
  }
  return linear(layer.output, average);
}

inline Vector cross_attention_filter(const CrossAttentionWeights& w, const ConstMatrix& tokens,
                                     const Vector& colour, double x, double y, double strength) {
  Vector now = colour;
  for (const MultiHeadWeights& layer : w.layers) {
    const Vector change = layer_change(layer, w.heads, tokens, features(w.features, now, x, y));
    for (int c = 0; c < 3; ++c) {
      now[c] += change[c];
    }
  }
  Vector out = colour;
  for (int c = 0; c < 3; ++c) {
    out[c] += strength * (now[c] - colour[c]);
  }
  return out;
}

// ------------------------------------------------------------------------------------------------- frames

// Codes of one plane.
struct Codes {
  int width, height, bit_depth;
  std::vector<double> values;
  [[nodiscard]] double at(int x, int y) const {
    x = std::clamp(x, 0, width - 1);
    y = std::clamp(y, 0, height - 1);
    return values[static_cast<std::size_t>(y) * width + x];
  }
};

// R, G, B in 0 .. 1 of codes, and back: BT.601, BT.709 and BT.2020 as H.273 writes them.
class Colours {
 public:
  Colours(const ColourFormat& format, int bit_depth) : f_(format), n_(bit_depth) {
    const double all[3][2] = {{0.299, 0.114}, {0.2126, 0.0722}, {0.2627, 0.0593}};
    kr_ = all[static_cast<int>(format.matrix)][0];
    kb_ = all[static_cast<int>(format.matrix)][1];
  }

  [[nodiscard]] Vector rgb(const Vector& codes) const {
    if (f_.model != ColourModel::kYCbCr) {
      return {value(codes[0]), value(codes[1]), value(codes[2])};
    }
    const double y = value(codes[0]);
    const double r = y + 2 * (1 - kr_) * chroma(codes[2]);
    const double b = y + 2 * (1 - kb_) * chroma(codes[1]);
    return {r, (y - kr_ * r - kb_ * b) / (1 - kr_ - kb_), b};
  }
  [[nodiscard]] Vector codes(const Vector& rgb) const {
    const double y = kr_ * rgb[0] + (1 - kr_ - kb_) * rgb[1] + kb_ * rgb[2];
    if (f_.model == ColourModel::kGray) {
      return {code(y)};
    }
    if (f_.model == ColourModel::kRgb) {
      return {code(rgb[0]), code(rgb[1]), code(rgb[2])};
    }
    const bool is_full = f_.range == ColourRange::kFull;
    const double span = is_full ? std::ldexp(1.0, n_) - 1 : std::ldexp(224.0, n_ - 8);
    const double middle = std::ldexp(1.0, n_ - 1);
    return {code(y), middle + span * (rgb[2] - y) / (2 * (1 - kb_)),
            middle + span * (rgb[0] - y) / (2 * (1 - kr_))};
  }

 private:
  [[nodiscard]] double value(double code) const {
    return f_.range == ColourRange::kFull ? code / (std::ldexp(1.0, n_) - 1)
                                          : (code - std::ldexp(16.0, n_ - 8)) / std::ldexp(219.0, n_ - 8);
  }
  [[nodiscard]] double code(double value) const {
    return f_.range == ColourRange::kFull ? value * (std::ldexp(1.0, n_) - 1)
                                          : value * std::ldexp(219.0, n_ - 8) + std::ldexp(16.0, n_ - 8);
  }
  [[nodiscard]] double chroma(double code) const {
    const double span = f_.range == ColourRange::kFull ? std::ldexp(1.0, n_) - 1 : std::ldexp(224.0, n_ - 8);
    return (code - std::ldexp(1.0, n_ - 1)) / span;
  }

  ColourFormat f_;
  int n_;
  double kr_, kb_;
};

// What becomes of a colour at a place.
using Filter = std::function<Vector(const Vector& colour, double x, double y)>;

// Chroma where luma's sample i lies: linear between samples that lie at 2 i + site.
inline std::array<double, 2> place_and_share(int i, bool is_half, double site) {
  const double at = is_half ? (i - site) / 2 : i;
  return {std::floor(at), at - std::floor(at)};
}

// The planes' codes, neither rounded nor clamped.
inline std::vector<Codes> grade(const std::vector<Codes>& in, const ColourFormat& format,
                                const Filter& filter) {
  const Colours colours(format, in[0].bit_depth);
  std::vector<Codes> out = in;
  const int width = in[0].width;
  const int height = in[0].height;
  const bool half_x = in.size() == 3 && in[1].width < width;
  const bool half_y = in.size() == 3 && in[1].height < height;
  const double site_x = format.site == ChromaSite::kCentre ? 0.5 : 0;
  const double site_y = format.site == ChromaSite::kTopLeft ? 0 : 0.5;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const auto [cx, u] = place_and_share(x, half_x, site_x);
      const auto [cy, v] = place_and_share(y, half_y, site_y);
      Vector codes = {in[0].at(x, y)};
      for (int c = 1; c < 3; ++c) {
        const Codes& p = in[in.size() == 3 ? c : 0];
        const int i = static_cast<int>(cx);
        const int k = static_cast<int>(cy);
        codes.push_back((1 - v) * ((1 - u) * p.at(i, k) + u * p.at(i + 1, k)) +
                        v * ((1 - u) * p.at(i, k + 1) + u * p.at(i + 1, k + 1)));
      }
      const Vector graded =
          colours.codes(filter(colours.rgb(codes), (2.0 * x + 1) / width - 1, (2.0 * y + 1) / height - 1));
      for (std::size_t c = 0; c < (half_x || half_y ? 1 : in.size()); ++c) {
        out[c].values[static_cast<std::size_t>(y) * width + x] = graded[c];
      }
    }
  }
  for (int y = 0; (half_x || half_y) && y < in[1].height; ++y) {
    for (int x = 0; x < in[1].width; ++x) {
      const int x0 = half_x ? 2 * x : x;
      const int y0 = half_y ? 2 * y : y;
      const int x1 = x0 + (half_x ? 1 : 0);
      const int y1 = y0 + (half_y ? 1 : 0);
      const double mean = (in[0].at(x0, y0) + in[0].at(x1, y0) + in[0].at(x0, y1) + in[0].at(x1, y1)) / 4;
      const Vector graded = colours.codes(filter(colours.rgb({mean, in[1].at(x, y), in[2].at(x, y)}),
                                                 (x0 + x1 + 1.0) / width - 1, (y0 + y1 + 1.0) / height - 1));
      for (int c = 1; c < 3; ++c) {
        out[c].values[static_cast<std::size_t>(y) * in[1].width + x] = graded[c];
      }
    }
  }
  return out;
}

}  // namespace nonlocal::reference
