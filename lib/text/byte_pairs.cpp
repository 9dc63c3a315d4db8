#include "text/byte_pairs.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace nonlocal::text {
namespace {

constexpr std::int32_t kGone = -2;  // a symbol that became part of the one to its left
constexpr std::uint32_t kNone = UINT32_MAX;

std::uint64_t pair_of(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
         static_cast<std::uint32_t>(right);
}

}  // namespace

// A word's symbols as a chain, and the pairs in it that have a merge, those of lowest rank first. A pair that
// is no longer there is told when its turn comes.
class BytePairs::Chain {
 public:
  Chain(const BytePairs& pairs, std::vector<std::int32_t>& ids)
      : pairs_(pairs), ids_(ids), links_(ids.size()) {
    std::vector<std::uint64_t> found;
    for (std::uint32_t i = 0; i < ids.size(); ++i) {
      links_[i] = {i == 0 ? kNone : i - 1, i + 1 == ids.size() ? kNone : i + 1};
    }
    for (std::uint32_t i = 0; i + 1 < ids.size(); ++i) {
      if (const Merge* merge = pairs_.find(ids[i], ids[i + 1])) {
        found.push_back(entry(*merge, i));
      }
    }
    queue_ = Queue(std::greater<>(), std::move(found));
  }

  void merge_all() {
    while (!queue_.empty()) {
      const std::uint64_t first = queue_.top();
      queue_.pop();
      const auto at = static_cast<std::uint32_t>(first);
      const Merge* merge = merge_at(at);
      if (merge != nullptr && merge->rank == first >> 32) {
        join(at, merge->merged);
      }
    }
    std::erase(ids_, kGone);
  }

 private:
  struct Link {
    std::uint32_t before, after;
  };
  using Queue = std::priority_queue<std::uint64_t, std::vector<std::uint64_t>, std::greater<>>;

  static std::uint64_t entry(const Merge& merge, std::uint32_t at) {
    return static_cast<std::uint64_t>(merge.rank) << 32 | at;
  }

  // Of the symbol and the one after it.
  [[nodiscard]] const Merge* merge_at(std::uint32_t at) const {
    const std::uint32_t after = links_[at].after;
    return ids_[at] == kGone || after == kNone ? nullptr : pairs_.find(ids_[at], ids_[after]);
  }

  void push(std::uint32_t at) {
    if (const Merge* merge = merge_at(at)) {
      queue_.push(entry(*merge, at));
    }
  }

  void join(std::uint32_t at, std::int32_t merged) {
    const std::uint32_t gone = links_[at].after;
    ids_[at] = merged;
    ids_[gone] = kGone;
    links_[at].after = links_[gone].after;
    if (links_[at].after != kNone) {
      links_[links_[at].after].before = at;
    }
    push(at);
    if (links_[at].before != kNone) {
      push(links_[at].before);
    }
  }

  const BytePairs& pairs_;
  std::vector<std::int32_t>& ids_;
  std::vector<Link> links_;
  Queue queue_;
};

bool BytePairs::add(std::int32_t left, std::int32_t right, std::int32_t merged) {
  const auto rank = static_cast<std::uint32_t>(merges_.size());
  return merges_.try_emplace(pair_of(left, right), Merge{rank, merged}).second;
}

const BytePairs::Merge* BytePairs::find(std::int32_t left, std::int32_t right) const {
  const auto at = merges_.find(pair_of(left, right));
  return at == merges_.end() ? nullptr : &at->second;
}

void BytePairs::merge(std::vector<std::int32_t>& word) const {
  if (word.size() > 1) {
    Chain(*this, word).merge_all();
  }
}

}  // namespace nonlocal::text
