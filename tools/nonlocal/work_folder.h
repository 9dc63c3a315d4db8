// The folder in which a run keeps its finished segments, and the journal of which are: a process killed at
// any moment leaves it so that another goes on.
//
//   plan.json            what the segments are of: recipe_of()
//   segment-00012.gdp    the coded frames of a finished segment
//   segment-00012.json   its report; only where this is, is it finished
#pragma once

#include <filesystem>
#include <string>

#include "segment_report.h"
#include "segments.h"

namespace nonlocal::tools {

class WorkFolder {
 public:
  // The hidden folder for an output: "film.mkv" has ".film.mkv.nonlocal".
  static std::filesystem::path beside(const std::filesystem::path& output);

  // Makes the folder for this plan, or goes on in it. Where it is there already and `resume` is not wanted,
  // or it is of another plan, or another process is at work in it: throws Failure, which says what to do.
  WorkFolder(std::filesystem::path path, const Plan& plan, bool resume);

  // Opens what another process made, on this machine or another: segments may be finished side by side.
  explicit WorkFolder(std::filesystem::path path);

  ~WorkFolder();
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] Plan plan() const;

  [[nodiscard]] bool has(const Segment& segment) const;
  [[nodiscard]] std::filesystem::path coded(const Segment& segment) const;
  [[nodiscard]] SegmentReport report(const Segment& segment) const;

  // Where to write a segment that is not finished: a name of this process's own.
  [[nodiscard]] std::filesystem::path partial(const Segment& segment) const;

  // From here on the segment is finished: gives partial() its name, when it lies safely on the disk.
  void finish(const Segment& segment, const SegmentReport& report);

  // The folder and all in it.
  void remove();

  // The folder where no segment in it is finished; else it stays for the next run.
  void remove_if_empty(const Plan& plan);

 private:
  void begin(const Plan& plan, bool resume);
  void lock();

  std::filesystem::path path_;
  int lock_ = -1;
};

}  // namespace nonlocal::tools
