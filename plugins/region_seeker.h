// Finds the regions that answer a text, with a slow model beside the stream.
#pragma once

#include <glib.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "nonlocal/region_finder.h"
#include "own_planes.h"

namespace nonlocal {

// What the model read.
struct SoughtText {
  std::string text;
  std::vector<std::string> tokens;  // as the vocabulary writes them
  std::size_t cut = 0;              // tokens that the model's context had no room for
  std::size_t invalid = 0;          // places that were not UTF-8
};

// What was found on one frame.
struct FoundRegions {
  std::shared_ptr<const SoughtText> text;
  std::vector<float> values;  // rows x columns over the frame: 0, nothing of what is sought, to 1
  int rows = 0;
  int columns = 0;
  std::shared_ptr<GBytes> pooled_bytes;  // the regions found as one vector of floats

  [[nodiscard]] ConstMatrix map() const { return {values.data(), rows, columns, columns}; }
};

// One thread, and one frame at a time: while the model looks at it, others go by.
class RegionSeeker {
 public:
  // Opens the model, which takes a while. `threads` are those of the whole element: the model takes half of
  // them, or all where the stream waits for it. Throws what RegionFinder does.
  RegionSeeker(const std::string& model, int threads, bool is_waited_for);
  ~RegionSeeker();
  RegionSeeker(const RegionSeeker&) = delete;
  RegionSeeker& operator=(const RegionSeeker&) = delete;

  // From the next frame on; "": nothing. What is found for an earlier text is dropped. Returns at once.
  void seek(const std::string& text);

  // The same text, but in frames from the next one on: what is found in those before is dropped.
  void seek_anew();

  // If the model waits for a frame, and there is a text: it gets a copy of this one. Whether it did. Waits
  // for no work.
  bool offer(const FramePlanes& frame, const ColourFormat& format);

  // Once after each frame that was taken: what was found on it. Waits for no work. Throws what finding threw;
  // then nothing is sought until another text is.
  bool take(FoundRegions& found);

  // Waits until the model is through with the frame that it has; where it has none not at all.
  void wait();

  // Ends a wait(), and those to come until frames are sought in anew. By any thread.
  void stop_waiting();

 private:
  enum class Stage { kIdle, kHasFrame, kFound };

  void read(const std::string& text);
  void find(FoundRegions& found, const std::stop_token& stop);
  void work();

  RegionFinder finder_;
  std::shared_ptr<const SoughtText> read_;  // what the finder seeks

  std::mutex mutex_;  // guards what follows; held for moments
  std::condition_variable has_work_;
  std::condition_variable is_through_;
  Stage stage_ = Stage::kIdle;
  std::string text_;
  bool is_stale_ = false;  // what is found on the frame is wanted no more
  OwnPlanes frame_;        // the stream's in kIdle, the thread's in kHasFrame
  ColourFormat format_;
  FoundRegions found_;
  std::exception_ptr failure_;
  bool waits_ = true;  // wait() does
  bool ends_ = false;
  std::stop_source stop_;  // of what is sought in the frame that there is
  std::thread thread_;
};

}  // namespace nonlocal
