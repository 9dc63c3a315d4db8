// Networks trained elsewhere: convolutions, non-local blocks and attention, as one file describes them.
//
// A file is a safetensors file whose metadata hold "format": "nonlocal.network", "version": "2" and
// "network", a description of the layers in JSON; lib/network/README.md specifies it layer by layer, and
// tools/train/export.py writes it from PyTorch. What runs is
//
//   out = N(x)            or, where the file says "residual",            out = x + N(x)
//
// with x the frame's planes in the file's range of values. N sees zeros where a layer pads, but where the
// file says "border": "mirror" its convolutions of the frame see that mirrored; a frame whose sides are no
// multiple of N's strides and windows is mirrored further to the right and the bottom (the border sample is
// not repeated), and what comes out is cut back.
//
// Networks whose non-local layers look at T frames see the present frame and the T - 1 before it; before the
// first frame stands the first frame.
//
// Where the file has a "temporal_mean", the frame's `out` is the mean of that and of `out` of the frame
// before, before it was a mean itself, moved to where things are now; by how alike they are (w = exp(-d²/h²),
// lib/network/README.md), so that next to nothing of a frame is seen in one that shows something else. `out`
// has 15 bits then, in video of 16 bits, too: steps of 1/128 code value from 0 to 255.99, beyond which it is
// clamped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "nonlocal/export.h"
#include "nonlocal/plane.h"
#include "nonlocal/refinement.h"

namespace nonlocal {

// A plane of floats in somebody else's memory: value (x, y) is at data + y * stride + x.
template <typename Value>
struct BasicFloatPlane {
  Value* data = nullptr;
  int width = 0;
  int height = 0;
  std::ptrdiff_t stride = 0;  // floats from a row to the next

  operator BasicFloatPlane<const Value>() const requires(!std::is_const_v<Value>) {
    return {data, width, height, stride};
  }
};

using FloatPlane = BasicFloatPlane<float>;
using ConstFloatPlane = BasicFloatPlane<const float>;

struct NetworkParameters {
  std::optional<double> condition;  // the file's "condition" (sigma, strength ...); none: the file's default
  int threads = 0;                  // 0: as many as the machine has; the output does not depend on it
  double strength = 1;  // 0 to 1: the frame itself to the output, x + strength (out - x). Less than 1 only
                        // where the output has the frame's channels and size
};

// The scalar that a network may be told beside its frame.
struct NetworkCondition {
  std::string name;
  double minimum;
  double maximum;
  double value;  // where the user gives none
};

// Runs frames one after another. Weights, working memory and primitives are kept between frames of one size:
// a frame allocates nothing of its own (oneDNN makes a small table a primitive). One object serves one thread
// at a time; different objects are independent.
class NONLOCAL_API Network {
 public:
  // `most_frames`: looks at no more frames than this, 0: at as many as the file says. Throws ModelError if
  // the file cannot be read or does not describe a network, naming layer and tensor, and InvalidArgument if
  // the precision is not supported.
  //
  // kInt8 takes a file with the ranges of its layers ("NAME.range"): frames are read in 255 steps of the
  // file's range of values, and what lies between convolutions in 255 of each channel's, as far as ranges
  // and kinds of layers go; the rest, and the output, is of kBfloat16 where that is faster, else kFloat32.
  // kAutomatic is kFloat32 where the file says so ("precision"), kInt8 where it has ranges, the CPU VNNI and
  // no AMX, which is as fast in kBfloat16 and more exact, else as NetworkPrecision says.
  explicit Network(const std::string& path, NetworkPrecision precision = NetworkPrecision::kAutomatic,
                   int most_frames = 0);
  ~Network();
  Network(Network&&) noexcept;
  Network& operator=(Network&&) noexcept;

  [[nodiscard]] int input_channels() const;
  [[nodiscard]] int output_channels() const;
  // Frames that an output depends on, the present one included.
  [[nodiscard]] int frames() const;
  // A side of the output, for this side of the frame.
  [[nodiscard]] int output_size(int input_size) const;
  [[nodiscard]] const std::optional<NetworkCondition>& condition() const;
  // The one in use: never kAutomatic.
  [[nodiscard]] NetworkPrecision precision() const;

  // Makes ready for frames of width x height and `threads` threads, which otherwise the first frame does.
  // Throws InvalidArgument for a size or a number of threads that makes no sense, and for frames so large
  // that a layer would compare more than 2^36 pairs of positions, or need more than 16 GiB.
  void prepare(int width, int height, int threads = 0);

  // Floats in the network's own range: input_channels() planes of one size, output_channels() planes of
  // output_size(). Input and output must not overlap. Throws InvalidArgument if planes do not fit, or the
  // condition or the strength is out of range.
  void run(std::span<const ConstFloatPlane> in, std::span<const FloatPlane> out,
           const NetworkParameters& parameters = {});

  // Video: 0 .. 255 in 8-bit code values, at any bit depth, is the file's range of values. As many planes as
  // the network has channels, 1 or 3, for input and output, which has the input's size. `out` is rounded to
  // its bit depth and clamped, and may be the memory of `in`. Throws InvalidArgument as above.
  void run(std::span<const ConstPlane> in, std::span<const Plane> out,
           const NetworkParameters& parameters = {});

  // The next frame has nothing to do with those before: after a seek, for example.
  void reset();

 private:
  friend struct NetworkAccess;
  struct State;
  std::unique_ptr<State> state_;
};

// What a model file holds: for people, see `nonlocal inspect`.
struct LayerSummary {
  std::string name;
  std::string type;
  std::vector<std::string> inputs;
  int channels;                // of the output
  int numerator, denominator;  // the output's width and height are the frame's times this
  std::int64_t parameters;     // numbers that training found
  double operations;    // a sample of the frame, two a multiplication with its addition; what attention
                        // over the whole frame costs beside its convolutions grows with the frame: none
  int receptive_field;  // samples of the frame on a side that one value depends on; 0: all
};

struct ModelSummary {
  std::string format;
  std::string version;
  int input_channels;
  int output_channels;
  int frames;
  int multiple;  // frames are mirrored up to multiples of this
  bool residual;
  std::optional<double> temporal_mean;  // its h, in 8-bit code values
  double range[2];
  bool has_ranges;  // the general format's, of what lies between its layers: it can be calculated in 8 bits
  std::optional<NetworkCondition> condition;
  std::vector<LayerSummary> layers;
  std::map<std::string, std::string>
      metadata;  // all but format, version and description: where it comes from
};

// Of both formats, RefinementNetwork's too. Throws ModelError as the networks do.
NONLOCAL_API ModelSummary summarise_model(const std::string& path);

}  // namespace nonlocal
