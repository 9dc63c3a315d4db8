#include "text/text_file.h"

#include <zlib.h>

#include <array>
#include <memory>
#include <system_error>

#include "nonlocal/error.h"

namespace nonlocal::text {
namespace {

constexpr std::size_t kLargest = std::size_t{64} << 20;

struct Close {
  void operator()(gzFile file) const { gzclose(file); }
};

}  // namespace

std::string read_text(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    throw ModelError(path.string(), error ? error.message() : "expected a file");
  }
  // zlib reads what is not compressed as it is.
  const std::unique_ptr<gzFile_s, Close> file(gzopen(path.c_str(), "rb"));
  if (!file) {
    throw ModelError(path.string(), "cannot be opened");
  }
  std::string text;
  std::array<char, 1 << 16> buffer;
  int count = 0;
  while ((count = gzread(file.get(), buffer.data(), buffer.size())) > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(count));
    if (text.size() > kLargest) {
      throw ModelError(path.string(), "expected at most " + std::to_string(kLargest) + " bytes, found more");
    }
  }
  int status = Z_OK;
  gzerror(file.get(), &status);
  if (count < 0 || status != Z_OK) {
    throw ModelError(path.string(), "cannot be read to its end");
  }
  return text;
}

}  // namespace nonlocal::text
