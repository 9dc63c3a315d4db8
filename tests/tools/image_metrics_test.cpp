// PSNR, SSIM and flicker: known cases, and the formulas in double precision on random planes.
#include "nonlocal/image_metrics.h"

#include <gtest/gtest.h>

#include "reference/video_metrics.h"

namespace {

using nonlocal::reference::SamplePlane;
using namespace nonlocal::tools;

cv::Mat random_plane(cv::Size size, int seed, int from = 0, int to = 256) {
  cv::Mat plane(size, CV_8U);
  cv::RNG rng(seed);
  rng.fill(plane, cv::RNG::UNIFORM, from, to);
  return plane;
}

cv::Mat constant(int value) { return {32, 48, CV_8U, cv::Scalar(value)}; }

SamplePlane samples(const cv::Mat& plane) {
  const cv::Mat whole = plane.clone();
  return {whole.cols, whole.rows, {whole.datastart, whole.dataend}};
}

TEST(ImageMetrics, PsnrOfKnownPairs) {
  EXPECT_EQ(plane_psnr(constant(7), constant(7)), 100);
  EXPECT_NEAR(plane_psnr(constant(7), constant(8)), 48.1308, 1e-4);
  EXPECT_NEAR(plane_psnr(constant(0), constant(255)), 0, 1e-12);
}

TEST(ImageMetrics, SsimOfKnownPairs) {
  const cv::Mat noise = random_plane({40, 30}, 1);
  EXPECT_NEAR(plane_ssim(noise, noise), 1, 1e-12);
  EXPECT_NEAR(plane_ssim(constant(0), constant(0)), 1, 1e-12);
  // No variance: only the luminance's term is left.
  const double c1 = 2.55 * 2.55;
  EXPECT_NEAR(plane_ssim(constant(50), constant(100)), (2 * 50 * 100 + c1) / (50 * 50 + 100 * 100 + c1),
              1e-12);
  // The inverted picture is as unlike as can be.
  EXPECT_LT(plane_ssim(noise, 255 - noise), -0.5);
}

TEST(ImageMetrics, AgreeWithTheFormulas) {
  const auto expect_agreement = [](const cv::Mat& a, const cv::Mat& b) {
    EXPECT_NEAR(plane_psnr(a, b), nonlocal::reference::psnr(samples(a), samples(b)), 1e-9) << a.size();
    EXPECT_NEAR(plane_ssim(a, b), nonlocal::reference::ssim(samples(a), samples(b)), 1e-9) << a.size();
  };
  for (const cv::Size size : {cv::Size(11, 11), cv::Size(12, 31), cv::Size(37, 23)}) {
    const cv::Mat a = random_plane(size, 1);
    expect_agreement(a, random_plane(size, 2));
    expect_agreement(a, a + random_plane(size, 3, 0, 20));
    expect_agreement(random_plane(size, 4, 0, 3), random_plane(size, 5, 0, 3));
    expect_agreement(random_plane(size, 6, 253, 256), random_plane(size, 7, 253, 256));
  }
}

// A view into a larger plane counts alone.
TEST(ImageMetrics, TakeViews) {
  const cv::Mat a = random_plane({60, 40}, 1);
  const cv::Mat b = random_plane({60, 40}, 2);
  const cv::Rect part(5, 7, 33, 21);
  EXPECT_EQ(plane_psnr(a(part), b(part)), plane_psnr(a(part).clone(), b(part).clone()));
  EXPECT_NEAR(plane_ssim(a(part), b(part)), nonlocal::reference::ssim(samples(a(part)), samples(b(part))),
              1e-9);
}

TEST(ImageMetrics, FlickerIsWhatTheCleanClipHasNot) {
  const cv::Mat now = random_plane({40, 30}, 1);
  const cv::Mat before = random_plane({40, 30}, 2);
  EXPECT_EQ(plane_flicker(now, before, now, before), 0);
  EXPECT_EQ(plane_flicker(constant(50), constant(50), constant(9), constant(9)), 0);
  EXPECT_EQ(plane_flicker(constant(60), constant(50), constant(19), constant(9)), 0) << "the same change";
  EXPECT_NEAR(plane_flicker(constant(53), constant(47), constant(9), constant(9)), 6, 1e-12);
  EXPECT_NEAR(plane_flicker(constant(0), constant(255), constant(255), constant(0)), 510, 1e-12);
  const cv::Mat clean = random_plane({40, 30}, 3);
  const cv::Mat clean_before = random_plane({40, 30}, 4);
  EXPECT_NEAR(
      plane_flicker(now, before, clean, clean_before),
      nonlocal::reference::flicker(samples(now), samples(before), samples(clean), samples(clean_before)),
      1e-9);
}

}  // namespace
