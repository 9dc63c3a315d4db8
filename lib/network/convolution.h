// Valid convolutions of 3 x 3 on tiles, by oneDNN, on the thread that asks for them.
#pragma once

#include <cstddef>
#include <dnnl.hpp>
#include <vector>

#include "network/refinement_model.h"

namespace nonlocal::network {

// While one lives, oneDNN starts no threads on behalf of this thread: OpenMP's would spin between the frames.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

// Bytes a value between the layers has: 4, 2 or 1.
int value_bytes(NetworkPrecision precision);

// Channels that the first convolution reads: filled up with zeros to what the CPU multiplies at once.
int padded_channels(int channels, NetworkPrecision precision);

// Reads (width + 2) x (height + 2) pixels, writes width x height, channels side by side (nhwc) without gaps.
class Convolution {
 public:
  // The last layer has no ReLU and writes float, the others ReLU and the precision's type.
  Convolution(const PreparedLayer& layer, NetworkPrecision precision, int width, int height, bool is_last);

  [[nodiscard]] std::size_t in_bytes() const { return description_.src_desc().get_size(); }
  [[nodiscard]] std::size_t out_bytes() const { return description_.dst_desc().get_size(); }
  [[nodiscard]] std::size_t scratch_bytes() const { return description_.scratchpad_desc().get_size(); }

 private:
  friend class BoundConvolution;
  dnnl::convolution_forward::primitive_desc description_;
  dnnl::convolution_forward primitive_;
  dnnl::memory weight_;
  dnnl::memory bias_;
};

// A convolution with a thread's memory.
class BoundConvolution {
 public:
  BoundConvolution(const Convolution& convolution, void* in, void* out, void* scratch);

  // False if oneDNN fails.
  bool run();

 private:
  dnnl::convolution_forward primitive_;
  dnnl::stream stream_;
  std::vector<dnnl::memory> memory_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

}  // namespace nonlocal::network
