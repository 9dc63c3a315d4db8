#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "denoise/nlm_tile.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.
#include <algorithm>

#include "core/rounding.h"
#include "denoise/nlm_kernel-inl.h"
#include "denoise/nlm_samples-inl.h"
#include "denoise/nlm_tile.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace nonlocal::denoise::HWY_NAMESPACE {

using MoveFunction = void (*)(const GuideRows&, const WeightLaw&, const OffsetMaps&);
using WeighFunction = void (*)(const GuideRows&, const NoiseRows&, const WeightLaw&, const OffsetMaps&);

MoveFunction move_sums_down_for(SquareForm form) {
  switch (form) {
    case SquareForm::kRounded:
      return &move_sums_down<SquareForm::kRounded>;
    case SquareForm::kClipped:
      return &move_sums_down<SquareForm::kClipped>;
    default:
      return &move_sums_down<SquareForm::kWhole>;
  }
}

template <NoiseForm kNoise>
WeighFunction weights_of_row_for(SquareForm form) {
  switch (form) {
    case SquareForm::kRounded:
      return &weights_of_row<SquareForm::kRounded, kNoise>;
    case SquareForm::kClipped:
      return &weights_of_row<SquareForm::kClipped, kNoise>;
    default:
      return &weights_of_row<SquareForm::kWhole, kNoise>;
  }
}

WeighFunction weights_of_row_for(const NlmFrame& frame) {
  if (frame.variance.data != nullptr) {
    return weights_of_row_for<NoiseForm::kByPixel>(frame.law.form);
  }
  return frame.law.magnify ? weights_of_row_for<NoiseForm::kMagnified>(frame.law.form)
                           : weights_of_row_for<NoiseForm::kPlain>(frame.law.form);
}

// A grid's samples, weights and sums of one tile.
class Averages {
 public:
  Averages(const Grid& grid, GridScratch& scratch) : g_(grid), s_(scratch) {}

  [[nodiscard]] const Grid& grid() const { return g_; }

  // The weights of the row at work, of one dx after another.
  [[nodiscard]] uint16_t* weight(int i) {
    return s_.weight.data() + static_cast<ptrdiff_t>(i) * g_.weight_stride + slots(g_.lead);
  }

  // Rows first .. last - 1 start as every sample with itself.
  void start(int first, int last, int weight) {
    const int samples = g_.strip * kStrips;
    for (int y = first; y < last; ++y) {
      std::fill_n(sums(0, y), samples, weight);
      for (int v = 0; v < g_.values; ++v) {
        first_products(pairs(v, y), samples, weight, sums(1 + v, y));
      }
    }
  }

  // From now on there are weights of `offsets` columns: an odd one's partner has none.
  void expect(int offsets) {
    if (offsets % 2 != 0) {
      std::fill_n(weight(offsets) - slots(g_.lead), g_.weight_stride, 0);
    }
  }

  // Adds row y + dy to the averages of row y, with the weights w(x, x + o) of row y, from dx = first_dx on;
  // and, as w serves both, row y to those of row y + dy. Rows of averages are 0 to height.
  void add(int y, int dy, int first_dx, int height) {
    const int count = (g_.column_radius - first_dx + 2) / 2;
    const ptrdiff_t two_maps = 2 * static_cast<ptrdiff_t>(g_.weight_stride);
    extend_weights(first_dx);
    for (int v = 0; v < g_.values; ++v) {
      if (y >= 0) {
        add({weight(0), weight(1), two_maps, pairs(v, y + dy) + 2 * slots(first_dx), 2 * slots(2), count}, v,
            y);
      }
      if (y + dy < height) {
        add({weight(1) - slots(first_dx + 1), weight(0) - slots(first_dx), two_maps - slots(2),
             pairs(v, y) - 2 * slots(first_dx + 1), -2 * slots(2), count},
            v, y + dy);
      }
    }
  }

 private:
  int32_t* sums(int which, int y) {
    return s_.sum.data() + (static_cast<ptrdiff_t>(which) * g_.sums.size + g_.sums.at(y)) * g_.sum_stride;
  }
  const int16_t* pairs(int value, int y) {
    return s_.pairs.data() +
           (static_cast<ptrdiff_t>(value) * g_.samples.size + g_.samples.at(y)) * g_.pair_stride +
           2 * slots(g_.lead);
  }

  // w(x, x + o) is needed at x = y - o too, which may be of the strips beside.
  void extend_weights(int first_dx) {
    for (int dx = first_dx; dx <= g_.column_radius; ++dx) {
      extend_before(weight(dx - first_dx), g_.strip, dx);
      extend_after(weight(dx - first_dx), g_.strip, -dx);
    }
  }

  void add(const PairedWeights& w, int v, int y) {
    const int samples = g_.strip * kStrips;
    if (v == 0) {
      accumulate<true>(w, samples, sums(1, y), sums(0, y));
    } else {
      accumulate<false>(w, samples, sums(1 + v, y), nullptr);
    }
  }

  const Grid& g_;
  GridScratch& s_;
};

class TileFilter {
 public:
  TileFilter(const NlmFrame& frame, const Tile& tile, const TileLayout& layout, TileScratch& scratch)
      : frame_(frame),
        tile_(tile),
        l_(layout),
        s_(scratch),
        own_(layout.own, scratch.own),
        joint_(layout.joint, scratch.joint),
        radius_(frame.search_radius),
        halo_(frame.search_radius + frame.patch_radius),
        move_sums_down_(move_sums_down_for(frame.law.form)),
        weights_of_row_(weights_of_row_for(frame)) {}

  void run() {
    for (int y = 0; y < tile_.height; y += kBand) {
      filter_band(y, std::min(y + kBand, tile_.height));
    }
  }

 private:
  [[nodiscard]] bool has_joint() const { return !l_.joint.empty(); }
  const int16_t* guide(int y) { return guide_row_at(l_.guides.at(y)); }
  const int16_t* blank() { return guide_row_at(l_.guides.size); }
  const int16_t* guide_row_at(int row) {
    return s_.guide.data() + static_cast<ptrdiff_t>(row) * l_.guide_stride + slots(l_.guide_lead);
  }

  // Of row y, and of row y + dy from first_dx on.
  [[nodiscard]] NoiseRows noise_rows(int y, int dy, int first_dx) const {
    if (!l_.has_variance) {
      return {};
    }
    const auto row = [&](int at) {
      return s_.noise.data() + static_cast<ptrdiff_t>(l_.guides.at(at)) * l_.guide_stride +
             slots(l_.guide_lead);
    };
    const ptrdiff_t roots = static_cast<ptrdiff_t>(l_.guides.size) * l_.guide_stride;
    const uint16_t* own = row(y);
    const uint16_t* other = row(y + dy) + slots(first_dx);
    return {own, other, own + roots, other + roots};
  }

  // Rows first .. last - 1 become whole; those below get their part of the weights.
  void filter_band(int first, int last) {
    load_own(frame_, tile_, l_, first == 0 ? -halo_ : first + halo_, last + halo_, s_);
    if (l_.has_variance) {
      load_noise(frame_, tile_, l_, first == 0 ? -halo_ : first + halo_, last + halo_, s_);
    }
    start(own_, first, last, tile_.height);
    if (has_joint()) {
      const Grid& g = l_.joint;
      const int r = g.row_radius;
      load_joint(frame_, tile_, l_, first == 0 ? -r : g.rows(first) + r, g.rows(last) + r, s_);
      start(joint_, g.rows(first), g.rows(last), g.rows(tile_.height));
    }
    for (int dy = 0; dy <= radius_; ++dy) {
      filter_offset_row(dy, first, last);
    }
    store_averages(frame_, frame_.out, tile_, l_.halo_strips, l_.own, s_.own, first, last, s_);
    if (has_joint()) {
      store_averages(frame_, frame_.joint_out, tile_, l_.halo_strips, l_.joint, s_.joint,
                     l_.joint.rows(first), l_.joint.rows(last), s_);
    }
  }

  // What this band's weights are added to and was not started by the one before.
  void start(Averages& averages, int first, int last, int height) {
    const int r = averages.grid().row_radius;
    averages.start(first == 0 ? 0 : std::min(first + r, height), std::min(last + r, height),
                   frame_.law.centre_weight());
  }

  // The offsets (dx, dy) of one dy: all dx for dy > 0, dx > 0 for dy = 0. w(x, x + o) is made once and serves
  // both pixels: that at x for its neighbour below, and the one below for its neighbour above.
  void filter_offset_row(int dy, int first, int last) {
    const int first_dx = dy > 0 ? -radius_ : 1;
    const int offsets = radius_ - first_dx + 1;
    const int p = frame_.patch_radius;
    const int top = -dy;  // the first row with weights, for row 0 of the tile
    const OffsetMaps maps = {offsets,
                             l_.strip,
                             p,
                             s_.column.data() + dy * l_.offsets * slots(l_.strip),
                             s_.capped.data() + slots(l_.patch_lead),
                             l_.capped_stride,
                             own_.weight(0),
                             l_.own.weight_stride};
    if (first == 0) {
      std::fill_n(maps.column, static_cast<size_t>(offsets) * slots(l_.strip), 0);
    }
    own_.expect(offsets);
    for (int y = first == 0 ? top - 2 * p : first; y < last; ++y) {
      // Row y + p enters the patches around row y; none leaves while the first of them fills.
      const bool leaves = y > top;
      const GuideRows rows = {guide(y + p),
                              guide(y + p + dy) + slots(first_dx),
                              leaves ? guide(y - p - 1) : blank(),
                              (leaves ? guide(y - p - 1 + dy) : blank()) + slots(first_dx),
                              static_cast<ptrdiff_t>(l_.guides.size + 1) * l_.guide_stride,
                              l_.channels};
      if (y < top) {
        move_sums_down_(rows, frame_.law, maps);
      } else {
        weights_of_row_(rows, noise_rows(y, dy, first_dx), frame_.law, maps);
        own_.add(y, dy, first_dx, tile_.height);
        if (has_joint()) {
          add_joint(y, dy, first_dx);
        }
      }
    }
  }

  // The joint planes' samples lie at every column_step-th column of every row_step-th row, and are averaged
  // over the offsets that lead from one of them to another.
  void add_joint(int y, int dy, int first_dx) {
    const Grid& g = l_.joint;
    if (y % g.row_step != 0 || dy % g.row_step != 0) {
      return;
    }
    const int first = first_dx > 0 ? 1 : -g.column_radius;
    for (int dx = first; dx <= g.column_radius; ++dx) {
      every_slot(own_.weight(dx * g.column_step - first_dx), g.column_step, g.strip,
                 joint_.weight(dx - first));
    }
    joint_.expect(g.column_radius - first + 1);
    joint_.add(y / g.row_step, dy / g.row_step, first, g.rows(tile_.height));
  }

  const NlmFrame& frame_;
  const Tile& tile_;
  const TileLayout& l_;
  TileScratch& s_;
  Averages own_;
  Averages joint_;
  int radius_;
  int halo_;
  MoveFunction move_sums_down_;
  WeighFunction weights_of_row_;
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

size_t product(int a, int b, int c) { return static_cast<size_t>(a) * b * c; }

// The grid whose planes are like `first`, or none. Samples may be loaded `ahead` rows before they are needed.
Grid make_grid(const NlmFrame& frame, std::span<const ConstPlane> planes, int strip, int ahead) {
  Grid g;
  if (planes.empty()) {
    return g;
  }
  g.column_step = planes[0].width < frame.in[0].width ? 2 : 1;
  g.row_step = planes[0].height < frame.in[0].height ? 2 : 1;
  g.planes = static_cast<int>(planes.size());
  g.values = frame.law.split_values ? 2 * g.planes : g.planes;
  g.strip = strip / g.column_step;
  g.column_radius = frame.search_radius / g.column_step;
  g.row_radius = frame.search_radius / g.row_step;
  const int band = kBand / g.row_step;
  g.samples = {band + 2 * g.row_radius + ahead, g.row_radius};
  g.sums = {band + g.row_radius, 0};
  g.lead = g.column_radius + 1;
  g.pair_stride = 2 * (g.strip + 2 * g.lead) * kStrips;
  g.weight_stride = (g.strip + 2 * g.lead) * kStrips;
  g.sum_stride = g.strip * kStrips;
  return g;
}

}  // namespace

TileLayout::TileLayout(const NlmFrame& frame) : channels(static_cast<int>(frame.in.size())) {
  const int radius = frame.search_radius;
  const int halo = radius + frame.patch_radius;
  const int width = frame.in[0].width;
  halo_strips = ceil_divide(halo, kWidestStrip);
  const int inner = kStrips - 2 * halo_strips;
  const int across = ceil_divide(width, inner * kWidestStrip);
  strip = std::max(ceil_divide(ceil_divide(width, across), inner), ceil_divide(halo, halo_strips));
  // Two slots are averaged at once, of joint planes too.
  strip = round_up(strip, frame.joint_in.empty() ? 2 : 4);
  tile_width = inner * strip;
  offsets = 2 * radius + 1;
  offset_rows = radius + 1;
  has_variance = frame.variance.data != nullptr;
  guides = {kBand + 2 * halo, halo};
  guide_lead = halo;
  patch_lead = frame.patch_radius;
  guide_stride = (strip + 2 * guide_lead) * kStrips;
  capped_stride = (strip + 2 * patch_lead + 1) * kStrips;  // the last sum's successor is read
  own = make_grid(frame, frame.in, strip, frame.patch_radius);
  joint = make_grid(frame, frame.joint_in, strip, 0);
}

void GridScratch::allocate(const Grid& g) {
  pairs.allocate(product(g.values, g.samples.size, g.pair_stride));
  weight.allocate(product(1, 2 * g.column_radius + 2, g.weight_stride));
  sum.allocate(product(1 + g.values, g.sums.size, g.sum_stride));
}

void TileScratch::allocate(const TileLayout& l) {
  guide.allocate(product(l.channels, l.guides.size + 1, l.guide_stride));
  noise.allocate(l.has_variance ? product(2, l.guides.size, l.guide_stride) : 0);
  column.allocate(product(l.offset_rows * l.offsets, l.strip, kStrips));
  capped.allocate(product(2, 1, l.capped_stride));
  line.allocate(product(1, l.strip, kStrips));
  slots.allocate(product(2, l.strip + l.own.lead + 1, kStrips));
  own.allocate(l.own);
  if (!l.joint.empty()) {
    joint.allocate(l.joint);
  }
}

HWY_EXPORT(filter_tile);

void filter_tile(const NlmFrame& frame, const Tile& tile, const TileLayout& layout, TileScratch& scratch) {
  HWY_DYNAMIC_DISPATCH(filter_tile)(frame, tile, layout, scratch);
}

}  // namespace nonlocal::denoise
#endif
