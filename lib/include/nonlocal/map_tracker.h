// Maps that a slow model finds now and then follow the frames in between.
//
// The model looks at one frame while others go by. Each of those is compared with the frame that the model
// saw, by block matching on luma of at most 320 samples a side, and the map is moved along. Where a picture
// no longer resembles the one that was looked at, as after a cut, its map counts for nothing.
#pragma once

#include <memory>
#include <span>

#include "nonlocal/colour_format.h"
#include "nonlocal/export.h"
#include "nonlocal/matrix.h"
#include "nonlocal/plane.h"

namespace nonlocal {

struct MapTrackerParameters {
  double trust = 0.6;  // in a map that was found, beside what those before it said: above 0, to 1
  int threads = 0;     // 0 (as many as the machine has) to 256; maps do not depend on it
};

// Frames come in turn through follow(). To have one looked at: begin(), and found() with what was found on
// it, however many frames later. Working memory is kept: with frames and maps of the sizes before nothing is
// allocated. One object serves one thread at a time.
class NONLOCAL_API MapTracker {
 public:
  MapTracker();
  ~MapTracker();
  MapTracker(MapTracker&&) noexcept;
  MapTracker& operator=(MapTracker&&) noexcept;

  // The next frame; planes as FrameGrader's. A frame of another size forgets all before it. Throws
  // InvalidArgument if planes do not fit or a parameter is out of range.
  void follow(std::span<const ConstPlane> frame, const ColourFormat& format,
              const MapTrackerParameters& parameters = {});

  // The last frame is the one that is being looked at; what was begun before is given up.
  void begin();

  // What was found on that frame: rows x columns of any number, over the whole frame. Without begin() since
  // the last, or after a change of size, it is dropped. Throws InvalidArgument if the map has no cells.
  void found(const ConstMatrix& map, const MapTrackerParameters& parameters = {});

  // As of the last frame, of the size of the last that was found; no rows where there is none.
  [[nodiscard]] ConstMatrix map() const;

  void reset();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nonlocal
