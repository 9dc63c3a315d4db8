#include "nonlocal/region_finder.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "core/workers.h"
#include "grade/frame_check.h"
#include "grade/map_cells.h"
#include "nonlocal/error.h"
#include "nonlocal/relevance.h"
#include "nonlocal/vision_encoder.h"
#include "text/frame_resampler.h"
#include "text/mask_decoder.h"
#include "text/model_config.h"

namespace nonlocal {

using namespace text;  // NOLINT: this library's own

namespace {

constexpr const char* kName = "RegionFinder";
constexpr const char* kNeutralPhrases[] = {"object", "things", "stuff", "texture"};
constexpr int kMostSide = 4096;
constexpr int kMostAspect = 8;
constexpr int kMostPatchesASide = 255;  // their square is below kMostTokens, which has one more for the class

std::size_t size(int n) { return static_cast<std::size_t>(n); }

ConstMatrix matrix(const std::vector<float>& values, int rows, int columns) {
  return {values.data(), rows, columns, columns};
}
Matrix matrix(std::vector<float>& values, int rows, int columns) {
  return {values.data(), rows, columns, columns};
}

double dot(const float* a, std::span<const float> b) {
  return std::inner_product(b.begin(), b.end(), a, 0.0);
}

// Of unit length; 0 stays 0.
void make_unit(const float* from, std::span<float> to) {
  const double length = std::sqrt(std::inner_product(from, from + to.size(), from, 0.0));
  const auto scale = static_cast<float>(length > 0 ? 1 / length : 0);
  std::transform(from, from + to.size(), to.begin(), [scale](float v) { return v * scale; });
}

bool is_finite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float v) { return std::isfinite(v); });
}

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

// s: what cosines are multiplied with.
double scale_in(const Checkpoint& file) {
  constexpr double kStandard = 100;
  constexpr double kMostLog = 10;
  for (const char* name : {"logit_scale", "clip.logit_scale"}) {
    if (file.has(name)) {
      const float log = file.floats(name, {}).at(0);
      if (std::abs(log) > kMostLog) {
        throw ModelError(file.path_of(name), std::string("tensor \"") + name +
                                                 "\": expected a number from -10 to 10, found " +
                                                 std::to_string(log));
      }
      return std::exp(log);
    }
  }
  return kStandard;
}

// Of the pictures that a model may ask for: samples on a side.
int most_side(int patch) { return std::min(kMostSide, kMostPatchesASide * patch); }

void check(const RegionFinderParameters& p, int patch) {
  if (p.features != RegionFeatures::kGem && p.features != RegionFeatures::kMaskClip) {
    throw InvalidArgument(std::string(kName) + ": expected the features kGem or kMaskClip");
  }
  if (p.side < 0 || p.side > kMostSide || p.side % patch != 0) {
    throw InvalidArgument(std::string(kName) + ": expected 0 or a side that is a multiple of " +
                          std::to_string(patch) + " up to " + std::to_string(kMostSide) + ", got " +
                          std::to_string(p.side));
  }
}

}  // namespace

struct RegionFinder::State {
  State(const std::string& path, const RegionFinderParameters& p, const std::string& tokenizer);

  void read_rest();
  void set_side(const Checkpoint& file, const Preprocessor& preprocessor);
  void check_image_size(const Checkpoint& file) const;
  void encode_phrases();
  void set_grid(int width, int height);
  [[nodiscard]] int patches() const { return columns * rows; }
  bool encode(std::span<const ConstPlane> frame, const ColourFormat& format, const std::stop_token& stop);
  void relate();
  void give_decoded();
  void check_outputs() const;

  std::string path;
  RegionFinderParameters parameters;
  TextEncoder words;
  VisionEncoder vision;
  double scale = 0;
  int side = 0;
  std::optional<MaskDecoder> decoder;
  std::optional<FrameResampler> resampler;
  std::vector<float> phrases;  // of unit length, one after another

  TextEmbedding text;
  std::vector<float> query;              // of unit length
  int columns = 0, rows = 0;             // patches
  std::vector<float> embeddings, units;  // patches x embedding_size()
  std::vector<float> mean_logits, weights;
  std::vector<float> map, pooled;
  int map_columns = 0, map_rows = 0;
};

RegionFinder::State::State(const std::string& model, const RegionFinderParameters& p,
                           const std::string& tokenizer)
    : path(model),
      parameters(p),
      words(path, {p.precision, p.threads}, tokenizer),
      vision(path, {p.precision, p.threads}) {
  check(parameters, vision.patch_size());
  if (words.tokenizer() == nullptr) {
    throw ModelError(path,
                     "expected a tokenizer in the model or beside it (tokenizer.json, or vocab.json and "
                     "merges.txt), found none");
  }
  if (words.embedding_size() != vision.embedding_size()) {
    throw ModelError(path, "expected embeddings of one size, found " +
                               std::to_string(words.embedding_size()) + " of prompts and " +
                               std::to_string(vision.embedding_size()) + " of patches");
  }
  read_rest();
  if (!decoder) {
    encode_phrases();
  }
}

void RegionFinder::State::read_rest() {
  const Checkpoint file(path);
  const int threads = thread_count(parameters.threads);
  scale = scale_in(file);
  if (MaskDecoder::is_in(file)) {
    decoder.emplace(file, DecoderShape{vision.width(), vision.embedding_size(), vision.layers()}, threads);
  }
  const Preprocessor preprocessor(file.folder());
  set_side(file, preprocessor);
  if (decoder) {
    decoder->check_side(file, side / vision.patch_size());
  }
  resampler.emplace(preprocessor.filter(), threads);
}

void RegionFinder::State::set_side(const Checkpoint& file, const Preprocessor& preprocessor) {
  constexpr int kClipSegSide = 352;
  if (parameters.side != 0) {
    side = parameters.side;
    return;
  }
  if (!decoder) {
    check_image_size(file);
    side = vision.image_size();
    return;
  }
  const int patch = vision.patch_size();
  const int most = most_side(patch);
  side = preprocessor.side(std::max(kClipSegSide / patch, 1) * patch);
  if (side % patch != 0 || side > most) {
    preprocessor.fail("size: expected a multiple of the patch's, " + std::to_string(patch) + ", up to " +
                      std::to_string(most) + ", found " + std::to_string(side));
  }
}

void RegionFinder::State::check_image_size(const Checkpoint& file) const {
  const int most = most_side(vision.patch_size());
  if (vision.image_size() > most) {
    TowerConfig(file, "vision_config")
        .fail("image_size, or what the positions make of it: expected at most " + std::to_string(most) +
              ", found " + std::to_string(vision.image_size()));
  }
}

void RegionFinder::State::encode_phrases() {
  const std::size_t n = size(words.embedding_size());
  for (const char* phrase : kNeutralPhrases) {
    const TextEmbedding neutral = words.encode(phrase);
    phrases.resize(phrases.size() + n);
    make_unit(neutral.pooled.data(), std::span(phrases).last(n));
  }
}

void RegionFinder::State::set_grid(int width, int height) {
  const int patch = vision.patch_size();
  const int least = side / patch;
  const double aspect = static_cast<double>(width) / height;
  const auto along = [&](double by) {
    const double wanted = static_cast<double>(least) * std::clamp(by, 1.0, double{kMostAspect});
    return decoder ? least : static_cast<int>(std::lround(wanted));
  };
  columns = along(aspect);
  rows = along(1 / aspect);
  // Before anything is made room for: the encoder refuses the same, but later.
  if (std::int64_t{columns} * rows >= kMostTokens) {
    throw InvalidArgument(std::string(kName) + ": expected at most " + std::to_string(kMostTokens - 1) +
                          " patches, got " + std::to_string(columns) + "x" + std::to_string(rows) +
                          " for a frame of " + std::to_string(width) + "x" + std::to_string(height));
  }
  const std::size_t values = size(patches()) * size(vision.embedding_size());
  embeddings.resize(values);
  units.resize(values);
  weights.resize(size(patches()));
  mean_logits.resize(size(patches()));
  pooled.resize(size(vision.embedding_size()));
}

bool RegionFinder::State::encode(std::span<const ConstPlane> frame, const ColourFormat& format,
                                 const std::stop_token& stop) {
  const int patch = vision.patch_size();
  resampler->run(frame, format, columns * patch, rows * patch);
  VisionOutputs out;
  // A decoder's map does not depend on it.
  const bool is_gem = parameters.features == RegionFeatures::kGem && !decoder;
  (is_gem ? out.grounded : out.patches) = matrix(embeddings, patches(), vision.embedding_size());
  if (decoder) {
    out.blocks = decoder->prepare(columns, rows);
  }
  return vision.encode(resampler->rgb(), out, stop) && (!decoder || decoder->run(stop));
}

// The map and the weights by cosines.
void RegionFinder::State::relate() {
  const std::size_t n = size(vision.embedding_size());
  map_columns = columns;
  map_rows = rows;
  map.resize(size(patches()));
  for (std::size_t i = 0; i < map.size(); ++i) {
    const std::span<float> unit = std::span(units).subspan(i * n, n);
    make_unit(embeddings.data() + i * n, unit);
    double neutral = -1;
    for (std::size_t p = 0; p < phrases.size(); p += n) {
      neutral = std::max(neutral, dot(phrases.data() + p, unit));
    }
    map[i] = static_cast<float>(logistic(scale * (dot(query.data(), unit) - neutral)));
  }
  region_relevance(query, matrix(std::as_const(units), patches(), static_cast<int>(n)), {.scale = scale},
                   weights);
}

// The map and the weights by the decoder.
void RegionFinder::State::give_decoded() {
  const ConstMatrix logits = decoder->logits();
  const int height = logits.rows / rows;
  const int width = logits.columns / columns;
  map_columns = logits.columns;
  map_rows = logits.rows;
  map.resize(size(map_columns) * size(map_rows));
  std::ranges::fill(mean_logits, 0.0F);
  const float share = 1 / static_cast<float>(width * height);
  for (int y = 0; y < map_rows; ++y) {
    for (int x = 0; x < map_columns; ++x) {
      const float logit = logits.row(y)[x];
      map[size(y) * size(map_columns) + size(x)] = static_cast<float>(logistic(logit));
      mean_logits[size(y / height) * size(columns) + size(x / width)] += logit * share;
    }
  }
  const float one[] = {1};
  region_relevance(one, matrix(std::as_const(mean_logits), patches(), 1), {.scale = 1}, weights);
}

// Weights so large that sums overflow are told when they do.
void RegionFinder::State::check_outputs() const {
  if (!is_finite(map) || !is_finite(pooled)) {
    throw ModelError(path, "gives values that are not finite");
  }
}

RegionFinder::RegionFinder(const std::string& path, const RegionFinderParameters& parameters,
                           const std::string& tokenizer)
    : state_(std::make_unique<State>(path, parameters, tokenizer)) {}
RegionFinder::~RegionFinder() = default;
RegionFinder::RegionFinder(RegionFinder&&) noexcept = default;
RegionFinder& RegionFinder::operator=(RegionFinder&&) noexcept = default;

bool RegionFinder::has_decoder() const { return state_->decoder.has_value(); }
int RegionFinder::embedding_size() const { return state_->vision.embedding_size(); }
AttentionPrecision RegionFinder::precision() const { return state_->vision.precision(); }
const Tokenizer& RegionFinder::tokenizer() const { return *state_->words.tokenizer(); }

void RegionFinder::set_text(std::string_view text) {
  State& s = *state_;
  s.text = s.words.encode(text);
  s.query.resize(s.text.pooled.size());
  make_unit(s.text.pooled.data(), s.query);
  if (s.decoder) {
    s.decoder->set_text(s.text.pooled);
  }
}

const TextEmbedding& RegionFinder::text() const { return state_->text; }

bool RegionFinder::find(std::span<const ConstPlane> frame, const ColourFormat& format,
                        const std::stop_token& stop) {
  State& s = *state_;
  grade::check_frame(kName, frame, format);
  if (s.query.empty()) {
    throw InvalidArgument(std::string(kName) + ": expected a text before a frame, got none");
  }
  s.set_grid(frame[0].width, frame[0].height);
  if (!s.encode(frame, format, stop)) {
    return false;
  }
  s.decoder ? s.give_decoded() : s.relate();
  pool_regions(s.weights, matrix(std::as_const(s.embeddings), s.patches(), embedding_size()), s.pooled);
  s.check_outputs();
  return true;
}

ConstMatrix RegionFinder::map() const {
  return {state_->map.data(), state_->map_rows, state_->map_columns, state_->map_columns};
}

std::span<const float> RegionFinder::pooled() const { return state_->pooled; }

}  // namespace nonlocal
