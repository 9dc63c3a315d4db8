// How far are two 8-bit pictures, or two clips, apart?
#pragma once

#include <opencv2/core.hpp>

namespace nonlocal::tools {

// Identical pictures count as so many decibels.
inline constexpr double kIdentical = 100;

// Peak signal-to-noise ratio in decibels, of 255. Both CV_8U, of one size.
double plane_psnr(const cv::Mat& a, const cv::Mat& b);

constexpr int kSsimWindow = 11;

// The mean structural similarity index, 1 for identical planes: Wang, Bovik, Sheikh and Simoncelli, "Image
// quality assessment: from error visibility to structural similarity", IEEE TIP 13(4), 2004, equation 13,
// with the paper's Gaussian window of 11 x 11 and standard deviation 1.5, K1 = 0.01, K2 = 0.03, L = 255, over
// the positions where the whole window lies within the plane. Both CV_8U, of one size, at least 11 x 11.
double plane_ssim(const cv::Mat& a, const cv::Mat& b);

// How much `out` changes from one frame to the next that the clean clip does not: the root mean square over
// the pixels of (out - out_before) - (clean - clean_before), in code values. All CV_8U, of one size.
double plane_flicker(const cv::Mat& out, const cv::Mat& out_before, const cv::Mat& clean,
                     const cv::Mat& clean_before);

}  // namespace nonlocal::tools
