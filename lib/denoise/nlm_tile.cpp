#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "denoise/nlm_tile.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.
#include <algorithm>

#include "denoise/nlm_kernel-inl.h"
#include "denoise/nlm_samples-inl.h"
#include "denoise/nlm_tile.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace nonlocal::denoise::HWY_NAMESPACE {

using MapFunction = void (*)(const GuideRows&, const WeightLaw&, const OffsetMaps&);

MapFunction move_sums_down_for(SquareForm form) {
  switch (form) {
    case SquareForm::kRounded:
      return &move_sums_down<SquareForm::kRounded>;
    case SquareForm::kClipped:
      return &move_sums_down<SquareForm::kClipped>;
    default:
      return &move_sums_down<SquareForm::kWhole>;
  }
}

template <bool kMagnify>
MapFunction weights_of_row_for(SquareForm form) {
  switch (form) {
    case SquareForm::kRounded:
      return &weights_of_row<SquareForm::kRounded, kMagnify>;
    case SquareForm::kClipped:
      return &weights_of_row<SquareForm::kClipped, kMagnify>;
    default:
      return &weights_of_row<SquareForm::kWhole, kMagnify>;
  }
}

class TileFilter {
 public:
  TileFilter(const NlmFrame& frame, const Tile& tile, const TileLayout& layout, TileScratch& scratch)
      : frame_(frame),
        tile_(tile),
        l_(layout),
        s_(scratch),
        radius_(frame.search_radius),
        halo_(frame.search_radius + frame.patch_radius),
        move_sums_down_(move_sums_down_for(frame.law.form)),
        weights_of_row_(frame.law.magnify ? weights_of_row_for<true>(frame.law.form)
                                          : weights_of_row_for<false>(frame.law.form)) {}

  void run() {
    load_tile(frame_, tile_, l_, s_);
    start_with_centre();
    for (int dy = 0; dy <= radius_; ++dy) {
      filter_offset_row(dy);
    }
    store_tile(frame_, tile_, l_, s_);
  }

 private:
  static ptrdiff_t slots(int n) { return static_cast<ptrdiff_t>(n) * kStrips; }
  int32_t* sums(int which, int y) {
    return s_.sum.data() + (static_cast<ptrdiff_t>(which) * l_.tile_height + y) * l_.sum_stride;
  }
  const int16_t* pairs(int value, int y) {  // y in the tile, or up to search_radius above and below
    return s_.pairs.data() + (static_cast<ptrdiff_t>(value) * l_.rows + y + halo_) * l_.pair_stride +
           2 * slots(l_.value_lead);
  }
  const int16_t* guide(int y) { return guide_row_at(y + halo_); }
  const int16_t* blank() { return guide_row_at(l_.rows); }
  const int16_t* guide_row_at(int row) {
    return s_.guide.data() + static_cast<ptrdiff_t>(row) * l_.guide_stride + slots(l_.guide_lead);
  }
  uint16_t* weight(int i) {
    return s_.weight.data() + static_cast<ptrdiff_t>(i) * l_.weight_stride + slots(l_.weight_lead);
  }

  // Every pixel with itself: as the first of a pair, at full weight, with its neighbour at none.
  void start_with_centre() {
    std::fill_n(weight(0), slots(l_.strip), frame_.law.centre_weight());
    std::fill_n(weight(1), slots(l_.strip), 0);
    std::fill_n(sums(0, 0), static_cast<size_t>(1 + l_.values) * l_.tile_height * l_.sum_stride, 0);
    for (int v = 0; v < l_.values; ++v) {
      for (int y = 0; y < tile_.height; ++y) {
        add({weight(0), weight(1), 0, pairs(v, y), 0, 1}, v, y);
      }
    }
  }

  // The offsets (dx, dy) of one dy: all dx for dy > 0, dx > 0 for dy = 0. w(x, x + o) is made once and serves
  // both pixels: that at x for its neighbour below, and the one below for its neighbour above.
  void filter_offset_row(int dy) {
    const int first_dx = dy > 0 ? -radius_ : 1;
    const int offsets = radius_ - first_dx + 1;
    const int p = frame_.patch_radius;
    const int first = -dy;
    std::fill_n(s_.column.data(), static_cast<size_t>(offsets) * slots(l_.strip), 0);
    if (offsets % 2 != 0) {  // the last one's partner has no weight
      std::fill_n(weight(offsets) - slots(l_.weight_lead), l_.weight_stride, 0);
    }
    const OffsetMaps maps = {offsets,
                             l_.strip,
                             p,
                             s_.column.data(),
                             s_.capped.data() + slots(l_.patch_lead),
                             l_.capped_stride,
                             weight(0),
                             l_.weight_stride};
    for (int y = first - 2 * p; y < tile_.height; ++y) {
      // Row y + p enters the patches around row y; none leaves while the first of them fills.
      const bool leaves = y > first;
      const GuideRows rows = {guide(y + p),
                              guide(y + p + dy) + slots(first_dx),
                              leaves ? guide(y - p - 1) : blank(),
                              (leaves ? guide(y - p - 1 + dy) : blank()) + slots(first_dx),
                              static_cast<ptrdiff_t>(l_.rows + 1) * l_.guide_stride,
                              l_.channels};
      (y < first ? move_sums_down_ : weights_of_row_)(rows, frame_.law, maps);
      if (y >= first) {
        average_row(y, dy, first_dx);
      }
    }
  }

  // w(x, x + o) is needed at x = y - o too, which may be of the strips beside.
  void extend_weights(int first_dx) {
    for (int dx = first_dx; dx <= radius_; ++dx) {
      extend_before(weight(dx - first_dx), l_.strip, dx);
      extend_after(weight(dx - first_dx), l_.strip, -dx);
    }
  }

  void average_row(int y, int dy, int first_dx) {
    const int count = (radius_ - first_dx + 2) / 2;
    const ptrdiff_t two_maps = 2 * static_cast<ptrdiff_t>(l_.weight_stride);
    extend_weights(first_dx);
    for (int v = 0; v < l_.values; ++v) {
      if (y >= 0) {  // their neighbours below to the pixels of row y
        add({weight(0), weight(1), two_maps, pairs(v, y + dy) + 2 * slots(first_dx), 2 * slots(2), count}, v,
            y);
      }
      if (y + dy < tile_.height) {  // theirs above to the pixels of row y + dy
        add({weight(1) - slots(first_dx + 1), weight(0) - slots(first_dx), two_maps - slots(2),
             pairs(v, y) - 2 * slots(first_dx + 1), -2 * slots(2), count},
            v, y + dy);
      }
    }
  }

  void add(const PairedWeights& w, int v, int y) {
    const int samples = l_.strip * kStrips;
    if (v == 0) {
      accumulate<true>(w, samples, sums(1, y), sums(0, y));
    } else {
      accumulate<false>(w, samples, sums(1 + v, y), nullptr);
    }
  }

  const NlmFrame& frame_;
  const Tile& tile_;
  const TileLayout& l_;
  TileScratch& s_;
  int radius_;
  int halo_;
  MapFunction move_sums_down_;
  MapFunction weights_of_row_;
};

void filter_tile(const NlmFrame& frame, const Tile& tile, const TileLayout& layout, TileScratch& scratch) {
  TileFilter(frame, tile, layout, scratch).run();
}

}  // namespace nonlocal::denoise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nonlocal::denoise {
namespace {

// Fits a row's vertical sums and weights into the first-level cache at the default window.
constexpr int kWidestStrip = 32;

int ceil_divide(int a, int b) { return (a + b - 1) / b; }

}  // namespace

TileLayout::TileLayout(const NlmFrame& frame, int height)
    : tile_height(height), channels(static_cast<int>(frame.in.size())) {
  const int radius = frame.search_radius;
  const int halo = radius + frame.patch_radius;
  const int width = frame.in[0].width;
  halo_strips = ceil_divide(halo, kWidestStrip);
  const int inner = kStrips - 2 * halo_strips;
  const int across = ceil_divide(width, inner * kWidestStrip);
  strip = std::max(ceil_divide(ceil_divide(width, across), inner), ceil_divide(halo, halo_strips));
  strip += strip % 2;  // two slots are averaged at once
  tile_width = inner * strip;
  values = frame.law.split_values ? 2 * channels : channels;
  offsets = 2 * radius + 1;
  rows = tile_height + 2 * halo;
  guide_lead = halo;
  value_lead = radius + 1;
  weight_lead = radius + 1;
  patch_lead = frame.patch_radius;
  guide_stride = (strip + 2 * guide_lead) * kStrips;
  pair_stride = 2 * (strip + 2 * value_lead) * kStrips;
  sum_stride = strip * kStrips;
  capped_stride = (strip + 2 * patch_lead + 1) * kStrips;  // the last sum's successor is read
  weight_stride = (strip + 2 * weight_lead) * kStrips;
}

int TileLayout::bytes_a_row() const {
  return 2 * channels * guide_stride + 2 * values * pair_stride + 4 * (1 + values) * sum_stride;
}

void TileScratch::allocate(const TileLayout& l) {
  const auto n = [](int a, int b, int c) { return static_cast<size_t>(a) * b * c; };
  guide.allocate(n(l.channels, l.rows + 1, l.guide_stride));
  pairs.allocate(n(l.values, l.rows, l.pair_stride));
  column.allocate(n(l.offsets, l.strip, kStrips));
  capped.allocate(n(2, 1, l.capped_stride));
  weight.allocate(n(1, l.offsets + 1, l.weight_stride));
  sum.allocate(n(1 + l.values, l.tile_height, l.sum_stride));
  line.allocate(n(4, l.strip, kStrips));
  slots.allocate(n(2, l.strip + l.value_lead + 1, kStrips));
}

HWY_EXPORT(filter_tile);

void filter_tile(const NlmFrame& frame, const Tile& tile, const TileLayout& layout, TileScratch& scratch) {
  HWY_DYNAMIC_DISPATCH(filter_tile)(frame, tile, layout, scratch);
}

}  // namespace nonlocal::denoise
#endif
