#include "model/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "model/strict_json.h"
#include "nonlocal/error.h"

namespace nonlocal::model {
namespace {

using nlohmann::json;
using std::uint64_t;

constexpr std::size_t kLengthBytes = 8;
constexpr uint64_t kLongestHeader = 100'000'000;  // as the format's own readers have it
constexpr uint64_t kLargestFile = uint64_t{4} << 30;
constexpr int kDeepest = 3;  // header, entry, list

// Bytes an element.
const std::map<std::string, uint64_t>& types() {
  static const std::map<std::string, uint64_t> sizes = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"I16", 2}, {"U16", 2}, {"F16", 2}, {"BF16", 2},
      {"I32", 4},  {"U32", 4}, {"F32", 4}, {"F64", 8}, {"I64", 8}, {"U64", 8}};
  return sizes;
}

uint64_t read_little_endian(const std::byte* at, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) {
    value |= std::to_integer<uint64_t>(at[i]) << (8 * i);
  }
  return value;
}

json parse_header(const std::string& path, const std::string& text) {
  if (!text.starts_with('{')) {
    throw ModelError(path, "expected a header that begins with '{': no safetensors file");
  }
  return parse_strictly(path, "its header", text, kDeepest);
}

// A list of whole numbers from 0 on.
Shape numbers(const std::string& path, const json& entry, const std::string& name, const char* key) {
  const auto list = entry.find(key);
  if (list == entry.end() || !list->is_array() ||
      !std::all_of(list->begin(), list->end(), [](const json& n) { return n.is_number_unsigned(); })) {
    throw ModelError(
        path, "tensor " + in_quotes(name) + ": expected \"" + key + "\" to be a list of numbers from 0 on");
  }
  return list->get<Shape>();
}

// The bytes that a shape takes, or nothing where that is no number of 64 bits.
std::optional<uint64_t> size_of(const Shape& shape, uint64_t element) {
  uint64_t size = element;
  for (const uint64_t n : shape) {
    if (n != 0 && size > std::numeric_limits<uint64_t>::max() / n) {
      return std::nullopt;
    }
    size *= n;
  }
  return size;
}

std::map<std::string, std::string> strings(const std::string& path, const json& entry) {
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string()) {
      throw ModelError(path, "metadata " + in_quotes(key) + ": expected a string");
    }
  }
  return entry;
}

// A tensor's type, shape and place, the last within `data` bytes.
Tensor read_entry(const std::string& path, const std::string& name, const json& entry, uint64_t data) {
  const std::string tensor = "tensor " + in_quotes(name) + ": ";
  const auto type = entry.find("dtype");
  if (type == entry.end() || !type->is_string() || !types().contains(*type)) {
    const bool is_named = type != entry.end() && type->is_string();
    throw ModelError(path,
                     tensor + "expected a known \"dtype\"" + (is_named ? ", found " + in_quotes(*type) : ""));
  }
  const Shape shape = numbers(path, entry, name, "shape");
  const Shape offsets = numbers(path, entry, name, "data_offsets");
  if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > data) {
    throw ModelError(path, tensor + "expected its bytes from and to within " + std::to_string(data) +
                               ", found " + to_string(offsets));
  }
  const std::optional<uint64_t> size = size_of(shape, types().at(*type));
  if (size != offsets[1] - offsets[0]) {
    throw ModelError(path, tensor + "expected " + (size ? std::to_string(*size) : "more than 2^64") +
                               " bytes for " + type->get<std::string>() + " " + to_string(shape) +
                               ", found " + std::to_string(offsets[1] - offsets[0]));
  }
  return {*type, shape, offsets[0], offsets[1]};
}

// No byte may belong to two tensors, or to none.
void check_places(const std::string& path, const std::map<std::string, Tensor>& tensors, uint64_t data) {
  std::vector<std::pair<std::pair<uint64_t, uint64_t>, std::string>> places;
  for (const auto& [name, tensor] : tensors) {
    places.push_back({{tensor.begin, tensor.end}, name});
  }
  std::sort(places.begin(), places.end());
  uint64_t end = 0;
  for (const auto& [place, name] : places) {
    if (place.first != end) {
      throw ModelError(path, "tensor " + in_quotes(name) + ": expected its bytes to begin at " +
                                 std::to_string(end) + ", where the one before ends, found " +
                                 std::to_string(place.first));
    }
    end = place.second;
  }
  if (end != data) {
    throw ModelError(path,
                     "expected tensors of " + std::to_string(data) + " bytes, found " + std::to_string(end));
  }
}

float half_to_float(uint64_t bits) {
  const int exponent = static_cast<int>(bits >> 10 & 31);
  const auto fraction = static_cast<float>(bits & 1023);
  const float sign = (bits & 0x8000) != 0 ? -1.0F : 1.0F;
  if (exponent == 31) {
    return std::numeric_limits<float>::quiet_NaN();  // or infinite: neither is finite
  }
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}

float to_float(const std::string& type, const std::byte* at) {
  if (type == "F32") {
    return std::bit_cast<float>(static_cast<std::uint32_t>(read_little_endian(at, 4)));
  }
  const uint64_t bits = read_little_endian(at, 2);
  return type == "F16" ? half_to_float(bits) : std::bit_cast<float>(static_cast<std::uint32_t>(bits << 16));
}

}  // namespace

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  return text + "]";
}

Safetensors::Safetensors(const std::string& path) : path_(path) {
  const uint64_t size = file_size();
  std::ifstream file(path_, std::ios::binary);
  if (!file.is_open()) {
    throw ModelError(path_, "cannot be opened");
  }
  const std::string header = read_header(file, size);
  const uint64_t data = size - kLengthBytes - header.size();
  take_header(header, data);
  // Gigabytes perhaps: there is a reason to by now.
  data_.resize(data);
  read(file, data_.data(), data);
}

uint64_t Safetensors::file_size() const {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path_, error)) {
    throw ModelError(path_, error ? error.message() : "expected a file");
  }
  const uint64_t size = std::filesystem::file_size(path_, error);
  if (error || size > kLargestFile) {
    throw ModelError(path_, error ? error.message()
                                  : "expected at most " + std::to_string(kLargestFile) +
                                        " bytes, the file has " + std::to_string(size));
  }
  return size;
}

void Safetensors::read(std::istream& file, void* to, uint64_t bytes) const {
  if (!file.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes))) {
    throw ModelError(path_, "cannot be read to its end");
  }
}

// `size`: of the file.
std::string Safetensors::read_header(std::istream& file, uint64_t size) const {
  if (size < kLengthBytes) {
    throw ModelError(path_,
                     "expected 8 bytes with the header's length, the file has " + std::to_string(size));
  }
  std::array<std::byte, kLengthBytes> first;
  read(file, first.data(), first.size());
  const uint64_t length = read_little_endian(first.data(), kLengthBytes);
  if (length > kLongestHeader || length > size - kLengthBytes) {
    throw ModelError(path_, "expected a header of " + std::to_string(length) + " bytes, the file has " +
                                std::to_string(size) + ": truncated, or no safetensors file");
  }
  std::string text(length, '\0');
  read(file, text.data(), length);
  return text;
}

// `data`: bytes behind the header.
void Safetensors::take_header(const std::string& text, uint64_t data) {
  const json header = parse_header(path_, text);
  for (const auto& [name, entry] : header.items()) {
    if (!entry.is_object()) {
      throw ModelError(path_, in_quotes(name) + ": expected an object");
    }
    if (name == "__metadata__") {
      metadata_ = strings(path_, entry);
    } else {
      tensors_.emplace(name, read_entry(path_, name, entry, data));
    }
  }
  check_places(path_, tensors_, data);
}

std::optional<std::string> Safetensors::metadata(const std::string& key) const {
  const auto at = metadata_.find(key);
  return at == metadata_.end() ? std::nullopt : std::optional(at->second);
}

const Tensor& Safetensors::tensor(const std::string& name) const {
  const auto at = tensors_.find(name);
  if (at == tensors_.end()) {
    throw ModelError(path_, "expected a tensor " + in_quotes(name) + ", found none of this name");
  }
  return at->second;
}

std::vector<std::string> Safetensors::names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors_) {
    names.push_back(name);
  }
  return names;
}

const Shape& Safetensors::shape(const std::string& name) const { return tensor(name).shape; }

std::vector<float> Safetensors::floats(const std::string& name, const Shape& expected) const {
  const Tensor& t = tensor(name);
  if (t.shape != expected) {
    throw ModelError(path_, "tensor " + in_quotes(name) + ": expected the shape " + to_string(expected) +
                                ", found " + to_string(t.shape));
  }
  if (t.type != "F32" && t.type != "F16" && t.type != "BF16") {
    throw ModelError(path_, "tensor " + in_quotes(name) + ": expected F32, F16 or BF16, found " + t.type);
  }
  const std::size_t element = types().at(t.type);
  std::vector<float> values((t.end - t.begin) / element);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = to_float(t.type, data_.data() + t.begin + i * element);
    if (!std::isfinite(values[i])) {
      throw ModelError(path_, "tensor " + in_quotes(name) + ": expected finite values, value " +
                                  std::to_string(i) + " is not");
    }
  }
  return values;
}

void write_safetensors(const std::string& path, const std::map<std::string, std::string>& metadata,
                       const std::vector<NamedTensor>& tensors) {
  nlohmann::ordered_json header = {{"__metadata__", metadata}};
  uint64_t end = 0;
  for (const NamedTensor& t : tensors) {
    const uint64_t begin = end;
    end += 4 * t.values.size();
    if (size_of(t.shape, 4) != end - begin) {
      throw ModelError(path, "tensor " + in_quotes(t.name) + ": " + std::to_string(t.values.size()) +
                                 " values do not have the shape " + to_string(t.shape));
    }
    header[t.name] = {{"dtype", "F32"}, {"shape", t.shape}, {"data_offsets", {begin, end}}};
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');

  std::ofstream file(path, std::ios::binary);
  const auto write = [&file](uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) {
      file.put(static_cast<char>(value >> (8 * i) & 255));
    }
  };
  write(text.size(), 8);
  file << text;
  for (const NamedTensor& t : tensors) {
    if constexpr (std::endian::native == std::endian::little) {
      file.write(reinterpret_cast<const char*>(t.values.data()),
                 static_cast<std::streamsize>(4 * t.values.size()));
    } else {
      for (const float value : t.values) {
        write(std::bit_cast<std::uint32_t>(value), 4);
      }
    }
  }
  if (!file.flush()) {
    throw ModelError(path, "cannot be written");
  }
}

}  // namespace nonlocal::model
