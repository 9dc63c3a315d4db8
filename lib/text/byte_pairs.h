// Byte-pair encoding of one word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace nonlocal::text {

class BytePairs {
 public:
  // Merges come in the order of their ranks. False where the pair has one already.
  bool add(std::int32_t left, std::int32_t right, std::int32_t merged);

  // Merges neighbours of lowest rank first, the leftmost of equal ones. Steps grow as n log n.
  void merge(std::vector<std::int32_t>& word) const;

 private:
  struct Merge {
    std::uint32_t rank;
    std::int32_t merged;
  };
  struct Hash {
    std::size_t operator()(std::uint64_t pair) const {
      return (pair ^ pair >> 29) * 0x9E3779B97F4A7C15U >> 7;
    }
  };
  [[nodiscard]] const Merge* find(std::int32_t left, std::int32_t right) const;

  class Chain;
  std::unordered_map<std::uint64_t, Merge, Hash> merges_;
};

}  // namespace nonlocal::text
