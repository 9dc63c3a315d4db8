#include "text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <new>

namespace nonlocal::text {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

// A sequence's length by its first byte, and which second bytes may follow (Unicode 15, table 3-7). Length 0:
// no sequence begins so.
struct Lead {
  int length;
  std::uint8_t least, most;
};

Lead lead_of(std::uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2 || byte > 0xF4) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {4, 0x80, 0xBF};
}

// Bytes from `at` on that belong to its sequence as far as it is sound.
std::size_t sound_bytes(std::string_view bytes, std::size_t at, const Lead& lead) {
  std::size_t n = 1;
  while (n < static_cast<std::size_t>(lead.length) && at + n < bytes.size()) {
    const auto byte = static_cast<std::uint8_t>(bytes[at + n]);
    const bool follows = n == 1 ? byte >= lead.least && byte <= lead.most : byte >= 0x80 && byte <= 0xBF;
    if (!follows) break;
    ++n;
  }
  return n;
}

char32_t point_of(std::string_view sequence) {
  constexpr std::uint8_t kLeadBits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  char32_t point = static_cast<std::uint8_t>(sequence[0]) & kLeadBits[sequence.size()];
  for (const char byte : sequence.substr(1)) point = point << 6 | (static_cast<std::uint8_t>(byte) & 0x3F);
  return point;
}

// Nothing below combines with anything below.
constexpr char32_t kFirstMark = 0x300;

std::u32string decomposed(const std::u32string& text) {
  constexpr int kMost = 4;  // code points of one; Unicode's stability policy lets it be no more
  std::u32string all;
  all.reserve(text.size() + text.size() / 2);
  for (const char32_t point : text) {
    utf8proc_int32_t parts[kMost];
    int boundary = 0;
    const utf8proc_ssize_t count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(point), parts, kMost,
                                                           UTF8PROC_DECOMPOSE, &boundary);
    if (count < 1 || count > kMost) {
      all += point;
    } else {
      all.append(parts, parts + count);
    }
  }
  return all;
}

int combining_class(char32_t point) {
  return utf8proc_get_property(static_cast<utf8proc_int32_t>(point))->combining_class;
}

// utf8proc's own way to order marks takes n² steps where there are many.
void order_marks(std::u32string& text) {
  for (auto at = text.begin(); at != text.end();) {
    const auto is_starter = [](char32_t point) { return combining_class(point) == 0; };
    const auto first = std::find_if_not(at, text.end(), is_starter);
    at = std::find_if(first, text.end(), is_starter);
    std::stable_sort(first, at,
                     [](char32_t a, char32_t b) { return combining_class(a) < combining_class(b); });
  }
}

}  // namespace

DecodedText decode_utf8(std::string_view bytes) {
  DecodedText text;
  text.points.reserve(bytes.size());
  for (std::size_t at = 0; at < bytes.size();) {
    const Lead lead = lead_of(static_cast<std::uint8_t>(bytes[at]));
    const std::size_t n = sound_bytes(bytes, at, lead);
    const bool is_sound = n == static_cast<std::size_t>(lead.length);
    text.points += is_sound ? point_of(bytes.substr(at, n)) : kReplacement;
    text.invalid += is_sound ? 0 : 1;
    at += n;
  }
  return text;
}

void append_utf8(char32_t point, std::string& to) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t count = utf8proc_encode_char(static_cast<utf8proc_int32_t>(point), bytes);
  to.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(count));
}

std::u32string to_nfc(const std::u32string& text) {
  if (std::ranges::all_of(text, [](char32_t point) { return point < kFirstMark; })) {
    return text;
  }
  std::u32string all = decomposed(text);
  order_marks(all);
  const utf8proc_ssize_t size = utf8proc_normalize_utf32(
      reinterpret_cast<utf8proc_int32_t*>(all.data()), static_cast<utf8proc_ssize_t>(all.size()),
      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  if (size < 0) {
    throw std::bad_alloc();  // it has no other error
  }
  all.resize(static_cast<std::size_t>(size));
  return all;
}

void append_lower(char32_t point, std::u32string& to) {
  constexpr char32_t kDottedI = 0x130;  // the only one whose lower case has two code points
  if (point == kDottedI) {
    to += {U'i', char32_t{0x307}};
  } else if (point < 0x80) {
    to += point >= U'A' && point <= U'Z' ? point + (U'a' - U'A') : point;
  } else {
    to += static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(point)));
  }
}

PointClass class_of(char32_t point) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(point))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return PointClass::kLetter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return PointClass::kNumber;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return PointClass::kSpace;
    default:
      // The control characters among white space.
      return (point >= 0x09 && point <= 0x0D) || point == 0x85 ? PointClass::kSpace : PointClass::kOther;
  }
}

}  // namespace nonlocal::text
