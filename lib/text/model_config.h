// What a model's description and its tensors say of a tower.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "text/checkpoint.h"
#include "text/tower.h"

namespace nonlocal::text {

// Limits of what a file may ask for.
inline constexpr int kMostChannels = 16384;
inline constexpr int kMostLayers = 1000;
inline constexpr int kMostTokens = 1 << 16;
inline constexpr int kMostVocabulary = 1'000'000;

// The part of a description that is about one tower: "text_config" in it, or all of it where there is no such
// part.
class TowerConfig {
 public:
  TowerConfig(const Checkpoint& file, const char* part);
  // All of it.
  explicit TowerConfig(const Checkpoint& file) : file_(file), part_(file.config()) {}

  // Throw ModelError where the field is of another type, or out of range.
  [[nodiscard]] int integer(const char* key, int standard, int least, int most) const;
  [[nodiscard]] double number(const char* key, double standard, double least, double most) const;
  [[nodiscard]] bool boolean(const char* key, bool standard) const;
  [[nodiscard]] std::string text(const char* key, const std::string& standard) const;
  // Whole numbers, at least one, each of them more than the one before.
  [[nodiscard]] std::vector<int> rising(const char* key, const std::vector<int>& standard, int least,
                                        int most) const;

  [[noreturn]] void fail(const std::string& problem) const;

 private:
  [[nodiscard]] const nlohmann::json* find(const char* key) const;
  [[noreturn]] void fail_field(const char* key, const std::string& expected) const;

  const Checkpoint& file_;
  nlohmann::json part_;
};

// A dimension of a tensor of so many dimensions, which is no more than `most`. Throws ModelError.
int dimension(const Checkpoint& file, const std::string& tensor, std::size_t rank, std::size_t at, int most);

// `heads`: how many there are where the description does not say.
TowerShape tower_shape(const Checkpoint& file, const TowerConfig& config, const TowerNames& names, int width,
                       int heads, bool is_causal);

}  // namespace nonlocal::text
