// CLIP's towers as their formulas read, in double precision, without any trick: what the library is compared
// with.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace nonlocal::reference {

struct TransformerShape {
  int width, hidden, layers, heads;
  bool is_quick;  // quick_gelu, else gelu
  bool is_causal;
  double epsilon;
};

using Row = std::vector<double>;
using Rows = std::vector<Row>;
using Tensors = std::map<std::string, std::vector<float>>;

inline Row linear(const Tensors& t, const std::string& name, const Row& x) {
  Row y;
  const std::vector<float>& weight = t.at(name + ".weight");
  for (const float bias : t.at(name + ".bias")) {
    double sum = bias;
    for (std::size_t i = 0; i < x.size(); ++i) {
      sum += weight[y.size() * x.size() + i] * x[i];
    }
    y.push_back(sum);
  }
  return y;
}

inline Row norm(const Tensors& t, const std::string& name, const Row& x, double epsilon) {
  double mean = 0;
  double variance = 0;
  for (const double v : x) mean += v / static_cast<double>(x.size());
  for (const double v : x) variance += (v - mean) * (v - mean) / static_cast<double>(x.size());
  Row y;
  for (std::size_t i = 0; i < x.size(); ++i) {
    y.push_back((x[i] - mean) / std::sqrt(variance + epsilon) * t.at(name + ".weight")[i] +
                t.at(name + ".bias")[i]);
  }
  return y;
}

inline double activated(double x, bool is_quick) {
  return is_quick ? x / (1 + std::exp(-1.702 * x)) : x * (1 + std::erf(x / std::sqrt(2.0))) / 2;
}

// One query's average of the values of keys 0 .. count - 1, in one head.
inline void attend(const Row& query, const Rows& keys, const Rows& values, std::size_t count,
                   std::size_t first, std::size_t dim, Row& out) {
  Row score(count);
  for (std::size_t j = 0; j < count; ++j) {
    for (std::size_t c = first; c < first + dim; ++c) score[j] += query[c] * keys[j][c];
    score[j] /= std::sqrt(static_cast<double>(dim));
  }
  const double largest = *std::max_element(score.begin(), score.end());
  double sum = 0;
  for (double& s : score) sum += s = std::exp(s - largest);
  for (std::size_t j = 0; j < count; ++j) {
    for (std::size_t c = first; c < first + dim; ++c) out[c] += score[j] / sum * values[j][c];
  }
}

inline void add(Row& to, const Row& more) {
  std::transform(to.begin(), to.end(), more.begin(), to.begin(), std::plus<>());
}

inline void transformer_block(const Tensors& t, const std::string& name, const TransformerShape& s, Rows& x) {
  Rows queries, keys, values;
  for (const Row& row : x) {
    const Row normal = norm(t, name + "layer_norm1", row, s.epsilon);
    queries.push_back(linear(t, name + "self_attn.q_proj", normal));
    keys.push_back(linear(t, name + "self_attn.k_proj", normal));
    values.push_back(linear(t, name + "self_attn.v_proj", normal));
  }
  const auto dim = static_cast<std::size_t>(s.width / s.heads);
  for (std::size_t i = 0; i < x.size(); ++i) {
    Row average(x[i].size());
    for (std::size_t first = 0; first < x[i].size(); first += dim) {
      attend(queries[i], keys, values, s.is_causal ? i + 1 : x.size(), first, dim, average);
    }
    add(x[i], linear(t, name + "self_attn.out_proj", average));
    Row hidden = linear(t, name + "mlp.fc1", norm(t, name + "layer_norm2", x[i], s.epsilon));
    for (double& h : hidden) h = activated(h, s.is_quick);
    add(x[i], linear(t, name + "mlp.fc2", hidden));
  }
}

// The tokens after the final norm.
inline Rows text_tower(const Tensors& t, const TransformerShape& s, const std::vector<int>& ids) {
  const std::vector<float>& tokens = t.at("text_model.embeddings.token_embedding.weight");
  const std::vector<float>& positions = t.at("text_model.embeddings.position_embedding.weight");
  const auto width = static_cast<std::size_t>(s.width);
  Rows x;
  for (const int id : ids) {
    Row row;
    for (std::size_t c = 0; c < width; ++c) {
      row.push_back(static_cast<double>(tokens[static_cast<std::size_t>(id) * width + c]) +
                    positions[x.size() * width + c]);
    }
    x.push_back(row);
  }
  for (int i = 0; i < s.layers; ++i) {
    transformer_block(t, "text_model.encoder.layers." + std::to_string(i) + ".", s, x);
  }
  for (Row& row : x) row = norm(t, "text_model.final_layer_norm", row, s.epsilon);
  return x;
}

// --- Patches that agree first: GEM ---

inline double length(const Row& x) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  return std::sqrt(sum);
}

// Each head's channels of unit length.
inline Rows units(const Rows& x, std::size_t dim) {
  Rows all = x;
  for (Row& row : all) {
    for (std::size_t first = 0; first < row.size(); first += dim) {
      const double size = length(Row(row.begin() + static_cast<std::ptrdiff_t>(first),
                                     row.begin() + static_cast<std::ptrdiff_t>(first + dim)));
      for (std::size_t c = first; c < first + dim; ++c) row[c] /= std::max(size, 1e-12);
    }
  }
  return all;
}

// Each token's average of the values, by how much it looks like the others.
inline Rows self_self(const Rows& x, const Rows& values, std::size_t dim, double temperature) {
  Rows queries = units(x, dim);
  const Rows keys = queries;
  Rows out;
  for (Row& query : queries) {
    // attend() divides by this root.
    for (double& q : query) q *= temperature * std::sqrt(static_cast<double>(dim));
    Row average(query.size());
    for (std::size_t first = 0; first < query.size(); first += dim) {
      attend(query, keys, values, keys.size(), first, dim, average);
    }
    out.push_back(average);
  }
  return out;
}

// What a block's self-self attention adds to the path; `name` is the block's.
inline Rows self_self_attention(const Tensors& t, const std::string& name, const TransformerShape& s,
                                const Rows& x) {
  Rows normal;
  double lengths = 0;
  for (const Row& row : x) {
    normal.push_back(norm(t, name + "layer_norm1", row, s.epsilon));
    lengths += length(normal.back());
  }
  const auto dim = static_cast<std::size_t>(s.width / s.heads);
  const double temperature =
      lengths / static_cast<double>(x.size()) / std::sqrt(static_cast<double>(dim));
  const auto part = [&](const std::string& which) {
    Rows rows;
    for (const Row& row : normal) rows.push_back(linear(t, name + "self_attn." + which, row));
    return rows;
  };
  const Rows values = part("v_proj");
  Rows sum(x.size(), Row(x[0].size()));
  for (const char* which : {"q_proj", "k_proj", "v_proj"}) {
    const Rows own = part(which);
    const Rows agreed = self_self(own, units(own, dim), dim, temperature);
    const Rows average = self_self(agreed, values, dim, temperature);
    for (std::size_t i = 0; i < sum.size(); ++i) add(sum[i], average[i]);
  }
  for (Row& row : sum) {
    for (double& v : row) v /= 3;
    row = linear(t, name + "self_attn.out_proj", row);
  }
  return sum;
}

// The patches, not projected, of `samples`: a patch a row, as many as the tower has positions of.
inline Rows grounded(const Tensors& t, const TransformerShape& s, const Rows& samples) {
  constexpr int kBlocks = 6;
  const std::string tower = "vision_model.";
  const std::vector<float>& kernel = t.at(tower + "embeddings.patch_embedding.weight");
  const std::vector<float>& first = t.at(tower + "embeddings.class_embedding");
  const std::vector<float>& positions = t.at(tower + "embeddings.position_embedding.weight");
  Rows x = {Row(first.begin(), first.end())};
  for (const Row& patch : samples) {
    Row row(first.size());
    for (std::size_t c = 0; c < row.size(); ++c) {
      for (std::size_t i = 0; i < patch.size(); ++i) row[c] += kernel[c * patch.size() + i] * patch[i];
    }
    x.push_back(row);
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t c = 0; c < first.size(); ++c) x[i][c] += positions[i * first.size() + c];
    x[i] = norm(t, tower + "pre_layrnorm", x[i], s.epsilon);
  }
  Rows path;
  for (int block = 0; block < s.layers; ++block) {
    const std::string name = tower + "encoder.layers." + std::to_string(block) + ".";
    if (block == std::max(s.layers - kBlocks, 0)) path = x;
    if (!path.empty()) {
      const Rows more = self_self_attention(t, name, s, x);
      for (std::size_t i = 0; i < path.size(); ++i) add(path[i], more[i]);
    }
    transformer_block(t, name, s, x);
  }
  path.erase(path.begin());
  for (Row& row : path) row = norm(t, tower + "post_layernorm", row, s.epsilon);
  return path;
}

}  // namespace nonlocal::reference
