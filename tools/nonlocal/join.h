// Segments put together, with the streams that pass by, in one file.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include "segments.h"
#include "work_folder.h"

namespace nonlocal::tools {

// A segment that Ctrl-C has cut short: the last one of a file to play, not to go on from. Without a name
// nothing of it came.
struct CutSegment {
  std::filesystem::path coded;
  SegmentReport report;
};

// Writes the finished segments, up to the first that is missing, and then `cut`, where there is one, to
// `path`, which is of the output's kind; nothing is coded anew. `tick` is called now and then with the frames
// written. Throws Failure where segments do not follow each other without a gap: the frames' times rise, and
// each segment has its share of them; and where its files are damaged. Without `cut` all segments must be
// there.
void join(const Plan& plan, const WorkFolder& work, const std::filesystem::path& path,
          const std::optional<CutSegment>& cut, const std::function<void(int64_t)>& tick);

}  // namespace nonlocal::tools
