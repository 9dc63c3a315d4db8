#include "chart.h"

#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>

#include "text.h"

namespace nonlocal::tools {
namespace {

constexpr int kLeft = 110;
constexpr int kRight = 40;
constexpr int kTop = 70;
constexpr int kBottom = 100;
constexpr double kTextScale = 0.55;
const cv::Scalar kPaper = cv::Scalar::all(255);
const cv::Scalar kInk = cv::Scalar::all(40);
const cv::Scalar kGrid = cv::Scalar::all(225);

enum class Align { kLeft, kCentre, kRight };

cv::Size text_size(const std::string& text, double scale) {
  int baseline = 0;
  return cv::getTextSize(text, cv::FONT_HERSHEY_SIMPLEX, scale, 1, &baseline);
}

// `at`: the middle of the text's height, and that side of it that `align` names.
void write(cv::Mat& picture, const std::string& text, cv::Point at, Align align, double scale = kTextScale) {
  const cv::Size size = text_size(text, scale);
  const int shift = align == Align::kLeft ? 0 : align == Align::kCentre ? size.width / 2 : size.width;
  cv::putText(picture, text, {at.x - shift, at.y + size.height / 2}, cv::FONT_HERSHEY_SIMPLEX, scale, kInk, 1,
              cv::LINE_AA);
}

// Along the left margin, from below to above.
void write_upwards(cv::Mat& picture, const std::string& text) {
  cv::Mat across(30, kChartHeight, CV_8UC3, kPaper);
  write(across, text, {kBottom + (kChartHeight - kBottom - kTop) / 2, across.rows / 2}, Align::kCentre);
  cv::rotate(across, across, cv::ROTATE_90_COUNTERCLOCKWISE);
  across.copyTo(picture(cv::Rect({10, 0}, across.size())));
}

// A logarithmic scale from `from` to `to` along `pixels` from `start`, which may run backwards.
struct Scale {
  double from;
  double to;
  int start;
  int pixels;

  [[nodiscard]] int at(double value) const {
    return start + cvRound(pixels * std::log(value / from) / std::log(to / from));
  }
};

std::pair<double, double> range(const Chart& chart, double cv::Point2d::*coordinate) {
  std::vector<double> values;
  for (const Series& series : chart.series)
    for (const cv::Point2d& point : series.points) values.push_back(point.*coordinate);
  const auto [low, high] = std::ranges::minmax(values);
  return {low, std::max(high, low * 1.01)};
}

std::vector<Tick> ticks_125(double from, double to) {
  std::vector<Tick> ticks;
  for (double power = std::pow(10, std::floor(std::log10(from))); power <= to; power *= 10)
    for (const int digit : {1, 2, 5})
      if (const double at = digit * power; at >= from && at <= to) ticks.push_back({at, formatted("%g", at)});
  return ticks;
}

void draw_axes(cv::Mat& picture, const Chart& chart, const Scale& x, const Scale& y) {
  const int bottom = kChartHeight - kBottom;
  const int right = kChartWidth - kRight;
  for (const Tick& tick : ticks_125(y.from, y.to)) {
    const int at = y.at(tick.at);
    cv::line(picture, {kLeft, at}, {right, at}, kGrid);
    write(picture, tick.label, {kLeft - 10, at}, Align::kRight);
  }
  for (const Tick& tick : chart.x_ticks) {
    const int at = x.at(tick.at);
    cv::line(picture, {at, kTop}, {at, bottom}, kGrid);
    write(picture, tick.label, {at, bottom + 20}, Align::kCentre, 0.9 * kTextScale);
  }
  cv::rectangle(picture, {kLeft, kTop}, {right, bottom}, kInk);
  write(picture, chart.title, {(kLeft + right) / 2, kTop / 2}, Align::kCentre, 1.15 * kTextScale);
  write(picture, chart.x_label, {(kLeft + right) / 2, kChartHeight - 35}, Align::kCentre);
  write_upwards(picture, chart.y_label);
}

void draw_series(cv::Mat& picture, const Series& series, const Scale& x, const Scale& y) {
  std::vector<cv::Point> line;
  for (const cv::Point2d& point : series.points) line.emplace_back(x.at(point.x), y.at(point.y));
  cv::polylines(picture, line, false, series.colour, series.is_measured ? 2 : 1, cv::LINE_AA);
  if (!series.is_measured) return;
  for (const cv::Point& point : line) cv::circle(picture, point, 5, series.colour, cv::FILLED, cv::LINE_AA);
}

void draw_legend(cv::Mat& picture, const Chart& chart) {
  int y = kTop + 25;
  for (const Series& series : chart.series) {
    const int x = kLeft + 20;
    cv::line(picture, {x, y}, {x + 40, y}, series.colour, series.is_measured ? 2 : 1, cv::LINE_AA);
    if (series.is_measured) cv::circle(picture, {x + 20, y}, 5, series.colour, cv::FILLED, cv::LINE_AA);
    write(picture, series.name, {x + 52, y}, Align::kLeft);
    y += 28;
  }
}

void draw_chart(cv::Mat picture, const Chart& chart) {
  constexpr double kRoom = 1.25;  // beyond the values
  const auto [x_low, x_high] = range(chart, &cv::Point2d::x);
  const auto [y_low, y_high] = range(chart, &cv::Point2d::y);
  const Scale x{x_low / kRoom, x_high * kRoom, kLeft, kChartWidth - kLeft - kRight};
  const Scale y{y_low / kRoom, y_high * kRoom, kChartHeight - kBottom, -(kChartHeight - kTop - kBottom)};
  draw_axes(picture, chart, x, y);
  for (const Series& series : chart.series) draw_series(picture, series, x, y);
  draw_legend(picture, chart);
}

}  // namespace

cv::Mat draw(const std::vector<Chart>& charts) {
  cv::Mat picture(kChartHeight, kChartWidth * static_cast<int>(charts.size()), CV_8UC3, kPaper);
  for (size_t i = 0; i < charts.size(); ++i)
    draw_chart(picture(cv::Rect(kChartWidth * static_cast<int>(i), 0, kChartWidth, kChartHeight)), charts[i]);
  return picture;
}

}  // namespace nonlocal::tools
