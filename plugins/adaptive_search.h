// Keeps a filter as fast as the stream by making its search window smaller while frames come late, and larger
// again when there is time. It knows no clock: it counts frames, so that its decisions can be tested.
#pragma once

namespace nonlocal {

class AdaptiveSearch {
 public:
  // What one frame was like.
  struct Frame {
    bool late = false;  // somebody downstream said, since the frame before, that frames come too late
    double load = 0;    // time that filtering took / the frame's duration; 0 where that means nothing
  };

  // The window's width and height for the next frame when `wanted` (odd, 3 or more) would be used given the
  // time.
  [[nodiscard]] int search_size(int wanted) const;

  // Is the next step down from `wanted` still smaller?
  [[nodiscard]] bool can_lower(int wanted) const { return search_size(wanted) > kSmallest; }

  // Takes note of a frame that was filtered with search_size(wanted), and perhaps moves one step.
  void update(int wanted, const Frame& frame);

  // As at the start of a stream.
  void reset() { *this = AdaptiveSearch(); }

 private:
  static constexpr int kSmallest = 3;
  static constexpr int kSettleFrames =
      8;                                  // until a step's effect is seen downstream; a load shows it at once
  static constexpr int kCalmFrames = 50;  // without trouble before a step up
  static constexpr int kMostCalmFrames = 1600;  // the wait doubles up to this when steps up fail
  static constexpr double kHighLoad = 0.95;  // of a frame's duration: beyond, the stream is about to be late
  static constexpr double kRoomyLoad = 0.7;  // expected after a step up, for that step to be made

  void lower();
  void raise();

  int steps_ = 0;              // down from what is wanted
  int frames_since_step_ = 0;  // in either direction
  int calm_frames_ = 0;        // since the last trouble or step
  int calm_needed_ = kCalmFrames;
  bool last_was_up_ = false;
};

}  // namespace nonlocal
