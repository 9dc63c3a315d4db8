// Few places of which all others are sums.
#pragma once

#include <vector>

namespace nonlocal::grade {

// What a filter changes depends smoothly on the place, so that its changes at a few places, weighed, are near
// enough to those anywhere else, whatever the colour.
struct PlaceBasis {
  std::vector<int> places;
  std::vector<float> weights;  // [all places][places.size()]
  double remainder;            // root mean square of what the sums miss
};

// `changes` are those of some colours at each place: [all places][values]. The place of which most is missing
// is the next one (QR decomposition with column pivoting: Businger, Golub 1965), until the remainder is at
// most `tolerance` or there are `most` of them. At least one is taken.
PlaceBasis find_place_basis(std::vector<double> changes, int all, double tolerance, int most);

}  // namespace nonlocal::grade
