#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <numbers>
#include <string>
#include <string_view>

#include "grade/folded.h"
#include "nonlocal/error.h"

namespace nonlocal::grade {
namespace {

// In Atom's order.
constexpr std::array<std::string_view, kAtoms> kNames = {"r", "g", "b", "luma", "cb", "cr", "chroma"};

Atom parse_atom(const std::string& feature, std::string_view name) {
  const auto* const at = std::find(kNames.begin(), kNames.end(), name);
  if (at == kNames.end()) {
    throw InvalidArgument("colour feature '" + feature.substr(0, 100) +
                          "': expected up to 4 of r, g, b, luma, cb, cr and chroma with '*' between them");
  }
  return static_cast<Atom>(at - kNames.begin());
}

}  // namespace

ColourFeature parse_feature(const std::string& name) {
  ColourFeature feature{};
  std::string_view rest = name;
  for (bool is_last = false; !is_last;) {
    const std::size_t end = rest.find('*');
    is_last = end == std::string_view::npos;
    if (feature.count == kMostFactors) {
      parse_atom(name, "");
    }
    feature.factors[feature.count++] = parse_atom(name, rest.substr(0, end));
    rest = is_last ? "" : rest.substr(end + 1);
  }
  return feature;
}

void colour_features(const std::vector<ColourFeature>& features, const double* colour, double* values) {
  const double luma = kLumaWeights[0] * colour[0] + kLumaWeights[1] * colour[1] + kLumaWeights[2] * colour[2];
  const double cb = (colour[2] - luma) / kCbSpan;
  const double cr = (colour[0] - luma) / kCrSpan;
  const double chroma = std::sqrt(cb * cb + cr * cr + kLeastChroma * kLeastChroma);
  const double atoms[kAtoms] = {colour[0], colour[1], colour[2], luma, cb, cr, chroma};
  for (const ColourFeature& feature : features) {
    double product = 1;
    for (int i = 0; i < feature.count; ++i) {
      product *= atoms[static_cast<int>(feature.factors[i])];
    }
    *values++ = product;
  }
}

void place_features(int frequencies, double at, double* values) {
  double angle = at * std::numbers::pi / 2;
  for (int i = 0; i < frequencies; ++i, angle *= 2) {
    values[2 * i] = std::sin(angle);
    values[2 * i + 1] = std::cos(angle);
  }
}

void check_threads(const char* who, int threads) {
  constexpr int kMost = 256;
  if (threads < 0 || threads > kMost) {
    throw InvalidArgument(std::string(who) + ": expected 0 to 256 threads, got " + std::to_string(threads));
  }
}

std::uint64_t next_serial() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

}  // namespace nonlocal::grade
