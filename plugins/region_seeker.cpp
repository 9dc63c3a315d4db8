#include "region_seeker.h"

#include <algorithm>
#include <utility>

namespace nonlocal {
namespace {

// The stream keeps at least as many as the model takes.
int threads_beside(int threads) {
  const int all = threads > 0 ? threads : static_cast<int>(std::thread::hardware_concurrency());
  return std::max(1, all / 2);
}

// Half is what CLIP gives to what is as much like the text as like anything.
float share_of(float relevance, bool is_trained_for_it) {
  return is_trained_for_it ? relevance : std::max(0.0F, 2 * relevance - 1);
}

}  // namespace

RegionSeeker::RegionSeeker(const std::string& model, int threads, bool is_waited_for)
    : finder_(model, RegionFinderParameters{AttentionPrecision::kAutomatic,
                                            is_waited_for ? threads : threads_beside(threads)}),
      thread_([this] { work(); }) {}

RegionSeeker::~RegionSeeker() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    stop_.request_stop();
  }
  has_work_.notify_one();
  thread_.join();
}

void RegionSeeker::seek(const std::string& text) {
  seek_anew();
  const std::lock_guard lock(mutex_);
  text_ = text;
}

void RegionSeeker::seek_anew() {
  const std::lock_guard lock(mutex_);
  waits_ = true;
  is_stale_ = stage_ == Stage::kHasFrame;
  if (is_stale_) {
    stop_.request_stop();
  }
  if (stage_ == Stage::kFound) {
    stage_ = Stage::kIdle;
    failure_ = nullptr;
  }
}

bool RegionSeeker::offer(const FramePlanes& frame, const ColourFormat& format) {
  {
    const std::lock_guard lock(mutex_);
    if (stage_ != Stage::kIdle || text_.empty()) {
      return false;
    }
  }
  frame_.copy(frame);  // in this stage only this thread touches it
  format_ = format;
  {
    const std::lock_guard lock(mutex_);
    stage_ = Stage::kHasFrame;
    is_stale_ = false;
  }
  has_work_.notify_one();
  return true;
}

bool RegionSeeker::take(FoundRegions& found) {
  const std::lock_guard lock(mutex_);
  if (stage_ != Stage::kFound) {
    return false;
  }
  stage_ = Stage::kIdle;
  if (failure_) {
    text_.clear();  // it would fail on every frame
    std::rethrow_exception(std::exchange(failure_, nullptr));
  }
  std::swap(found, found_);
  return true;
}

void RegionSeeker::wait() {
  std::unique_lock lock(mutex_);
  is_through_.wait(lock, [this] { return stage_ != Stage::kHasFrame || !waits_; });
}

void RegionSeeker::stop_waiting() {
  {
    const std::lock_guard lock(mutex_);
    waits_ = false;
  }
  is_through_.notify_all();
}

void RegionSeeker::read(const std::string& text) {
  if (read_ != nullptr && read_->text == text) {
    return;
  }
  finder_.set_text(text);
  auto read = std::make_shared<SoughtText>();
  read->text = text;
  for (const std::int32_t id : finder_.text().ids) {
    read->tokens.push_back(finder_.tokenizer().piece(id));
  }
  read->cut = finder_.text().cut;
  read->invalid = finder_.text().invalid;
  read_ = std::move(read);
}

// Leaves `found` alone if it was stopped: then it is stale, or the end, and nobody takes it.
void RegionSeeker::find(FoundRegions& found, const std::stop_token& stop) {
  const PlaneGroup planes = all_planes(frame_.planes());
  if (!finder_.find(ReadPlanes(planes.all()).all(), format_, stop)) {
    return;
  }
  const ConstMatrix map = finder_.map();
  found.text = read_;
  found.rows = map.rows;
  found.columns = map.columns;
  found.values.resize(static_cast<std::size_t>(map.rows) * map.columns);
  for (int y = 0; y < map.rows; ++y) {
    std::transform(map.row(y), map.row(y) + map.columns,
                   found.values.begin() + static_cast<std::ptrdiff_t>(y) * map.columns,
                   [&](float relevance) { return share_of(relevance, finder_.has_decoder()); });
  }
  const std::span<const float> pooled = finder_.pooled();
  found.pooled_bytes = {g_bytes_new(pooled.data(), pooled.size_bytes()), g_bytes_unref};
}

void RegionSeeker::work() {
  FoundRegions found;
  std::string text;
  while (true) {
    std::stop_source stop;
    {
      std::unique_lock lock(mutex_);
      has_work_.wait(lock, [&] { return ends_ || stage_ == Stage::kHasFrame; });
      if (ends_) {
        return;
      }
      text = text_;
      stop_ = stop;
      if (is_stale_) {
        stop.request_stop();
      }
    }
    std::exception_ptr failure;
    try {
      if (!text.empty()) {
        read(text);
        find(found, stop.get_token());
      }
    } catch (...) {
      failure = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex_);
      if (is_stale_ || text.empty()) {
        stage_ = Stage::kIdle;
      } else {
        failure_ = failure;
        std::swap(found, found_);
        stage_ = Stage::kFound;
      }
    }
    is_through_.notify_all();
  }
}

}  // namespace nonlocal
