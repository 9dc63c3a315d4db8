// The noise that successive frames differ by. One frame cannot tell smooth noise (after scaling, compression
// or demosaicing) from texture; but texture stays, and noise does not.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "denoise/block_dct.h"

namespace nonlocal {

struct NoiseInTime {
  double variance = 0;    // of a sample, in squared 8-bit code values
  double grain = 1;       // power at low frequencies over that of white noise of this variance
  double brightness = 0;  // of where it was measured
};

// Compares the DCT of every second block, in both directions, of a grid on one frame with those of the frame
// before. Keeps its memory from frame to frame.
class BlocksInTime {
 public:
  // A frame of so many blocks comes. Forgets the frame before if it had others.
  void begin(int columns, int rows);

  // Block (x, y) of the grid. Different blocks may be kept by different threads.
  static bool is_wanted(int x, int y) { return x % 2 == 0 && y % 2 == 0; }
  void keep(int x, int y, const Block& block) { now_[index(x, y)] = block; }

  // What the frame differs by from the one before, at the flattest of the blocks for which is_usable(x, y).
  // Nothing at the first frame, where hardly any are usable, and where the frame is a copy of the one before.
  template <typename Usable, typename Brightness>
  std::optional<NoiseInTime> compare(Usable&& is_usable, Brightness&& brightness_of);

  // The next frame has none before it.
  void reset() { has_before_ = false; }

 private:
  struct Candidate {
    float energy;
    int block;
  };

  [[nodiscard]] std::size_t index(int x, int y) const {
    return static_cast<std::size_t>(y / 2) * columns_ + x / 2;
  }
  void add_candidate(int block);
  bool choose_blocks();
  [[nodiscard]] Block power_of_differences() const;
  [[nodiscard]] NoiseInTime measure() const;

  int columns_ = 0;
  int rows_ = 0;
  bool has_before_ = false;
  std::vector<Block> now_;
  std::vector<Block> before_;
  std::vector<Candidate> candidates_;  // with the energy of the two frames' mean at low frequencies
  std::vector<Candidate> energies_;    // of the chosen ones: that of the difference
};

template <typename Usable, typename Brightness>
std::optional<NoiseInTime> BlocksInTime::compare(Usable&& is_usable, Brightness&& brightness_of) {
  candidates_.clear();
  if (has_before_) {
    for (int y = 0; y < rows_; ++y) {
      for (int x = 0; x < columns_; ++x) {
        if (is_usable(2 * x, 2 * y)) {
          add_candidate(y * columns_ + x);
        }
      }
    }
  }
  std::optional<NoiseInTime> noise;
  if (choose_blocks()) {
    noise = measure();
    for (const Candidate& chosen : energies_) {
      noise->brightness += brightness_of(2 * (chosen.block % columns_), 2 * (chosen.block / columns_)) /
                           static_cast<double>(energies_.size());
    }
  }
  now_.swap(before_);
  has_before_ = true;
  return noise;
}

}  // namespace nonlocal
