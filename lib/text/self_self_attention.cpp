#include "text/self_self_attention.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace nonlocal::text {
namespace {

constexpr int kParts = 3;

double length(const float* row, int count) {
  return std::sqrt(std::inner_product(row, row + count, row, 0.0));
}

}  // namespace

SelfSelfPath::SelfSelfPath(const TowerShape& shape, TowerMemory& memory)
    : shape_(shape),
      memory_(memory),
      tokens_(memory.x.view().rows, shape.width),
      units_(memory.x.view().rows, kParts * shape.width),
      averages_(memory.x.view().rows, kParts * shape.width),
      lengths_(static_cast<std::size_t>(memory.x.view().rows)) {}

void SelfSelfPath::add_start(StageBuilder& stages) {
  const Matrix x = memory_.x.view();
  const Matrix y = tokens_.view();
  stages.add(x.rows, [x, y](int row, int) { std::copy_n(x.row(row), x.columns, y.row(row)); });
}

void SelfSelfPath::add_lengths(StageBuilder& stages) {
  const Matrix normal = memory_.normal.view();
  stages.add(normal.rows, [this, normal](int row, int) {
    lengths_[static_cast<std::size_t>(row)] = length(normal.row(row), normal.columns);
  });
  stages.add(1, [this](int, int) {
    const double sum = std::accumulate(lengths_.begin(), lengths_.end(), 0.0);
    unit_ = static_cast<float>(std::sqrt(sum / static_cast<double>(lengths_.size())));
  });
}

void SelfSelfPath::make_units(const float* from, float* to) const {
  constexpr double kLeast = 1e-12;
  const int dim = shape_.width / shape_.heads;
  for (int i = 0; i < kParts * shape_.heads; ++i, from += dim, to += dim) {
    const auto scale = static_cast<float>(unit_ / std::max(length(from, dim), kLeast));
    std::transform(from, from + dim, to, [scale](float v) { return v * scale; });
  }
}

void SelfSelfPath::add_units(StageBuilder& stages, const ConstMatrix& from) {
  const Matrix to = units_.view();
  stages.add(from.rows, [this, from, to](int row, int) { make_units(from.row(row), to.row(row)); });
}

void SelfSelfPath::add_averages(StageBuilder& stages, bool is_of_values) {
  const int width = shape_.width;
  for (int part = 0; part < kParts; ++part) {
    const Matrix unit = columns(units_.view(), part * width, width);
    const Matrix value = is_of_values ? columns(memory_.parts.view(), 2 * width, width) : unit;
    stages.add_attention(unit, unit, value, columns(averages_.view(), part * width, width));
  }
}

void SelfSelfPath::add_block(StageBuilder& stages, const Dense& output) {
  add_lengths(stages);
  add_units(stages, memory_.parts.view());
  add_averages(stages, false);
  add_units(stages, averages_.view());
  add_averages(stages, true);
  const Matrix all = averages_.view();
  const Matrix mean = memory_.average.view();
  stages.add(all.rows, [all, mean](int row, int) {
    const float* a = all.row(row);
    const int n = mean.columns;
    for (int c = 0; c < n; ++c) {
      mean.row(row)[c] = (a[c] + a[n + c] + a[2 * n + c]) / kParts;
    }
  });
  stages.add_dense(output, mean, tokens_.view(), true);
}

}  // namespace nonlocal::text
