// What the encoders make of a file's inputs, for tests/parity/encoders.py: encoder_outputs MODEL INPUTS
// OUTPUTS.
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "model/safetensors.h"
#include "nonlocal/text_encoder.h"
#include "nonlocal/vision_encoder.h"

namespace nonlocal {
namespace {

using model::NamedTensor;
using model::Safetensors;

NamedTensor tensor(const std::string& name, int rows, int columns) {
  const model::Shape shape = {static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns)};
  return {name, shape, std::vector<float>(shape[0] * shape[1])};
}

Matrix view(NamedTensor& t) {
  const auto columns = static_cast<int>(t.shape[1]);
  return {t.values.data(), static_cast<int>(t.shape[0]), columns, columns};
}

std::vector<NamedTensor> text_outputs(const std::string& path, const Safetensors& in) {
  TextEncoder encoder(path);
  const std::vector<float> values = in.floats("ids", in.shape("ids"));
  const std::vector<std::int32_t> ids(values.begin(), values.end());
  std::vector<NamedTensor> out{tensor("text.tokens", static_cast<int>(ids.size()), encoder.width()),
                               tensor("text.pooled", 1, encoder.embedding_size())};
  encoder.encode(ids, view(out[0]), out[1].values);
  return out;
}

std::vector<NamedTensor> vision_outputs(const std::string& path, const Safetensors& in) {
  VisionEncoder encoder(path);
  const model::Shape shape = in.shape("rgb");
  const std::vector<float> rgb = in.floats("rgb", shape);
  const auto width = static_cast<int>(shape[2]);
  const auto height = static_cast<int>(shape[1]);
  std::vector<ConstFloatPlane> planes;
  for (std::size_t c = 0; c < 3; ++c) {
    planes.push_back({rgb.data() + c * shape[1] * shape[2], width, height, width});
  }
  const int patches = (width / encoder.patch_size()) * (height / encoder.patch_size());
  std::vector<NamedTensor> out{tensor("vision.pooled", 1, encoder.embedding_size()),
                               tensor("vision.patches", patches, encoder.embedding_size()),
                               tensor("vision.tokens", patches + 1, encoder.width()),
                               tensor("vision.grounded", patches, encoder.embedding_size())};
  encoder.encode(planes, {view(out[0]), view(out[1]), view(out[2]), view(out[3])});
  return out;
}

void run(const std::string& path, const std::string& inputs, const std::string& outputs) {
  const Safetensors in(inputs);
  std::vector<NamedTensor> out = text_outputs(path, in);
  for (NamedTensor& t : vision_outputs(path, in)) {
    out.push_back(std::move(t));
  }
  model::write_safetensors(outputs, {}, out);
}

}  // namespace
}  // namespace nonlocal

int main(int, char** argv) {
  try {
    nonlocal::run(argv[1], argv[2], argv[3]);
    return 0;
  } catch (const std::exception& e) {
    std::cerr << e.what() << std::endl;
    return 1;
  }
}
