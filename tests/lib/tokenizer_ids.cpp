// The tokens of many texts, for tests/parity/tokenizer.py: tokenizer_ids VOCABULARY reads each text from
// stdin, its length (4 bytes, little-endian) before it, and writes a line of numbers for each.
#include <cstdint>
#include <exception>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>

#include "nonlocal/tokenizer.h"

namespace {

std::size_t length_at(std::string_view all, std::size_t at) {
  std::size_t length = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    length |= static_cast<std::size_t>(static_cast<std::uint8_t>(all[at + i])) << (8 * i);
  }
  return length;
}

}  // namespace

int main(int, char** argv) {
  try {
    const nonlocal::Tokenizer tokenizer(argv[1]);
    const std::string all{std::istreambuf_iterator<char>(std::cin), {}};
    for (std::size_t at = 0; at + 4 <= all.size();) {
      const std::size_t length = length_at(all, at);
      for (const int id : tokenizer.tokenize(std::string_view(all).substr(at + 4, length)).ids) {
        std::cout << id << ' ';
      }
      std::cout << '\n';
      at += 4 + length;
    }
    return 0;
  } catch (const std::exception& e) {
    std::cerr << e.what() << std::endl;
    return 1;
  }
}
