// The mean of what a network makes of a frame and of what it made of the frame before, moved to where things
// are now:
//
//   y(p) = (o(p) + w(p) x̂(p)) / (1 + w(p)),     x̂(p) = o'(p + m(p)),     w(p) = exp(-d²(p) / h²)
//
// Non-local means (A. Buades, B. Coll, J.-M. Morel: A non-local algorithm for image denoising, CVPR 2005) of
// two places: p itself, and where it was. Coding errors of two frames differ, what they show does not; where
// it does (a cut, what was hidden, motion that was not found), d² is large, w is 0 and y is o. o' is what the
// network made of the frame before, not what was given out: nothing is blurred again and again.
//
// - d²(p): the mean of (o - x̂)² in squared 8-bit code values, of all channels, over the 3 x 3 cells of 2 x 2
//   samples around p's; or half of that over p's own, if it is larger: else a small thing that is gone, whose
//   surroundings are as they were, would be seen for a frame longer. Cells beyond the frame are the
//   outermost; half a cell has its samples alone.
// - m(p): for squares of 8 x 8 samples, in 16ths of one, between the vectors of the four nearest blocks of 16
//   x 16 (motion_search.h). Between samples o' is cubic, clamped to 0 .. 255.99; beyond the frame it is its
//   border.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/workers.h"
#include "motion/motion_search.h"
#include "nonlocal/plane.h"

namespace nonlocal::network {

class TemporalMean {
 public:
  // `h` in 8-bit code values, above 0.
  explicit TemporalMean(double h) : h_(h) {}

  static constexpr int kMostChannels = 3;

  // Makes ready for frames of `channels` planes of width x height; those of another size start afresh. Where
  // memory runs out, all is forgotten.
  void prepare(int width, int height, int channels, int threads);

  // Where o is to be written: planes of 15 bits.
  [[nodiscard]] std::span<const Plane> planes() const { return now_.planes; }

  // Finds vectors() of what planes() show. Allocates nothing.
  void find_motion(int threads);

  // m of the squares, row by row, in motion::kFine of a sample.
  [[nodiscard]] std::span<motion::MotionVector> vectors() { return vectors_; }

  // Calls store(channel, y, codes, slot) for each row of y, in 8-bit code values; `codes` is working memory.
  // planes() are those of the next frame then. Allocates nothing.
  template <typename Store>
  void run(int threads, const Store& store) {
    Workers::shared().run(bands(), threads, [&](int band, int slot) {
      begin_band(band, slot);
      for (int y = first_row(band); y < first_row(band + 1); ++y) {
        for (int c = 0; c < static_cast<int>(now_.planes.size()); ++c) {
          store(c, y, row(c, y, slot), slot);
        }
      }
    });
    std::swap(now_, before_);
    has_before_ = true;
  }

  // The next frame has none before it.
  void reset() { has_before_ = false; }

 private:
  struct Frame {
    void allocate(int width, int height, int channels);

    std::vector<AlignedBuffer<std::byte>> memory;
    std::vector<Plane> planes;
    std::vector<ConstPlane> views;
  };

  // A thread's.
  struct Scratch {
    Scratch(int width, int channels);
    [[nodiscard]] std::int16_t* moved_row(int channel, int y);

    std::ptrdiff_t stride;
    int first = 0;  // row of the frame that is the first of `moved`, and half of `squares`
    AlignedBuffer<std::int16_t> moved;  // x̂: [channels][rows and a margin on either side][samples]
    AlignedBuffer<float> squares;       // (o - x̂)², a sum a cell: [rows of cells and a margin][cells]
    AlignedBuffer<float> shares;        // w / (1 + w): [rows of cells][samples]
    AlignedBuffer<float> sums;          // a row of cells
    AlignedBuffer<float> codes;         // a row of samples
  };

  void allocate(int width, int height, int channels, int threads);
  [[nodiscard]] int bands() const;
  [[nodiscard]] int first_row(int band) const;
  void move_squares(const motion::MotionField& field, int row);
  void begin_band(int band, int slot);
  void move(int last, Scratch& s) const;
  void weigh(int band, Scratch& s) const;
  float* row(int channel, int y, int slot);

  double h_;
  int width_ = 0;
  int height_ = 0;
  std::ptrdiff_t cell_stride_ = 0;  // of cells
  Frame now_;
  Frame before_;
  bool has_before_ = false;
  std::vector<motion::MotionVector> vectors_;  // of squares, in kFine of a sample
  motion::MotionSearch motion_{motion::MotionFrames::kClean};
  std::vector<Scratch> scratch_;
};

}  // namespace nonlocal::network
