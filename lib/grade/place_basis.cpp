#include "grade/place_basis.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>

namespace nonlocal::grade {
namespace {

double dot(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// Takes out of each place what it has of one of them; gives how much that is, in units of its length.
std::vector<double> take_out(std::vector<double>& changes, std::size_t values, std::size_t of,
                             double length) {
  std::vector<double> direction(changes.begin() + static_cast<std::ptrdiff_t>(of * values),
                                changes.begin() + static_cast<std::ptrdiff_t>((of + 1) * values));
  for (double& v : direction) {
    v /= length;
  }
  std::vector<double> shares;
  for (std::size_t first = 0; first < changes.size(); first += values) {
    const std::span place(changes.data() + first, values);
    const double share = shares.emplace_back(dot(place, direction));
    for (std::size_t i = 0; i < values; ++i) {
      place[i] -= share * direction[i];
    }
  }
  return shares;
}

}  // namespace

PlaceBasis find_place_basis(std::vector<double> changes, int all, double tolerance, int most) {
  const std::size_t values = changes.size() / static_cast<std::size_t>(all);
  PlaceBasis basis{};
  std::vector<std::vector<double>>
      shares;  // [places of the basis][all places], along directions at right angles
  std::vector<double> missing(static_cast<std::size_t>(all));
  const auto measure = [&] {
    for (std::size_t p = 0; p < missing.size(); ++p) {
      const std::span place(changes.data() + p * values, values);
      missing[p] = dot(place, place);
    }
    basis.remainder =
        std::sqrt(std::accumulate(missing.begin(), missing.end(), 0.0) / static_cast<double>(changes.size()));
  };
  measure();
  do {
    const auto worst = std::max_element(missing.begin(), missing.end());
    basis.places.push_back(static_cast<int>(worst - missing.begin()));
    const double length = std::sqrt(*worst);
    shares.push_back(length > 0 ? take_out(changes, values, worst - missing.begin(), length)
                                : std::vector<double>(missing.size()));
    measure();
  } while (basis.remainder > tolerance && static_cast<int>(shares.size()) < most);

  // From the last direction on, which the last place alone has.
  const std::size_t n = shares.size();
  std::vector<double> weights(n);
  for (std::size_t p = 0; p < missing.size(); ++p) {
    for (std::size_t k = n; k-- > 0;) {
      double left = shares[k][p];
      for (std::size_t i = k + 1; i < n; ++i) {
        left -= weights[i] * shares[k][static_cast<std::size_t>(basis.places[i])];
      }
      const double own = shares[k][static_cast<std::size_t>(basis.places[k])];
      weights[k] = own > 0 ? left / own : 0;
    }
    basis.weights.insert(basis.weights.end(), weights.begin(), weights.end());
  }
  return basis;
}

}  // namespace nonlocal::grade
