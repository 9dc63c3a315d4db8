// The filters that frames pass, one after another: elements of our plugin and what is set on them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "pipeline_text.h"

namespace nonlocal::tools {

using Properties = std::vector<std::pair<std::string, std::string>>;

struct Filter {
  std::string element;    // nonlocaldenoise, selfattention, textcross
  Properties properties;  // as the user gave them
};

using FilterChain = std::vector<Filter>;

// The last value given for a property; empty: none.
std::string value_of(const Filter& filter, const std::string& property);

// Frames that a chain looks at besides the present one. Fusion over time keeps something of all frames
// before, less and less: behind `before` frames it has settled.
struct Reach {
  int before = 0;
  int after = 0;
};

// Throws Failure for a property that the element has not, and for a value that it does not take, with the
// range that it does take.
void check_properties(const std::string& element, const Properties& properties);

// Of elements that check_properties() has let pass.
Reach reach_of(const FilterChain& chain);

// How add_filters() names the elements, the first by 0.
std::string filter_name(size_t index);

// "FILTER ! FILTER"
void add_filters(PipelineText& text, const FilterChain& chain);

}  // namespace nonlocal::tools
