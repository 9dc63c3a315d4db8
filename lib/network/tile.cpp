#include "network/tile.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/mirror.h"
#include "network/convolution.h"
#include "network/pixels.h"
#include "network/refinement_model.h"

namespace nonlocal::network {
namespace {

// What sigma takes in each pixel with the zeros that fill up: see padded_channels().
constexpr int kFilledBytes = 4;

constexpr int kRowsAhead = 8;

// Groups of kCount neighbours, one group a pixel.
template <int kCount, typename Value>
void scatter(const Value* row, int pixels, int channels, Value* to) {
  for (int i = 0; i < pixels; ++i) {
    std::memcpy(to + static_cast<std::ptrdiff_t>(i) * channels, row + i * kCount, kCount * sizeof(Value));
  }
}

template <int kCount>
void gather(const float* from, int pixels, float* row) {
  for (int i = 0; i < pixels; ++i) {
    std::memcpy(row + i * kCount, from + static_cast<std::ptrdiff_t>(i) * kCount * kCount,
                kCount * sizeof(float));
  }
}

// Short pieces of rows, far from each other, are not what the CPU foresees.
void prefetch(const ConstPlane& plane, const MirroredColumns& columns, int y) {
  const std::ptrdiff_t sample = static_cast<std::ptrdiff_t>(plane.step) * plane.bytes_per_sample();
  const std::byte* row = plane.row(y) + columns.load_first * sample;
  constexpr std::ptrdiff_t kLine = 64;
  for (std::ptrdiff_t i = 0; i < columns.load_count * sample; i += kLine) {
    __builtin_prefetch(row + i);
  }
}

}  // namespace

MirroredColumns::MirroredColumns(int first, int count, int width, int samples_each) {
  for (int x = first; x < first + count; ++x) {
    index.push_back(mirror(x, width) / samples_each);
  }
  const auto [least, most] = std::minmax_element(index.begin(), index.end());
  load_first = *least;
  load_count = *most - *least + 1;
  for (int& i : index) {
    i -= load_first;
  }
  // Those that lie as loaded, if they are all that is loaded.
  const int inside = std::min(first + count, width) - std::max(first, 0);
  if (samples_each == 1 && inside == load_count) {
    plain_first = std::max(-first, 0);
    plain_count = load_count;
  }
}

TileColumn::TileColumn(const TileShape& shape, int first_pixel, int frame_width)
    : first(first_pixel * shape.unshuffle),
      full((first_pixel - shape.border) * shape.unshuffle, shape.in_width() * shape.unshuffle, frame_width,
           1),
      half((first_pixel - shape.border) * shape.unshuffle, shape.in_width() * shape.unshuffle, frame_width,
           2) {}

TileRows::TileRows(const TileShape& shape, NetworkPrecision precision)
    : shape_(shape),
      precision_(precision),
      channels_(padded_channels(2 * shape.unshuffle * shape.unshuffle + 1, precision)) {
  const std::size_t samples = static_cast<std::size_t>(shape.in_width()) * shape.unshuffle;
  for (AlignedBuffer<float>* buffer : {&loaded_, &codes_, &sum_, &values_}) {
    buffer->allocate(samples);
  }
}

void TileRows::load(const Frame& frame, const TileColumn& column, int first_pixel_row, void* pixels) {
  switch (precision_) {
    case NetworkPrecision::kBfloat16:
      return load_pixels(frame, column, first_pixel_row, static_cast<std::uint16_t*>(pixels));
    case NetworkPrecision::kInt8:
      return load_pixels(frame, column, first_pixel_row, static_cast<std::uint8_t*>(pixels));
    default:
      return load_pixels(frame, column, first_pixel_row, static_cast<float*>(pixels));
  }
}

template <typename Value>
void TileRows::load_pixels(const Frame& frame, const TileColumn& column, int first_pixel_row, Value* pixels) {
  const int r = shape_.unshuffle;
  const std::ptrdiff_t row_values = static_cast<std::ptrdiff_t>(shape_.in_width()) * channels_;
  for (int i = 0; i < shape_.in_height(); ++i) {
    const int first_row = (first_pixel_row - shape_.border + i) * r;
    Value* row = pixels + i * row_values;
    for (int dy = 0; dy < r; ++dy) {
      const int ahead = mirror(first_row + dy + kRowsAhead, frame.noisy.height);
      prefetch(frame.noisy, column.full, ahead);
      prefetch(frame.estimate, column.full, ahead);
      const int y = mirror(first_row + dy, frame.noisy.height);
      load_plane_row(frame.noisy, column, y, dy * r, row);
      load_plane_row(frame.estimate, column, y, r * r + dy * r, row);
    }
    load_sigma_row(frame, column, first_row, row + 2 * r * r);
  }
}

template <typename Value>
void TileRows::load_plane_row(const ConstPlane& plane, const TileColumn& column, int y, int channel,
                              Value* pixels) {
  const Value* values = row_values<Value>(plane, column.full, y);
  if (shape_.unshuffle == 2) {
    scatter<2>(values, shape_.in_width(), channels_, pixels + channel);
  } else {
    scatter<4>(values, shape_.in_width(), channels_, pixels + channel);
  }
}

template <typename Value>
const Value* TileRows::row_values(const ConstPlane& plane, const MirroredColumns& columns, int y) {
  if constexpr (sizeof(Value) == 1) {
    // Code values are what the convolution reads.
    if (plane.bit_depth == 8 && plane.step == 1 && columns.is_plain()) {
      return reinterpret_cast<const Value*>(plane.row(y)) + columns.load_first;
    }
  }
  load_mirrored(plane, columns, y, codes_.data());
  auto* values = reinterpret_cast<Value*>(values_.data());
  convert(codes_.data(), input_scale(precision_).offset, 1, shape_.in_width() * shape_.unshuffle, values);
  return values;
}

// The last channels: the mean of sigma over each block, and zeros.
template <typename Value>
void TileRows::load_sigma_row(const Frame& frame, const TileColumn& column, int first_row, Value* pixels) {
  const int r = shape_.unshuffle;
  const ConstPlane& map = frame.sigma_map;
  float* mean = codes_.data();
  if (map.data == nullptr) {
    std::fill_n(mean, shape_.in_width(), frame.sigma);
  } else {
    const bool is_full = map.width == frame.noisy.width && map.height == frame.noisy.height;
    std::fill_n(sum_.data(), sum_.size(), 0.0F);
    for (int dy = 0; dy < r; ++dy) {
      const int y = mirror(first_row + dy, frame.noisy.height);
      load_mirrored(map, is_full ? column.full : column.half, is_full ? y : y / 2, codes_.data());
      add(codes_.data(), shape_.in_width() * r, sum_.data());
    }
    for (int i = 0; i < shape_.in_width(); ++i) {
      float sum = 0;
      for (int dx = 0; dx < r; ++dx) {
        sum += sum_.data()[i * r + dx];
      }
      mean[i] = sum / static_cast<float>(r * r);
    }
  }
  auto* values = reinterpret_cast<Value*>(values_.data());
  convert(mean, 0, input_scale(precision_).sigma_scale, shape_.in_width(), values);
  for (int i = 0; i < shape_.in_width(); ++i) {
    char filled[kFilledBytes] = {};
    std::memcpy(filled, values + i, sizeof(Value));
    std::memcpy(pixels + static_cast<std::ptrdiff_t>(i) * channels_, filled, sizeof(filled));
  }
}

void TileRows::load_mirrored(const ConstPlane& plane, const MirroredColumns& columns, int y, float* codes) {
  // The middle lies as it is; what is mirrored comes from within it, unless the frame is tiny.
  float* plain = columns.plain_count > 0 ? codes + columns.plain_first : loaded_.data();
  load_codes(plane, columns.load_first, y, columns.load_count, plain);
  const int count = static_cast<int>(columns.index.size());
  for (int i = 0; i < columns.plain_first; ++i) {
    codes[i] = plain[columns.index[static_cast<std::size_t>(i)]];
  }
  for (int i = columns.plain_first + columns.plain_count; i < count; ++i) {
    codes[i] = plain[columns.index[static_cast<std::size_t>(i)]];
  }
}

void TileRows::store(const Frame& frame, const TileColumn& column, int first_pixel_row, const float* pixels) {
  const int r = shape_.unshuffle;
  const int count = std::min(shape_.width * r, frame.out.width - column.first);
  const int first_row = first_pixel_row * r;
  const int rows = std::min(shape_.height * r, frame.out.height - first_row);
  for (int i = 0; i < rows; ++i) {
    const float* from = pixels + (static_cast<std::ptrdiff_t>(i / r) * shape_.width * r + i % r) * r;
    if (r == 2) {
      gather<2>(from, shape_.width, sum_.data());
    } else {
      gather<4>(from, shape_.width, sum_.data());
    }
    load_codes(frame.estimate, column.first, first_row + i, count, codes_.data());
    add_residual(sum_.data(), count, codes_.data());
    store_codes(codes_.data(), frame.out, column.first, first_row + i, count);
  }
}

}  // namespace nonlocal::network
