#include "orientation.h"

#include <array>
#include <bit>
#include <cstdint>
#include <fstream>
#include <map>
#include <optional>

#include "failure.h"

namespace nonlocal::tools {
namespace {

// A part of the file: its length (with the header that tells it), its kind, what is in it.
struct Box {
  std::string kind;
  std::streamoff content = 0;
  std::streamoff end = 0;
};

uint64_t read_number(std::istream& file, int bytes) {
  uint64_t number = 0;
  for (int i = 0; i < bytes; ++i) number = number << 8 | static_cast<uint8_t>(file.get());
  return number;
}

Box box_at(std::istream& file, std::streamoff at, std::streamoff end) {
  file.seekg(at);
  uint64_t length = read_number(file, 4);
  std::string kind(4, ' ');
  file.read(kind.data(), 4);
  if (length == 1) length = read_number(file, 8);
  const bool to_the_end = length == 0;
  return {kind, file.tellg(), to_the_end ? end : at + static_cast<std::streamoff>(length)};
}

// Calls `see` with the boxes of a span one after another.
template <typename See>
void for_each_box(std::istream& file, std::streamoff at, std::streamoff end, See see) {
  while (at + 8 <= end) {
    const Box box = box_at(file, at, end);
    if (!file || box.end <= at || box.end > end) throw Failure("it is no MP4 file");
    see(box);
    at = box.end;
  }
}

std::optional<Box> find(std::istream& file, const Box& in, const std::string& kind) {
  std::optional<Box> found;
  for_each_box(file, in.content, in.end, [&](const Box& box) {
    if (box.kind == kind && !found) found = box;
  });
  return found;
}

bool is_video(std::istream& file, const Box& track) {
  const auto media = find(file, track, "mdia");
  const auto handler = media ? find(file, *media, "hdlr") : std::nullopt;
  if (!handler) return false;
  constexpr std::streamoff kType = 8;  // behind version, flags and a field that is 0
  file.seekg(handler->content + kType);
  std::string type(4, ' ');
  file.read(type.data(), 4);
  return type == "vide";
}

// x' = a x + c y + tx, y' = b x + d y + ty.
struct Matrix {
  int a, b, c, d;
};

const std::map<std::string, Matrix> kMatrices = {
    {"rotate-0", {1, 0, 0, 1}},         {"rotate-90", {0, 1, -1, 0}},      {"rotate-180", {-1, 0, 0, -1}},
    {"rotate-270", {0, -1, 1, 0}},      {"flip-rotate-0", {-1, 0, 0, 1}},  {"flip-rotate-90", {0, -1, -1, 0}},
    {"flip-rotate-180", {1, 0, 0, -1}}, {"flip-rotate-270", {0, 1, 1, 0}},
};

void write_fixed(std::ostream& file, int whole) {
  const auto number = std::bit_cast<uint32_t>(whole * 65536);
  for (int shift = 24; shift >= 0; shift -= 8) file.put(static_cast<char>(number >> shift));
}

// The picture's corner that comes out leftmost and topmost goes to 0.
void write_matrix(std::fstream& file, const Box& header, const Matrix& m, int width, int height) {
  file.seekg(header.content);
  const bool is_long = file.get() == 1;  // version 1 has times of 8 bytes
  const std::streamoff matrix = header.content + (is_long ? 52 : 40);
  const int right = (m.a < 0 ? width : 0) + (m.c < 0 ? height : 0);
  const int down = (m.b < 0 ? width : 0) + (m.d < 0 ? height : 0);
  file.seekp(matrix);
  write_fixed(file, m.a), write_fixed(file, m.b), file.seekp(4, std::ios::cur);
  write_fixed(file, m.c), write_fixed(file, m.d), file.seekp(4, std::ios::cur);
  write_fixed(file, right), write_fixed(file, down);
}

}  // namespace

bool says_orientation(const std::filesystem::path& file) {
  return file.extension() == ".mp4" || file.extension() == ".mov";
}

void write_orientation(const std::filesystem::path& path, const std::string& orientation, int width,
                       int height) {
  const auto matrix = kMatrices.find(orientation);
  if (matrix == kMatrices.end()) return;
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const Box whole{"", 0, static_cast<std::streamoff>(std::filesystem::file_size(path))};
  const auto movie = find(file, whole, "moov");
  bool written = false;
  if (movie)
    for_each_box(file, movie->content, movie->end, [&](const Box& track) {
      if (track.kind != "trak" || !is_video(file, track)) return;
      const auto header = find(file, track, "tkhd");
      if (!header) return;
      write_matrix(file, *header, matrix->second, width, height);
      written = true;
    });
  file.close();
  if (!written || !file) throw Failure(path.string() + ": how it is turned could not be written");
}

}  // namespace nonlocal::tools
