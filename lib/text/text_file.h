// Files read whole.
#pragma once

#include <filesystem>
#include <string>

namespace nonlocal::text {

// A file's bytes, unpacked where it is one of gzip's. Throws ModelError if it cannot be read or is larger
// than any vocabulary.
std::string read_text(const std::filesystem::path& path);

}  // namespace nonlocal::text
