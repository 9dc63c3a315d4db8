// A model of CLIP's shape with random weights: how fast it runs does not depend on what it has learnt.
#pragma once

#include <filesystem>

namespace nonlocal::tools {

struct ClipTower {
  int width, heads, layers;
};

// ViT-B/32's, but for the token embedding, of which a prompt reads a few rows.
inline constexpr ClipTower kTextTower{512, 8, 12};
inline constexpr ClipTower kVisionTower{768, 12, 12};
inline constexpr int kPatch = 32;
inline constexpr int kGrid = 7;  // patches on a side
inline constexpr int kContext = 77;
inline constexpr int kVocabulary = 1000;
inline constexpr int kEmbedding = 512;

// Writes config.json and model.safetensors into the folder. Throws what the library does.
void write_random_clip(const std::filesystem::path& folder);

}  // namespace nonlocal::tools
