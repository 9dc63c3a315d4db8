// A model of CLIP's shape with random weights: how fast it runs does not depend on what it has learnt.
#pragma once

#include <filesystem>

namespace nonlocal::tools {

struct ClipTower {
  int width, heads;
};

// ViT-B/32's, which has twelve layers of each, but for the token embedding, of which a prompt reads a few
// rows.
inline constexpr ClipTower kTextTower{512, 8};
inline constexpr ClipTower kVisionTower{768, 12};
inline constexpr int kPatch = 32;
inline constexpr int kGrid = 7;  // patches on a side
inline constexpr int kContext = 77;
inline constexpr int kVocabulary = 1000;
inline constexpr int kEmbedding = 512;
inline constexpr int kLayers = 12;

// Writes config.json and model.safetensors into the folder, with so many layers of each tower. Throws what
// the library does.
void write_random_clip(const std::filesystem::path& folder, int layers);

}  // namespace nonlocal::tools
