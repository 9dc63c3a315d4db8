// Names of pictures, one by one and numbered: frame_%04d.png.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace nonlocal::tools {

// .png, .jpg, .jpeg, .tif, .tiff or .webp.
bool is_picture_name(const std::string& path);

// A name with a number in it, as printf takes it: %d, %4d or %04d, once.
class NumberedName {
 public:
  // Empty for a name that is none.
  static std::optional<NumberedName> of(const std::string& path);

  [[nodiscard]] std::string at(int number) const;

  // The numbers of the files that are there, one after another without a gap. Throws Failure where there are
  // none, and for a gap, with the name of the first file that is missing.
  [[nodiscard]] std::vector<int> find() const;

 private:
  std::string before_;
  std::string number_;  // as printf takes it
  std::string after_;
};

}  // namespace nonlocal::tools
