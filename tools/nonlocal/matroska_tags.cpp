#include "matroska_tags.h"

#include <gst/gst.h>

#include <bit>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

#include "failure.h"
#include "gst.h"

namespace nonlocal::tools {
namespace {

// Elements (RFC 9559, 5.1) that hold others on the way to texts, and the texts.
constexpr uint64_t kSegment = 0x18538067;
constexpr uint64_t kTags = 0x1254C367;
constexpr uint64_t kTag = 0x7373;
constexpr uint64_t kSimpleTag = 0x67C8;
constexpr uint64_t kTagString = 0x4487;

// A number of 1 to 8 bytes: as many as the first one has zeros in front, and one. The 1 behind these is part
// of an element's name, not of its size (RFC 8794, 4). None where the file ends or it has another form.
std::optional<uint64_t> read_number(std::istream& file, bool keeps_marker) {
  const int first = file.get();
  if (first <= 0) return std::nullopt;
  const int more = std::countl_zero(static_cast<uint8_t>(first));
  uint64_t number = keeps_marker ? first : first & (0x7f >> more);
  for (int i = 0; i < more; ++i) number = number << 8 | static_cast<uint8_t>(file.get());
  return file ? std::optional(number) : std::nullopt;
}

std::string text_of(GValue& value) {
  const char* text = g_value_get_string(&value);
  return text ? text : "";
}

// What was serialized; none where this text was not.
std::optional<std::string> plain(const std::string& written) {
  GValue value = G_VALUE_INIT;
  g_value_init(&value, G_TYPE_STRING);
  std::optional<std::string> text;
  if (written.starts_with('"') && gst_value_deserialize(&value, written.c_str())) {
    const StringPtr again{gst_value_serialize(&value)};
    if (again && written == again.get()) text = text_of(value);
  }
  g_value_unset(&value);
  return text;
}

void mend_text(std::fstream& file, std::streamoff size) {
  const std::streamoff begin = file.tellg();
  std::string written(size, '\0');
  file.read(written.data(), size);
  written.erase(written.find_last_not_of('\0') + 1);
  std::optional<std::string> text = plain(written);
  if (!text) return;
  text->resize(size, '\0');
  file.seekp(begin);
  file.write(text->data(), size);
}

// Elements one after another; one that does not end within the others is the last.
void mend_elements(std::fstream& file, std::streamoff at, std::streamoff end) {
  while (at < end) {
    file.seekg(at);
    const auto name = read_number(file, true);
    const auto size = name ? read_number(file, false) : std::nullopt;
    if (!size) return;
    const std::streamoff content = file.tellg();
    if (*size > static_cast<uint64_t>(end - content)) return;
    at = content + static_cast<std::streamoff>(*size);
    if (*name == kSegment || *name == kTags || *name == kTag || *name == kSimpleTag)
      mend_elements(file, content, at);
    else if (*name == kTagString)
      mend_text(file, static_cast<std::streamoff>(*size));
  }
}

}  // namespace

void mend_tags(const std::filesystem::path& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  mend_elements(file, 0, static_cast<std::streamoff>(std::filesystem::file_size(path)));
  const bool has_failed = file.bad();
  file.clear();  // of the end that was reached
  file.close();
  if (has_failed || !file) throw Failure(path.string() + ": its tags could not be written");
}

}  // namespace nonlocal::tools
