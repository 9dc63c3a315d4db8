// What preprocessor_config.json says of how pictures were brought to a model.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "nonlocal/vision_encoder.h"

namespace nonlocal::text {

enum class PictureFilter { kLinear, kCubic };

class Preprocessor {
 public:
  // The file need not be there. Throws ModelError if it is no JSON object; so do the rest if what they read
  // is wrong.
  explicit Preprocessor(const std::string& folder);

  [[nodiscard]] VisionNormalisation normalisation() const;
  [[nodiscard]] PictureFilter filter() const;  // "resample": 2 or 3
  [[nodiscard]] int side(int standard) const;  // "size": a number, or {"height", "width"} that are the same
  [[noreturn]] void fail(const std::string& problem) const;

 private:
  std::string path_;
  nlohmann::json all_ = nlohmann::json::object();
};

}  // namespace nonlocal::text
