// Whatever the bytes, the tokenizer neither fails nor gives what makes no sense: tokenizer_fuzz VOCABULARY
// [RUNS [SEED]]. With clang and -fsanitize=fuzzer -DNONLOCAL_LIBFUZZER it is a fuzz target;
// NONLOCAL_VOCABULARY names the file then.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <string_view>

#include "nonlocal/tokenizer.h"

namespace {

std::unique_ptr<nonlocal::Tokenizer> tokenizer;

void must(bool holds, const char* what, std::string_view text) {
  if (!holds) {
    std::fprintf(stderr, "%s:", what);
    for (const char byte : text) {
      std::fprintf(stderr, " %02x", static_cast<unsigned>(static_cast<std::uint8_t>(byte)));
    }
    std::fprintf(stderr, "\n");
    std::abort();
  }
}

void check(std::string_view text, int context) {
  const nonlocal::TokenizedText all = tokenizer->tokenize(text);
  const nonlocal::TokenizedText some = tokenizer->tokenize(text, context);
  must(all.ids.size() >= 2 && all.cut == 0, "two tokens and no cut", text);
  must(all.ids.front() == tokenizer->start() && all.ids.back() == tokenizer->end(), "start and end", text);
  for (const std::int32_t id : all.ids) {
    must(id >= 0 && id < tokenizer->size() && !tokenizer->piece(id).empty(), "tokens that there are", text);
  }
  must(some.ids.size() + some.cut == all.ids.size(), "what is cut is counted", text);
  must(some.ids.size() <= static_cast<std::size_t>(context), "the context has room", text);
  must(some.ids.back() == tokenizer->end() && some.invalid == all.invalid, "cut like the whole", text);
  // A byte gives at most a few: U+FFFD has three, and U+1F82 becomes four code points of eight bytes at the
  // most.
  must(all.ids.size() <= 2 + 9 * text.size(), "no more than there can be", text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (!tokenizer) {
    tokenizer = std::make_unique<nonlocal::Tokenizer>(std::getenv("NONLOCAL_VOCABULARY"));
  }
  check({reinterpret_cast<const char*>(data), size}, size == 0 ? 2 : 2 + data[0] % 90);
  return 0;
}

#ifndef NONLOCAL_LIBFUZZER
namespace {

using Random = std::mt19937;

std::size_t up_to(Random& random, std::size_t most) {
  return std::uniform_int_distribution<std::size_t>(0, most)(random);
}

void append_point(Random& random, std::string& to) {
  const std::size_t kinds[] = {0x7F, 0x24F, 0x6FF, 0xFFFF, 0x1FFFF, 0x10FFFF};
  const std::size_t point = up_to(random, kinds[up_to(random, 5)]);
  const auto put = [&](std::size_t byte) { to += static_cast<char>(byte); };
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xC0 | point >> 6);
    put(0x80 | (point & 63));
  } else if (point < 0x10000) {  // surrogates too, which are not valid
    put(0xE0 | point >> 12);
    put(0x80 | (point >> 6 & 63));
    put(0x80 | (point & 63));
  } else {
    put(0xF0 | point >> 18);
    put(0x80 | (point >> 12 & 63));
    put(0x80 | (point >> 6 & 63));
    put(0x80 | (point & 63));
  }
}

std::string random_text(Random& random) {
  constexpr const char* kKnown[] = {"'s",  "'ll",  " ",    "\n",           "<|startoftext|>", "<|EndOfText|>",
                                    "the", "warm", "1984", "\u0323\u0301", "\u0130",          "\uAC00\u11A8"};
  std::string text;
  for (std::size_t n = up_to(random, 12); n > 0; --n) {
    switch (up_to(random, 3)) {
      case 0:
        text += kKnown[up_to(random, std::size(kKnown) - 1)];
        break;
      case 1:
        text += static_cast<char>(up_to(random, 255));
        break;
      default:
        append_point(random, text);
    }
  }
  if (!text.empty() && up_to(random, 3) == 0) {
    text.resize(up_to(random, text.size()));
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  tokenizer = std::make_unique<nonlocal::Tokenizer>(argv[1]);
  const long runs = argc > 2 ? std::atol(argv[2]) : 10000;
  Random random(argc > 3 ? static_cast<unsigned>(std::atol(argv[3])) : 1);
  for (long run = 0; run < runs; ++run) {
    check(random_text(random), static_cast<int>(2 + up_to(random, 20)));
  }
  std::printf("%ld texts\n", runs);
}
#endif
