// Line plots as SVG, to stand in an HTML page: text and axes take the page's colour, light or dark.
#pragma once

#include <string>
#include <vector>

namespace nonlocal::tools {

struct SvgLine {
  std::string name;
  std::vector<double> values;  // at first_x, first_x + 1, ...
};

struct SvgPlot {
  std::string x_label;
  std::string y_label;
  int first_x = 0;
  std::vector<SvgLine> lines;
};

// A colour for line `index`, that can be told from its neighbours and from a light or dark ground.
std::string line_colour(size_t index);

// The element <svg>, with a legend of all names, escaped.
std::string to_svg(const SvgPlot& plot);

// As text between tags, or within a quoted attribute.
std::string html_escaped(const std::string& text);

}  // namespace nonlocal::tools
