#include "text/preprocessor.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "model/strict_json.h"
#include "nonlocal/error.h"
#include "text/model_config.h"
#include "text/text_file.h"

namespace nonlocal::text {
namespace {

using nlohmann::json;
using Numbers = std::array<float, 3>;

// What the samples' mean and deviation may be, whether samples go to 1 or to 255.
constexpr double kMost = 1000;
constexpr double kLeastDeviation = 1e-3;

bool is_side(const json& value) {
  return value.is_number_integer() && value.get<double>() >= 1 && value.get<double>() <= kMostTokens;
}

}  // namespace

Preprocessor::Preprocessor(const std::string& folder)
    : path_((std::filesystem::path(folder) / "preprocessor_config.json").string()) {
  constexpr int kDeepest = 32;
  std::error_code error;
  if (std::filesystem::exists(path_, error)) {
    all_ = model::parse_strictly(path_, "the file", read_text(path_), kDeepest);
    if (!all_.is_object()) {
      fail("expected an object");
    }
  }
}

void Preprocessor::fail(const std::string& problem) const { throw ModelError(path_, problem); }

VisionNormalisation Preprocessor::normalisation() const {
  const auto three_numbers = [this](const char* key, const Numbers& standard, double least) {
    const auto at = all_.find(key);
    if (at == all_.end()) {
      return standard;
    }
    const auto is_number = [least](const json& n) {
      return n.is_number() && n.get<double>() >= least && n.get<double>() <= kMost;
    };
    if (!at->is_array() || at->size() != standard.size() || !std::ranges::all_of(*at, is_number)) {
      fail(std::string(key) + ": expected three numbers from " + json(least).dump() + " to " +
           json(kMost).dump() + ", found " +
           model::in_quotes(at->dump(-1, ' ', true, json::error_handler_t::replace)));
    }
    return at->get<Numbers>();
  };
  VisionNormalisation n;
  n.mean = three_numbers("image_mean", n.mean, -kMost);
  n.deviation = three_numbers("image_std", n.deviation, kLeastDeviation);
  return n;
}

PictureFilter Preprocessor::filter() const {
  const auto at = all_.find("resample");
  if (at == all_.end() || *at == 3) {
    return PictureFilter::kCubic;
  }
  if (*at != 2) {
    fail("resample: expected 2 (linear) or 3 (cubic)");
  }
  return PictureFilter::kLinear;
}

int Preprocessor::side(int standard) const {
  const auto at = all_.find("size");
  if (at == all_.end()) {
    return standard;
  }
  if (is_side(*at)) {
    return at->get<int>();
  }
  const bool is_square = at->is_object() && at->contains("height") && at->contains("width") &&
                         is_side((*at)["height"]) && (*at)["height"] == (*at)["width"];
  if (!is_square) {
    fail("size: expected a number of samples, or \"height\" and \"width\" that are the same");
  }
  return (*at)["height"].get<int>();
}

}  // namespace nonlocal::text
