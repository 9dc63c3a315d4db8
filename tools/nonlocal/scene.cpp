#include "scene.h"

#include <cmath>
#include <opencv2/imgproc.hpp>

namespace nonlocal::tools {
namespace {

constexpr double kRows = 720;           // the picture that the lengths below are given for
constexpr double kHorizon = 0.72;       // of the height: where the houses stand
constexpr double kPan = 40;             // samples a second of the nearest layer, at 720 rows
constexpr int kFractionBits = 4;        // of the coordinates that OpenCV draws at
const cv::Scalar kWarm{120, 205, 255};  // BGR, as everything here
const cv::Scalar kOpaque = cv::Scalar::all(255);

cv::Point fixed(double x, double y) {
  return {cvRound(x * (1 << kFractionBits)), cvRound(y * (1 << kFractionBits))};
}

void disc(cv::Mat& frame, double x, double y, double radius, const cv::Scalar& colour) {
  cv::circle(frame, fixed(x, y), cvRound(radius * (1 << kFractionBits)), colour, cv::FILLED, cv::LINE_AA,
             kFractionBits);
}

void box(cv::Mat& frame, double x, double y, double width, double height, const cv::Scalar& colour) {
  const cv::Point corners[] = {fixed(x, y), fixed(x + width, y), fixed(x + width, y + height),
                               fixed(x, y + height)};
  cv::fillConvexPoly(frame, corners, 4, colour, cv::LINE_AA, kFractionBits);
}

// Octaves of smoothed noise, each twice as fine and `persistence` times as strong as the one before; mean 0,
// standard deviation about 1.
cv::Mat octaves(cv::Size size, double coarsest, double finest, double persistence, cv::RNG& rng) {
  cv::Mat sum = cv::Mat::zeros(size, CV_32F);
  double strength = 1;
  double power = 0;
  for (double cell = coarsest; cell >= finest; cell /= 2, strength *= persistence) {
    cv::Mat grid(std::max(2, cvCeil(size.height / cell)), std::max(2, cvCeil(size.width / cell)), CV_32F);
    rng.fill(grid, cv::RNG::NORMAL, 0, 1);
    cv::Mat octave;
    cv::resize(grid, octave, size, 0, 0, cv::INTER_CUBIC);
    sum += strength * octave;
    power += strength * strength;
  }
  return sum / std::sqrt(power);
}

// picture *= 1 + depth * texture
void apply_texture(cv::Mat picture, const cv::Mat& texture, double depth) {
  cv::Mat gain;
  cv::Mat gains;
  texture.convertTo(gain, CV_32F, depth, 1);
  cv::merge(std::vector<cv::Mat>(3, gain), gains);
  cv::Mat exact;
  picture.convertTo(exact, CV_32F);
  cv::multiply(exact, gains, exact);
  exact.convertTo(picture, CV_8U);
}

}  // namespace

NightStreet::NightStreet(cv::Size size, uint64_t seed) : size_(size) {
  cv::RNG rng(seed);
  sky_ = empty_layer(0.1);
  far_ = empty_layer(0.4);
  near_ = empty_layer(1);
  paint_sky(rng);
  paint_houses(far_, rng, 0.30, 0.55);
  paint_houses(near_, rng, 0.46, 1);
  paint_street(rng);
  paint_sign();
}

int NightStreet::scaled(double length) const { return std::max(1, cvRound(length * size_.height / kRows)); }

NightStreet::Layer NightStreet::empty_layer(double speed) const {
  Layer layer;
  layer.speed = speed * kPan * size_.height / kRows;
  const cv::Size size(size_.width + cvCeil(layer.speed * kLongest) + 2, size_.height);
  layer.picture = cv::Mat::zeros(size, CV_8UC3);
  layer.mask = cv::Mat::zeros(size, CV_8U);
  return layer;
}

void NightStreet::paint_sky(cv::RNG& rng) {
  cv::Mat& sky = sky_.picture;
  for (int y = 0; y < sky.rows; ++y) {
    const double low = static_cast<double>(y) / sky.rows;
    sky.row(y).setTo(cv::Scalar(52 + 40 * low, 34 + 40 * low, 28 + 50 * low));
  }
  apply_texture(sky, octaves(sky.size(), scaled(320), scaled(8), 0.6, rng), 0.16);
  disc(sky, sky.cols * 0.16, scaled(110), scaled(46), {190, 205, 214});
  for (const auto& [x, y, r] : {std::tuple{-14, -8, 9}, {10, 14, 12}, {14, -18, 6}})
    disc(sky, sky.cols * 0.16 + scaled(20) * x / 20.0, scaled(110) + scaled(20) * y / 20.0, scaled(r),
         {160, 174, 184});
  sky_.mask.setTo(kOpaque);
}

void NightStreet::paint_houses(Layer& layer, cv::RNG& rng, double roof_line, double brightness) const {
  const int ground = cvRound(kHorizon * size_.height);
  const cv::Mat stone = octaves(layer.picture.size(), scaled(24), 1.5, 0.8, rng);
  for (int x = 0; x < layer.picture.cols;) {
    const int width = scaled(rng.uniform(90, 200));
    const int roof = cvRound((roof_line + rng.uniform(-0.14, 0.14)) * size_.height);
    const cv::Rect house = cv::Rect(x, roof, width, ground - roof) & cv::Rect({0, 0}, layer.picture.size());
    const double tint = rng.uniform(0.7, 1.3);
    layer.picture(house) = cv::Scalar(58, 66, 76) * (brightness * tint);
    layer.mask(house) = kOpaque;
    apply_texture(layer.picture(house), stone(house), 0.22);
    const int across = scaled(rng.uniform(20, 34));
    const int down = scaled(rng.uniform(28, 44));
    for (int wy = roof + down / 2; wy + down < ground; wy += down) {
      for (int wx = x + across / 2; wx + across < x + width; wx += across) {
        const bool lit = rng.uniform(0.0, 1.0) < 0.35;
        const double light = brightness * (lit ? rng.uniform(0.4, 0.8) : 0.12);
        box(layer.picture, wx, wy, across * 0.55, down * 0.6, kWarm * light);
        box(layer.picture, wx + across * 0.25, wy, scaled(2), down * 0.6,
            cv::Scalar(40, 44, 50) * brightness);
      }
    }
    x += width + (rng.uniform(0, 3) == 0 ? scaled(30) : 0);
  }
}

void NightStreet::paint_street(cv::RNG& rng) {
  const int top = cvRound(kHorizon * size_.height);
  const cv::Rect street(0, top, near_.picture.cols, size_.height - top);
  cv::Mat asphalt = near_.picture(street);
  asphalt.setTo(cv::Scalar(54, 56, 60));
  apply_texture(asphalt, octaves(street.size(), scaled(64), 1.5, 0.85, rng), 0.20);
  near_.mask(street) = kOpaque;
  box(near_.picture, 0, top, near_.picture.cols, scaled(16), {84, 90, 96});
  for (int x = 0; x < near_.picture.cols; x += scaled(120))
    box(near_.picture, x, top + scaled(112), scaled(64), scaled(7), {150, 158, 164});
  for (int x = scaled(200); x < near_.picture.cols; x += scaled(420)) {
    box(near_.picture, x, top - scaled(210), scaled(7), scaled(212), {34, 36, 40});
    box(near_.mask, x, top - scaled(210), scaled(7), scaled(212), kOpaque);
    disc(near_.picture, x + scaled(3), top - scaled(214), scaled(15), {170, 226, 250});
    disc(near_.mask, x + scaled(3), top - scaled(214), scaled(15), kOpaque);
  }
}

void NightStreet::paint_sign() {
  const int top = cvRound(kHorizon * size_.height) - scaled(150);
  const double scale = 1.7 * size_.height / kRows;
  for (int x = scaled(420); x < near_.picture.cols; x += scaled(900)) {
    box(near_.picture, x, top, scaled(330), scaled(88), {70, 40, 28});
    box(near_.mask, x, top, scaled(330), scaled(88), kOpaque);
    cv::putText(near_.picture, "NONLOCAL", {x + scaled(20), top + scaled(48)}, cv::FONT_HERSHEY_DUPLEX, scale,
                {210, 214, 120}, scaled(3), cv::LINE_AA);
    cv::putText(near_.picture, "open all night . hot soup . rooms to let", {x + scaled(20), top + scaled(74)},
                cv::FONT_HERSHEY_SIMPLEX, scale * 0.29, {150, 190, 220}, 1, cv::LINE_AA);
  }
}

void NightStreet::overlay(cv::Mat& frame, const Layer& layer, double seconds) const {
  const cv::Matx23d shift(1, 0, -layer.speed * seconds, 0, 1, 0);
  cv::Mat picture;
  cv::Mat mask;
  cv::warpAffine(layer.picture, picture, shift, size_, cv::INTER_CUBIC, cv::BORDER_REPLICATE);
  cv::warpAffine(layer.mask, mask, shift, size_, cv::INTER_LINEAR, cv::BORDER_REPLICATE);
  cv::Mat opacity;
  cv::merge(std::vector<cv::Mat>(3, mask), opacity);
  cv::Mat behind;
  cv::multiply(frame, kOpaque - opacity, behind, 1 / 255.0);
  cv::multiply(picture, opacity, picture, 1 / 255.0);
  cv::add(behind, picture, frame);
}

void NightStreet::draw_wheel(cv::Mat& frame, double seconds) const {
  const double x = size_.width * 0.72 - 0.4 * kPan * seconds * size_.height / kRows;
  const double y = size_.height * 0.34;
  const double radius = scaled(170);
  constexpr int kCabins = 12;
  cv::circle(frame, fixed(x, y), cvRound(radius * (1 << kFractionBits)), {96, 90, 84}, scaled(4), cv::LINE_AA,
             kFractionBits);
  for (int i = 0; i < kCabins; ++i) {
    const double angle = 0.35 * seconds + 2 * CV_PI * i / kCabins;
    const double cabin_x = x + radius * std::cos(angle);
    const double cabin_y = y + radius * std::sin(angle);
    cv::line(frame, fixed(x, y), fixed(cabin_x, cabin_y), {84, 80, 74}, scaled(2), cv::LINE_AA,
             kFractionBits);
    const cv::Scalar colours[] = {{80, 90, 200}, {90, 180, 110}, {190, 130, 70}};
    disc(frame, cabin_x, cabin_y, scaled(14), colours[i % 3]);
  }
  disc(frame, x, y, scaled(18), {110, 130, 140});
}

void NightStreet::draw_car(cv::Mat& frame, double seconds, double speed, double y, cv::Scalar colour) const {
  const double unit = size_.height / kRows;
  const double lane = size_.width + 400 * unit;
  const double travelled = std::fmod(speed * unit * seconds + (speed < 0 ? 0.7 : 0.3) * lane, lane);
  const double x = (travelled < 0 ? travelled + lane : travelled) - 300 * unit;
  const double top = y * size_.height;
  box(frame, x, top, 230 * unit, 46 * unit, colour);
  box(frame, x + 46 * unit, top - 36 * unit, 126 * unit, 40 * unit, colour * 0.8);
  box(frame, x + 56 * unit, top - 30 * unit, 48 * unit, 26 * unit, {92, 84, 70});
  box(frame, x + 112 * unit, top - 30 * unit, 50 * unit, 26 * unit, {92, 84, 70});
  for (const double wheel : {52.0, 178.0}) {
    disc(frame, x + wheel * unit, top + 48 * unit, 25 * unit, {22, 22, 24});
    disc(frame, x + wheel * unit, top + 48 * unit, 12 * unit, {104, 108, 110});
  }
  const bool to_the_right = speed > 0;
  disc(frame, x + (to_the_right ? 226 : 4) * unit, top + 18 * unit, 9 * unit, {200, 240, 250});
  disc(frame, x + (to_the_right ? 4 : 226) * unit, top + 18 * unit, 7 * unit, {50, 50, 210});
}

cv::Mat NightStreet::frame(double seconds) const {
  cv::Mat frame(size_, CV_8UC3);
  overlay(frame, sky_, seconds);
  draw_wheel(frame, seconds);
  overlay(frame, far_, seconds);
  overlay(frame, near_, seconds);
  draw_car(frame, seconds, -150, 0.78, {96, 60, 52});
  draw_car(frame, seconds, 220, 0.88, {58, 62, 130});
  // What a lens does to edges that were drawn.
  cv::GaussianBlur(frame, frame, {}, 0.7);
  return frame;
}

}  // namespace nonlocal::tools
