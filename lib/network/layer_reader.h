// A layer of a network's description: its fields, its tensors, and the operations that it comes down to.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "model/safetensors.h"
#include "network/graph.h"

namespace nonlocal::network {

// Limits of what a file may ask for.
constexpr int kMostLayers = 1000;
constexpr int kMostChannels = 4096;
constexpr int kMostKernel = 63;
constexpr int kMostFactor = 16;  // strides, up-sampling, unshuffling
constexpr int kMostScale = 256;  // of any plane, against the frame, up or down
constexpr int kMostWindow = 64;
constexpr int kMostFrames = 64;

// The fields of a JSON object: each must be known, of its type and in its range.
class Fields {
 public:
  // `where` ("layer \"conv1\"") opens each message.
  Fields(const std::string& path, std::string where, const nlohmann::json& object);

  [[nodiscard]] bool has(const std::string& key) const { return object_.contains(key); }
  [[nodiscard]] bool is_list(const std::string& key) const { return has(key) && object_[key].is_array(); }
  // Without a `standard` the field must be there.
  std::string text(const std::string& key);
  std::string text(const std::string& key, const std::string& standard);
  int integer(const std::string& key, int least, int most);
  int integer(const std::string& key, int standard, int least, int most);
  double number(const std::string& key, double least, double most);
  double number(const std::string& key, double standard, double least, double most);
  bool boolean(const std::string& key, bool standard);
  const nlohmann::json& list(const std::string& key, std::size_t least, std::size_t most);
  const nlohmann::json& object(const std::string& key);

  // Throws ModelError for a field that nothing asked for.
  void finish() const;

  [[noreturn]] void fail(const std::string& problem) const;

 private:
  const nlohmann::json* find(const std::string& key);
  const nlohmann::json& need(const std::string& key, const std::string& expected);
  [[noreturn]] void fail_field(const std::string& key, const std::string& expected) const;

  const std::string& path_;
  std::string where_;
  const nlohmann::json& object_;
  std::set<std::string> asked_;
};

// A file's tensors, of which each must be read.
class Tensors {
 public:
  explicit Tensors(const model::Safetensors& file) : file_(file) {}

  std::vector<float> floats(const std::string& name, const model::Shape& shape);
  // The same, of numbers that are no parameters; none where the file has no such tensor.
  std::vector<float> statistics(const std::string& name, const model::Shape& shape);
  // The tensor's shape. Throws ModelError if there is none of this name.
  [[nodiscard]] const model::Shape& shape(const std::string& name) const { return file_.shape(name); }
  [[nodiscard]] const std::string& path() const { return file_.path(); }

  // Numbers read so far.
  [[nodiscard]] std::int64_t parameters() const { return parameters_; }

  // Throws ModelError for a tensor that no layer asked for.
  void finish() const;

 private:
  const model::Safetensors& file_;
  std::set<std::string> read_;
  std::int64_t parameters_ = 0;
};

// Appends the operations of the layer `name` to `ops`; the last of them writes the layer's output. `inputs`
// are operations, `frames` those that a history keeps. Throws ModelError.
void read_layer(Fields& fields, Tensors& tensors, const std::string& name, const std::string& type,
                const std::vector<int>& inputs, int frames, std::vector<Op>& ops);

}  // namespace nonlocal::network
