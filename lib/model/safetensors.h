// Files of named tensors: https://github.com/huggingface/safetensors
//
// The header's length (8 bytes, little-endian), the header (JSON: the type, shape and place of each tensor,
// and
// "__metadata__" with strings), the tensors' bytes one after another. Reading trusts nothing: every length,
// offset and product is checked before it is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace nonlocal::model {

using Shape = std::vector<std::uint64_t>;

// "[16, 9, 3, 3]"
std::string to_string(const Shape& shape);

// Where a file has a tensor.
struct Tensor {
  std::string type;  // "F32", ...
  Shape shape;
  std::size_t begin, end;  // bytes of the data, which lies behind the header
};

class Safetensors {
 public:
  // Reads the file whole, once its header fits its size. Throws ModelError if it cannot be read, or is not
  // well formed.
  explicit Safetensors(const std::string& path);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] bool has(const std::string& name) const { return tensors_.contains(name); }

  // What "__metadata__" says of `key`, if anything.
  [[nodiscard]] std::optional<std::string> metadata(const std::string& key) const;

  // All of "__metadata__".
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const { return metadata_; }

  // The tensors' names, sorted.
  [[nodiscard]] std::vector<std::string> names() const;

  // The shape of a tensor. Throws ModelError if there is none of this name.
  [[nodiscard]] const Shape& shape(const std::string& name) const;

  // The values of a tensor of type F32, F16 or BF16, the last dimension's neighbours side by side. Throws
  // ModelError if there is none of this name, of this shape, of such a type, or one of its values is not
  // finite.
  [[nodiscard]] std::vector<float> floats(const std::string& name, const Shape& expected) const;

 private:
  [[nodiscard]] const Tensor& tensor(const std::string& name) const;
  [[nodiscard]] std::uint64_t file_size() const;
  [[nodiscard]] std::string read_header(std::istream& file, std::uint64_t size) const;
  void take_header(const std::string& text, std::uint64_t data);
  void read(std::istream& file, void* to, std::uint64_t bytes) const;

  std::string path_;
  std::vector<std::byte> data_;
  std::map<std::string, Tensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

struct NamedTensor {
  std::string name;
  Shape shape;
  std::vector<float> values;
};

// Writes tensors of type F32, in this order. Throws ModelError if the file cannot be written.
void write_safetensors(const std::string& path, const std::map<std::string, std::string>& metadata,
                       const std::vector<NamedTensor>& tensors);

}  // namespace nonlocal::model
