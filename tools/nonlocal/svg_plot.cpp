#include "svg_plot.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "text.h"

namespace nonlocal::tools {
namespace {

constexpr double kWidth = 960;
constexpr double kHeight = 340;
constexpr double kLeft = 56;
constexpr double kRight = 350;  // the legend's
constexpr double kTop = 12;
constexpr double kBottom = 44;
constexpr double kLegendStep = 20;

struct Range {
  double from = std::numeric_limits<double>::max();
  double to = std::numeric_limits<double>::lowest();

  void take(double value) {
    from = std::min(from, value);
    to = std::max(to, value);
  }
  [[nodiscard]] double part(double value) const { return (value - from) / (to - from); }
};

// 1, 2 or 5 times a power of ten, so that there are about `count` steps.
double tick_step(double span, int count) {
  const double rough = span / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough) return factor * power;
  return 10 * power;
}

std::string svg_text(double x, double y, const std::string& anchor, const std::string& text) {
  return formatted("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor.c_str(),
                   html_escaped(text).c_str());
}

class Drawing {
 public:
  explicit Drawing(const SvgPlot& plot) : plot_(plot) {
    for (const SvgLine& line : plot.lines) {
      for (const double value : line.values) y_.take(value);
      x_.take(plot.first_x);
      x_.take(plot.first_x + static_cast<double>(line.values.size()) - 1);
    }
    if (x_.to <= x_.from) x_.to = x_.from + 1;
    const double step = tick_step(std::max(y_.to - y_.from, 0.1), 6);
    y_.from = step * std::floor(y_.from / step);
    y_.to = std::max(step * std::ceil(y_.to / step), y_.from + step);
  }

  std::string svg() {
    svg_ = formatted(
        "<svg viewBox=\"0 0 %g %g\" role=\"img\" aria-label=\"%s\" font-size=\"12\" fill=\"currentColor\">\n",
        kWidth, std::max(kHeight, kTop + kLegendStep * static_cast<double>(plot_.lines.size() + 1)),
        html_escaped(plot_.y_label).c_str());
    axes();
    for (size_t i = 0; i < plot_.lines.size(); ++i) line(i);
    return svg_ + "</svg>\n";
  }

 private:
  [[nodiscard]] double at_x(double x) const { return kLeft + x_.part(x) * (kWidth - kLeft - kRight); }
  [[nodiscard]] double at_y(double y) const {
    return kHeight - kBottom - y_.part(y) * (kHeight - kTop - kBottom);
  }

  void rule(double x1, double y1, double x2, double y2) {
    svg_ += formatted(
        "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"currentColor\" opacity=\"0.2\"/>\n",
        x1, y1, x2, y2);
  }

  void axes() {
    const double y_step = tick_step(y_.to - y_.from, 6);
    for (double y = y_.from; y <= y_.to + y_step / 2; y += y_step) {
      rule(kLeft, at_y(y), kWidth - kRight, at_y(y));
      svg_ += svg_text(kLeft - 6, at_y(y) + 4, "end", formatted("%g", std::round(y * 1000) / 1000));
    }
    const double x_step = std::max(1.0, tick_step(x_.to - x_.from, 10));
    for (double x = x_step * std::ceil(x_.from / x_step); x <= x_.to; x += x_step)
      svg_ += svg_text(at_x(x), kHeight - kBottom + 18, "middle", formatted("%g", x));
    svg_ += svg_text((kLeft + kWidth - kRight) / 2, kHeight - 6, "middle", plot_.x_label);
    svg_ += formatted("<text transform=\"translate(14 %.1f) rotate(-90)\" text-anchor=\"middle\">%s</text>\n",
                      (kTop + kHeight - kBottom) / 2, html_escaped(plot_.y_label).c_str());
  }

  void line(size_t index) {
    const SvgLine& line = plot_.lines[index];
    const std::string stroke =
        formatted("fill=\"none\" stroke=\"%s\" stroke-width=\"2\"%s", line_colour(index).c_str(),
                  index % 2 ? " stroke-dasharray=\"7 3\"" : "");
    std::string points;
    for (size_t i = 0; i < line.values.size(); ++i)
      points += formatted("%.1f,%.1f ", at_x(plot_.first_x + static_cast<double>(i)), at_y(line.values[i]));
    svg_ += "<polyline points=\"" + points + "\" " + stroke + "/>\n";
    const double y = kTop + kLegendStep * (static_cast<double>(index) + 0.5);
    const double x = kWidth - kRight + 16;
    svg_ += formatted("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x, y, x + 30, y,
                      stroke.c_str());
    svg_ += svg_text(x + 38, y + 4, "start", line.name);
  }

  const SvgPlot& plot_;
  Range x_;
  Range y_;
  std::string svg_;
};

}  // namespace

std::string line_colour(size_t index) {
  static const char* const kColours[] = {"#888888", "#d9722e", "#1f9e89", "#c94466", "#4f86e0",
                                         "#a86fb5", "#7aa13a", "#b8931a", "#3aa0c8"};
  return kColours[index % std::size(kColours)];
}

std::string to_svg(const SvgPlot& plot) { return Drawing(plot).svg(); }

std::string html_escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

}  // namespace nonlocal::tools
