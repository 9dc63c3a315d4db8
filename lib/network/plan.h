// How a network runs on frames of one size: memory that tensors share in turn, and steps bound to it.
//
// Local networks run tile by tile, each tile from the frame to the output by one thread: every operation
// calculates the part that the tile's output needs of it. Others run operation by operation on the whole
// frame, each in bands of rows.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/aligned_buffer.h"
#include "network/attention_step.h"
#include "network/network_model.h"
#include "network/step.h"

namespace nonlocal::network {

// What lies in memory of each operation's output, whatever the frame's size.
struct TensorLayout {
  int pitch;
  Element element;
  std::shared_ptr<const Quantisation> quantisation;  // of bytes
};

// Of kInt8: bytes where the file's ranges allow it, else bfloat16 where the CPU is faster in it, or floats.
std::vector<TensorLayout> tensor_layouts(const NetworkModel& model, NetworkPrecision precision);

// One for each operation; null where it is no convolution.
using NetworkWeights = std::vector<std::unique_ptr<ConvolutionWeights>>;

NetworkWeights network_weights(const NetworkModel& model, const std::vector<TensorLayout>& layouts);

// What changes from frame to frame, and steps look at when they run.
struct FrameState {
  float condition = 0;
  int frame = 0;  // since the last reset
};

// Writes the part of the frame that `view` stores, mirrored beyond the frame; reads the part of the output.
// `slot` is the thread's.
using LoadPart = std::function<void(const TensorView& view, const Rect& part, int slot)>;

class Plan {
 public:
  struct Size {
    int width, height;  // of the frame, multiples of the network's
  };

  // `tile` is the size of tiles of a local network, in samples of the frame; 0 x 0 chooses it. Throws
  // InvalidArgument if the frame is too large for the network.
  Plan(const NetworkModel& model, const std::vector<TensorLayout>& layouts, NetworkWeights& weights,
       const FrameState& state, Size size, Size tile);

  // Makes ready for so many threads. Throws InvalidArgument where they need more memory than a network may.
  void add_slots(int threads);

  // False if oneDNN fails.
  bool run(const LoadPart& load, const LoadPart& store, int threads);

 private:
  // Where each operation's part of a tile lies.
  struct Geometry {
    Rect tile{};  // the first of its kind, of the frame
    std::vector<Rect> parts;
    std::vector<std::size_t> offsets;  // of its memory; bytes
    std::vector<bool> is_sum_there;
    std::size_t bytes = 0;
  };
  struct Slot {
    AlignedBuffer<std::byte> memory;
    AlignedBuffer<std::byte> scratch;
    std::vector<std::vector<Step>> kinds;  // of tiles; one after another
  };

  [[nodiscard]] Rect plane(std::size_t op) const;
  [[nodiscard]] std::vector<Rect> parts_for(const Rect& tile) const;
  [[nodiscard]] std::vector<int> kind_key(const Rect& tile, const std::vector<Rect>& parts) const;
  [[nodiscard]] TensorView view(std::size_t op, const Rect& part, std::byte* data) const;
  // Of a side: what is calculated begins at `begin`, what is stored at `stored`.
  struct Piece {
    int begin, stored, end;
  };
  [[nodiscard]] double tile_operations(const std::vector<Rect>& parts) const;
  [[nodiscard]] double tile_cost(Size tile) const;
  void choose_tile();
  static std::vector<Piece> cut_side(int side, int piece, int shift);
  void choose_shift();
  void cut_tiles();
  void place_tensors(Geometry& geometry) const;
  [[nodiscard]] StepPlace step_place(std::size_t op, const Geometry& geometry, std::byte* memory) const;
  void make_tile_steps(const Geometry& geometry, Slot& slot);
  void make_stages();
  void add_stages(std::size_t op, const StepPlace& place);
  void check_size() const;
  void check_memory(double bytes) const;
  [[nodiscard]] std::vector<Rect> bands(const Op& op, const Rect& plane) const;
  // Those that have something to do; each has memory of its own.
  [[nodiscard]] int useful_threads(int threads) const;
  bool run_tiles(const LoadPart& load, const LoadPart& store, int threads);
  bool run_stages(const LoadPart& load, const LoadPart& store, int threads);

  const NetworkModel& model_;
  const std::vector<TensorLayout>& layouts_;
  NetworkWeights& weights_;
  const FrameState& state_;
  std::vector<AttentionBias> biases_;  // one for each operation; null where it has none
  Size size_;
  Size tile_;
  Size shift_{0, 0};  // of the cuts between tiles, to the left and upwards

  struct Tile {
    Rect rect;    // of the frame
    Rect stored;  // what of it no other tile stores
    std::size_t kind;
  };
  std::vector<Tile> tiles_;
  std::vector<Geometry> kinds_;

  AlignedBuffer<std::byte> frame_memory_;
  std::vector<AlignedBuffer<std::byte>> histories_;
  std::vector<Stage> stages_;
  std::size_t scratch_bytes_ = 0;

  std::vector<std::unique_ptr<Slot>> slots_;
};

}  // namespace nonlocal::network
