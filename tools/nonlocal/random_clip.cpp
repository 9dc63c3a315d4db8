#include "random_clip.h"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "model/safetensors.h"

namespace nonlocal::tools {
namespace {

using model::NamedTensor;
using model::Shape;

class Writer {
 public:
  void add(const std::string& name, const Shape& shape, float size) {
    NamedTensor tensor{name, shape, {}};
    std::uint64_t count = 1;
    for (const std::uint64_t n : shape) count *= n;
    tensor.values.resize(count);
    std::uniform_real_distribution<float> uniform(-size, size);
    for (float& value : tensor.values) value = uniform(random_);
    tensors_.push_back(std::move(tensor));
  }
  void add_norm(const std::string& name, std::uint64_t width) {
    tensors_.push_back({name + ".weight", {width}, std::vector<float>(width, 1.0F)});
    add(name + ".bias", {width}, 0.1F);
  }
  void add_linear(const std::string& name, std::uint64_t outputs, std::uint64_t inputs) {
    add(name + ".weight", {outputs, inputs}, 1 / std::sqrt(static_cast<float>(inputs)));
    add(name + ".bias", {outputs}, 0.1F);
  }
  void add_tower(const std::string& name, const ClipTower& tower, int layers) {
    const auto width = static_cast<std::uint64_t>(tower.width);
    for (int i = 0; i < layers; ++i) {
      const std::string block = name + ".encoder.layers." + std::to_string(i) + ".";
      for (const char* part : {"q_proj", "k_proj", "v_proj", "out_proj"})
        add_linear(block + "self_attn." + part, width, width);
      add_norm(block + "layer_norm1", width);
      add_norm(block + "layer_norm2", width);
      add_linear(block + "mlp.fc1", 4 * width, width);
      add_linear(block + "mlp.fc2", width, 4 * width);
    }
  }
  void write(const std::filesystem::path& path) const {
    model::write_safetensors(path.string(), {}, tensors_);
  }

 private:
  std::minstd_rand random_{1};
  std::vector<NamedTensor> tensors_;
};

nlohmann::json tower_json(const ClipTower& tower) {
  return {{"num_attention_heads", tower.heads}, {"hidden_act", "quick_gelu"}};
}

}  // namespace

void write_random_clip(const std::filesystem::path& folder, int layers) {
  constexpr std::uint64_t kTextWidth = kTextTower.width;
  constexpr std::uint64_t kVisionWidth = kVisionTower.width;
  Writer writer;
  writer.add("text_model.embeddings.token_embedding.weight", {kVocabulary, kTextWidth}, 0.5F);
  writer.add("text_model.embeddings.position_embedding.weight", {kContext, kTextWidth}, 0.3F);
  writer.add_tower("text_model", kTextTower, layers);
  writer.add_norm("text_model.final_layer_norm", kTextWidth);
  writer.add("text_projection.weight", {kEmbedding, kTextWidth}, 0.05F);
  writer.add("vision_model.embeddings.class_embedding", {kVisionWidth}, 0.5F);
  writer.add("vision_model.embeddings.patch_embedding.weight", {kVisionWidth, 3, kPatch, kPatch}, 0.03F);
  writer.add("vision_model.embeddings.position_embedding.weight", {kGrid * kGrid + 1, kVisionWidth}, 0.3F);
  writer.add_norm("vision_model.pre_layrnorm", kVisionWidth);
  writer.add_tower("vision_model", kVisionTower, layers);
  writer.add_norm("vision_model.post_layernorm", kVisionWidth);
  writer.add("visual_projection.weight", {kEmbedding, kVisionWidth}, 0.05F);
  writer.write(folder / "model.safetensors");
  std::ofstream(folder / "config.json") << nlohmann::json(
      {{"text_config", tower_json(kTextTower)}, {"vision_config", tower_json(kVisionTower)}});
}

}  // namespace nonlocal::tools
