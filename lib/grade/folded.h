// A model that has read its prompt: what is left to do for each pixel.
//
// Scores of a head's tokens are key . [features of the colour, 1] + x and y's terms, in units of log2:
// log2(e) and 1 / √d are in them. What a head changes is softmax(scores) value.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "nonlocal/cross_attention_filter.h"

namespace nonlocal {

namespace grade {

// What features of a colour are products of.
enum class Atom : std::uint8_t { kRed, kGreen, kBlue, kLuma, kCb, kCr, kChroma };
inline constexpr int kAtoms = 7;
inline constexpr int kMostFactors = 4;
inline constexpr double kLumaWeights[3] = {0.2126, 0.7152, 0.0722};
inline constexpr double kCbSpan = 1.8556;
inline constexpr double kCrSpan = 1.5748;
inline constexpr double kLeastChroma = 0.01;

struct ColourFeature {
  std::array<Atom, kMostFactors> factors;
  int count;
};

inline constexpr int kMostFeatures = 64;
inline constexpr int kMostFrequencies = 8;

// Throws InvalidArgument for a name that is none.
ColourFeature parse_feature(const std::string& name);

// Values of the features at one colour.
void colour_features(const std::vector<ColourFeature>& features, const double* colour, double* values);

// 2 F values of one axis.
void place_features(int frequencies, double at, double* values);

struct FoldedLayer {
  // Rows head by head, token by token.
  std::vector<double> key;      // [heads * T][features of the colour + 1]
  std::vector<double> key_x;    // [heads * T][2 F]
  std::vector<double> key_y;    // [heads * T][2 F]
  std::vector<double> value;    // [heads][T][3], W_out's bias shared among heads
  std::vector<double> effects;  // [heads][T]: |W_out v|, without W_out's bias
  // The same for the kernels, less the keys of each head's first token: softmax does not change, and that
  // token's scores are 0.
  std::vector<float> key_f;       // [heads * T][features of the colour]
  std::vector<float> constant_f;  // [heads * T], the factor of the feature 1
  std::vector<float> key_x_f;     // [heads * T][2 F]
  std::vector<float> key_y_f;     // [2 F][heads * T]
  std::vector<float> value_f;     // [heads][4][T]: R, G, B and 1
};

struct Folded {
  std::vector<ColourFeature> features;
  int frequencies;
  int heads;
  int tokens;
  std::vector<FoldedLayer> layers;
  std::uint64_t serial;  // of this filter alone

  [[nodiscard]] int rows() const { return heads * tokens; }
  [[nodiscard]] int depth() const { return static_cast<int>(features.size()) + 1; }
};

// Throws InvalidArgument, naming `who`, for a number of threads that makes no sense.
void check_threads(const char* who, int threads);

// Numbers that no two filters or looks of the process have in common.
std::uint64_t next_serial();

}  // namespace grade

struct CrossAttentionFilter::State {
  grade::Folded folded;
};

// The way in for the library's own.
struct GradeAccess {
  static const grade::Folded& folded(const CrossAttentionFilter& filter) { return filter.state_->folded; }
  // Of a model, a filter or a look.
  template <typename Owner>
  static const auto& state(const Owner& owner) {
    return *owner.state_;
  }
};

}  // namespace nonlocal
