// Temporal fusion: its fixed settings, and what its loops over rows are told.
#pragma once

#include <cstdint>

namespace nonlocal::denoise {

// Samples of all depths become 15 bits, so that differences fit 16.
constexpr int kStateDepth = 15;

// What is decided is decided for cells of 2 x 2 pixels, from maps with a value a cell: shares of sigma², or
// of sigma, times kUnit. Rows of maps go on beyond their ends, for boxes.
constexpr float kUnit = 1024;
constexpr int kMapMargin = 16;
constexpr int kSquareRadius = 2;

// Of the clips that these were tried on none gains more than 0.2 dB by others.
constexpr float kDead = 0.25F;           // of the mean square over 5 x 5 cells: what chance adds to it
constexpr float kMeanGain = 15;          // of the squared mean, which tells less, but is surer
constexpr float kMeanDead = 0.1F;        // what chance adds to it
constexpr float kCut = 4;                // beyond this x̂ is of something else
constexpr float kLeastVariance = 0.02F;  // no more than 50 frames are remembered
constexpr float kNew = 0.9F;             // a gain from which on a cell shows something new

// What decides about a row of cells.
struct GainRow {
  const float* square;       // mean of (y - x̂)² / sigma² around each cell
  const float* mean_square;  // the largest of the planes' squared means of y - x̂, without the noise's share
  const std::uint16_t* own;  // n of y, in 65535ths
  const std::uint16_t* before;  // v of x̂, in 65535ths
  std::uint16_t* variance;      // v of x, in 65535ths
  std::uint16_t* gain;          // a, in 32767ths
  std::uint16_t* deviation;     // sqrt(v) sigma, in 256ths of a code value
  float sigma;
  float dead;  // kDead of this noise
};

}  // namespace nonlocal::denoise
