// What the samples of a frame's planes mean as colours.
#pragma once

#include "nonlocal/export.h"

namespace nonlocal {

enum class ColourModel {
  kRgb,    // planes R, G, B of one size, in this order wherever they lie in memory
  kYCbCr,  // planes Y, Cb, Cr; both chroma planes have luma's width and height or half of either, rounded up
  kGray,   // one plane: R = G = B; what a filter makes of such a colour is written as its luma
};

// Where luma's weights of R, G and B come from: ITU-R BT.601, BT.709, BT.2020 (non-constant luminance). kGray
// takes luma by them, too.
enum class ColourMatrix { kBt601, kBt709, kBt2020 };

// Codes of n bits, s = 2^(n - 8) (ITU-T H.273).
enum class ColourRange {
  kFull,     // 0 .. 2^n - 1; Cb and Cr around 2^(n - 1)
  kLimited,  // 16 s .. 235 s; Cb and Cr 16 s .. 240 s around 128 s
};

// Where a sample of chroma of half the size lies.
enum class ChromaSite {
  kLeft,     // at even columns, between rows: MPEG-2, H.264's and HEVC's default
  kCentre,   // between columns and rows: JPEG, MPEG-1
  kTopLeft,  // at even columns and rows: BT.2020
};

struct ColourFormat {
  ColourModel model = ColourModel::kRgb;
  ColourMatrix matrix = ColourMatrix::kBt709;
  ColourRange range = ColourRange::kFull;
  ChromaSite site = ChromaSite::kLeft;

  bool operator==(const ColourFormat&) const = default;
};

}  // namespace nonlocal
