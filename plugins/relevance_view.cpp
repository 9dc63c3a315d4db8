#include "relevance_view.h"

#include <algorithm>
#include <numeric>

#include "video_planes.h"

namespace nonlocal {
namespace {

constexpr float kFollowing = 0.25F;    // of what a new frame says; the rest is what those before said
constexpr float kLeastChange = 1e-4F;  // of the colours' range: less is nothing
constexpr float kLeastRegion = 0.1F;   // of a region's relevance
constexpr float kBoxShare = 0.5F;

}  // namespace

void RelevanceView::take(const ConstMatrix& map) {
  rows_ = map.rows;
  columns_ = map.columns;
  least_ = kLeastRegion;
  scale_ = 1;
  map_.resize(static_cast<std::size_t>(columns_) * rows_);
  for (int row = 0; row < rows_; ++row) {
    std::copy_n(map.row(row), columns_, map_.begin() + static_cast<std::ptrdiff_t>(row) * columns_);
  }
  most_ = map_.empty() ? 0 : *std::max_element(map_.begin(), map_.end());
}

void RelevanceView::look(std::span<const ConstPlane> frame, const ColourFormat& format,
                         const CrossAttentionFilter& filter, int threads, bool is_new) {
  TokenMapParameters parameters;
  parameters.columns = std::min(parameters.columns, frame[0].width);
  parameters.rows = std::min(parameters.rows, frame[0].height);
  parameters.threads = threads;
  maps_.run(frame, format, filter, parameters);
  is_new = is_new || columns_ != parameters.columns || rows_ != parameters.rows;
  columns_ = parameters.columns;
  rows_ = parameters.rows;
  map_.resize(static_cast<std::size_t>(columns_) * rows_);
  least_ = kLeastChange;
  most_ = least_;
  for (int row = 0; row < rows_; ++row) {
    for (int column = 0; column < columns_; ++column) {
      float sum = 0;
      for (int token = 0; token < maps_.tokens(); ++token) {
        sum += maps_.map(token).row(row)[column];
      }
      float& value = map_[static_cast<std::size_t>(row) * columns_ + column];
      value = is_new ? sum : value + kFollowing * (sum - value);
      most_ = std::max(most_, value);
    }
  }
  scale_ = most_;
}

void RelevanceView::paint_heat(std::span<const Plane> frame, const ColourFormat& format, int threads) const {
  HeatMapParameters parameters;
  parameters.most = scale_;
  parameters.threads = threads;
  blend_heat_map(map(), ReadPlanes(frame).all(), frame, format, parameters);
}

void RelevanceView::paint_mask(std::span<const Plane> frame, const ColourFormat& format, const Plane* alpha,
                               int threads) const {
  const MaskParameters parameters{scale_, threads};
  if (alpha == nullptr) {
    return nonlocal::paint_mask(map(), frame, format, parameters);
  }
  nonlocal::paint_mask(map(), {alpha, 1}, {ColourModel::kGray, format.matrix, ColourRange::kFull},
                       parameters);
}

std::optional<GstVideoRectangle> RelevanceView::box(int width, int height) const {
  int left = columns_;
  int right = -1;
  int top = rows_;
  int bottom = -1;
  for (int row = 0; row < rows_; ++row) {
    for (int column = 0; column < columns_; ++column) {
      if (map().row(row)[column] >= kBoxShare * most_) {
        left = std::min(left, column);
        right = std::max(right, column);
        top = std::min(top, row);
        bottom = std::max(bottom, row);
      }
    }
  }
  if (right < 0 || most_ <= least_) {
    return std::nullopt;
  }
  const int x = left * width / columns_;
  const int y = top * height / rows_;
  // At least a sample: a map may have more cells than the frame samples.
  return GstVideoRectangle{x, y, ((right + 1) * width + columns_ - 1) / columns_ - x,
                           ((bottom + 1) * height + rows_ - 1) / rows_ - y};
}

double RelevanceView::mean() const {
  return empty() ? 0 : std::accumulate(map_.begin(), map_.end(), 0.0) / static_cast<double>(map_.size());
}

std::vector<double> RelevanceView::token_means() const {
  std::vector<double> means;
  for (int token = 0; token < maps_.tokens(); ++token) {
    double sum = 0;
    for (int row = 0; row < rows_; ++row) {
      for (int column = 0; column < columns_; ++column) {
        sum += maps_.map(token).row(row)[column];
      }
    }
    means.push_back(sum / (static_cast<double>(rows_) * columns_));
  }
  return means;
}

}  // namespace nonlocal
