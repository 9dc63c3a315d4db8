// Where a prompt acts on frames, for people to look at.
#pragma once

#include <gst/video/video.h>

#include <optional>
#include <span>
#include <vector>

#include "nonlocal/relevance.h"

namespace nonlocal {

// A map of cells that follows the frames, smoothed over them. Working memory is kept.
class RelevanceView {
 public:
  // Takes a map that was made elsewhere, of 0 to 1; one without rows says nothing.
  void take(const ConstMatrix& map);

  // Looks at one more frame. `is_new`: nothing of the frames before counts.
  void look(std::span<const ConstPlane> frame, const ColourFormat& format, const CrossAttentionFilter& filter,
            int threads, bool is_new);

  // The map over the frame, in its place.
  void paint_heat(std::span<const Plane> frame, const ColourFormat& format, int threads) const;

  // The map instead of the frame: white where the prompt acts most, without colour. In `alpha`, where the
  // frame has one, and the frame stays.
  void paint_mask(std::span<const Plane> frame, const ColourFormat& format, const Plane* alpha,
                  int threads) const;

  // Is there anything to show?
  [[nodiscard]] bool empty() const { return rows_ == 0; }

  // What holds the cells of at least half of the largest relevance, in samples of a frame of this size; none
  // where the prompt does nothing.
  [[nodiscard]] std::optional<GstVideoRectangle> box(int width, int height) const;

  // Each token's mean over the last frame that was looked at; and that of a map which was taken.
  [[nodiscard]] std::vector<double> token_means() const;
  [[nodiscard]] double mean() const;

 private:
  [[nodiscard]] ConstMatrix map() const { return {map_.data(), rows_, columns_, columns_}; }

  TokenMaps maps_;
  std::vector<float> map_;  // of all tokens
  int columns_ = 0;
  int rows_ = 0;
  float most_ = 0;   // of the map
  float least_ = 0;  // less of it is nothing
  float scale_ = 1;  // what is shown as most
};

}  // namespace nonlocal
