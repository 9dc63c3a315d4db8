#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "grade/exact_kernel.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.
#include <algorithm>
#include <cstddef>

#include "attention/attention_kernels-inl.h"
#include "core/rounding.h"
#include "grade/exact_kernel.h"
#include "grade/frame_rows-inl.h"
#include "grade/lattice_kernel.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace nonlocal::grade::HWY_NAMESPACE {

namespace lanes = nonlocal::attention::HWY_NAMESPACE;

// A block of pixels is attention's block of queries, a pixel in each lane.
constexpr int kBlock = lanes::kBlock;
constexpr int kBlocks = 1 + kBlock % 2;    // of a chunk, which is even
constexpr int kBlocksATile = 3 * kBlocks;  // two chunks of luma, one of chroma
// Scores of so many vectors of pixels and so many tokens are in registers together: two multiply-adds begin a
// cycle and take four, so that those of half as many, 8 to 16 % slower, wait for each other.
constexpr int kWide = lanes::kVectors % 2 == 0 ? 2 : 1;
constexpr int kGroup = 8;
constexpr float kMostWeight = 0x1p100F;  // where the first token's is 1

// A task's working memory: rows of lanes.
struct ExactScratch {
  float* features;  // of the colour
  float* atoms;
  float* colour;
  float* scores;     // a head's
  float* sums;       // of it: of weights times R, G, B, and of weights
  float* constants;  // [layers][rows], no lanes: what scores begin with in the row
  float* places_x;   // [blocks of the tile][layers][rows]: what they begin with in the columns
  float* lumas;      // [rows], no lanes: what the last layer's values are of luma
  Rows rows;
};

std::size_t cut(const Folded& f, float* memory, ExactScratch& s) {
  std::size_t used = 0;
  const auto take = [&](std::size_t floats) {
    float* piece = memory == nullptr ? nullptr : memory + used;
    used += round_up(floats, std::size_t{16});
    return piece;
  };
  const auto rows = static_cast<std::size_t>(f.rows()) * f.layers.size();
  s.features = take(f.features.size() * kBlock);
  s.atoms = take(static_cast<std::size_t>(kAtoms) * kBlock);
  s.colour = take(std::size_t{3} * kBlock);
  s.scores = take(static_cast<std::size_t>(f.tokens) * kBlock);
  s.sums = take(std::size_t{4} * kBlock);
  s.constants = take(rows);
  s.lumas = take(static_cast<std::size_t>(f.rows()));
  s.places_x = take(f.frequencies == 0 ? 0 : rows * kBlocksATile * kBlock);
  float* const level = take(rows_floats(2 * kBlocks * kBlock));
  if (memory != nullptr) {
    s.rows = make_rows(level, 2 * kBlocks * kBlock);
  }
  return used;
}

std::size_t exact_scratch_floats(const Folded& f) {
  ExactScratch s{};
  return cut(f, nullptr, s);
}

class ExactMapper {
 public:
  static constexpr int kChunk = kBlocks * kBlock;

  ExactMapper(const ExactJob& job, float strength, float* scratch)
      : job_(job), f_(*job.folded), strength_(strength) {
    cut(f_, scratch, s_);
    float* constants = s_.constants;
    for (const FoldedLayer& layer : f_.layers) {
      constants = std::copy(layer.constant_f.begin(), layer.constant_f.end(), constants);
    }
    set_lumas();
  }

  [[nodiscard]] const Rows& rows() const { return s_.rows; }

  // The columns that map() will be called for.
  void go_to(const FrameJob& frame, const Tile& tile) {
    tile_x_ = tile.x;
    half_x_ = frame.half_x;
    for (int block = 0; f_.frequencies > 0 && block < kBlocksATile; ++block) {
      const bool is_chroma = block >= 2 * kBlocks;
      const int x =
          is_chroma ? (tile.x >> half_x_) + (block - 2 * kBlocks) * kBlock : tile.x + block * kBlock;
      if (!is_chroma || frame.is_subsampled()) {
        const float* from = job_.places.x[is_chroma ? 1 : 0] + x;
        for (int i = 0; i < 2 * f_.frequencies; ++i) {
          std::copy_n(from + i * job_.places.stride, kBlock, columns_ + i * kBlock);
        }
        set_columns(block);
      }
    }
  }

  // One place for all.
  void stay_at(const float* x, const float* y) {
    for (int i = 0; i < 2 * f_.frequencies; ++i) {
      std::fill_n(columns_ + i * kBlock, kBlock, x[i]);
    }
    if (f_.frequencies > 0) {
      set_columns(0);
      set_row(y);
    }
  }

  // One row of any columns: features of a block.
  void go_along(const float* x, ptrdiff_t stride, const float* y) {
    for (int i = 0; i < 2 * f_.frequencies; ++i) {
      std::copy_n(x + i * stride, kBlock, columns_ + i * kBlock);
    }
    if (f_.frequencies > 0) {
      set_columns(0);
      set_row(y);
    }
  }

  // Adds each token's effects on a block to rows of lanes, `stride` apart.
  void add_effects(const std::array<float*, 3>& level, float* effects, ptrdiff_t stride) {
    load_colours(level);
    for (std::size_t layer = 0; layer < f_.layers.size(); ++layer) {
      load_features();
      add_any_layer(layer, 0, [&](int head) HWY_ATTR { add_weights(layer, head, effects, stride); });
    }
  }

  void map(const std::array<float*, 3>& level, int count, int x, int y, Sampling sampling) {
    const bool is_chroma = sampling == Sampling::kChroma;
    const bool has_own_columns = is_chroma && half_x_ != 0;
    if (const float* row = job_.places.y[is_chroma ? 1 : 0] + static_cast<ptrdiff_t>(y) * 2 * f_.frequencies;
        f_.frequencies > 0 && row != row_) {
      row_ = row;
      set_row(row);
    }
    const int first = has_own_columns ? 2 * kBlocks : (x - tile_x_) / kBlock;
    // Lanes beyond `count` are calculated, and go nowhere.
    for (int i = 0; i * kBlock < count; ++i) {
      add_change({level[0] + i * kBlock, level[1] + i * kBlock, level[2] + i * kBlock}, first + i, sampling);
    }
  }

  void add_change(const std::array<float*, 3>& level, int block, Sampling sampling) {
    load_colours(level);
    for (std::size_t layer = 0; layer < f_.layers.size(); ++layer) {
      load_features();
      if (sampling == Sampling::kLuma && layer + 1 == f_.layers.size() && add_luma(level, block)) {
        return;
      }
      if (!add_layer(layer, block)) {
        add_any_layer(layer, block, [](int) {});
      }
    }
    const int first = sampling == Sampling::kChroma ? 1 : 0;
    const int end = sampling == Sampling::kLuma ? 1 : 3;
    for (int i = 0; i < kBlock; i += kFloatLanes) {
      V change[3];
      load_change(level, i, change);
      V now[3];
      for (int c = first; c < end; ++c) {
        now[c] = changed(level, c, i, channel_of(change, c));
      }
      for (int c = first; c < end; ++c) {
        hn::StoreU(now[c], F(), level[c] + i);
      }
    }
  }

 private:
  void add_weights(std::size_t layer, int head, float* effects, ptrdiff_t stride) const {
    const double* effect = f_.layers[layer].effects.data() + static_cast<ptrdiff_t>(head) * f_.tokens;
    for (int i = 0; i < kBlock; i += kFloatLanes) {
      const V share = hn::Div(hn::Set(F(), 1.0F), hn::Load(F(), s_.sums + 3 * kBlock + i));
      for (int t = 0; t < f_.tokens; ++t) {
        const V weight = hn::Mul(hn::Load(F(), s_.scores + t * kBlock + i), share);
        float* at = effects + t * stride + i;
        hn::StoreU(hn::MulAdd(weight, hn::Set(F(), static_cast<float>(effect[t])), hn::LoadU(F(), at)), F(),
                   at);
      }
    }
  }

  [[nodiscard]] HWY_INLINE V colour_of(const std::array<float*, 3>& level, int c, int i) const {
    V sum = hn::Set(F(), job_.offset[c]);
    for (int k = 0; k < 3; ++k) {
      sum = hn::MulAdd(hn::Set(F(), job_.to_rgb[c][k]), hn::LoadU(F(), level[k] + i), sum);
    }
    return sum;
  }

  // What layers have changed so far, of R, G and B.
  HWY_INLINE void load_change(const std::array<float*, 3>& level, int i, V (&change)[3]) const {
    for (int c = 0; c < 3; ++c) {
      change[c] = hn::Sub(hn::Load(F(), s_.colour + c * kBlock + i), colour_of(level, c, i));
    }
  }

  [[nodiscard]] HWY_INLINE V channel_of(const V (&rgb)[3], int c) const {
    V sum = hn::Mul(hn::Set(F(), job_.from_rgb[c][0]), rgb[0]);
    sum = hn::MulAdd(hn::Set(F(), job_.from_rgb[c][1]), rgb[1], sum);
    return hn::MulAdd(hn::Set(F(), job_.from_rgb[c][2]), rgb[2], sum);
  }

  [[nodiscard]] HWY_INLINE V changed(const std::array<float*, 3>& level, int c, int i, V change) const {
    return hn::MulAdd(hn::Set(F(), strength_), change, hn::LoadU(F(), level[c] + i));
  }

  void load_colours(const std::array<float*, 3>& level) {
    for (int i = 0; i < kBlock; i += kFloatLanes) {
      for (int c = 0; c < 3; ++c) {
        hn::Store(colour_of(level, c, i), F(), s_.colour + c * kBlock + i);
      }
    }
  }

  [[nodiscard]] float* columns_of(int block, std::size_t layer) const {
    return s_.places_x + (static_cast<std::size_t>(block) * f_.layers.size() + layer) * f_.rows() * kBlock;
  }

  // Scores begin with what the columns add to them.
  void set_columns(int block) {
    const int depth = 2 * f_.frequencies;
    for (std::size_t layer = 0; layer < f_.layers.size(); ++layer) {
      lanes::multiply<lanes::FloatProduct, false>(f_.layers[layer].key_x_f.data(), depth, columns_, depth,
                                                  nullptr, nullptr, columns_of(block, layer), f_.rows());
    }
  }

  void set_row(const float* places) {
    const int rows = f_.rows();
    float* constants = s_.constants;
    for (const FoldedLayer& layer : f_.layers) {
      std::copy_n(layer.constant_f.data(), rows, constants);
      for (int i = 0; i < 2 * f_.frequencies; ++i) {
        const float* key = layer.key_y_f.data() + static_cast<ptrdiff_t>(i) * rows;
        for (int row = 0; row < rows; ++row) {
          constants[row] += key[row] * places[i];
        }
      }
      constants += rows;
    }
  }

  void set_lumas() {
    const float* values = f_.layers.back().value_f.data();
    for (int head = 0; head < f_.heads; ++head, values += ptrdiff_t{4} * f_.tokens) {
      for (int t = 0; t < f_.tokens; ++t) {
        float sum = 0;
        for (int c = 0; c < 3; ++c) {
          sum += job_.from_rgb[0][c] * values[c * f_.tokens + t];
        }
        s_.lumas[head * f_.tokens + t] = sum;
      }
    }
  }

  // Where a head's numbers begin.
  struct Head {
    const float* keys;
    const float* constants;
    const float* columns;  // null: there are no places
    const float* values;
  };

  [[nodiscard]] Head head_of(std::size_t layer, int head, int block) const {
    const ptrdiff_t first = static_cast<ptrdiff_t>(head) * f_.tokens;
    const FoldedLayer& l = f_.layers[layer];
    return {l.key_f.data() + first * static_cast<ptrdiff_t>(f_.features.size()),
            s_.constants + static_cast<ptrdiff_t>(layer) * f_.rows() + first,
            f_.frequencies == 0 ? nullptr : columns_of(block, layer) + first * kBlock,
            l.value_f.data() + 4 * first};
  }

  // What a token's score is at a place, before the colour.
  [[nodiscard]] HWY_INLINE V begin(const Head& h, ptrdiff_t t, ptrdiff_t lane) const {
    const V constant = hn::Set(F(), h.constants[t]);
    return h.columns == nullptr ? constant : hn::Add(constant, hn::Load(F(), h.columns + t * kBlock + lane));
  }

  void load_features() {
    const auto colour = [&](int c, int i) HWY_ATTR { return hn::Load(F(), s_.colour + c * kBlock + i); };
    const auto atom = [&](Atom a, int i) HWY_ATTR { return s_.atoms + static_cast<int>(a) * kBlock + i; };
    for (int i = 0; i < kBlock; i += kFloatLanes) {
      const V r = colour(0, i);
      const V g = colour(1, i);
      const V b = colour(2, i);
      V luma = hn::Mul(hn::Set(F(), static_cast<float>(kLumaWeights[0])), r);
      luma = hn::MulAdd(hn::Set(F(), static_cast<float>(kLumaWeights[1])), g, luma);
      luma = hn::MulAdd(hn::Set(F(), static_cast<float>(kLumaWeights[2])), b, luma);
      const V cb = hn::Mul(hn::Sub(b, luma), hn::Set(F(), static_cast<float>(1 / kCbSpan)));
      const V cr = hn::Mul(hn::Sub(r, luma), hn::Set(F(), static_cast<float>(1 / kCrSpan)));
      const V least = hn::Set(F(), static_cast<float>(kLeastChroma * kLeastChroma));
      const V chroma = hn::Sqrt(hn::MulAdd(cb, cb, hn::MulAdd(cr, cr, least)));
      hn::Store(r, F(), atom(Atom::kRed, i));
      hn::Store(g, F(), atom(Atom::kGreen, i));
      hn::Store(b, F(), atom(Atom::kBlue, i));
      hn::Store(luma, F(), atom(Atom::kLuma, i));
      hn::Store(cb, F(), atom(Atom::kCb, i));
      hn::Store(cr, F(), atom(Atom::kCr, i));
      hn::Store(chroma, F(), atom(Atom::kChroma, i));
    }
    float* to = s_.features;
    for (const ColourFeature& feature : f_.features) {
      V product[lanes::kVectors];
      HWY_UNROLL(4)
      for (int v = 0; v < lanes::kVectors; ++v) {
        product[v] = hn::Load(F(), atom(feature.factors[0], v * kFloatLanes));
      }
      for (int k = 1; k < feature.count; ++k) {
        const float* factor = atom(feature.factors[k], 0);
        HWY_UNROLL(4)
        for (int v = 0; v < lanes::kVectors; ++v) {
          product[v] = hn::Mul(product[v], hn::Load(F(), factor + v * kFloatLanes));
        }
      }
      HWY_UNROLL(4)
      for (int v = 0; v < lanes::kVectors; ++v) {
        hn::Store(product[v], F(), to + v * kFloatLanes);
      }
      to += kBlock;
    }
  }

  // A head's scores, and of them its sums, for any scores that there may be.
  void score(const Head& h) {
    for (int t = 0; t < f_.tokens; ++t) {
      for (int i = 0; i < kBlock; i += kFloatLanes) {
        hn::Store(begin(h, t, i), F(), s_.scores + t * kBlock + i);
      }
    }
    const int depth = static_cast<int>(f_.features.size());
    lanes::multiply<lanes::FloatProduct, false>(h.keys, depth, s_.features, depth, s_.scores, nullptr,
                                                s_.scores, f_.tokens);
    exponentiate();
    lanes::multiply<lanes::FloatProduct, false>(h.values, f_.tokens, s_.scores, f_.tokens, nullptr, nullptr,
                                                s_.sums, 4);
  }

  // Scores become the softmax's numerators.
  void exponentiate() {
    for (int i = 0; i < kBlock; i += kFloatLanes) {
      float* score = s_.scores + i;
      V most = hn::Load(F(), score);
      for (int t = 1; t < f_.tokens; ++t) {
        most = hn::Max(most, hn::Load(F(), score + t * kBlock));
      }
      for (int t = 0; t < f_.tokens; ++t) {
        const V x = hn::Sub(hn::Load(F(), score + t * kBlock), most);
        hn::Store(lanes::exp2_of_negative(x), F(), score + t * kBlock);
      }
    }
  }

  // Of kWide vectors, those of weights times values of each channel, and of weights: three channels, or luma.
  template <int kChannels>
  using Sums = V[kChannels + 1][kWide];

  // Adds kCount tokens from t on, whose scores never leave the registers.
  template <int kCount, int kChannels>
  HWY_INLINE void add_tokens(const Head& h, ptrdiff_t t, ptrdiff_t lane, Sums<kChannels>& sums) const {
    const auto depth = static_cast<ptrdiff_t>(f_.features.size());
    V score[kCount][kWide];
    HWY_UNROLL(8)
    for (int r = 0; r < kCount; ++r) {
      HWY_UNROLL(2)
      for (int v = 0; v < kWide; ++v) {
        score[r][v] = begin(h, t + r, lane + v * kFloatLanes);
      }
    }
    const float* keys = h.keys + t * depth;
    const float* features = s_.features + lane;
    for (ptrdiff_t k = 0; k < depth; ++k, features += kBlock) {
      V feature[kWide];
      HWY_UNROLL(2)
      for (int v = 0; v < kWide; ++v) {
        feature[v] = hn::Load(F(), features + v * kFloatLanes);
      }
      HWY_UNROLL(8)
      for (int r = 0; r < kCount; ++r) {
        const V key = hn::Set(F(), keys[r * depth + k]);
        HWY_UNROLL(2)
        for (int v = 0; v < kWide; ++v) {
          score[r][v] = hn::MulAdd(key, feature[v], score[r][v]);
        }
      }
    }
    HWY_UNROLL(8)
    for (int r = 0; r < kCount; ++r) {
      HWY_UNROLL(2)
      for (int v = 0; v < kWide; ++v) {
        score[r][v] = lanes::exp2_of(score[r][v]);
        sums[kChannels][v] = hn::Add(sums[kChannels][v], score[r][v]);
      }
    }
    HWY_UNROLL(3)
    for (int c = 0; c < kChannels; ++c) {
      const float* values = h.values + c * static_cast<ptrdiff_t>(f_.tokens) + t;
      HWY_UNROLL(8)
      for (int r = 0; r < kCount; ++r) {
        const V value = hn::Set(F(), values[r]);
        HWY_UNROLL(2)
        for (int v = 0; v < kWide; ++v) {
          sums[c][v] = hn::MulAdd(value, score[r][v], sums[c][v]);
        }
      }
    }
  }

  // A head's sums in one pass over the tokens: the largest score is not taken out.
  template <int kChannels>
  HWY_INLINE void sum(const Head& h, ptrdiff_t lane, Sums<kChannels>& sums) const {
    HWY_UNROLL(2)
    for (int v = 0; v < kWide; ++v) {
      HWY_UNROLL(3)
      for (int c = 0; c < kChannels; ++c) {
        sums[c][v] = hn::Set(F(), h.values[c * f_.tokens]);
      }
      sums[kChannels][v] = hn::Set(F(), 1.0F);
    }
    int t = 1;
    for (; t + kGroup <= f_.tokens; t += kGroup) {
      add_tokens<kGroup, kChannels>(h, t, lane, sums);
    }
    if (t + 4 <= f_.tokens) {
      add_tokens<4, kChannels>(h, t, lane, sums);
      t += 4;
    }
    if (t + 2 <= f_.tokens) {
      add_tokens<2, kChannels>(h, t, lane, sums);
      t += 2;
    }
    if (t < f_.tokens) {
      add_tokens<1, kChannels>(h, t, lane, sums);
    }
  }

  // What a layer's heads change of kWide vectors, added to what `changed` begins with; gives the largest sum
  // of weights.
  template <int kChannels>
  HWY_INLINE V add_heads(std::size_t layer, int block, ptrdiff_t lane, V (&changed)[kChannels][kWide]) const {
    V most = hn::Zero(F());
    for (int head = 0; head < f_.heads; ++head) {
      Head h = head_of(layer, head, block);
      if constexpr (kChannels == 1) {
        h.values = s_.lumas + static_cast<ptrdiff_t>(head) * f_.tokens;
      }
      Sums<kChannels> sums;
      sum<kChannels>(h, lane, sums);
      HWY_UNROLL(2)
      for (int v = 0; v < kWide; ++v) {
        most = hn::Max(most, sums[kChannels][v]);
        const V share = hn::Div(hn::Set(F(), 1.0F), sums[kChannels][v]);
        HWY_UNROLL(3)
        for (int c = 0; c < kChannels; ++c) {
          changed[c][v] = hn::MulAdd(sums[c][v], share, changed[c][v]);
        }
      }
    }
    return most;
  }

  // A layer's heads on a block: the colour they make, or from nothing what they change of luma, goes to the
  // sums. False if a score is too large for sums without the largest taken out.
  template <int kChannels>
  [[nodiscard]] bool sum_heads(std::size_t layer, int block) const {
    V most = hn::Zero(F());
    for (int i = 0; i < kBlock; i += kWide * kFloatLanes) {
      V changed[kChannels][kWide];
      HWY_UNROLL(3)
      for (int c = 0; c < kChannels; ++c) {
        HWY_UNROLL(2)
        for (int v = 0; v < kWide; ++v) {
          changed[c][v] =
              kChannels == 1 ? hn::Zero(F()) : hn::Load(F(), s_.colour + c * kBlock + i + v * kFloatLanes);
        }
      }
      most = hn::Max(most, add_heads<kChannels>(layer, block, i, changed));
      HWY_UNROLL(3)
      for (int c = 0; c < kChannels; ++c) {
        HWY_UNROLL(2)
        for (int v = 0; v < kWide; ++v) {
          hn::Store(changed[c][v], F(), s_.sums + c * kBlock + i + v * kFloatLanes);
        }
      }
    }
    return hn::AllTrue(F(), hn::Lt(most, hn::Set(F(), kMostWeight)));
  }

  // False, and the colour stays, as above.
  [[nodiscard]] bool add_layer(std::size_t layer, int block) {
    if (!sum_heads<3>(layer, block)) {
      return false;
    }
    std::copy_n(s_.sums, 3 * kBlock, s_.colour);
    return true;
  }

  // The last layer, where luma alone is wanted: a value is one number in place of three.
  [[nodiscard]] bool add_luma(const std::array<float*, 3>& level, int block) {
    if (!sum_heads<1>(f_.layers.size() - 1, block)) {
      return false;
    }
    for (int i = 0; i < kBlock; i += kFloatLanes) {
      V before[3];
      load_change(level, i, before);
      const V change = hn::Add(hn::Load(F(), s_.sums + i), channel_of(before, 0));
      hn::StoreU(changed(level, 0, i, change), F(), level[0] + i);
    }
    return true;
  }

  // For any scores; visit(head) sees each head's scores and sums.
  template <typename Visit>
  void add_any_layer(std::size_t layer, int block, const Visit& visit) {
    for (int head = 0; head < f_.heads; ++head) {
      score(head_of(layer, head, block));
      visit(head);
      add_average();
    }
  }

  void add_average() {
    for (int i = 0; i < kBlock; i += kFloatLanes) {
      const V share = hn::Div(hn::Set(F(), 1.0F), hn::Load(F(), s_.sums + 3 * kBlock + i));
      for (int c = 0; c < 3; ++c) {
        float* at = s_.colour + c * kBlock + i;
        hn::Store(hn::MulAdd(hn::Load(F(), s_.sums + c * kBlock + i), share, hn::Load(F(), at)), F(), at);
      }
    }
  }

  const ExactJob& job_;
  const Folded& f_;
  float strength_;
  ExactScratch s_{};
  int tile_x_ = 0;
  int half_x_ = 0;
  const float* row_ = nullptr;                              // places that the constants are of
  HWY_ALIGN float columns_[2 * kMostFrequencies * kBlock];  // features of the columns of a block
};

void exact_grade(const FrameJob& frame, const ExactJob& job, const Tile& tile, float* scratch) {
  ExactMapper mapper(job, frame.strength, scratch);
  mapper.go_to(frame, tile);
  grade_tile(frame, tile, mapper, mapper.rows());
}

void exact_sample(const ExactJob& job, int n, int first, int count, const float* x, const float* y,
                  float* change, float* scratch) {
  ExactMapper mapper(job, 1.0F, scratch);
  mapper.stay_at(x, y);
  const std::array<float*, 3> level = mapper.rows().level;
  const float step = 256.0F / static_cast<float>(n - 1);
  const ptrdiff_t stride = lattice_stride(n);
  HWY_ALIGN float before[3][kBlock];
  for (int node = first; node < first + count; node += kBlock) {
    for (int i = 0; i < kBlock; ++i) {
      const int at = node + i;
      before[0][i] = level[0][i] = static_cast<float>(at / (n * n)) * step;
      before[1][i] = level[1][i] = static_cast<float>(at / n % n) * step;
      before[2][i] = level[2][i] = static_cast<float>(at % n) * step;
    }
    mapper.add_change(level, 0, Sampling::kAll);
    for (int c = 0; c < 3; ++c) {
      for (int i = 0; i < std::min(kBlock, first + count - node); ++i) {
        change[c * stride + node + i] = level[c][i] - before[c][i];
      }
    }
  }
}

void exact_map(const ExactJob& job, const std::array<float*, 3>& level, int count, const float* x,
               const float* y, float* scratch) {
  ExactMapper mapper(job, 1.0F, scratch);
  mapper.stay_at(x, y);
  for (int first = 0; first < count; first += kBlock) {
    const int n = std::min(kBlock, count - first);
    for (int c = 0; c < 3; ++c) {
      std::copy_n(level[c] + first, n, mapper.rows().level[c]);
    }
    mapper.add_change(mapper.rows().level, 0, Sampling::kAll);
    for (int c = 0; c < 3; ++c) {
      std::copy_n(mapper.rows().level[c], n, level[c] + first);
    }
  }
}

void exact_token_effects(const ExactJob& job, const std::array<float*, 3>& level, int count, const float* x,
                         ptrdiff_t stride, const float* y, float* effects, float* scratch) {
  constexpr int kChunk = ExactMapper::kChunk;
  ExactMapper mapper(job, 1.0F, scratch);
  std::fill_n(effects, static_cast<ptrdiff_t>(job.folded->tokens) * kChunk, 0.0F);
  for (int i = 0; i < count; i += kBlock) {
    mapper.go_along(x + i, stride, y);
    mapper.add_effects({level[0] + i, level[1] + i, level[2] + i}, effects + i, kChunk);
  }
}

ExactKernels instruction_set_exact_kernels() {
  return {ExactMapper::kChunk, &exact_scratch_floats, &exact_grade, &exact_sample,
          &exact_map,          &exact_token_effects};
}

}  // namespace nonlocal::grade::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nonlocal::grade {

HWY_EXPORT(instruction_set_exact_kernels);

ExactKernels exact_kernels() { return HWY_DYNAMIC_DISPATCH(instruction_set_exact_kernels)(); }

ExactJob make_exact_job(const Folded& folded, const ColourSpace& space) {
  ExactJob job{&folded, {}, {}, {}, {}};
  for (int i = 0; i < 3; ++i) {
    job.offset[i] = static_cast<float>(space.offset[i]);
    for (int k = 0; k < 3; ++k) {
      job.to_rgb[i][k] = static_cast<float>(space.to_rgb[i][k]);
      job.from_rgb[i][k] = static_cast<float>(space.from_rgb[i][k]);
    }
  }
  return job;
}

}  // namespace nonlocal::grade
#endif
