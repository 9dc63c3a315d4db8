// A moving picture made by drawing: what a camera that pans along a street at night might see.
#pragma once

#include <opencv2/core.hpp>

namespace nonlocal::tools {

// Fine and coarse textures, repeated windows, straight edges, lettering, discs, a slow pan at three depths,
// and things that move by themselves. The same size and seed give the same pictures.
class NightStreet {
 public:
  // `size`: of the frames, at least 32 x 32.
  NightStreet(cv::Size size, uint64_t seed);

  // The frame at `seconds` (0 to kLongest), 8-bit BGR.
  [[nodiscard]] cv::Mat frame(double seconds) const;

  static constexpr double kLongest = 60;

 private:
  // Wider than the frame, so that a pan finds more of it; opaque where `mask` is 255.
  struct Layer {
    cv::Mat picture;
    cv::Mat mask;
    double speed = 0;  // of the pan, in samples a second
  };

  void paint_sky(cv::RNG& rng);
  void paint_houses(Layer& layer, cv::RNG& rng, double roof_line, double brightness) const;
  void paint_street(cv::RNG& rng);
  void paint_sign();
  [[nodiscard]] Layer empty_layer(double speed) const;
  [[nodiscard]] int scaled(double length) const;  // from a picture of 720 rows to this one
  void overlay(cv::Mat& frame, const Layer& layer, double seconds) const;
  void draw_wheel(cv::Mat& frame, double seconds) const;
  void draw_car(cv::Mat& frame, double seconds, double speed, double y, cv::Scalar colour) const;

  cv::Size size_;
  Layer sky_;
  Layer far_;
  Layer near_;
};

}  // namespace nonlocal::tools
