#include "nonlocal/map_tracker.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "attention/matrix_check.h"
#include "core/anew.h"
#include "core/workers.h"
#include "grade/block_motion.h"
#include "grade/folded.h"
#include "grade/frame_check.h"
#include "grade/map_cells.h"
#include "nonlocal/error.h"

namespace nonlocal {
namespace {

using grade::BlockMotion;
using grade::CellPlace;
using grade::SmallPicture;

constexpr const char* kName = "MapTracker";
// Mean differences in code values: what is the same differs by less, and what is more is something else.
constexpr double kFits = 8;
constexpr double kResembles = 20;

struct Grid {
  std::vector<float> values;
  int rows = 0;
  int columns = 0;

  [[nodiscard]] bool empty() const { return rows == 0; }
  [[nodiscard]] ConstMatrix view() const { return {values.data(), rows, columns, columns}; }
  float* row(int y) { return values.data() + static_cast<std::size_t>(y) * columns; }

  void resize(int new_rows, int new_columns) {
    rows = new_rows;
    columns = new_columns;
    values.resize(static_cast<std::size_t>(rows) * columns);
  }

  void copy(const ConstMatrix& from) {
    resize(from.rows, from.columns);
    for (int y = 0; y < rows; ++y) {
      std::copy_n(from.row(y), columns, row(y));
    }
  }

  void clear() { rows = columns = 0; }
};

// A frame that was looked at, and what is known to be where on it.
struct Seen {
  BlockMotion motion;      // since then
  bool resembles = false;  // does the last frame?
  Grid map;

  void begin(const SmallPicture& now) {
    motion.begin(now);
    resembles = true;
  }

  void follow(const SmallPicture& now, int threads) {
    motion.follow(now, threads);
    resembles = motion.difference() <= kResembles;
  }
};

// How far from a place of the last frame its content was, and how sure that is, 0 to 1. Between the middles
// of blocks both are interpolated.
struct Origin {
  float x, y;
  float share;
};

Origin origin_of(const BlockMotion& motion, int column, int row) {
  const grade::BlockVector v = motion.at(column, row);
  const double doubt = (motion.difference(column, row) - kFits) / (kResembles - kFits);
  return {static_cast<float>(v.x), static_cast<float>(v.y),
          static_cast<float>(1 - std::clamp(doubt, 0.0, 1.0))};
}

Origin mix(const Origin& a, const Origin& b, float share) {
  const auto part = [share](float from, float to) { return from + share * (to - from); };
  return {part(a.x, b.x), part(a.y, b.y), part(a.share, b.share)};
}

Origin origin_at(const BlockMotion& motion, double x, double y) {
  const CellPlace column(x / grade::kMotionStep - 0.5, motion.columns());
  const CellPlace row(y / grade::kMotionStep - 0.5, motion.rows());
  const auto along = [&](int r) {
    return mix(origin_of(motion, column.first, r), origin_of(motion, column.second, r), column.share);
  };
  return mix(along(row.first), along(row.second), row.share);
}

// The map as of the last frame. Each cell is where its content was on the frame that was looked at. What was
// not to be seen there, as behind what has moved since, belongs to nothing.
void move(const Seen& seen, Grid& to, int threads) {
  const ConstMatrix from = seen.map.view();
  to.resize(from.rows, from.columns);
  const double width = seen.motion.picture().width();
  const double height = seen.motion.picture().height();
  Workers::shared().run(from.rows, threads, [&](int row, int) {
    const double y = (row + 0.5) * height / from.rows;
    for (int column = 0; column < from.columns; ++column) {
      const double x = (column + 0.5) * width / from.columns;
      const Origin origin = origin_at(seen.motion, x, y);
      const CellPlace at_x((x + origin.x) * from.columns / width - 0.5, from.columns);
      const CellPlace at_y((y + origin.y) * from.rows / height - 0.5, from.rows);
      to.row(row)[column] = origin.share * grade::interpolate(from, at_x, at_y);
    }
  });
}

void check(const MapTrackerParameters& p) {
  grade::check_threads(kName, p.threads);
  if (!(p.trust > 0 && p.trust <= 1)) {
    throw InvalidArgument(std::string(kName) + ": expected a trust above 0, to 1, got " +
                          std::to_string(p.trust));
  }
}

}  // namespace

struct MapTracker::State {
  int width = 0;  // of the frame
  int height = 0;
  SmallPicture now;
  Seen known;    // whose map is shown
  Seen pending;  // being looked at; its map: what was known of it before
  bool is_pending = false;
  Grid shown;
};

MapTracker::MapTracker() : state_(std::make_unique<State>()) {}
MapTracker::~MapTracker() = default;
MapTracker::MapTracker(MapTracker&&) noexcept = default;
MapTracker& MapTracker::operator=(MapTracker&&) noexcept = default;

void MapTracker::reset() { *state_ = State(); }

void MapTracker::follow(std::span<const ConstPlane> frame, const ColourFormat& format,
                        const MapTrackerParameters& parameters) {
  grade::check_frame(kName, frame, format);
  check(parameters);
  State& s = *state_;
  or_anew(s, [&] {
    const int threads = thread_count(parameters.threads);
    const ConstPlane& plane = frame[format.model == ColourModel::kRgb ? 1 : 0];
    s.now.take(plane, threads);
    if (s.width != plane.width || s.height != plane.height) {
      s.width = plane.width;
      s.height = plane.height;
      s.is_pending = false;
      s.known.map.clear();
    }
    if (s.is_pending) {
      s.pending.follow(s.now, threads);
    }
    s.shown.clear();
    if (!s.known.map.empty()) {
      s.known.follow(s.now, threads);
      if (s.known.resembles) {
        move(s.known, s.shown, threads);
      }
    }
  });
}

void MapTracker::begin() {
  State& s = *state_;
  if (s.now.width() == 0) {
    return;
  }
  or_anew(s, [&] {
    s.pending.begin(s.now);
    s.pending.map.copy(s.shown.view());
    s.is_pending = true;
  });
}

void MapTracker::found(const ConstMatrix& map, const MapTrackerParameters& parameters) {
  if (map.rows < 1 || map.columns < 1) {
    throw InvalidArgument(std::string(kName) + ": expected a map of 1x1 cells or more, got " +
                          std::to_string(map.rows) + "x" + std::to_string(map.columns));
  }
  attention::check_matrix(kName, "map", map, map.rows, map.columns);
  check(parameters);
  State& s = *state_;
  if (!std::exchange(s.is_pending, false)) {
    return;
  }
  or_anew(s, [&] {
    Grid& before = s.pending.map;
    if (before.rows == map.rows && before.columns == map.columns) {
      for (int y = 0; y < map.rows; ++y) {
        for (int x = 0; x < map.columns; ++x) {
          float& value = before.row(y)[x];
          value += static_cast<float>(parameters.trust) * (map.row(y)[x] - value);
        }
      }
    } else {
      before.copy(map);
    }
    std::swap(s.known, s.pending);
    s.shown.clear();
    if (s.known.resembles) {
      move(s.known, s.shown, thread_count(parameters.threads));
    }
  });
}

ConstMatrix MapTracker::map() const { return state_->shown.view(); }

}  // namespace nonlocal
